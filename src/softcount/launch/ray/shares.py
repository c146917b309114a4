"""Which environments each actor process steps, and how their state is cut apart and put together again.

Environments are numbered through all actors: task by task, copy by copy, as one process would hold
them. A checkpoint keeps the state of all of them as one process would, whoever stepped them: it can be
continued by one process, or by any number.

What belongs to one environment goes with it: rows of arrays, bandits, emulators. A generator that
several environments share cannot be cut; the first actor keeps it, and the others jump ahead in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.types import Array, State

PER_ENVIRONMENT = ("bandits", "envs")
"""Lists with one entry for each environment; other lists are structure."""


def share_out(num_envs: int, num_tasks: int, num_actors: int) -> list[Array]:
    """Returns the numbers of each actor's environments: equally many of every task, as far as they go.

    >>> [ids.tolist() for ids in share_out(8, 2, 2)]
    [[0, 1, 4, 5], [2, 3, 6, 7]]
    """
    copies = num_envs // num_tasks
    if num_actors > copies:
        of_each = f" of each of {num_tasks} tasks" if num_tasks > 1 else ""
        raise ValueError(
            f"runtime.num_actors is {num_actors}; expected at most {copies}, as there are environments"
            + of_each
        )
    parts = np.array_split(np.arange(copies), num_actors)
    return [np.concatenate([task * copies + part for task in range(num_tasks)]) for part in parts]


def split(state: State, shares: Sequence[Array]) -> list[State]:
    """Cuts the state of an actor with all environments into those of actors with some."""
    num = sum(map(len, shares))
    return [_part_of_actor(state, ids, num, number) for number, ids in enumerate(shares)]


def join(states: Sequence[State], shares: Sequence[Array]) -> State:
    """Puts the states of actors together as one actor with all environments would have it."""
    whole: State = {}
    for name in states[0]:
        parts = [state[name] for state in states]
        if name == "totals":
            whole[name] = _join(name, [part.T for part in parts], shares).T.copy()
        elif name == "episodes":
            whole[name] = [episode for part in parts for episode in part]
        elif name == "env" and any(part is None for part in parts):
            whole[name] = None
        else:
            whole[name] = _join(name, parts, shares)
    return whole


def _part_of_actor(state: State, ids: Array, num: int, number: int) -> State:
    part = {name: _take(name, x, ids, num, number) for name, x in state.items()}
    part["totals"] = state["totals"][:, ids]
    part["episodes"] = state["episodes"] if number == 0 else []
    return part


def _take(name: str, tree: Any, ids: Array, num: int, number: int) -> Any:
    """Returns what belongs to some of `num` environments."""
    if name == "rng" and tree is not None:
        return _jumped(tree, number)
    if name == "seed" and isinstance(tree, int) and number:
        return int(np.random.SeedSequence([tree, number]).generate_state(1)[0])
    if isinstance(tree, dict):
        if tree.keys() == {"tasks", "parts"}:
            return {"tasks": tree["tasks"], "parts": _take_tasks(tree["parts"], ids, num, number)}
        return {key: _take(key, x, ids, num, number) for key, x in tree.items()}
    if isinstance(tree, list | tuple):
        if name in PER_ENVIRONMENT and len(tree) == num:
            return [tree[i] for i in ids]
        return type(tree)(_take("", x, ids, num, number) for x in tree)
    if isinstance(tree, np.ndarray) and tree.ndim and len(tree) == num:
        return tree[ids]
    return tree


def _take_tasks(parts: list[Any], ids: Array, num: int, number: int) -> list[Any]:
    copies = num // len(parts)
    return [
        _take("", part, own - task * copies, copies, number)
        for task, part in enumerate(parts)
        for own in (ids[ids // copies == task],)
    ]


def _join(name: str, parts: list[Any], shares: Sequence[Array]) -> Any:
    first, num = parts[0], sum(map(len, shares))
    if isinstance(first, dict) and name != "rng":
        if first.keys() == {"tasks", "parts"}:
            return {"tasks": first["tasks"], "parts": _join_tasks([p["parts"] for p in parts], shares)}
        return {key: _join(key, [part[key] for part in parts], shares) for key in first}
    if isinstance(first, list | tuple):
        if name in PER_ENVIRONMENT:
            found = {int(i): x for ids, part in zip(shares, parts) for i, x in zip(ids, part, strict=True)}
            return [found[i] for i in range(num)]
        return type(first)(_join("", list(entries), shares) for entries in zip(*parts, strict=True))
    if isinstance(first, np.ndarray) and first.ndim and len(first) == len(shares[0]):
        whole = np.empty((num, *first.shape[1:]), first.dtype)
        for ids, part in zip(shares, parts, strict=True):
            whole[ids] = part
        return whole
    return first


def _join_tasks(parts: list[list[Any]], shares: Sequence[Array]) -> list[Any]:
    num_tasks, num = len(parts[0]), sum(map(len, shares))
    copies = num // num_tasks
    own = [[ids[ids // copies == task] - task * copies for ids in shares] for task in range(num_tasks)]
    return [_join("", [part[task] for part in parts], own[task]) for task in range(num_tasks)]


def _jumped(state: Any, number: int) -> Any:
    """Returns the state of a generator, jumped ahead so far that its numbers do not meet the first's."""
    if number == 0:
        return state
    fields = json.loads(state) if isinstance(state, str) else state
    generator = getattr(np.random, fields["bit_generator"])()
    generator.state = fields
    jumped = generator.jumped(number).state
    return json.dumps(jumped) if isinstance(state, str) else jumped
