"""A step taken apart and put together again is the same step."""

import numpy as np
import pytest

from softcount.replay.columns import columns_of, named_observation, step_of
from softcount.types import ArraySpec, Step

SPEC = ArraySpec((2,), "float32")


def step(observation):
    numbers = [np.full(3, i, np.float32) for i in range(7)]
    return Step(observation, *numbers, extras={"mixture": np.arange(3), "task": np.zeros(3, int)})


@pytest.mark.parametrize("kind", ["array", "dict"])
def test_a_step_comes_back_as_it_was(kind):
    image = np.arange(6, dtype=np.float32).reshape(3, 2)
    observation = image if kind == "array" else {"left": image, "right": -image}
    before = step(observation)
    spec = SPEC if kind == "array" else {"left": SPEC, "right": SPEC}
    columns = columns_of(before)
    assert {"extras.mixture", "extras.task", "reward", "action"} < set(columns)
    after = step_of(named_observation(observation), columns, spec)
    assert after._fields == before._fields
    for name in ("prev_action", "reward", "intrinsic", "is_first", "is_last", "is_terminal", "action"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    np.testing.assert_array_equal(after.extras["mixture"], [0, 1, 2])
    if kind == "array":
        np.testing.assert_array_equal(after.observation, image)
    else:
        np.testing.assert_array_equal(after.observation["right"], -image)
