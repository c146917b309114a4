"""How the start of a palette's table decides what a representation keeps."""

import numpy as np
import pytest

from experiments.memory.palette_start import (
    RATES,
    REGIONS,
    SCALES,
    SEEDS,
    measure,
    noise,
    pairs,
    plot,
    transitions,
)
from softcount.envs.disco_maze import MOVES, DiscoMaze, DiscoMazeConfig
from softcount.representations.compose import Function
from softcount.representations.trainer import RepresentationTrainer


@pytest.fixture
def env():
    return DiscoMaze(DiscoMazeConfig(size=21, observation="palette"), num_envs=1, seed=0)


def test_transitions_are_the_open_moves_in_both_directions(env):
    moves = transitions(env)
    assert len(moves) == 2 * (env.num_places - 1)  # a perfect maze is a tree
    for place, action, after in moves[:: len(moves) // 20]:
        step = np.subtract(env.cell_of(after), env.cell_of(place))
        assert step.tolist() == MOVES[action].tolist()


def test_transitions_of_the_frontier_are_rare_and_none_lies_beyond(env):
    sequence = pairs(env, transitions(env), 2000, np.random.default_rng(0))
    cells = [np.argwhere(image == 6)[0] for image in sequence.steps.observation[0]]
    distance = np.array([env.distances[tuple(cell)] for cell in cells])
    assert distance.max() <= 60
    assert (distance > 40).mean() == pytest.approx(0.02, abs=0.01)


def test_noise_is_nothing_where_only_the_agent_is_seen_and_much_where_only_walls_are(env):
    def position(image):
        flat = (np.asarray(image) == 6).reshape(len(image), -1).argmax(axis=1)
        return np.stack((flat // 21, flat % 21), axis=1).astype(np.float32)

    def walls(image):
        return np.asarray(image).reshape(len(image), -1)[:, :4].astype(np.float32)

    rng = np.random.default_rng(0)
    seen = noise(RepresentationTrainer(Function(position, dim=2)), env, rng)
    assert seen == {"known": 0.0, "frontier": 0.0, "unseen": 0.0}
    assert min(noise(RepresentationTrainer(Function(walls, dim=4)), env, rng).values()) > 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_from_a_small_table_known_places_are_told_apart_where_from_a_large_one_they_are_not():
    small, large = (measure(scale, 2e-3, 0, updates=500)["course"][-1] for scale in (0.1, 1.0))
    assert small["accuracy"] > 0.98
    assert large["accuracy"] > 0.98
    assert small["known"] < 0.2 < 1 < large["known"]


def test_the_picture_has_a_panel_per_region_and_a_line_per_run():
    regions = {name: float(i) for i, name in enumerate(REGIONS, start=2)}
    course = [{"update": 10, **regions}, {"update": 20, **{name: 2 * x for name, x in regions.items()}}]
    rows = [
        {"scale": SCALES[0], "rate": RATES[0], "seed": seed, "course": course}
        for seed in (SEEDS[0], SEEDS[1])
    ]
    panels = plot(rows).axes
    assert len(panels) == len(REGIONS) == 3
    for i, axes in enumerate(panels, start=2):
        curves = [line.get_ydata() for line in axes.lines if len(line.get_xdata()) == 2]
        assert [list(ys) for ys in curves if list(ys) != [1.0, 1.0]] == 2 * [[i, 2 * i]]
    assert len(panels[2].get_legend().get_texts()) == 1
