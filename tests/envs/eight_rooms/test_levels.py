"""The eight generators: what they draw can be solved, and is the same for the same seed."""

import itertools

import numpy as np
import pytest
from fakes.eight_rooms_worlds import depth_in_cells

from softcount.envs.eight_rooms import core, paths
from softcount.envs.eight_rooms.level import COLOURS, Builder
from softcount.envs.eight_rooms.levels import GENERATORS, VARIANTS, generate
from softcount.envs.eight_rooms.playing import play_solver


def rng(*seed):
    return np.random.default_rng(np.random.SeedSequence(seed))


@pytest.mark.parametrize("task", GENERATORS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_levels_repeat_load_and_have_room_for_everything(task, variant):
    batch = core.Batch(1, 8, 6)
    for seed in range(12):
        level = generate(task, variant, rng(seed), assist=seed % 4)
        again = generate(task, variant, rng(seed), assist=seed % 4)
        assert level.state.tobytes() == again.state.tobytes()
        assert np.array_equal(level.marks, again.marks)
        batch.load(0, level.state)
        state = batch.states[0]
        agent = state["agent"]
        here = state["heights"][int(agent["y"] / core.CELL), int(agent["x"] / core.CELL)]
        assert here == pytest.approx(agent["z"])
        for i in range(int(state["num_bodies"])):
            assert depth_in_cells(state, i) < 1e-5
        assert (state["apples"]["is_terminal"][: int(state["num_apples"])] == 1).sum() == 1


@pytest.mark.parametrize("task", GENERATORS)
def test_other_seeds_are_other_levels_in_all_eight_symmetries(task):
    states = [generate(task, "tiny", rng(seed)).state for seed in range(10)]
    assert len({state.tobytes() for state in states}) == 10
    builder = GENERATORS[task](rng(3), "tiny")
    columns, rows = int(builder.state["columns"]), int(builder.state["rows"])
    shapes = [GENERATORS[task](rng(3), "tiny").finish(k).state for k in range(8)]
    assert len({shape.tobytes() for shape in shapes}) == 8
    for k, state in enumerate(shapes):
        expected = (rows, columns) if k & 4 else (columns, rows)
        assert (int(state["columns"]), int(state["rows"])) == expected
        assert (
            np.sort(state["heights"].ravel()).tolist() == np.sort(builder.state["heights"].ravel()).tolist()
        )


@pytest.mark.parametrize("symmetry", range(8))
def test_a_turned_level_is_the_same_world(symmetry):
    """A body above a mover's corner stays above it, and so do sensors, strips, apples and marks."""
    builder = Builder(rng(0), 12, 9)
    builder.draw_surfaces()
    builder.ground((1, 1, 11, 8))
    builder.ground((2, 3, 3, 4), 0.2)
    at = (1.25, 1.75)  # the middle of that cell
    builder.box(at, 0.1, 0)
    builder.apple(at)
    builder.mark(0, at)
    builder.sensor((*at, 0.0), (0.3, 0.1, 0.1), 1, core.LATCH, 0)
    builder.strip((1.0, 1.5, 1.5, 2.0), -1.0)
    builder.bridge((4, 2, 7, 3), [])
    builder.start(at, 0.3)
    state, marks = builder.finish(symmetry)
    row, column = np.argwhere(np.isclose(state["heights"], 0.2))[0]
    middle = (0.5 * column + 0.25, 0.5 * row + 0.25)
    for thing in (state["bodies"][0], state["apples"][0], state["sensors"][0], state["agent"]):
        assert (float(thing["x"]), float(thing["y"])) == pytest.approx(middle)
    strip = state["strips"][0]
    assert (strip["x0"], strip["y0"]) == pytest.approx((0.5 * column, 0.5 * row))
    assert marks[0].tolist() == pytest.approx(middle)
    mover = state["movers"][0]
    inside = state["heights"][mover["row0"] : mover["row1"], mover["column0"] : mover["column1"]]
    assert inside.size == 3
    assert (inside == core.VOID).all()
    assert (state["sensors"][0]["hx"] < 0.2) == bool(symmetry & 4)
    ahead = np.array([np.cos(state["agent"]["yaw"]), np.sin(state["agent"]["yaw"])])
    expected = np.array([np.cos(0.3) * (-1) ** (symmetry & 1), np.sin(0.3) * (-1) ** (symmetry >> 1 & 1)])
    assert ahead == pytest.approx(expected[::-1] if symmetry & 4 else expected, abs=1e-6)


@pytest.mark.parametrize("task", GENERATORS)
@pytest.mark.parametrize("variant", ["tiny", "full"])
def test_the_solver_solves_what_is_drawn(task, variant):
    episodes = play_solver(task, variant, range(300, 303))
    assert sum(episode.is_solved for episode in episodes) >= 2
    for episode in episodes:
        assert episode.score <= episode.highest + 1e-4
        assert not episode.is_solved or episode.score > 0.85 * episode.highest


@pytest.mark.slow
@pytest.mark.parametrize("task", GENERATORS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_solvers_solve_19_of_20(task, variant):
    assert np.mean([episode.is_solved for episode in play_solver(task, variant, range(100))]) >= 0.95


def test_assisted_starts_are_nearer_to_the_end():
    for task, variant in itertools.product(GENERATORS, ("tiny", "full")):
        for seed in range(4):
            in_hand, opened, near = (generate(task, variant, rng(seed), assist=k).state for k in (1, 2, 3))
            assert (in_hand["agent"]["held"] >= 0) == (task != "push_blocks")
            if task != "navigate_cubes":
                movers = opened["movers"][: int(opened["num_movers"])]
                assert (movers["height"] == movers["open"]).all()
                assert len(movers)
            apple = near["apples"][near["apples"]["is_terminal"] > 0][0]
            agent = near["agent"]
            dx, dy = float(apple["x"] - agent["x"]), float(apple["y"] - agent["y"])
            assert np.hypot(dx, dy) < 2.1
            assert np.cos(np.arctan2(dy, dx) - agent["yaw"]) > 0.99


@pytest.mark.parametrize(
    "task", ["wall_sensor", "baseball", "remember_sensor", "throw_across", "wall_sensor_stack"]
)
def test_somebody_can_stand_before_every_plate(task):
    for seed in range(20):
        state = generate(task, "full", rng(seed)).state
        free, at = paths.free_points(state), (np.arange(paths.NUM) + 0.5) * paths.LATTICE
        for sensor in state["sensors"][: int(state["num_sensors"])]:
            if sensor["mode"] != core.DESTROY:
                far = np.hypot(at - sensor["x"], (at - sensor["y"])[:, None])
                assert (free & (far < 1.6)).any()


def test_the_plate_of_a_stack_is_out_of_reach_from_the_door():
    for variant, seed in itertools.product(VARIANTS, range(10)):
        state = generate("wall_sensor_stack", variant, rng(seed)).state
        sensor, door = state["sensors"][0], state["movers"][0]
        x = 0.25 * (door["column0"] + door["column1"])
        y = 0.25 * (door["row0"] + door["row1"])
        assert np.hypot(sensor["x"] - x, sensor["y"] - y) > 3.9


def test_the_memory_task_hides_its_plate_from_the_blocks():
    """From no block does a straight line at eye height lead to the plate."""
    for variant, seed in itertools.product(VARIANTS, range(6)):
        state = generate("remember_sensor", variant, rng(seed)).state
        sensor = state["sensors"][0]
        target = np.array([sensor["x"], sensor["y"]])
        for body in state["bodies"][: int(state["num_bodies"])]:
            start = np.array([body["x"], body["y"]])
            points = start + np.linspace(0, 0.97, 400)[:, None] * (target - start)
            heights = state["heights"][(points[:, 1] / 0.5).astype(int), (points[:, 0] / 0.5).astype(int)]
            assert (heights >= core.WALL).any()


def test_colours_can_be_told_apart_also_on_the_dark_side():
    for light in (1.0, 0.5):
        for one, other in itertools.combinations(COLOURS.values(), 2):
            assert np.linalg.norm(lab(np.array(one) * light) - lab(np.array(other) * light)) > 20


def lab(rgb):
    """CIE L*a*b* of sRGB."""
    linear = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(matrix) @ linear / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_a_room_that_is_too_full_is_an_error_and_not_an_endless_search():
    builder = Builder(rng(0), 8, 8)
    builder.draw_surfaces()
    builder.keep_clear((1.9, 1.9))
    with pytest.raises(ValueError, match=r"no place 2\.75 m from everything"):
        builder.spot((1, 1, 7, 7), margin=0.5, gap=5.0)
    with pytest.raises(ValueError, match="has no place 3 m from its walls"):
        builder.spot((1, 1, 7, 7), margin=3.0, gap=0.0)
    with pytest.raises(ValueError, match="65 by 8 cells"):
        Builder(rng(0), 65, 8)
