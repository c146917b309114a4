"""A dm_env_rpc server on the loopback with DM-HARD-8's published specs, and ways to misbehave.

It speaks the real protocol (the generated gRPC service of dm-env-rpc) and keeps its
promises: actions are sticky, `Score` is the sum of rewards, a Reset repeats the specs.
The world is a stub: the image is a function of seed, episode and step.
"""

import threading
from concurrent import futures

import grpc
import numpy as np
from dm_env_rpc.v1 import dm_env_rpc_pb2 as pb
from dm_env_rpc.v1 import dm_env_rpc_pb2_grpc, tensor_spec_utils, tensor_utils
from google.rpc import status_pb2

ACTIONS = {
    "MOVE_BACK_FORWARD": (-1, 1),
    "STRAFE_LEFT_RIGHT": (-1, 1),
    "LOOK_DOWN_UP": (-1, 1),
    "LOOK_LEFT_RIGHT": (-1, 1),
    "HAND_ROTATE_AROUND_FORWARD": (-1, 1),
    "HAND_ROTATE_AROUND_RIGHT": (-1, 1),
    "HAND_ROTATE_AROUND_UP": (-1, 1),
    "HAND_PUSH_PULL": (-10, 10),
    "HAND_GRIP": (0, 1),
}
APPLE_AT = 5  # the sum of forward movement that reaches the apple, worth 10
EPISODE_STEPS = 20


def specs(height=72, width=96):
    """The published specs; uids are arbitrary, reward and discount are observations too."""
    message = pb.ActionObservationSpecs()
    for uid, (name, bounds) in enumerate(ACTIONS.items(), start=1):
        spec = pb.TensorSpec(name=name, dtype=pb.DataType.DOUBLE)
        tensor_spec_utils.set_bounds(spec, *(np.float64(bound) for bound in bounds))
        message.actions[uid].CopyFrom(spec)
    observations = [
        pb.TensorSpec(name="RGB_INTERLEAVED", dtype=pb.DataType.UINT8, shape=[height, width, 3]),
        pb.TensorSpec(name="ACCELERATION", dtype=pb.DataType.DOUBLE, shape=[3]),
        pb.TensorSpec(name="HAND_FORCE", dtype=pb.DataType.DOUBLE),
        pb.TensorSpec(name="HAND_IS_HOLDING", dtype=pb.DataType.DOUBLE),
        pb.TensorSpec(name="HAND_DISTANCE", dtype=pb.DataType.DOUBLE),
        pb.TensorSpec(name="Score", dtype=pb.DataType.DOUBLE),
        pb.TensorSpec(name="reward", dtype=pb.DataType.DOUBLE),
    ]
    for uid, spec in enumerate(observations, start=1):
        message.observations[uid].CopyFrom(spec)
    return message


class World:
    """One stream's world."""

    def __init__(self, server):
        self.server = server
        self.seed = self.episode = self.time = 0
        self.sent = dict.fromkeys(ACTIONS, 0.0)
        self.is_running = False

    def answer(self, request):
        kind = request.WhichOneof("payload")
        response = pb.EnvironmentResponse()
        getattr(response, kind).SetInParent()
        getattr(self, f"on_{kind}", lambda *_: None)(getattr(request, kind), getattr(response, kind))
        return response

    def on_create_world(self, request, response):
        self.settings = {key: tensor_utils.unpack_tensor(value) for key, value in request.settings.items()}
        self.server.created.append(self.settings)
        self.seed = int(self.settings["seed"])
        response.world_name = f"world {len(self.server.created)}"

    def on_join_world(self, request, response):
        size = {key: int(tensor_utils.unpack_tensor(value)) for key, value in request.settings.items()}
        self.specs = self.server.make_specs(**size)
        self.shape = (size["height"], size["width"], 3)
        response.specs.CopyFrom(self.specs)

    def on_reset(self, request, response):
        self.is_running = False
        response.specs.CopyFrom(self.specs)

    def on_destroy_world(self, request, response):
        self.server.destroyed.append(request.world_name)

    def on_step(self, request, response):
        if not self.is_running:  # the first step of an episode only shows it
            self.episode, self.time, self.walked, self.score = self.episode + 1, 0, 0.0, 0.0
            self.is_running, reward = True, 0.0
        else:
            names = {uid: spec.name for uid, spec in self.specs.actions.items()}
            update = {names[uid]: float(tensor_utils.unpack_tensor(t)) for uid, t in request.actions.items()}
            self.server.received.append(update)
            self.sent.update(update)  # sticky
            self.time += 1
            self.walked += self.sent["MOVE_BACK_FORWARD"]
            reward = 10.0 if self.walked >= APPLE_AT else 0.0
            self.score += reward
        response.state = pb.EnvironmentStateType.RUNNING
        if reward:
            response.state, self.is_running = pb.EnvironmentStateType.TERMINATED, False
        elif self.time >= EPISODE_STEPS:
            response.state, self.is_running = pb.EnvironmentStateType.INTERRUPTED, False
        rng = np.random.default_rng([self.seed, self.episode, self.time])
        values = {
            "RGB_INTERLEAVED": rng.integers(0, 256, self.shape, dtype=np.uint8),
            "ACCELERATION": np.array([0.0, -9.8, 0.1 * self.time]),
            "HAND_FORCE": np.float64(0.5),
            "HAND_IS_HOLDING": np.float64(self.sent["HAND_GRIP"]),
            "HAND_DISTANCE": np.float64(1.5),
            "Score": np.float64(self.score),
            "reward": np.float64(reward),
        }
        for uid in request.requested_observations:
            packed = tensor_utils.pack_tensor(values[self.specs.observations[uid].name])
            response.observations[uid].CopyFrom(packed)


def _set(uid, value):
    return lambda step: step.observations[uid].CopyFrom(tensor_utils.pack_tensor(value))


SPOILERS = {
    "many answers": lambda step: None,
    "nan reward": _set(7, np.float64(np.nan)),
    "infinite reward": _set(7, np.float64(np.inf)),
    "no image": lambda step: step.observations.pop(1),
    "other image": _set(1, np.zeros((2, 2, 3), np.uint8)),
    "large image": _set(1, np.zeros((5000, 5000, 3), np.uint8)),
}
"""What becomes of an answer that is otherwise as it should be."""


class LoopbackServer(dm_env_rpc_pb2_grpc.EnvironmentServicer):
    """Serves on a free port of 127.0.0.1; `fault` is what goes wrong at step `fault_step`."""

    def __init__(self, make_specs=specs, fault=None, fault_step=3, credentials=None):
        self.make_specs, self.fault, self.fault_step = make_specs, fault, fault_step
        self.created, self.destroyed, self.received = [], [], []
        self._stopping = threading.Event()
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        dm_env_rpc_pb2_grpc.add_EnvironmentServicer_to_server(self, self._server)
        address = "127.0.0.1:0"
        if credentials is None:
            self.port = self._server.add_insecure_port(address)
        else:
            self.port = self._server.add_secure_port(address, credentials)
        self._server.start()

    def Process(self, requests, context):
        world, steps = World(self), 0
        for request in requests:
            steps += request.WhichOneof("payload") == "step"
            if self.fault and steps == self.fault_step:
                if self.fault in SPOILERS:
                    answer = world.answer(request)
                    SPOILERS[self.fault](answer.step)
                    yield from [answer] * (1000 if self.fault == "many answers" else 1)
                    continue
                response = self._misbehave(context)
                if response is None:
                    return
                yield response
            else:
                yield world.answer(request)

    def _misbehave(self, context):
        if self.fault == "late":
            self._stopping.wait(30)
        elif self.fault == "abort":
            context.abort(grpc.StatusCode.INTERNAL, "the game crashed")
        elif self.fault == "error":
            return pb.EnvironmentResponse(error=status_pb2.Status(code=3, message="bad action"))
        elif self.fault == "wrong answer":
            return pb.EnvironmentResponse(reset=pb.ResetResponse())
        elif self.fault == "unknown observation":
            response = pb.EnvironmentResponse()
            response.step.state = pb.EnvironmentStateType.RUNNING
            response.step.observations[99].CopyFrom(tensor_utils.pack_tensor(np.float64(0)))
            return response
        return None  # "end": the stream ends

    def stop(self):
        self._stopping.set()
        self._server.stop(0).wait(5)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


if __name__ == "__main__":  # as a process of its own, to be killed
    print(LoopbackServer().port, flush=True)
    threading.Event().wait()
