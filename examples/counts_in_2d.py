"""Counts spreading over a 2-D world.

A walker starts in the middle of a square world with two walls and walks at random. Each
position is an embedding: RECODE's memory pays for the new and counts the known. Three
moments of the walk are drawn: the atoms with their counts, what the memory would pay at
every place, and how the pay falls as the world becomes known.

    python examples/counts_in_2d.py            # needs NumPy, and matplotlib to draw
"""

import itertools
import sys

import numpy as np

from softcount import RecodeConfig, RecodeMemory
from softcount.hints import install

MOMENTS = (1_000, 10_000, 100_000)
WALLS = ((-0.35, -1.0, 0.45), (0.35, -0.45, 1.0))  # x, from y, to y


def walk(num_steps, seed=0):
    """A random walk in [-1, 1]² with inertia, which walls and borders stop."""
    rng = np.random.default_rng(seed)
    position, velocity = np.zeros(2), np.zeros(2)
    path = np.empty((num_steps, 2))
    for t, push in enumerate(rng.normal(0.0, 0.006, (num_steps, 2))):
        velocity = 0.9 * velocity + push
        there = position + velocity
        if np.abs(there).max() > 1.0 or crosses_a_wall(position, there):
            velocity = np.zeros(2)
        else:
            position = there
        path[t] = position
    return path


def crosses_a_wall(here, there):
    return any(
        (here[0] - x) * (there[0] - x) <= 0 and low <= (here[1] + there[1]) / 2 <= high
        for x, low, high in WALLS
    )


def main(picture="counts_in_2d.png"):
    path = walk(max(MOMENTS))
    memory = RecodeMemory(
        RecodeConfig(size=500, dim=2, insertion_probability=0.5, d2_step=1e-3, count_discount=0.998), seed=0
    )
    side = np.linspace(-1.0, 1.0, 80)
    places = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    rewards, snapshots, done = [], [], 0
    for moment in MOMENTS:
        rewards.append(memory.observe(path[done:moment]))
        done = moment
        field = memory.score(places).reshape(80, 80)
        snapshots.append((memory.atoms, memory.counts, field))
        print(
            f"after {moment:7,} steps: {len(memory)} atoms, the last 1,000 steps were paid "
            f"{rewards[-1][-1000:].mean():.2f} on average, "
            f"the newest place would be paid {field.max():.1f}"
        )
    draw(path, np.concatenate(rewards), snapshots, picture)


def draw(path, rewards, snapshots, picture):
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        from matplotlib.colors import LogNorm
    except ImportError:
        print(f"no picture without matplotlib: {install('plots')}")
        return
    figure, panels = plt.subplot_mosaic(
        [["a0", "a1", "a2"], ["r0", "r1", "r2"], ["time"] * 3],
        figsize=(11, 9.5),
        height_ratios=[3, 3, 1.6],
        layout="constrained",
    )
    for i, (moment, (atoms, counts, field)) in enumerate(zip(MOMENTS, snapshots, strict=True)):
        above, below = panels[f"a{i}"], panels[f"r{i}"]
        above.plot(*path[:moment][-20_000:].T, color="0.82", linewidth=0.4, zorder=0)
        order = counts.argsort()
        dots = above.scatter(
            *atoms[order].T, s=5 + 5 * np.sqrt(counts[order]), c=counts[order],
            cmap="viridis_r", norm=LogNorm(0.5, 300), linewidths=0,
        )  # fmt: skip
        above.set_title(f"after {moment:,} steps")
        image = below.imshow(
            field, origin="lower", extent=(-1, 1, -1, 1), cmap="magma", norm=LogNorm(0.1, 100)
        )  # fmt: skip
        for panel in (above, below):
            for x, low, high in WALLS:
                panel.plot([x, x], [low, high], color="black" if panel is above else "white", linewidth=2.5)
            panel.set(xlim=(-1.02, 1.02), ylim=(-1.02, 1.02), aspect="equal", xticks=[], yticks=[])
    panels["a0"].set_ylabel("atoms")
    panels["r0"].set_ylabel("reward at every place")
    figure.colorbar(dots, ax=[panels[f"a{i}"] for i in range(3)], label="count", shrink=0.8)
    figure.colorbar(image, ax=[panels[f"r{i}"] for i in range(3)], label="reward", shrink=0.8)
    edges = np.unique(np.geomspace(1, len(rewards), 80).astype(int))
    means = [rewards[a:b].mean() for a, b in itertools.pairwise(edges)]
    panels["time"].loglog((edges[1:] + edges[:-1]) / 2, means, color="#33638d", linewidth=1.5)
    panels["time"].set(xlabel="steps", ylabel="reward on the way", xlim=(1, len(rewards)))
    for moment in MOMENTS:
        panels["time"].axvline(moment, color="0.7", linewidth=0.8, zorder=0)
    figure.savefig(picture, dpi=110)
    print(f"drawn to {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:])
