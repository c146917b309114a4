"""The whole configuration of a run: one frozen record of the records of its parts.

Written to `RUN/config.json` and read back exactly, so that the file repeats the run. A
field that is unknown or of the wrong type is an error that names it. One that is missing was
not there when the file was written; it gets its default, and a warning says which.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, Union

from softcount.agents.meme.agent import MemeConfig
from softcount.agents.meme.bandit import BanditConfig
from softcount.bonuses.episodic import EpisodicBonusConfig
from softcount.bonuses.ngu import NguConfig
from softcount.bonuses.normalise import NormaliserConfig
from softcount.bonuses.surprise import SurpriseConfig
from softcount.bonuses.terminal import TerminalObservations
from softcount.envs.make import Option
from softcount.memory import RecodeConfig
from softcount.memory.memory import EngineName
from softcount.replay.sequences import ReplayConfig
from softcount.representations.make import RepresentationConfig
from softcount.representations.trainer import TrainerConfig

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides what a run does."""

    agent: str = "MEME-RECODE-AP"
    """Agent, bonus and representation, named as in the paper."""
    env: str = "disco-maze"
    """Environment; `softcount list` shows them."""
    env_options: dict[str, Option] = field(default_factory=dict)
    """Options of the environment, such as size or layout."""
    num_envs: int = 64
    """How many copies act side by side."""
    steps: int = 1_000_000
    """Actor steps to train for."""
    seed: int = 0
    """Seed of everything: networks, actors, memory, replay, environments."""

    meme: MemeConfig = MemeConfig()
    """Network, losses and optimiser of the agent."""
    bandit: BanditConfig = BanditConfig()
    """The meta-controller that chooses a mixture for each episode."""
    epsilon_base: float = 0.4
    """Exploration noise of the noisiest actor; the others follow the ladder base^(1 + power·l/(L−1))."""
    epsilon_power: float = 7.0
    """Steepness of that ladder; 0 gives every actor `epsilon_base`."""
    replay: ReplayConfig = ReplayConfig()
    """Traces, capacity, replay ratio, priorities."""
    batch_size: int = 64
    """Traces in a batch."""
    importance_exponent: float = 0.0
    """How much of the bias of prioritised sampling the loss corrects: 0 none, 1 all."""

    memory: RecodeConfig = RecodeConfig()
    """RECODE's constants; its `dim` follows the representation."""
    memory_per_task: bool = False
    """With several tasks: a bonus for each of them, in place of one that they share."""
    episodic: EpisodicBonusConfig = EpisodicBonusConfig()
    """EMM's constants; the memory's `dim` follows the representation."""
    ngu: NguConfig = NguConfig()
    """NGU's constants; the memory's `dim` follows the representation."""
    surprise: SurpriseConfig | None = None
    """What RND, RNDonAP and BYOL-Explore make of errors; None takes each one's own way."""
    normaliser: NormaliserConfig | None = None
    """What the bonus is divided by; None takes the bonus's own default."""
    representation: RepresentationConfig = RepresentationConfig()
    """Encoders and heads that decide which states are alike."""
    trainer: TrainerConfig = TrainerConfig()
    """How the representation learns, and which copy of it embeds."""
    terminal_observations: TerminalObservations = "paid"
    """The last observation of an episode is paid, absorbed without pay, or not shown to the memory."""
    reembed_every: int = 0
    """RECODE: every so many updates, put each atom where the observation that founded it is embedded now.
    Costs |M| observations, also in each checkpoint; 0 never does, as in the paper. Decision 146."""
    relabel: bool = False
    """Use bonuses under today's memory in the targets, in place of those that were paid."""

    evaluation_episodes: int = 10
    """Episodes of one evaluation, played side by side (at most `num_envs`)."""
    evaluation_epsilon: float = 0.01
    """Exploration noise of the evaluator."""
    evaluate_every: int = 200_000
    """Actor steps between evaluations; 0 never evaluates."""
    report_every: int = 20_000
    """Actor steps between reports."""
    checkpoint_seconds: float = 120.0
    """Time between checkpoints; one more is taken at the end."""
    overlap: bool = True
    """Learn on a second thread while acting; changes the speed and nothing else."""
    device: str = "cpu"
    """Where networks compute: `cpu`, or a device of torch such as `cuda`."""
    engine: EngineName = "auto"
    """RECODE's memory: `native` (C++), `numpy`, or whichever is there. They make the same decisions."""
    memory_threads: int = 1
    """Threads of the native memory; they change the speed and nothing else."""
    wandb_project: str | None = None
    """Also send reports to this project of Weights & Biases."""

    def __post_init__(self) -> None:
        for name, least in (
            ("num_envs", 1),
            ("steps", 1),
            ("batch_size", 1),
            ("report_every", 1),
            ("memory_threads", 1),
            ("reembed_every", 0),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"RunConfig.{name} is {getattr(self, name)}; expected at least {least}")
        if not 1 <= self.evaluation_episodes <= self.num_envs:
            raise ValueError(
                f"RunConfig.evaluation_episodes is {self.evaluation_episodes}; "
                f"expected 1 to num_envs ({self.num_envs})"
            )
        if not 0 <= self.epsilon_base <= 1:
            raise ValueError(f"RunConfig.epsilon_base is {self.epsilon_base}; expected a number in [0, 1]")


def to_json(config: RunConfig) -> str:
    """Writes a configuration down."""
    return json.dumps(dataclasses.asdict(config), indent=2) + "\n"


def from_json(text: str) -> RunConfig:
    """Reads a configuration back; errors name the field."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the configuration is not JSON: {error}") from error
    missing: list[str] = []
    config = structure(RunConfig, content, missing=missing)
    if missing:
        warnings.warn(
            f"the configuration is of an older version without {', '.join(missing)}; the defaults are taken",
            stacklevel=2,
        )
    return config


def changes(before: RunConfig, after: RunConfig) -> list[str]:
    """Names the fields in which two configurations differ, as `replay.capacity: 5 -> 7`."""
    old, new = flatten(dataclasses.asdict(before)), flatten(dataclasses.asdict(after))
    names = sorted(old.keys() | new.keys())
    return [f"{name}: {old.get(name)} -> {new.get(name)}" for name in names if old.get(name) != new.get(name)]


def structure(kind: type[T], content: Any, path: str = "config", missing: list[str] | None = None) -> T:
    """Builds a typed value from what JSON holds; fields that it lacks are added to `missing`, or an error.

    >>> structure(tuple[int, ...], [1, 2])
    (1, 2)
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return typing.cast(T, _structure_record(kind, content, path, missing))
    if origin in (Union, types.UnionType):
        return typing.cast(T, _structure_union(arguments, content, path, missing))
    if origin is Literal:
        if content in arguments:
            return typing.cast(T, content)
        raise ValueError(f"{path} is {content!r}; expected one of {', '.join(map(repr, arguments))}")
    if origin is tuple and isinstance(content, list | tuple):
        kinds = [arguments[0]] * len(content) if arguments[1:] == (...,) else list(arguments)
        if len(kinds) == len(content):
            parts = (structure(k, x, f"{path}[{i}]", missing) for i, (k, x) in enumerate(zip(kinds, content)))
            return typing.cast(T, tuple(parts))
    if origin is dict and isinstance(content, Mapping):
        items = content.items()
        values = {key: structure(arguments[1], value, f"{path}[{key!r}]", missing) for key, value in items}
        return typing.cast(T, values)
    if kind is float and isinstance(content, int) and not isinstance(content, bool):
        return typing.cast(T, float(content))
    if (
        isinstance(kind, type)
        and isinstance(content, kind)
        and not (kind is int and isinstance(content, bool))
    ):
        return content
    raise ValueError(f"{path} is {content!r}; expected {getattr(kind, '__name__', kind)}")


def _structure_record(kind: Any, content: Any, path: str, missing: list[str] | None) -> Any:
    if not isinstance(content, Mapping):
        raise ValueError(f"{path} is {content!r}; expected the fields of {kind.__name__}")
    hints = typing.get_type_hints(kind)
    known = [f.name for f in dataclasses.fields(kind)]
    unknown = sorted(set(content) - set(known))
    if unknown:
        raise ValueError(f"{path}.{unknown[0]} is not a field of {kind.__name__} (it has {', '.join(known)})")
    given = [name for name in known if name in content]
    lacking = [name for name in known if name not in content]
    if lacking and missing is None:
        raise ValueError(f"{path}.{lacking[0]} is missing")
    record = kind(
        **{name: structure(hints[name], content[name], f"{path}.{name}", missing) for name in given}
    )
    if missing is not None:
        missing += [f"{path}.{name}" for name in lacking]
    return record


def _structure_union(kinds: tuple[Any, ...], content: Any, path: str, missing: list[str] | None) -> Any:
    if content is None and type(None) in kinds:
        return None
    errors: list[str] = []
    for is_lenient in (False,) if missing is None else (False, True):  # one that fits wholly goes first
        errors = []
        for kind in kinds:
            lacking: list[str] | None = [] if is_lenient else None
            try:
                found = structure(kind, content, path, lacking)
            except (ValueError, TypeError) as error:
                errors.append(str(error))
                continue
            if missing is not None:
                missing += lacking or []
            return found
    raise ValueError(errors[0] if len(errors) == 1 else f"{path} fits none of its kinds: {'; '.join(errors)}")


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Names every leaf of nested fields by its path.

    >>> flatten({"seed": 0, "replay": {"capacity": 5}})
    {'seed': 0, 'replay.capacity': 5}
    """
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
