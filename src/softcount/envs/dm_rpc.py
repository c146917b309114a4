"""A dm_env_rpc server as a `dm_env.Environment`, with a time limit on every call.

dm-env-rpc's own adaptor does the translation; what is added here is the connection: one
thread reads the stream, every request waits for its answer no longer than `timeout`,
and whatever goes wrong becomes a `ServerError` that says so: nobody listens, silence, a
connection that breaks, specs that make no sense, observations that are missing or of another
shape, rewards that are no numbers, messages that are too large. Answers carry no numbers in
this protocol, so one that nobody asked for would shift all that follow; answers are
counted, and one too many is an error. After an error the world is dead: every later call fails at
once, and no thread is left behind.
"""

from __future__ import annotations

import contextlib
import math
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import dm_env
import grpc
import numpy as np
from dm_env_rpc.v1 import dm_env_adaptor, dm_env_rpc_pb2, dm_env_rpc_pb2_grpc, message_utils

Result = TypeVar("Result")
MAX_MESSAGE_BYTES = 64 * 2**20
"""Larger messages are refused, unread; an observation of 72 × 96 pixels takes 20 kB."""
_GOODBYE_SECONDS = 2.0


class ServerError(RuntimeError):
    """The server is not there, silent, gone, or does not make sense."""


class TimedConnection:
    """A dm_env_rpc connection (its `ConnectionType`) whose every answer is waited for in bounded time."""

    def __init__(self, address: str, timeout: float, *, tls: bool | str = False) -> None:
        """Connects; `tls` is whether to encrypt, or a file of the certificates to trust."""
        self.address, self.timeout = address, timeout
        self._channel = _open_channel(address, tls)
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._responses: queue.SimpleQueue[Any] = queue.SimpleQueue()  # never more than one, and the end
        self._lock = threading.Lock()
        self._num_awaited = 0
        self._is_out_of_step = False
        stub = dm_env_rpc_pb2_grpc.EnvironmentStub(self._channel)
        self._call = stub.Process(self._outgoing(), wait_for_ready=True)  # a server may still be starting
        self._reader = threading.Thread(target=self._read, name=f"dm_env_rpc {address}", daemon=True)
        self._reader.start()
        self._is_open = True
        self._has_answered = False

    def send(self, request: Any) -> Any:
        """Sends one request and returns its answer."""
        if not self._is_open:
            raise ServerError(f"the connection to {self.address} is closed")
        name = type(request).__name__.removesuffix("Request")
        packed, field = message_utils.pack_environment_request(request)
        with self._lock:
            self._num_awaited += 1
        if self._is_out_of_step:
            self.close()
            raise ServerError(f"{self.address} sent an answer that nobody had asked for, before {name}")
        self._requests.put(packed)
        try:
            response = self._responses.get(timeout=self.timeout)
        except queue.Empty:
            self.close()
            if not self._has_answered:
                nobody = f"no dm_env_rpc server answers at {self.address} (waited {self.timeout:g} s)"
                raise ServerError(nobody) from None
            raise ServerError(f"{self.address} did not answer {name} within {self.timeout:g} s") from None
        self._has_answered = True
        if isinstance(response, Exception):
            self.close()
            details = response.details() if isinstance(response, grpc.Call) else str(response)
            raise ServerError(f"{self.address} broke the connection during {name}: {details}") from response
        return message_utils.unpack_environment_response(response, field)

    def close(self) -> None:
        """Ends the stream and its threads; may be called twice."""
        if self._is_open:
            self._is_open = False
            self._requests.put(None)
            self._call.cancel()
            self._channel.close()
            self._reader.join(_GOODBYE_SECONDS)

    def _outgoing(self) -> Iterator[Any]:
        return iter(self._requests.get, None)

    def _read(self) -> None:
        try:
            for response in self._call:
                with self._lock:
                    self._num_awaited -= 1
                    if self._num_awaited < 0:
                        self._is_out_of_step = True
                        return
                self._responses.put(response)
            self._responses.put(ConnectionError("the server ended the stream"))
        except grpc.RpcError as error:
            self._responses.put(error)


def _open_channel(address: str, tls: bool | str) -> Any:
    limit = [
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ]
    if not tls:
        return grpc.insecure_channel(address, options=limit)
    trusted = Path(tls).read_bytes() if isinstance(tls, str) else None  # None: those that gRPC brings
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(trusted), options=limit)


class RpcWorld(dm_env.Environment):  # type: ignore[misc]
    """One world on a server, created, joined, and destroyed on `close`."""

    def __init__(
        self,
        address: str,
        create: Mapping[str, Any],
        join: Mapping[str, Any],
        *,
        timeout: float = 30.0,
        tls: bool | str = False,
    ) -> None:
        self.address = address
        self._connection = TimedConnection(address, timeout, tls=tls)
        self._world = ""
        try:
            self._adaptor, self._world = self._guard(
                "its specs", lambda: dm_env_adaptor.create_and_join_world(self._connection, create, join)
            )
            self._actions = self._guard("its action specs", self._adaptor.action_spec)
            self._observations = self._guard("its observation specs", self._checked_specs)
        except BaseException:
            self._connection.close()
            raise

    def reset(self) -> dm_env.TimeStep:
        """Starts an episode."""
        return self._guard("its answer to Reset", lambda: self._checked(self._adaptor.reset()))

    def step(self, action: Mapping[str, Any]) -> dm_env.TimeStep:
        """Sends actions and returns what follows."""
        return self._guard("its answer to Step", lambda: self._checked(self._adaptor.step(action)))

    def action_spec(self) -> Any:
        """Returns the specs of all actions by name."""
        return self._actions

    def observation_spec(self) -> Any:
        """Returns the specs of all observations by name, reward and discount left out."""
        return self._observations

    def close(self) -> None:
        """Leaves and destroys the world as far as the server still listens; may be called twice."""
        self._connection.timeout = min(self._connection.timeout, _GOODBYE_SECONDS)
        with contextlib.suppress(ServerError):
            self._guard("its answer to Leave", self._adaptor.close)
            destroy = dm_env_rpc_pb2.DestroyWorldRequest(world_name=self._world)
            self._guard("its answer to Destroy", lambda: self._connection.send(destroy))
        self._connection.close()

    def _checked_specs(self) -> Any:
        """Returns the specs of observations that fit into a message."""
        specs = self._adaptor.observation_spec()
        for name, spec in specs.items():
            num_bytes = math.prod(abs(int(side)) for side in spec.shape) * np.dtype(spec.dtype).itemsize
            if num_bytes > MAX_MESSAGE_BYTES:
                raise ValueError(
                    f"{name} has shape {tuple(spec.shape)}; expected at most {MAX_MESSAGE_BYTES} bytes"
                )
        return specs

    def _checked(self, step: dm_env.TimeStep) -> dm_env.TimeStep:
        """Returns what the server sent if nothing is missing and the reward is a number."""
        for name in self._observations:  # of another shape they are refused by the adaptor
            if name not in step.observation:
                raise ValueError(f"the observation {name} is missing")
        for name in ("reward", "discount"):
            value = getattr(step, name)
            if value is not None and not np.isfinite(value).all():
                raise ValueError(f"the {name} is {value}; expected a finite number")
        return step

    def _guard(self, what: str, call: Callable[[], Result]) -> Result:
        """Turns whatever the client library raises into one kind of error, and hangs up."""
        try:
            return call()
        except ServerError:
            raise
        except Exception as error:  # the library raises many kinds on malformed answers
            self._connection.close()
            text = str(error).strip() or repr(error)
            raise ServerError(f"{self.address}: {what} cannot be used: {text}") from error
