"""Running statistics: moving averages that are right from the first sample on.

A moving average that starts at zero is too small until 1/step samples have passed;
dividing by the weight it has gathered, 1 − (1 − step)ⁿ, removes that bias exactly.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from softcount.types import Array, State


class MovingAverage:
    """An exponential moving average of scalars without start-up bias.

    >>> average = MovingAverage(step=0.5)
    >>> average.value
    0.0
    >>> average.add(4.0); average.value
    4.0
    >>> average.add(1.0); average.value
    2.0
    """

    def __init__(self, step: float) -> None:
        if not 0 < step <= 1:
            raise ValueError(f"step is {step}; expected a number in (0, 1]")
        self.step = step
        self.biased = 0.0
        self.weight = 0.0

    @property
    def value(self) -> float:
        return self.biased / self.weight if self.weight > 0 else 0.0

    def add(self, x: float) -> None:
        self.biased += self.step * (x - self.biased)
        self.weight += self.step * (1.0 - self.weight)

    def state_dict(self) -> State:
        return {"biased": self.biased, "weight": self.weight}

    def load_state_dict(self, state: State) -> None:
        self.biased, self.weight = float(state["biased"]), float(state["weight"])


class MovingMoments:
    """Bias-corrected moving mean and variance of scalars (variance = E[x²] − E[x]², floored at 0)."""

    def __init__(self, step: float) -> None:
        self.mean_average = MovingAverage(step)
        self.square_average = MovingAverage(step)

    def add(self, x: float) -> None:
        self.mean_average.add(x)
        self.square_average.add(x * x)

    @property
    def mean(self) -> float:
        return self.mean_average.value

    @property
    def std(self) -> float:
        return float(np.sqrt(max(self.square_average.value - self.mean**2, 0.0)))

    def state_dict(self) -> State:
        return {"mean": self.mean_average.state_dict(), "square": self.square_average.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self.mean_average.load_state_dict(state["mean"])
        self.square_average.load_state_dict(state["square"])


class RunningMoments:
    """Exact mean and variance of everything seen, by Chan's parallel update.

    >>> moments = RunningMoments(())
    >>> moments.add(np.array([1.0, 3.0])); moments.add(np.array([5.0]))
    >>> float(moments.mean), round(float(moments.var), 6)
    (3.0, 2.666667)
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.num = 0
        self.mean = np.zeros(shape)
        self.sum_squares = np.zeros(shape)  # Σ (x − mean)²

    @property
    def var(self) -> Array:
        return self.sum_squares / max(self.num, 1)

    @property
    def std(self) -> Array:
        return np.sqrt(self.var)

    def add(self, batch: Array) -> None:
        """Takes in a batch of shape `(n, *shape)`."""
        batch = np.asarray(batch, np.float64)
        num = len(batch)
        if num == 0:
            return
        mean = batch.mean(axis=0)
        delta = mean - self.mean
        total = self.num + num
        self.sum_squares = (
            self.sum_squares + ((batch - mean) ** 2).sum(axis=0) + delta**2 * self.num * num / total
        )
        self.mean = self.mean + delta * num / total
        self.num = total

    def state_dict(self) -> State:
        return {"num": self.num, "mean": self.mean.copy(), "sum_squares": self.sum_squares.copy()}

    def load_state_dict(self, state: State) -> None:
        self.num = int(state["num"])
        self.mean = np.array(state["mean"], np.float64)
        self.sum_squares = np.array(state["sum_squares"], np.float64)


class Means:
    """Averages of named numbers between two reports.

    >>> means = Means()
    >>> means.add({"loss": 1.0}); means.add({"loss": 3.0, "norm": 5.0})
    >>> means.take()
    {'loss': 2.0, 'norm': 5.0}
    >>> means.take()
    {}
    """

    def __init__(self) -> None:
        self.sums: dict[str, list[float]] = {}

    def add(self, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            entry = self.sums.setdefault(name, [0.0, 0])
            entry[0] += float(value)
            entry[1] += 1

    def take(self) -> dict[str, float]:
        """Returns the averages and starts anew."""
        means = {name: total / num for name, (total, num) in self.sums.items()}
        self.sums = {}
        return means

    def state_dict(self) -> State:
        return {"names": list(self.sums), "sums": [list(entry) for entry in self.sums.values()]}

    def load_state_dict(self, state: State) -> None:
        self.sums = {name: list(entry) for name, entry in zip(state["names"], state["sums"], strict=True)}
