"""A loop whose roles are overheard: what each was asked, what it answered, who held which parameters."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from softcount.launch.local import LocalLoop
from softcount.runs.run import make_loop
from softcount.types import map_arrays


class Acted(NamedTuple):
    """One step of all environments."""

    num_updates: int  # published before it
    acting: Any  # parameters that acted: {"policy", "representation"}
    request: Any
    reply: Any
    intrinsic: Any
    row: Any
    state: Any  # the recurrent state that was stored with the row


class Learned(NamedTuple):
    """One update."""

    num_acted: int  # steps taken when it started
    drawn: Any  # what the replay drew, and the sample that its server made of it
    sample: Any
    weights: Any  # importance weights and intrinsic targets, as the agent got them
    targets: Any
    acting: Any  # what the actors held, the memory and the replay's weights when it started
    memory: Any
    replay: Any
    paying: Any  # the representation when the agent's part began
    update: Any
    learner: Any  # the learner's state after it


class Watched:
    """Stands before a role and tells what it was asked and what it answered."""

    def __init__(self, role, hear):
        self.role, self.hear = role, hear

    def __call__(self, *asked):
        return self._ask("call", self.role, *asked)

    def __getattr__(self, name):
        found = getattr(self.role, name)
        return partial(self._ask, name, found) if callable(found) else found

    def _ask(self, name, function, *asked):
        self.hear(name, asked, None)
        answer = function(*asked)
        self.hear(name, asked, (answer,))
        return answer


@dataclass
class Watch:
    """Everything that happened in a loop, in order."""

    loop: LocalLoop
    at_start: Any
    acted: list[Acted] = field(default_factory=list)
    learned: list[Learned] = field(default_factory=list)
    now: dict[str, Any] = field(default_factory=dict)

    def hear(self, role, name, asked, answer):
        """Is told before and after each call; copies what may change later."""
        if answer is None:
            if (role, name) == ("agent", "update"):
                self._learning_starts(*asked)
            return
        if (role, name) == ("inference", "call"):
            self.now = {
                "num_updates": self.loop.num_updates,
                "acting": self.loop.roles.inference.state_dict(),
                "request": copied(asked[0]),
                "reply": copied(answer[0]),
            }
        elif (role, name) == ("memory", "call"):
            self.now["intrinsic"] = answer[0].copy()
        elif (role, name) == ("replay", "add"):
            self.acted.append(Acted(row=copied(asked[0]), state=copied(asked[1]), **self.now))
        elif (role, name) == ("sequences", "sample"):
            self.drawn = copied(answer[0])
        elif (role, name) == ("replay", "sample"):
            self.sample = copied(answer[0])
        elif (role, name) == ("learner", "call"):
            learned = {"update": copied(answer[0]), "learner": self.loop.roles.learner.state_dict()}
            self.learned.append(Learned(drawn=self.drawn, sample=self.sample, **learned, **self.learning))

    def _learning_starts(self, sequence, weights=None, targets=None):
        roles = self.loop.roles
        trainer = roles.learner.trainer
        self.learning = {
            "num_acted": len(self.acted),
            "weights": copied(weights),
            "targets": copied(targets),
            "acting": roles.inference.state_dict(),
            "memory": roles.memory.state_dict(),
            "replay": weights_of_traces(roles.replay),
            "paying": None if trainer is None else trainer.state_dict()["module"],
        }


def copied(tree):
    return map_arrays(lambda x: np.array(x) if isinstance(x, np.ndarray) else x, tree)


def weights_of_traces(replay):
    """Priority to the power of its exponent for every trace that can be sampled, by id."""
    state = replay.state_dict()["replay"]
    ids = state["oldest"] + np.arange(len(state["is_trace"]))
    return dict(zip(ids[state["is_trace"]].tolist(), state["weights"][state["is_trace"]], strict=True))


def watch(config, num_steps):
    """Runs the loop of a configuration, overheard and without overlap."""
    loop = make_loop(replace(config, overlap=False))
    roles = loop.roles
    heard = Watch(loop, {"learner": roles.learner.state_dict(), "memory": roles.memory.state_dict()})
    roles.learner.agent = Watched(roles.learner.agent, partial(heard.hear, "agent"))
    roles.replay.replay = Watched(roles.replay.replay, partial(heard.hear, "sequences"))
    overheard = {
        name: Watched(getattr(roles, name), partial(heard.hear, name))
        for name in ("inference", "memory", "replay", "learner")
    }
    loop.roles = replace(roles, **overheard)
    for _ in range(num_steps):
        loop.step()
    return heard
