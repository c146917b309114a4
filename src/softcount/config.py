"""The whole configuration of a run: one frozen record of the records of its parts.

All parts stand side by side. Each is read by those whom the agent's name names (`parts_read`): the
constants of NGU, say, by `MEME-NGU-AP` alone. How it is written down and read back is `config_json`.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar

from softcount.agents.meme.agent import MemeConfig
from softcount.agents.meme.bandit import BanditConfig
from softcount.agents.vmpo.agent import VmpoConfig
from softcount.bonuses.episodic import EpisodicBonusConfig
from softcount.bonuses.ngu import NguConfig
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.bonuses.surprise import SurpriseConfig
from softcount.bonuses.terminal import TerminalObservations
from softcount.envs.make import Option
from softcount.memory.memory import EngineName
from softcount.replay.config import ReplayConfig
from softcount.representations.make import RepresentationConfig
from softcount.representations.trainer import TrainerConfig
from softcount.taxonomy import parse
from softcount.validation import above, at_least, between, check_fields

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class MemeRunConfig(MemeConfig):
    """All that a run of MEME reads: how it learns, how it acts, and its replay."""

    bandit: BanditConfig = BanditConfig()
    """The meta-controller that chooses a mixture for each episode."""
    epsilon_base: float = 0.4
    """Exploration noise of the noisiest actor; the others follow the ladder base^(1 + power·l/(L−1))."""
    epsilon_power: float = 7.0
    """Steepness of that ladder; 0 gives every actor `epsilon_base`."""
    evaluation_epsilon: float = 0.01
    """Exploration noise of the evaluator."""
    replay: ReplayConfig = ReplayConfig()
    """Traces, capacity, replay ratio, priorities."""
    batch_size: int = 64
    """Traces in a batch."""
    importance_exponent: float = 0.0
    """How much of the bias of prioritised sampling the loss corrects: 0 none, 1 all."""
    relabel: bool = False
    """Use bonuses under today's memory in the targets, in place of those that were paid."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(
            self,
            epsilon_base=between(0, 1),
            epsilon_power=at_least(0),
            evaluation_epsilon=between(0, 1),
            batch_size=at_least(1),
            importance_exponent=between(0, 1),
        )


@dataclass(frozen=True, kw_only=True)
class RuntimeConfig:
    """Where the roles of a run live; a resumed run may change all of it."""

    kind: Literal["local", "ray"] = "local"
    """`local`: all roles in one process. `ray`: each in its own, on one machine or on many."""
    mode: Literal["free", "deterministic"] = "free"
    """On Ray: every actor on its own clock, or in lockstep, with the same bits as `local` but slower."""
    address: str | None = None
    """HOST:PORT of a Ray cluster to join; None starts one on this machine that ends with the run."""
    num_actors: int = 2
    """Processes that step environments, `num_envs` shared out among them."""
    num_inference: int = 1
    """Processes that answer actors with policies and features."""
    batch_wait_ms: float = 4.0
    """How long an inference worker waits for further actors before it answers those that have asked."""
    send_rows: int = 8
    """Rows of a trace that an actor collects before it sends them to the trainer."""
    publish_every: int = 8
    """Updates between two publications of parameters, of which only the newest is sent."""
    max_lag_batches: float = 4.0
    """How many batches the learner may be behind its replay ratio before actors have to wait."""
    snapshot_batches: int = 2000
    """Batches between two snapshots of the memory, after each of which its journal starts anew."""
    call_timeout_s: float = 20.0
    """How long a call may take before it is made again."""
    hang_seconds: float = 60.0
    """How long a role may be silent before it is ended and started anew."""
    health_check: Literal["fast", "default"] = "fast"
    """How soon a host that is cut off counts as gone: after seconds, or as Ray has it, after a minute."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            num_actors=at_least(1),
            num_inference=at_least(1),
            batch_wait_ms=at_least(0),
            send_rows=at_least(1),
            publish_every=at_least(1),
            max_lag_batches=above(0),
            snapshot_batches=at_least(1),
            call_timeout_s=above(0),
            hang_seconds=above(0),
        )


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

    meme: MemeRunConfig = MemeRunConfig()
    """MEME: network, losses, optimiser, bandit, noise, replay."""
    vmpo: VmpoConfig = VmpoConfig()
    """V-MPO: network, losses, optimiser, traces."""
    recode: RecodeBonusConfig = RecodeBonusConfig()
    """RECODE: its memory, whose `dim` follows the representation, and its scale."""
    episodic: EpisodicBonusConfig = EpisodicBonusConfig()
    """EMM; the memory's `dim` follows the representation."""
    ngu: NguConfig = NguConfig()
    """NGU; the memory's `dim` follows the representation."""
    surprise: SurpriseConfig | None = None
    """What RND, RNDonAP and BYOL-Explore make of errors; None takes each one's own way."""
    representation: RepresentationConfig = RepresentationConfig()
    """Encoders and heads that decide which states are alike."""
    trainer: TrainerConfig = TrainerConfig()
    """How the representation learns, and which copy of it embeds."""
    runtime: RuntimeConfig = RuntimeConfig()
    """Where the roles live: in this process, or each in its own on Ray."""

    memory_per_task: bool = False
    """With several tasks: a bonus for each of them, in place of one that they share."""
    terminal_observations: TerminalObservations = "paid"
    """The last observation of an episode is paid, absorbed without pay, or not shown to the memory."""
    evaluation_episodes: int = 10
    """Episodes of one evaluation, played side by side (at most `num_envs`)."""
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
        check_fields(
            self,
            num_envs=at_least(1),
            steps=at_least(1),
            evaluate_every=at_least(0),
            report_every=at_least(1),
            checkpoint_seconds=at_least(0),
            memory_threads=at_least(1),
        )
        if not 1 <= self.evaluation_episodes <= self.num_envs:
            raise ValueError(
                f"RunConfig.evaluation_episodes is {self.evaluation_episodes}; "
                f"expected 1 to num_envs ({self.num_envs})"
            )


READERS = {
    "meme": "MEME",
    "vmpo": "V-MPO",
    "recode": "RECODE",
    "episodic": "EMM",
    "ngu": "NGU",
    "surprise": "RND, RNDonAP and BYOL-Explore",
    "representation": "what has a representation",
    "trainer": "what has a representation",
}
"""The parts of a configuration that not every agent reads, and whose they are."""


def parts_read(agent: str) -> tuple[str, ...]:
    """Returns which of these parts an agent reads.

    >>> parts_read("MEME-RECODE-AP"), parts_read("MEME-COUNT")
    (('meme', 'recode', 'representation', 'trainer'), ('meme',))
    """
    recipe = parse(agent)
    named = {recipe.agent, recipe.bonus}
    if recipe.representation != "none":
        named |= {"representation", "trainer"}
    return tuple(part for part in READERS if part in named)


def only_read(config: RunConfig) -> RunConfig:
    """Returns the same run with the parts that it does not read at their defaults."""
    unread = set(READERS) - set(parts_read(config.agent))
    plain = RunConfig()
    return replace(config, **{f.name: getattr(plain, f.name) for f in fields(config) if f.name in unread})


def with_fields(config: T, changes: Mapping[str, Any]) -> T:
    """Returns a record with fields replaced, each named by its path.

    >>> with_fields(RunConfig(), {"meme.replay.newest": 8, "seed": 3}).meme.replay.newest
    8
    """
    for path, value in changes.items():
        config = _with_field(config, path, value, path)
    return config


def _with_field(record: Any, path: str, value: Any, whole: str) -> Any:
    name, _, rest = path.partition(".")
    if not is_dataclass(record) or name not in {f.name for f in fields(record)}:
        raise ValueError(f"{whole} is not a field: {type(record).__name__} has no {name}")
    new = _with_field(getattr(record, name), rest, value, whole) if rest else value
    return replace(typing.cast(Any, record), **{name: new})
