"""Which of the paper's choices help or hurt in small mazes: one setting that works, one change at a time.

The setting is that of all figures with agents: the laptop preset with atoms that stay where they were put.
Most changes go back to the paper's value, or to the plainest one where the paper is silent, and leave
everything else. "Atoms follow the representation" is the one that the preset itself took up; the
ones that follow say what could be added to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.agent.coverage import agreement, area, contrast, describe_runs
from experiments.agent.maze_runs import FOLDER, job, maze_config
from experiments.drawing import WIDTH, new_figure
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row, by
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.config import RunConfig
from softcount.presets import ATARI
from softcount.torsos import GridConfig

BASE = "RECODE-AP"


FOLLOWING = {"recode.reembed_every": 20}
NORMALISED = {"recode.normaliser": RecodeBonusConfig().normaliser}

CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    BASE: ("nothing changed", {}),
    "table-1": (
        "palette table starts at 1",
        {"representation.embedding.torso": GridConfig(channels=2, palette_scale=1.0)},
    ),
    "no-layer-norm": ("no LayerNorm on the embedding", {"representation.embedding.layer_norm": False}),
    "paper-rate": ("embedding learns at 6e-4", {"trainer.optimiser.learning_rate": 6e-4}),
    "constant-rate": ("rate does not fall", {"trainer.schedule": "constant"}),
    "fast-copy": ("no slow copy", {"trainer.acting": "latest"}),
    "reembed": ("atoms follow the representation", FOLLOWING),
    "reembed-near": ("they follow, and κ = 0.05", {**FOLLOWING, "recode.memory.far_tolerance": 0.05}),
    "reembed-eager": ("they follow, and η = 0.3", {**FOLLOWING, "recode.memory.insertion_probability": 0.3}),
    "reembed-k-5": ("they follow, and k = 5", {**FOLLOWING, "recode.memory.neighbours": 5}),
    "reembed-fast-copy": ("they follow, and no slow copy", {**FOLLOWING, "trainer.acting": "latest"}),
    "reembed-ratio-8": ("they follow, and replay ratio 8", {**FOLLOWING, "meme.replay.replay_ratio": 8.0}),
    "warmup-paper": (
        "the paper's warm-up",
        {"recode.memory.warmup_atoms": ATARI.recode.memory.warmup_atoms},
    ),
    "k-20": ("k = 20", {"recode.memory.neighbours": 20}),
    "k-5": ("k = 5", {"recode.memory.neighbours": 5}),
    "paper-constants": (
        "the paper's ε, n₀ and normalisation",
        {
            "recode.memory.kernel_epsilon": ATARI.recode.memory.kernel_epsilon,
            "recode.memory.reward_constant": ATARI.recode.memory.reward_constant,
            **NORMALISED,
        },
    ),
    "normalised": ("divided by the running std", NORMALISED),
    "paper-discounts": (
        "discounts 0.9997 to 0.97",
        {"meme.loss.discount_max": 0.9997, "meme.loss.discount_min": 0.97},
    ),
    "no-relabel": ("rewards as they were paid", {"meme.relabel": False}),
    "paid-deaths": ("deaths are paid", {"terminal_observations": "paid"}),
    "paper-noise": (
        "the paper's ladder of ε",
        {"meme.epsilon_base": ATARI.meme.epsilon_base, "meme.epsilon_power": ATARI.meme.epsilon_power},
    ),
    "flat-noise": ("ε = 0.02 everywhere", {"meme.epsilon_base": 0.02, "meme.epsilon_power": 0.0}),
    "uniform-replay": (
        "uniform replay, no newest",
        {"meme.replay.priority_exponent": 0.0, "meme.replay.newest": 0},
    ),
    "behaviour-priority": ("priorities of the acting mixture", {"meme.loss.priority_of": "behaviour"}),
    "ratio-1": ("replay ratio 1", {"meme.replay.replay_ratio": 1.0}),
    "act-on-policy": ("everyone acts on the policy", {"meme.act_on": "policy"}),
    "act-on-values": ("everyone acts on values", {"meme.act_on": "values"}),
    "target-200": ("target copied every 200", {"meme.target_update_period": 200}),
}
"""What each is called, and the fields it replaces."""


def config_of(name: str, seed: int) -> RunConfig:
    return maze_config("MEME-RECODE-AP", seed, CHANGES[name][1])


def jobs() -> list[Job]:
    """Every change with every seed, seeds outermost."""
    return [job(name, config_of(name, seed)) for seed in SEEDS for name in CHANGES]


def plot(rows: Sequence[Row]) -> Any:
    """Draws, one dot per seed: coverage against the same seed unchanged, sorted; and two measures of pay."""
    figure = new_figure(WIDTH, 0.27 * len(CHANGES) + 1.4)
    panels = figure.subplots(1, 3, sharey=True)
    base = {row["seed"]: area(row) for row in rows if row["name"] == BASE}
    groups = by([row for row in rows if row["seed"] in base], "name")
    gains = {name: [area(row) - base[row["seed"]] for row in group] for name, group in groups.items()}
    order = sorted(groups, key=lambda name: sum(gains[name]) / len(gains[name]))
    for i, name in enumerate(order):
        measures: list[Sequence[float | None]] = [
            gains[name],
            [agreement(row["snapshots"][-1]) for row in groups[name]],
            [contrast(row) for row in groups[name]],
        ]
        style: dict[str, Any] = {"color": "#d1495b" if name == BASE else "#1b6ca8", "alpha": 0.8}
        for axes, values in zip(panels, measures):
            known = [value for value in values if value is not None]
            axes.plot(known, [i] * len(known), "o", **style)
    panels[0].axvline(0, color="#d1495b", linewidth=0.8)
    panels[0].set_yticks(range(len(order)), [CHANGES[name][0] for name in order], fontsize=9)
    panels[0].set_xlabel("mean share of places\nover 150,000 steps, less\nthat without a change")
    panels[1].set_xlabel("rank correlation of the\nbonus with the true-count\nbonus at the end")
    panels[2].set(
        xlabel="pay of new over known\nplaces, median over the\nfirst half of the run", xscale="log"
    )
    panels[2].set_xticks([1, 3, 10, 30], ["1", "3", "10", "30"])
    panels[2].minorticks_off()
    panels[2].axvline(1, color="0.7", linewidth=0.8)
    for axes in panels:
        axes.set_ylim(-0.7, len(order) - 0.3)
        axes.grid(axis="y", color="0.93", zorder=0)
    figure.suptitle(
        "11×11 Disco Maze, one change at a time (one dot per seed; red: nothing changed)", fontsize=10
    )
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    return describe_runs(rows, {name: label for name, (label, _) in CHANGES.items()})


FIGURE = Figure(
    name="choices",
    paper="not in the paper",
    claim="Which departures from the paper's values small mazes need.",
    laptop_cost=f"{3 * len(CHANGES)} runs of 150,000 steps (3 shared), about 2 CPU-minutes each",
    paper_cost="not planned",
    folder=FOLDER,
    jobs=jobs,
    plot=plot,
    describe=describe,
)
