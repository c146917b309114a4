"""The few shapes that cross module borders, and the protocols behind them.

Everything here is plain: NumPy arrays in frozen records. Batched arrays lead with
the environment axis `[B, ...]`, sequences are time-major `[T, B, ...]`. The cut of
the whole project is `Features`: a representation makes them from observations, a
bonus makes a reward from them, and neither knows the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    A = TypeVar("A", default=Array)
    """What records hold: arrays, if nothing else is said, or tensors."""
else:
    from typing import TypeVar

    A = TypeVar("A")
Observation: TypeAlias = Any
"""An array `[B, ...]`, or a dict of such arrays."""

State: TypeAlias = dict[str, Any]
"""What `state_dict` returns: arrays, numbers, strings, None, and dicts or lists of these."""


@dataclass(frozen=True)
class ArraySpec:
    """Shape and dtype of one observation, without the batch axis."""

    shape: tuple[int, ...]
    dtype: str


ObservationSpec: TypeAlias = ArraySpec | Mapping[str, ArraySpec]


@dataclass(frozen=True)
class DiscreteActions:
    """One of `num` actions; arrays of actions are int64 `[B]`."""

    num: int


@dataclass(frozen=True)
class MultiDiscreteActions:
    """Several choices at once; arrays of actions are int64 `[B, len(nums)]`."""

    nums: tuple[int, ...]


@dataclass(frozen=True)
class ContinuousActions:
    """A box; arrays of actions are float32 `[B, len(low)]`."""

    low: tuple[float, ...]
    high: tuple[float, ...]


ActionSpec: TypeAlias = DiscreteActions | MultiDiscreteActions | ContinuousActions


class Features(NamedTuple, Generic[A]):
    """What is known of observations: where they lie, how surprising they are, and the truth to measure by.

    A representation that cannot tell anything yet leaves the first two None.
    """

    embedding: A | None = None  # [B, D] float32
    surprise: A | None = None  # [B] float32
    place: A | None = None  # [B] int64, ground truth, where the world has it; only true counts read it


class TimeStep(NamedTuple):
    """What a vector environment returns at time t, for all its copies.

    Next-step semantics: the true final observation is an ordinary row with `is_last`;
    the action chosen there is ignored and the next row of that copy is a FIRST.
    """

    observation: Observation  # [B, ...]
    reward: Array  # [B] float32, extrinsic, dated by arrival at this observation; 0 on FIRST
    is_first: Array  # [B] bool
    is_last: Array  # [B] bool, the episode ends here
    is_terminal: Array  # [B] bool, it ends for good (no bootstrap); is_last without it is a time limit
    place: Array | None = None  # [B] int64 ground truth, for measurement and true-count limits only


class Step(NamedTuple, Generic[A]):
    """One row of a trace: what arrived at time t and what was done about it."""

    observation: Observation
    prev_action: A  # a_{t-1}, zeros on FIRST
    reward: A  # r^e_t, [.., B] float32
    intrinsic: A  # r^i_t for arriving at o_t, [.., B] float32
    is_first: A
    is_last: A
    is_terminal: A
    action: A  # a_t
    extras: Mapping[str, A]  # behaviour: mixture, epsilon, log_prob, ...


class Sequence(NamedTuple, Generic[A]):
    """A batch of packed traces, time-major; they may span episodes (`is_first` cuts)."""

    steps: Step[A]  # every leaf [T, B, ...]
    state: Any  # recurrent state of the agent before the first step, leaves [B, ...]


class Sample(NamedTuple):
    """A batch for a learner, traces of T transitions in T + 1 rows."""

    sequence: Sequence
    ids: Array  # [B] int64, for `reprioritise`
    weights: Array | None  # [B] float32, importance of each trace; None where all are alike


class Source(Protocol):
    """Where a learner's batches come from: a replay, or an on-policy queue."""

    def add(self, row: Step, state: Any, env_ids: Array | None = None) -> None:
        """Takes one row of every environment, or of those with these numbers, and the states before it."""

    def due(self) -> bool: ...  # should the learner take a batch now?
    def backlog(self) -> float: ...  # how many batches it should have taken by now and has not
    def is_strict(self) -> bool: ...  # must what was learned act before the next row comes?
    def rows_to_batch(self) -> int: ...  # of every environment, until a batch is due (on-policy sources only)
    def is_on_policy(self) -> bool: ...  # must all environments give equally many rows?
    def sample(self) -> Sample: ...
    def reprioritise(self, ids: Array, priorities: Array) -> None: ...
    def num_parts(self) -> int: ...  # of all observations that are kept, to be looked through one by one
    def part(self, number: int) -> Observation: ...  # [N, ...]
    def metrics(self) -> dict[str, float]: ...
    def state_dict(self) -> State: ...
    def segment_names(self) -> list[str]: ...  # what the last state refers to and never changes
    def segment(self, name: str) -> State: ...
    def load_state_dict(self, state: State, segments: Mapping[str, State]) -> None: ...


@runtime_checkable
class VectorEnv(Protocol):
    """Environments stepped together, all next-step; the number of rows never changes."""

    num_envs: int
    observation_spec: ObservationSpec
    action_spec: ActionSpec
    num_places: int | None  # how many distinct places there are to visit, where known
    task_ids: Array  # [num_envs] int64, which task each row belongs to; zeros where there is one
    task_names: tuple[str, ...]  # one per task

    def reset(self, seed: int | None = None) -> TimeStep: ...
    def step(self, actions: Array) -> TimeStep: ...
    def get_state(self) -> State: ...
    def set_state(self, state: State) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class Bonus(Protocol):
    """Features to intrinsic rewards. Never mixes in the extrinsic reward."""

    paid_in: Literal["acting", "learning"]  # BYOL-Explore's reward needs a sequence, so: learning
    lasts: Literal["life", "episode"]  # how long it remembers: an evaluator plays episodes on a twin
    wants_observations: bool  # whether `keep` is to be called after `observe`, with the same rows

    @property
    def is_paying(self) -> bool: ...  # False while it only gathers
    def can_read(self, features: Features) -> bool: ...  # False while the representation cannot tell yet
    def observe(
        self, features: Features, env_ids: Array, is_first: Array, task_ids: Array | None = None
    ) -> Array: ...  # [B] float32; rows with is_first are absorbed and paid 0
    def score(
        self, features: Features, env_ids: Array | None = None, task_ids: Array | None = None
    ) -> Array: ...  # what would be paid now; nothing changes
    def keep(self, observation: Observation) -> None: ...
    @property
    def num_founded(self) -> int: ...  # atoms whose founding observations are kept
    def founding_observations(self, start: int, stop: int) -> Observation: ...
    def move_atoms(self, features: Features) -> None: ...  # to where these are embedded now
    def twin(self) -> Bonus: ...  # a copy that lives its own life
    def metrics(self) -> dict[str, float]: ...  # of the last batch; part of the state
    def describe(self) -> dict[str, float]: ...  # of what it remembers: fill, bandwidth, ages, ...
    def memories(self) -> Mapping[str, Any]: ...  # RECODE's, by task, for those who look into them
    def state_dict(self) -> State: ...
    def load_state_dict(self, state: State) -> None: ...


def is_transition(is_first: Any, is_last: Any) -> Any:
    """Which pairs of rows (t, t+1) of a trace are one step of one episode: `[T-1, B]` bool.

    >>> is_transition(np.array([1, 0, 1, 0], bool), np.array([0, 1, 0, 0], bool)).tolist()
    [True, False, True]
    """
    return ~is_first[1:] & ~is_last[:-1]


def leaves_of(tree: Any) -> list[Any]:
    """The arrays or tensors of a tree, in its order.

    >>> leaves_of({"a": 1, "b": (2, 3)})
    [1, 2, 3]
    """
    found: list[Any] = []
    map_arrays(found.append, tree)
    return found


def rng_state(rng: np.random.Generator) -> str:
    """Where a generator is, as a state holds it."""
    return json.dumps(rng.bit_generator.state)


def load_rng(rng: np.random.Generator, state: str) -> None:
    """Puts a generator where another one was."""
    rng.bit_generator.state = json.loads(state)


def map_arrays(function: Callable[..., Any], *trees: Any) -> Any:
    """Applies `function` to the arrays of equally shaped dicts, tuples and records, leaf by leaf.

    >>> map_arrays(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}
    """
    first = trees[0]
    if isinstance(first, np.ndarray):  # most are, and to ask for a mapping first takes long
        return function(*trees)
    if isinstance(first, Mapping):
        return {key: map_arrays(function, *(tree[key] for tree in trees)) for key in first}
    if isinstance(first, tuple):
        parts = [map_arrays(function, *part) for part in zip(*trees, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    if first is None:
        return None
    return function(*trees)


def zeros(spec: ArraySpec, *leading: int) -> Array:
    """Returns an array of zeros of one spec with leading axes."""
    return np.zeros((*leading, *spec.shape), spec.dtype)


def take_rows(features: Features, rows: Array) -> Features:
    """Returns some rows of features."""
    return Features(*(None if part is None else part[rows] for part in features))


def action_array(spec: ActionSpec) -> ArraySpec:
    """Shape and dtype of one action.

    >>> action_array(ContinuousActions((-1.0, -1.0), (1.0, 1.0)))
    ArraySpec(shape=(2,), dtype='float32')
    """
    if isinstance(spec, DiscreteActions):
        return ArraySpec((), "int64")
    if isinstance(spec, ContinuousActions):
        return ArraySpec((len(spec.low),), "float32")
    return ArraySpec((len(spec.nums),), "int64")


def no_action(spec: ActionSpec, num: int) -> Array:
    """Returns what stands for the action before a first observation, `[num, ...]` of zeros."""
    return zeros(action_array(spec), num)
