"""What fits the spaces of an environment that no preset was made for: torso, sizes, memory.

    seen                        torso of agent and representation      RECODE's memory
    vectors, categories         dense layers                           eight atoms per category, at least 2,000
    grids below 36 pixels       the grid torso                         2,000
    frames                      two or three convolutions              5,000
    dicts and tuples            one of these for each part             the largest of theirs

A preset gives the rest. What an agent cannot do is refused, with the name of one that can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from softcount.config import RunConfig
from softcount.representations.embedding import EmbeddingConfig
from softcount.representations.rnd import RndConfig
from softcount.taxonomy import parse
from softcount.torsos import DqnConfig, GridConfig, MlpConfig
from softcount.types import ActionSpec, ArraySpec, ContinuousActions, DiscreteActions, ObservationSpec

SMALL_DQN = DqnConfig(channels=(16, 32), kernels=(6, 4), strides=(3, 2), hidden_sizes=(128,))
"""Convolutions for frames on one core."""
SMALLEST_FRAME = 36
"""Pixels a side from which convolutions see more than dense layers over all cells."""
ATOMS, ATOMS_OF_FRAMES, ATOMS_PER_CATEGORY, MOST_ATOMS = 2_000, 5_000, 8, 20_000


class Spaces(NamedTuple):
    """What an environment shows and takes."""

    observation: ObservationSpec
    action: ActionSpec


def fit(config: RunConfig, spaces: Spaces) -> RunConfig:
    """Returns a configuration whose networks can read what is shown, with a memory of fitting size."""
    check_actions(config.agent, spaces.action)
    torso = torso_for(spaces.observation)
    frames = _is_frame(spaces.observation)
    atoms = num_atoms(spaces.observation)
    memory = replace(
        config.recode.memory, size=atoms, warmup_atoms=min(atoms, 400), neighbours=5 if frames else 10
    )
    return replace(
        config,
        meme=replace(config.meme, network=replace(config.meme.network, torso=torso)),
        vmpo=replace(config.vmpo, network=replace(config.vmpo.network, torso=torso)),
        recode=replace(config.recode, memory=memory),
        representation=replace(
            config.representation,
            embedding=EmbeddingConfig(torso=torso, dim=32 if frames else 16, layer_norm=True),
            rnd=RndConfig(torso=torso, outputs=128, hidden_sizes=(128,)),
        ),
        terminal_observations="paid",
    )


def describe(config: RunConfig, spaces: Spaces) -> str:
    """Says in one line what was chosen for which spaces."""
    parts = sorted({_kind(part) for part in _leaves(spaces.observation)})
    bonus = f", {config.recode.memory.size:,} atoms" if parse(config.agent).bonus == "recode" else ""
    return (
        f"{config.agent} for {' and '.join(parts)} and {_describe_actions(spaces.action)}: "
        f"{_name(torso_for(spaces.observation))}{bonus} (every choice is a field of `softcount train --help`)"
    )


def agent_for(actions: ActionSpec) -> str:
    """The agent that is taken where none is named.

    >>> agent_for(DiscreteActions(3)), agent_for(ContinuousActions((0.0,), (1.0,)))
    ('MEME-RECODE-AP', 'VMPO-RECODE-AP')
    """
    return "MEME-RECODE-AP" if isinstance(actions, DiscreteActions) else "VMPO-RECODE-AP"


def check_actions(agent: str, actions: ActionSpec) -> None:
    """Refuses an agent that cannot act here."""
    if parse(agent).agent == "meme" and not isinstance(actions, DiscreteActions):
        other = f"VMPO{agent[len('MEME') :]}"
        raise ValueError(
            f"{agent} chooses among single actions, and here one acts by {_describe_actions(actions)}; {other} can"
        )


def torso_for(spec: ObservationSpec) -> Any:
    """The torso for observations of a spec; one for each part where there are several."""
    if isinstance(spec, Mapping):
        return {key: torso_for(part) for key, part in spec.items()}
    if len(spec.shape) < 2:
        return MlpConfig()
    return SMALL_DQN if _is_frame(spec) else GridConfig()


def num_atoms(spec: ObservationSpec) -> int:
    """How many atoms RECODE's memory gets."""
    if _is_frame(spec):
        return ATOMS_OF_FRAMES
    width = max((part.shape[0] for part in _leaves(spec) if len(part.shape) == 1), default=1)
    return min(max(ATOMS, ATOMS_PER_CATEGORY * width), MOST_ATOMS)


def _leaves(spec: ObservationSpec) -> Iterator[ArraySpec]:
    yield from spec.values() if isinstance(spec, Mapping) else (spec,)


def _is_frame(spec: ObservationSpec) -> bool:
    return any(len(part.shape) > 1 and min(part.shape[:2]) >= SMALLEST_FRAME for part in _leaves(spec))


def _kind(spec: ArraySpec) -> str:
    if len(spec.shape) < 2:
        return f"{spec.shape[0]} numbers"
    size = "×".join(map(str, spec.shape[:2]))
    return f"frames of {size}" if _is_frame(spec) else f"grids of {size}"


def _name(torso: Any) -> str:
    if isinstance(torso, Mapping):
        return " and ".join(sorted({_name(part) for part in torso.values()}))
    return {MlpConfig: "dense layers", GridConfig: "grid torso", DqnConfig: "convolutions"}[type(torso)]


def _describe_actions(actions: ActionSpec) -> str:
    if isinstance(actions, DiscreteActions):
        return f"{actions.num} actions"
    if isinstance(actions, ContinuousActions):
        return f"{len(actions.low)} continuous numbers"
    return f"{len(actions.nums)} choices at once"
