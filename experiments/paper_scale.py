"""The paper's own experiments, as configurations and command lines. None of them was run.

    Figs. 1, 5, 7, 18, 20, Table 5     DM-HARD-8, single task: 8 tasks, 3 seeds
    Figs. 3, 4, 9, 11, 12, 14, 17, 21, 22     Atari: 8 games, 6 seeds
    Fig. 19                             DM-HARD-8, all tasks at once, V-MPO: 3 seeds
    Fig. 6                              noisy Montezuma's Revenge, 6 seeds
    Fig. 13                             Random Disco Maze of 21×21, 100 million steps

A budget is a number of actor steps: 250 million on Atari (10⁹ frames at an action repeat of 4), 10¹⁰ on
DM-HARD-8 (no repeat). The paper names no budget of its own runs; these are MEME's, and that of the results it
compares with (decision 148). Of the maze it gives 10⁸ steps and no hyper-parameters; ours are the preset's.
The multi-task experiment (Fig. 19) has one network on all eight tasks of DM-HARD-8; of its settings the
paper says little, and nothing of its budget (decision 246). `softcount figure NAME --scale paper` prints the
commands of a figure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from softcount.config import RunConfig, with_fields
from softcount.envs.families import EIGHT_GAMES, EIGHT_TASKS
from softcount.presets import PRESETS, suited


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Agents × environments × seeds that differ from a preset in a few fields."""

    name: str
    """Part of the runs' names."""
    figures: tuple[str, ...]
    """Of the paper."""
    preset: str
    """Which of `PRESETS`."""
    agents: tuple[str, ...]
    """Names of the taxonomy."""
    envs: tuple[str, ...]
    """Names that `make` knows."""
    num_seeds: int
    """Seeds 0, 1, …"""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields that differ, by their dotted path in `RunConfig`."""
    source: str | None = None
    """Experiment whose runs lend the embedding, learned and frozen."""

    def runs(self) -> Iterator[RunConfig]:
        """Yields every configuration, seeds outermost."""
        for seed in range(self.num_seeds):
            for env in self.envs:
                for agent in self.agents:
                    yield self.config(agent, env, seed)

    def config(self, agent: str, env: str, seed: int) -> RunConfig:
        """Returns one run's configuration."""
        base = suited(PRESETS[self.preset], agent)
        options = base.env_options if env == base.env else {}
        config = replace(base, env=env, seed=seed, env_options=options)
        return with_fields(config, self.changes)

    def folder(self, config: RunConfig) -> str:
        """Returns where a run's command puts it."""
        return f"runs/paper/{self.name}/{config.env.replace('/', '-')}__{config.agent}__{config.seed}"

    def command(self, config: RunConfig) -> str:
        """Returns the command line of a run."""
        words = ["train", config.agent, "--preset", self.preset, "--env", config.env]
        for path, value in self.changes.items():
            words += [f"--{path.replace('_', '-')}", str(value)]
        words += ["--seed", str(config.seed), "--run", self.folder(config)]
        if self.source is None:
            return " ".join(["softcount", *words])
        lender = EXPERIMENTS[self.source]
        source = lender.folder(lender.config(config.agent, config.env, config.seed))
        return f"python -m experiments.agent.frozen_agent {source} {self.folder(config)}" + "".join(
            f" --{path} {value}"
            for path, value in self.changes.items()
            if path == "recode.memory.count_discount"
        )

    @property
    def budget(self) -> str:
        """Says how much all of it is."""
        configs = list(self.runs())
        return f"{len(configs)} runs of {configs[0].steps:,} actor steps"


_GAMES = tuple(f"atari/{game}" for game in EIGHT_GAMES)
_TASKS = tuple(f"dm-hard-8/{task}" for task in EIGHT_TASKS)


def _atari(name: str, figures: tuple[str, ...], *agents: str, **more: Any) -> Experiment:
    return Experiment(
        name=name, figures=figures, preset="atari", agents=agents, **{"envs": _GAMES, "num_seeds": 6, **more}
    )


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        _atari(
            "atari",
            tuple(f"Fig. {number}" for number in (3, 4, 9, 11, 12, 14, 17, 21, 22)),
            "MEME-RECODE-AP",
        ),
        _atari(
            "atari_baselines",
            ("Fig. 4", "Fig. 17", "Fig. 21"),
            *("MEME-NGU-AP", "MEME-EMM-AP", "MEME-RND"),
        ),
        _atari("atari_rnd_on_ap", ("Fig. 21",), "MEME-RNDonAP"),
        _atari("atari_byol", ("Fig. 22",), "MEME-RECODE-BYOL"),
        _atari(
            "atari_removal_inverse",
            ("Fig. 9",),
            "MEME-RECODE-AP",
            changes={"recode.memory.removal": "inverse"},
        ),
        _atari(
            "atari_removal_smallest",
            ("Fig. 9",),
            "MEME-RECODE-AP",
            changes={"recode.memory.removal": "smallest"},
        ),
        _atari(
            "atari_no_discount", ("Fig. 11",), "MEME-RECODE-AP", changes={"recode.memory.count_discount": 1.0}
        ),
        _atari(
            "atari_snapshot",
            ("Fig. 12",),
            "MEME-RECODE-AP",
            envs=("atari/montezuma_revenge",),
            changes={"steps": 100_000_000},
        ),
        _atari(
            "atari_frozen",
            ("Fig. 12",),
            "MEME-RECODE-AP",
            envs=("atari/montezuma_revenge",),
            source="atari_snapshot",
            changes={"trainer.optimiser.learning_rate": 0.0},
        ),
        _atari(
            "atari_frozen_no_discount",
            ("Fig. 12",),
            "MEME-RECODE-AP",
            envs=("atari/montezuma_revenge",),
            source="atari_snapshot",
            changes={"trainer.optimiser.learning_rate": 0.0, "recode.memory.count_discount": 1.0},
        ),
        _atari(
            "noisy_montezuma",
            ("Fig. 6",),
            *("MEME-RECODE-AP", "MEME-NGU-AP"),
            envs=("noisy-atari/montezuma_revenge",),
        ),
        Experiment(
            name="dm_hard_8",
            figures=("Fig. 1", "Fig. 5", "Fig. 7", "Fig. 18", "Table 5"),
            preset="dm-hard-8",
            agents=("MEME-RECODE-CASM", "MEME-NGU-CASM", "MEME-RECODE-AP", "MEME-NGU-AP"),
            envs=_TASKS,
            num_seeds=3,
        ),
        Experiment(
            name="dm_hard_8_masking",
            figures=("Fig. 20",),
            preset="dm-hard-8",
            agents=("MEME-RECODE-CASnotM",),
            envs=_TASKS,
            num_seeds=3,
        ),
        Experiment(
            name="dm_hard_8_multi_task",
            figures=("Fig. 19",),
            preset="vmpo-dm-hard-8",
            agents=("VMPO-RECODE-AP", "VMPO-BYOL-Explore"),
            envs=("dm-hard-8/all",),
            num_seeds=3,
        ),
        Experiment(
            name="disco_maze",
            figures=("Fig. 13",),
            preset="laptop-21",
            agents=("MEME-RECODE-AP",),
            envs=("disco-maze",),
            num_seeds=3,
            changes={"steps": 100_000_000},
        ),
    )
}


def commands_of(figures: str) -> list[str]:
    """Returns budgets and command lines of every experiment behind some of the paper's figures."""
    numbers = set(re.findall(r"\d+", figures)) if figures.startswith("Fig") else set()
    lines = []
    for experiment in EXPERIMENTS.values():
        own = {figure.split()[-1] for figure in experiment.figures if figure.startswith("Fig.")}
        if own & numbers:
            lines.append(f"# {', '.join(experiment.figures)}: {experiment.budget}; not run")
            lines += [experiment.command(config) for config in experiment.runs()]
    return lines
