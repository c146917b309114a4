"""What fits the spaces of an environment that no preset was made for: torso, sizes, memory.

    seen                        torso of agent and representation      RECODE's memory
    vectors, categories         dense layers                           eight atoms per number, at least 2,000
    grids below 36 pixels       the grid torso                         2,000
    frames                      two or three convolutions              5,000
    dicts and tuples            one of these for each part             the largest of theirs

A preset gives the rest. What an agent cannot do is refused, with the name of one that can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from softcount.config import RunConfig
from softcount.representations.embedding import EmbeddingConfig
from softcount.representations.rnd import RndConfig
from softcount.taxonomy import parse
from softcount.torsos import SMALLEST_FRAME, DqnConfig, GridConfig, MlpConfig, SmallConfig
from softcount.types import ActionSpec, ArraySpec, ContinuousActions, DiscreteActions, ObservationSpec

SMALL_DQN = DqnConfig(channels=(16, 32), kernels=(6, 4), strides=(3, 2), hidden_sizes=(128,))
"""Convolutions for frames on one core."""
TORSO = SmallConfig(images=GridConfig(), vectors=MlpConfig(), frames=SMALL_DQN)
"""Reads whatever is seen, part by part."""
ATOMS, ATOMS_OF_FRAMES, ATOMS_PER_CATEGORY, MOST_ATOMS = 2_000, 5_000, 8, 20_000


class Spaces(NamedTuple):
    """What an environment shows and takes."""

    observation: ObservationSpec
    action: ActionSpec


def fit(config: RunConfig, spaces: Spaces) -> RunConfig:
    """Returns a configuration whose networks can read what is shown, with a memory of fitting size."""
    check_actions(config.agent, spaces.action)
    frames = _is_frame(spaces.observation)
    atoms = num_atoms(spaces.observation)
    memory = replace(
        config.recode.memory, size=atoms, warmup_atoms=min(atoms, 400), neighbours=5 if frames else 10
    )
    return replace(
        config,
        meme=replace(config.meme, network=replace(config.meme.network, torso=TORSO)),
        vmpo=replace(config.vmpo, network=replace(config.vmpo.network, torso=TORSO)),
        recode=replace(config.recode, memory=memory),
        representation=replace(
            config.representation,
            embedding=EmbeddingConfig(torso=TORSO, dim=32 if frames else 16, layer_norm=True),
            rnd=RndConfig(torso=TORSO, outputs=128, hidden_sizes=(128,)),
        ),
        terminal_observations="paid",
    )


def describe(config: RunConfig, spaces: Spaces) -> str:
    """Says in one line what was chosen for which spaces."""
    leaves = list(_leaves(spaces.observation))
    seen, torsos = sorted(map(_kind, leaves)), sorted(set(map(_reader, leaves)))
    bonus = f", {config.recode.memory.size:,} atoms" if parse(config.agent).bonus == "recode" else ""
    return (
        f"{config.agent} for {', '.join(seen)} and {_describe_actions(spaces.action)}: "
        f"{' and '.join(torsos)}{bonus} (`--help-all` has every choice)"
    )


def agent_for(spaces: Spaces) -> str:
    """The agent that is taken where none is named.

    >>> seen = ArraySpec((3,), "float32")
    >>> numbers = ContinuousActions((0.0,), (1.0,))
    >>> agent_for(Spaces(seen, DiscreteActions(3))), agent_for(Spaces(seen, numbers))
    ('MEME-RECODE-AP', 'VMPO-RECODE-AP')
    """
    return "MEME-RECODE-AP" if isinstance(spaces.action, DiscreteActions) else "VMPO-RECODE-AP"


def check_actions(agent: str, actions: ActionSpec) -> None:
    """Refuses an agent that cannot act here."""
    if parse(agent).agent == "meme" and not isinstance(actions, DiscreteActions):
        other = f"VMPO{agent[len('MEME') :]}"
        raise ValueError(
            f"{agent} chooses one of several actions, and here one acts by {_describe_actions(actions)}; "
            f"{other} can"
        )


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


def _reader(spec: ArraySpec) -> str:
    names = {MlpConfig: "dense layers", GridConfig: "a grid torso", DqnConfig: "convolutions"}
    return names[type(TORSO.of(spec))]


def _describe_actions(actions: ActionSpec) -> str:
    if isinstance(actions, DiscreteActions):
        return f"{actions.num} actions"
    if isinstance(actions, ContinuousActions):
        return f"{len(actions.low)} continuous numbers"
    return f"{len(actions.nums)} choices at once"
