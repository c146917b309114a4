"""Figures that other modules of `experiments` make: their commands, results and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from experiments.figure import Command

_MODULE = "experiments"
_IMAGES = Path("docs/images")
_RESULTS = Path("results")
_PROBES = ("whole", "window", "screens", "persistent", "steering")

_MAZE = f"{_MODULE}.agent.maze_goal --no-overlap"
_MAZE_11 = f"{_MAZE} --size 11"
_MAZE_21 = f"{_MAZE} --size 21 --stretch 250000 --out results/meme/maze_21 --picture docs/images/maze_21.png"
_HELD_OUT = (
    f"{_MAZE} --size 21 --stretch 250000 --beyond 500000 --out results/meme/maze_21_held_out "
    "--picture docs/images/maze_21_held_out.png"
)
_MONTEZUMA = ("MEME-RECODE-AP", "MEME-RND")
_STALLING = ("MEME", "MEME-RND", "MEME-NGU-AP", "MEME-EMM-AP", "MEME-RNDonAP")


def _maze_results(folder: str, size: int, agent: str, layouts: Sequence[int], *seeds: int) -> list[Path]:
    return [
        _RESULTS / f"meme/{folder}/{agent}__size{size}__layout{layout}__seed{seed}.json"
        for seed in seeds
        for layout in layouts
    ]


COMMANDS = (
    Command(
        name="moving_distribution",
        paper="Fig. 10 (the same claim, moving blobs)",
        claim="A memory that forgets keeps its counts where the data are now.",
        laptop_cost="seconds",
        paper_cost="the same",
        commands=((f"{_MODULE}.memory.moving_distribution",),),
        plot_command=None,
        results=(_RESULTS / "memory/moving_distribution.json",),
        images=(_IMAGES / "moving_distribution.png",),
    ),
    Command(
        name="noise_rewards",
        paper="Fig. 6 (the rewards behind it)",
        claim="With noise beside the picture RECODE-AP stops paying for known places, RND does not.",
        laptop_cost="1 CPU-minute",
        paper_cost="see `noise`",
        commands=((f"{_MODULE}.memory.noise_rewards", "run"), (f"{_MODULE}.memory.noise_rewards", "plot")),
        plot_command=(f"{_MODULE}.memory.noise_rewards", "plot"),
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
            *((f"{_MODULE}.memory.representations_probe", "run", name) for name in _PROBES),
            (f"{_MODULE}.memory.representations_probe", "plot"),
        ),
        plot_command=(f"{_MODULE}.memory.representations_probe", "plot"),
        results=tuple(_RESULTS / f"representations/{name}.json" for name in _PROBES),
        images=(_IMAGES / "representations.png", _IMAGES / "representations_history.png"),
    ),
    Command(
        name="multi_task",
        paper="Fig. 19 (in small: four mazes at once)",
        claim="One V-MPO network with RECODE-AP solves four mazes at once; without a bonus it does not.",
        laptop_cost="half a CPU-hour per seed",
        paper_cost="6 runs on all tasks of DM-HARD-8",
        commands=((f"{_MODULE}.agent.vmpo_learning", "four-mazes"),),
        plot_command=(f"{_MODULE}.agent.vmpo_learning", "four-mazes", "--plot"),
        results=tuple(
            _RESULTS / f"vmpo/four-mazes__{variant}__seed{seed}.json"
            for variant in ("RECODE-AP", "no-bonus")
            for seed in range(3)
        ),
        images=(_IMAGES / "vmpo_four-mazes.png",),
    ),
    Command(
        name="palette_start",
        paper="not in the paper",
        claim="Where the table of colours starts decides what the embedding keeps.",
        laptop_cost="minutes",
        paper_cost="the same",
        commands=((f"{_MODULE}.memory.palette_start",),),
        plot_command=(f"{_MODULE}.memory.palette_start", "plot"),
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
            tuple(f"{_MAZE_11} --agents MEME-RECODE-AP --stretch 100000".split()),
            tuple(f"{_MAZE_11} --agents MEME --seeds 0 --stretch 1000000".split()),
        ),
        plot_command=tuple(f"{_MAZE_11} --draw".split()),
        results=(
            *_maze_results("maze_11", 11, "MEME-RECODE-AP", (0, 1, 2), 0, 1),
            *_maze_results("maze_11", 11, "MEME", (0, 1, 2), 0),
        ),
        images=(_IMAGES / "maze_11.png",),
    ),
    Command(
        name="maze_21",
        paper="Fig. 13 (the goal of the Disco Maze), at the paper's size",
        claim="MEME-RECODE-AP finds the goal of the 21×21 maze; without bonus, or with RND, it is not found.",
        laptop_cost="24 runs, 10 to 40 CPU-minutes each",
        paper_cost="1e8 steps",
        commands=(
            tuple(f"{_MAZE_21} --agents MEME-RECODE-AP --steps 5000000".split()),
            tuple(f"{_MAZE_21} --agents MEME-COUNT --seeds 0 --steps 5000000".split()),
            tuple(
                f"{_MAZE_21} --agents {' '.join(_STALLING)} --seeds 0 "
                "--steps 2000000 --stalled 500000".split()
            ),
        ),
        plot_command=tuple(f"{_MAZE_21} --draw".split()),
        results=(
            *_maze_results("maze_21", 21, "MEME-RECODE-AP", (0, 1, 2), 0, 1),
            *(
                path
                for agent in ("MEME-COUNT", *_STALLING)
                for path in _maze_results("maze_21", 21, agent, (0, 1, 2), 0)
            ),
        ),
        images=(_IMAGES / "maze_21.png",),
    ),
    Command(
        name="maze_21_held_out",
        paper="Fig. 13 (the goal of the Disco Maze), layouts that no setting was chosen on",
        claim="The settings for 21×21 mazes work in mazes that they were not chosen on.",
        laptop_cost="3 runs, about 20 CPU-minutes each",
        paper_cost="1e8 steps",
        commands=(
            tuple(
                f"{_HELD_OUT} --agents MEME-RECODE-AP --layouts 10 11 12 --seeds 0 --steps 5000000".split()
            ),
        ),
        plot_command=tuple(f"{_HELD_OUT} --draw".split()),
        results=tuple(_maze_results("maze_21_held_out", 21, "MEME-RECODE-AP", (10, 11, 12), 0)),
        images=(_IMAGES / "maze_21_held_out.png",),
    ),
    Command(
        name="montezuma",
        paper="Fig. 4 (one game, a small part of its frames)",
        claim="RECODE visits more rooms of Montezuma's Revenge than RND.",
        laptop_cost="2 runs of 4 million frames, about 40 minutes each on two cores",
        paper_cost="see `bonuses`",
        commands=tuple((f"{_MODULE}.agent.montezuma", "--agent", agent) for agent in _MONTEZUMA),
        plot_command=(f"{_MODULE}.agent.montezuma", "--draw"),
        results=tuple(_RESULTS / f"meme/montezuma/{agent}__seed0.json" for agent in _MONTEZUMA),
        images=(_IMAGES / "montezuma.png",),
    ),
    Command(
        name="scores_atari",
        paper="Fig. 17 (and the scores of Fig. 4)",
        claim="Over eight games RECODE is above NGU, capped and not.",
        laptop_cost="not possible: needs the paper's runs",
        paper_cost="8 games × 4 agents × 6 seeds, 1e9 frames each",
        commands=((f"{_MODULE}.agent.scores", "atari", "runs/paper/atari", "runs/paper/atari_baselines"),),
        plot_command=None,
        results=(_RESULTS / "figures/scores_atari.json",),
        images=(_IMAGES / "figures/scores_atari.png",),
    ),
    Command(
        name="scores_dm_hard_8",
        paper="Figs. 1, 5, 7, 18 and Table 5",
        claim="RECODE with CASM is above RECODE with AP, and both above NGU, over eight tasks.",
        laptop_cost="not possible: needs the paper's runs and its servers",
        paper_cost="8 tasks × 4 agents × 3 seeds, 1e10 frames each",
        commands=((f"{_MODULE}.agent.scores", "dm_hard_8", "runs/paper/dm_hard_8"),),
        plot_command=None,
        results=(_RESULTS / "figures/scores_dm_hard_8.json",),
        images=(_IMAGES / "figures/scores_dm_hard_8.png",),
    ),
    Command(
        name="drop_in_learning",
        paper='not in the paper (RECODE on other agents; App. "Multitask" has V-MPO)',
        claim="RECODE helps agents of other libraries too.",
        laptop_cost="see docs/drop_in/learning.md",
        paper_cost="not planned",
        commands=((f"{_MODULE}.drop_in.learning",),),
        plot_command=(f"{_MODULE}.drop_in.learning", "--plot"),
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
        commands=((f"{_MODULE}.agent.meme_learning",),),
        plot_command=(f"{_MODULE}.agent.meme_learning", "--plot"),
        results=(_RESULTS / "meme/learning.json",),
        images=(_IMAGES / "meme_learning.png",),
    ),
    Command(
        name="environment_pictures",
        paper="Figs. 6 and 13 (their frames)",
        claim="What the agents see, and where a random policy gets to.",
        laptop_cost="6 minutes",
        paper_cost="the same",
        commands=((f"{_MODULE}.pictures.environments",),),
        plot_command=None,
        results=(_RESULTS / "environments/coverage.json",),
        images=(_IMAGES / "env_disco_maze.png", _IMAGES / "env_noisy_montezuma.png"),
    ),
)
