"""Environments of one's own: registered with Gymnasium, or made by a function.

    gym/CartPole-v1                       what `gymnasium.make` knows
    gym/my_package:MyEnv-v0               the same, after `import my_package`, which registers it
    my_package.module:make_env            what `make_env(**options)` returns; a class serves as well

Modules are looked for where Python looks, and in the current folder. Where an environment has
`get_state` and `set_state`, checkpoints hold its episodes; else a resumed run begins new ones.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import gymnasium
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, RescaleObservation, TimeLimit

from softcount.envs.spaces import in_unit_range
from softcount.types import State


def import_module(name: str) -> Any:
    """Imports a module, also from the current folder; says what to do where there is none."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise ImportError(f"importing {name} failed: {error}") from error  # something that it needs
        raise ImportError(
            f"no module is called {name!r}; install it, or start from the folder that holds "
            f"{name.partition('.')[0]}.py"
        ) from error


def registered(name: str) -> list[str]:
    """Lists what Gymnasium knows, after importing the module that the name names."""
    module, _, _ = name.rpartition(":")
    if module:
        import_module(module)
    return [f"{module}:{known}" if module else known for known in gymnasium.registry]


def make_registered(name: str, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    """Builds an environment by its id, `module:id` included."""
    try:
        return with_state(in_unit_range(gymnasium.make(name, **options)))
    except (TypeError, gymnasium.error.Error) as error:
        raise ValueError(f"{name} could not be made with the options {options}: {error}") from error


def make_by_function(name: str, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    """Builds an environment by a function or class, `module:function`."""
    module, _, function = name.partition(":")
    found = import_module(module)
    if not callable(getattr(found, function, None)):
        known = [key for key, value in vars(found).items() if callable(value) and not key.startswith("_")]
        raise ValueError(f"{module} has no function {function!r}; it has {', '.join(known) or 'none'}")
    try:
        env = getattr(found, function)(**options)
    except TypeError as error:
        raise ValueError(f"{name} could not be called with the options {options}: {error}") from error
    if not isinstance(env, gymnasium.Env):
        raise ValueError(f"{name} returned {type(env).__name__}; expected one gymnasium.Env")
    return with_state(in_unit_range(env))


def with_state(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """Lets an environment save its state, where what is inside can and all around it is known."""
    inner = env.unwrapped
    wrappers = _wrappers(env)
    can_save = hasattr(inner, "get_state") and hasattr(inner, "set_state")
    if hasattr(env, "get_state") or not can_save:
        return env
    known = (OrderEnforcing, PassiveEnvChecker, RescaleObservation, TimeLimit)
    return Saved(env) if all(type(wrapper) in known for wrapper in wrappers) else env


class Saved(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Passes the state of the environment inside on, and that of Gymnasium's time limit."""

    def get_state(self) -> State:
        """Returns the state inside, and the steps of each time limit."""
        inner: Any = self.unwrapped
        return {"inner": inner.get_state(), "elapsed": [limit._elapsed_steps for limit in self._limits()]}

    def set_state(self, state: State) -> None:
        """Continues exactly where `get_state` was called."""
        if any(steps is not None for steps in state["elapsed"]):
            self.env.reset()  # wrappers refuse steps before one
        inner: Any = self.unwrapped
        inner.set_state(state["inner"])
        for limit, steps in zip(self._limits(), state["elapsed"], strict=True):
            limit._elapsed_steps = steps

    def _limits(self) -> list[Any]:
        return [wrapper for wrapper in _wrappers(self) if isinstance(wrapper, TimeLimit)]


def _wrappers(env: gymnasium.Env[Any, Any]) -> list[gymnasium.Wrapper[Any, Any, Any, Any]]:
    """The wrappers around an environment, outermost first."""
    found = []
    while isinstance(env, gymnasium.Wrapper):
        found.append(env)
        env = env.env
    return found
