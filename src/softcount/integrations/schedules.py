"""How the weight of the bonus changes over a run: in actor steps, or once the game pays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Constant:
    """The same weight for ever."""

    value: float

    def __call__(self, step: int) -> float:
        return self.value


@dataclass(frozen=True)
class Linear:
    """From `start` to `end` between two steps, constant before and after.

    >>> weight = Linear(1.0, 0.0, first_step=100, last_step=200)
    >>> weight(0), weight(150), weight(500)
    (1.0, 0.5, 0.0)
    """

    start: float
    end: float
    first_step: int = 0
    last_step: int = 1_000_000

    def __post_init__(self) -> None:
        if self.last_step <= self.first_step:
            raise ValueError(
                f"last_step is {self.last_step}; expected more than first_step {self.first_step}"
            )

    def __call__(self, step: int) -> float:
        share = (step - self.first_step) / (self.last_step - self.first_step)
        return self.start + (self.end - self.start) * min(max(share, 0.0), 1.0)


@dataclass(frozen=True)
class Steps:
    """A staircase: each `(step, weight)` holds from its step on; the first must start at 0.

    >>> weight = Steps((0, 1.0), (1000, 0.1))
    >>> weight(999), weight(1000)
    (1.0, 0.1)
    """

    stairs: tuple[tuple[int, float], ...]

    def __init__(self, *stairs: tuple[int, float]) -> None:
        steps = [step for step, _ in stairs]
        if not steps or steps[0] != 0 or steps != sorted(set(steps)):
            raise ValueError(f"the stairs begin at steps {steps}; expected 0 and then rising steps")
        object.__setattr__(self, "stairs", stairs)

    def __call__(self, step: int) -> float:
        return next(weight for begin, weight in reversed(self.stairs) if step >= begin)


@dataclass(frozen=True)
class Geometric:
    """value · (1 − decrease)^step, RLeXplore's β (1 − κ)^t."""

    value: float
    decrease: float

    def __call__(self, step: int) -> float:
        return float(self.value * (1.0 - self.decrease) ** step)


@dataclass(frozen=True)
class Fading:
    """Falls by itself once the game pays: half is left after `after` rewards, a third after twice as many.

    Each step with a reward counts as one, so this is for sparse rewards. Adapters count them; in a loop of
    one's own `IntrinsicReward.see_rewards` does.

    >>> weight = Fading(0.1, after=20)
    >>> weight.share_after(0), weight.share_after(20)
    (1.0, 0.5)
    """

    value: float
    after: int

    def __post_init__(self) -> None:
        if self.after < 1:
            raise ValueError(f"after is {self.after}; expected at least 1")

    def share_after(self, num_rewards: int) -> float:
        return self.after / (self.after + num_rewards)


Schedule: TypeAlias = Constant | Linear | Steps | Geometric | Fading


NAMES = "Constant, Linear, Steps, Geometric and Fading"


def as_schedule(weight: float | Schedule) -> Schedule:
    """A number is a constant schedule."""
    if isinstance(weight, Constant | Linear | Steps | Geometric | Fading):
        return weight
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise TypeError(f"weight is {weight!r}; expected a number or one of {NAMES}")
    return Constant(float(weight))
