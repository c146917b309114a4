"""Deterministic mode: the loop of one process over roles that each live in their own, with the same bits.

It is slower than one process, since every role waits for the others. It is for tests, and to find out
whether something odd comes from a cluster or from the method.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import ray

from softcount.config import RunConfig, only_read
from softcount.launch.build import (
    Specs,
    build_actor,
    build_inference,
    build_learner,
    build_source,
    check,
    look_at_world,
    plan_of,
)
from softcount.launch.local import LocalLoop, Roles
from softcount.launch.ray.calls import get
from softcount.launch.ray.cluster import Cluster
from softcount.launch.ray.hosts import Birth, RolePulse, Setup, connect_for

BUILDERS: dict[str, Callable[[RunConfig, Specs], Any]] = {
    "actor": lambda config, specs: build_actor(config, specs, build_inference(config, specs)),
    "inference": build_inference,
    "memory": lambda config, specs: plan_of(config, specs, build_inference(config, specs).dim).build(),
    "replay": build_source,
    "learner": build_learner,
}


class RoleHost:
    """One role in a process of its own; one call at a time."""

    def __init__(self, setup: Setup, role: str) -> None:
        self.birth = Birth()
        self._role = BUILDERS[role](setup.config, setup.specs)

    def call(self, method: str, asked: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return getattr(self._role, method)(*asked, **named)

    def ping(self) -> RolePulse:
        return self.birth.pulse(True)


class Far:
    """Stands where a role stands: has its methods and nothing else of it."""

    def __init__(self, host: Any) -> None:
        self._host = host

    def __call__(self, *asked: Any) -> Any:
        return self._ask("__call__", *asked)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{name} of a role in another process cannot be read; expected a call")
        return partial(self._ask, name)

    def _ask(self, method: str, *asked: Any, **named: Any) -> Any:
        return get(self._host.call.remote(method, asked, named))


class LockstepLoop(LocalLoop):
    """The local loop over roles on Ray."""

    def __init__(self, config: RunConfig, cluster: Cluster | None = None) -> None:
        """Starts every role, on a cluster that is there, or on the one that the configuration says."""
        config = only_read(config)
        check(config)
        specs, _ = look_at_world(config)
        self._stack = ExitStack()
        try:
            cluster = cluster or self._stack.enter_context(connect_for(config.runtime))
            roles = far_roles(Setup(config, specs, cluster.namespace), cluster)
            super().__init__(
                roles,
                relabel=config.meme.relabel,
                overlap=config.overlap,
                reembed_every=config.recode.reembed_every,
            )
        except BaseException:
            self._stack.close()
            raise

    def close(self) -> None:
        super().close()
        for far in vars(self.roles).values():
            ray.kill(far._host)
        self._stack.close()


def far_roles(setup: Setup, cluster: Cluster) -> Roles:
    """Starts every role in a process of its own."""
    host = ray.remote(RoleHost).options(
        num_cpus=0, max_restarts=0, max_task_retries=0, namespace=cluster.namespace
    )
    hosts: dict[str, Any] = {role: host.remote(setup, role) for role in BUILDERS}
    get([host.ping.remote() for host in hosts.values()])  # each is built, or says why it cannot be
    far: dict[str, Any] = {role: Far(host) for role, host in hosts.items()}
    return Roles(**far)
