"""Figures that other modules of `experiments` make: their commands, results and pictures."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from softcount.experiments.figures.figure import Command

_MODULE = "softcount.experiments"
_IMAGES = Path("docs/images")
_RESULTS = Path("results")
_PROBES = ("whole", "window", "screens", "persistent", "steering")

_MAZE = f"{_MODULE}.maze_goal --no-overlap"
_DRAW_11 = (
    f"{_MAZE} --draw results/meme/maze_11.json results/meme/maze_11_without.json "
    "--picture docs/images/maze_11.png"
)
_MAZE_21 = ("results/meme/maze_21.json", "results/meme/maze_21_seed1.json")
_DRAW_21 = f"{_MAZE} --draw {' '.join(_MAZE_21)} --picture docs/images/maze_21.png"

COMMANDS = (
    Command(
        name="moving_distribution",
        paper="Fig. 10 (the same claim, moving blobs)",
        claim="A memory that forgets keeps its counts where the data are now.",
        laptop_cost="seconds",
        paper_cost="the same",
        commands=((f"{_MODULE}.moving_distribution", "--out", "docs/images"),),
        plot_command=None,
        results=(_IMAGES / "moving_distribution.png",),
        images=(_IMAGES / "moving_distribution.png",),
    ),
    Command(
        name="noise_rewards",
        paper="Fig. 6 (the rewards behind it)",
        claim="With noise beside the picture RECODE-AP stops paying for known places, RND does not.",
        laptop_cost="1 CPU-minute",
        paper_cost="see `noise`",
        commands=((f"{_MODULE}.noise_rewards", "run"), (f"{_MODULE}.noise_rewards", "plot")),
        plot_command=(f"{_MODULE}.noise_rewards", "plot"),
        results=(_RESULTS / "representations/noise.json",),
        images=(_IMAGES / "noise_rewards.png",),
    ),
    Command(
        name="representations_probe",
        paper="Figs. 7, 20 (what the embeddings keep)",
        claim="AP and CASM keep where the agent is and drop what it cannot influence; CASM more so.",
        laptop_cost="20 CPU-minutes",
        paper_cost="see `representations`",
        commands=(
            *((f"{_MODULE}.representations_probe", "run", name) for name in _PROBES),
            (f"{_MODULE}.representations_probe", "plot"),
        ),
        plot_command=(f"{_MODULE}.representations_probe", "plot"),
        results=tuple(_RESULTS / f"representations/{name}.json" for name in _PROBES),
        images=(_IMAGES / "representations.png", _IMAGES / "representations_history.png"),
    ),
    Command(
        name="palette_start",
        paper="not in the paper",
        claim="Where the table of colours starts decides what the embedding keeps.",
        laptop_cost="minutes",
        paper_cost="the same",
        commands=((f"{_MODULE}.palette_start",),),
        plot_command=None,
        results=(_RESULTS / "representations/palette_start.json",),
        images=(_IMAGES / "palette_start.png",),
    ),
    Command(
        name="maze_goal",
        paper="Fig. 13 (the goal of the Disco Maze)",
        claim="With RECODE's bonus MEME finds the goal, without any it stays near the start.",
        laptop_cost="6 runs of about 3 CPU-minutes, and 3 without bonus of about 10",
        paper_cost="1e8 steps in a maze of 21×21",
        commands=(
            tuple(f"{_MAZE} --size 11 --agents MEME-RECODE-AP --stretch 100000".split()),
            tuple(
                f"{_MAZE} --size 11 --agents MEME --seeds 0 --stretch 1000000 "
                "--out results/meme/maze_11_without.json".split()
            ),
            tuple(_DRAW_11.split()),
        ),
        plot_command=tuple(_DRAW_11.split()),
        results=(_RESULTS / "meme/maze_11.json", _RESULTS / "meme/maze_11_without.json"),
        images=(_IMAGES / "maze_11.png",),
    ),
    Command(
        name="maze_21",
        paper="Fig. 13 (the goal of the Disco Maze), at the paper's size",
        claim="MEME-RECODE-AP finds the goal of the 21×21 maze and learns to walk there.",
        laptop_cost="6 runs, about 30 CPU-minutes each",
        paper_cost="1e8 steps",
        commands=(
            *(
                tuple(
                    f"{_MAZE} --size 21 --agents MEME-RECODE-AP --seeds {seed} --steps 5000000 "
                    f"--stretch 250000 --out {out}".split()
                )
                for seed, out in enumerate(_MAZE_21)
            ),
            tuple(_DRAW_21.split()),
        ),
        plot_command=tuple(_DRAW_21.split()),
        results=(_RESULTS / "meme/maze_21.json", _RESULTS / "meme/maze_21_seed1.json"),
        images=(_IMAGES / "maze_21.png",),
    ),
    Command(
        name="drop_in_learning",
        paper='not in the paper (RECODE on other agents; App. "Multitask" has V-MPO)',
        claim="RECODE helps agents of other libraries too.",
        laptop_cost="see docs/drop_in/learning.md",
        paper_cost="not planned",
        commands=((f"{_MODULE}.drop_in_learning",),),
        plot_command=(f"{_MODULE}.drop_in_learning", "--plot"),
        results=tuple(
            _RESULTS / f"drop_in/{world}_{agent}_{bonus}_{seed}.json"
            for world, agent, bonus, seed in product(
                ("maze", "multiroom"),
                ("ppo_recode", "sb3-ppo", "sb3-dqn"),
                ("none", "RND", "RECODE-AP"),
                range(3),
            )
        ),
        images=(_IMAGES / "drop_in_learning.png",),
    ),
    Command(
        name="meme_learning",
        paper="§4, the base agent",
        claim="Every part of MEME is needed by a small world made for it.",
        laptop_cost="a few CPU-minutes",
        paper_cost="the same",
        commands=((f"{_MODULE}.meme_learning",),),
        plot_command=None,
        results=(_RESULTS / "meme/learning.json",),
        images=(_IMAGES / "meme_learning.png",),
    ),
    Command(
        name="environment_pictures",
        paper="Figs. 6 and 13 (their frames)",
        claim="What the agents see, and where a random policy gets to.",
        laptop_cost="6 minutes",
        paper_cost="the same",
        commands=((f"{_MODULE}.environment_pictures",),),
        plot_command=None,
        results=(_RESULTS / "environments/coverage.json",),
        images=(_IMAGES / "env_disco_maze.png", _IMAGES / "env_noisy_montezuma.png"),
    ),
)
