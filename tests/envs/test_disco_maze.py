import subprocess
import sys
from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from softcount import store
from softcount.envs.disco_maze import AGENT, GOAL, OUTSIDE, PALETTE, DiscoMaze, DiscoMazeConfig, carve
from softcount.envs.disco_maze_gym import DiscoMazeEnv

LEFT, RIGHT, UP, DOWN = range(4)
STEPS = {LEFT: (0, -1), RIGHT: (0, 1), UP: (-1, 0), DOWN: (1, 0)}
BLOCKING = DiscoMazeConfig(size=11, lethal=False, observation="palette")


def flood(maze):
    """Breadth-first distances from the start, written without the maze's own code."""
    size, distances, queue = maze.size, {maze.start: 0}, deque([maze.start])
    while queue:
        cell = queue.popleft()
        for step in (-1, 1, -size, size):
            if maze.places[cell + step] >= 0 and cell + step not in distances:
                distances[cell + step] = distances[cell] + 1
                queue.append(cell + step)
    return distances


def path_to_goal(maze):
    """Actions along the only path, found backwards from the goal."""
    distances, cell, actions = flood(maze), maze.goal, []
    while cell != maze.start:
        for action, (down, right) in STEPS.items():
            before = cell - down * maze.size - right
            if distances.get(before, 10**9) == distances[cell] - 1:
                actions.append(action)
                cell = before
                break
    return actions[::-1]


@pytest.mark.parametrize("size", [7, 11, 21, 41])
@pytest.mark.parametrize("layout", [0, 1, 2])
def test_maze_is_perfect_and_its_distances_are_shortest_paths(size, layout):
    maze = carve(size, layout)
    half = size // 2
    assert len(maze.cells) == half * half + half * half - 1  # a tree: all lattice cells, one passage per edge
    distances = flood(maze)
    assert sorted(distances) == maze.cells.tolist()
    assert all(maze.distances[cell] == distances[cell] for cell in distances)
    assert maze.distances[maze.goal] == max(distances.values())
    assert divmod(maze.start, size) == (size - 2, 1)
    border = np.ones((size, size), bool)
    border[1:-1, 1:-1] = False
    assert (maze.places.reshape(size, size)[border] == -1).all()


def test_layouts_differ_and_the_same_layout_is_the_same_maze():
    assert not np.array_equal(carve(21, 0).places, carve(21, 1).places)
    carve_again = carve.__wrapped__(21, 0)
    assert np.array_equal(carve(21, 0).places, carve_again.places)


def test_the_shortest_path_reaches_the_goal_and_is_paid_once():
    env = DiscoMaze(DiscoMazeConfig(size=11), num_envs=2, seed=3)
    first = env.reset()
    assert first.is_first.all()
    assert not first.is_last.any()
    actions = path_to_goal(env.maze)
    steps = [env.step(np.array([action, action])) for action in actions]
    assert all(step.reward.sum() == 0 and not step.is_last.any() for step in steps[:-1])
    assert steps[-1].reward.tolist() == [1, 1]
    assert steps[-1].is_terminal.all()
    assert [env.maze.distances[env.maze.cells[step.place[0]]] for step in steps] == list(
        range(1, len(actions) + 1)
    )
    assert env.cell_of(int(steps[-1].place[0])) == env.goal
    after = env.step(np.array([DOWN, DOWN]))
    assert after.is_first.all()
    assert after.reward.tolist() == [0, 0]
    assert env.positions.tolist() == [[9, 1], [9, 1]]


def test_a_lethal_wall_ends_the_episode_and_shows_the_agent_on_it():
    env = DiscoMaze(DiscoMazeConfig(size=11, observation="palette"))
    env.reset(seed=1)
    step = env.step(np.array([DOWN]))
    assert step.is_last.all()
    assert step.is_terminal.all()
    assert step.place.tolist() == [-1]
    assert np.argwhere(step.observation[0] == AGENT).tolist() == [[10, 1]]
    assert step.reward.tolist() == [0]
    again = env.step(np.array([DOWN]))  # the action at an end is ignored
    assert again.is_first.all()
    assert np.argwhere(again.observation[0] == AGENT).tolist() == [[9, 1]]


def test_blocking_walls_leave_the_agent_where_it_is():
    env = DiscoMaze(BLOCKING)
    start = env.reset().place
    step = env.step(np.array([LEFT]))
    assert not step.is_last.any()
    assert step.place.tolist() == start.tolist()


@pytest.mark.parametrize("limit_is_terminal", [False, True])
def test_the_time_limit_cuts_after_exactly_max_steps(limit_is_terminal):
    env = DiscoMaze(replace(BLOCKING, max_steps=5, limit_is_terminal=limit_is_terminal))
    env.reset()
    ends = [env.step(np.array([DOWN])) for _ in range(6)]
    assert [bool(step.is_last[0]) for step in ends] == [False] * 4 + [True, False]
    assert [bool(step.is_terminal[0]) for step in ends] == [False] * 4 + [limit_is_terminal, False]
    assert bool(ends[5].is_first[0])


def test_wall_colours_are_uniform_over_five_and_redrawn_independently_at_every_step():
    env = DiscoMaze(replace(BLOCKING, max_steps=10**6), num_envs=8, seed=0)
    env.reset()
    seen = np.stack([env.step(np.full(8, DOWN)).observation for _ in range(200)])
    walls = seen[:, :, (env.maze.places < 0).reshape(11, 11)].astype(int)  # [T, B, W]
    shares = np.bincount(walls.ravel(), minlength=9) / walls.size
    assert shares[[0, 6, 7, 8]].sum() == 0
    assert np.abs(shares[1:6] - 0.2).max() < 0.005
    assert abs((walls[1:] == walls[:-1]).mean() - 0.2) < 0.005  # in time
    assert abs((walls[:, :, 1:] == walls[:, :, :-1]).mean() - 0.2) < 0.005  # between cells
    assert abs((walls[:, 1:] == walls[:, :-1]).mean() - 0.2) < 0.005  # between copies


def test_rgb_shows_the_palette_and_upscaling_repeats_pixels():
    indices = DiscoMaze(BLOCKING, seed=5).reset().observation
    colours = DiscoMaze(replace(BLOCKING, observation="rgb"), seed=5).reset().observation
    large = DiscoMaze(replace(BLOCKING, observation="rgb", upscale=3), seed=5).reset().observation
    assert np.array_equal(colours, PALETTE[indices])
    assert large.shape == (1, 33, 33, 3)
    assert np.array_equal(large[:, 1::3, 2::3], colours)
    floor = (carve(11, 0).places >= 0).reshape(11, 11)
    row, column = DiscoMaze(BLOCKING).goal
    assert indices[0, 9, 1] == AGENT
    assert indices[0, row, column] == GOAL
    assert (indices[0] == 0).sum() == floor.sum() - 2


def test_the_window_is_the_neighbourhood_of_the_agent_and_grey_outside():
    whole, part = DiscoMaze(BLOCKING, seed=2), DiscoMaze(replace(BLOCKING, window=5), seed=2)
    whole.reset(), part.reset()
    rng = np.random.default_rng(0)
    for _ in range(50):
        action = rng.integers(4, size=1)
        full, view = whole.step(action).observation[0], part.step(action).observation[0]
        padded = np.full((15, 15), OUTSIDE)
        padded[2:-2, 2:-2] = full
        row, column = part.positions[0]
        assert np.array_equal(view, padded[row : row + 5, column : column + 5])
        assert view[2, 2] == AGENT


def test_new_mazes_differ_between_episodes_and_copies_and_keep_the_start():
    env = DiscoMaze(replace(BLOCKING, new_maze_each_episode=True, max_steps=3), num_envs=3, seed=0)
    assert env.num_places is None
    layouts = []
    first = env.reset()
    for _ in range(5):
        assert (first.observation[:, 9, 1] == AGENT).all()
        assert [env.cell_of(place) for place in first.place] == [(9, 1)] * 3
        layouts += [tuple((image == 0).ravel()) for image in first.observation]
        for _ in range(3):
            env.step(np.full(3, DOWN))
        first = env.step(np.full(3, DOWN))
        assert first.is_first.all()
    assert len(set(layouts)) == len(layouts)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lethal": True},
        {"new_maze_each_episode": True, "max_steps": 20},
        {"window": 5, "observation": "rgb"},
    ],
)
def test_a_restored_maze_continues_identically_for_300_steps(options, tmp_path):
    config = replace(BLOCKING, **options)
    env, other = DiscoMaze(config, num_envs=4, seed=7), DiscoMaze(config, num_envs=4, seed=99)
    actions = np.random.default_rng(1).integers(4, size=(350, 4))
    env.reset()
    for action in actions[:50]:
        env.step(action)
    store.save(tmp_path / "maze", env.get_state(), kind="env")
    other.set_state(store.load(tmp_path / "maze", kind="env"))
    for action in actions[50:]:
        for ours, theirs in zip(env.step(action), other.step(action), strict=True):
            assert np.array_equal(ours, theirs)


def test_a_state_of_another_maze_is_refused():
    state = DiscoMaze(DiscoMazeConfig(size=11), num_envs=2).get_state()
    with pytest.raises(ValueError, match=r"are \(11, 2\); expected \(21, 2\)"):
        DiscoMaze(num_envs=2).set_state(state)
    with pytest.raises(ValueError, match=r"are \(11, 2\); expected \(11, 3\)"):
        DiscoMaze(DiscoMazeConfig(size=11), num_envs=3).set_state(state)


def test_seeds_repeat_and_different_seeds_do_not():
    actions = np.random.default_rng(1).integers(4, size=(50, 3))

    def colours(seed):
        env = DiscoMaze(DiscoMazeConfig(), num_envs=3)
        return np.stack([env.reset(seed=seed).observation] + [env.step(a).observation for a in actions])

    assert np.array_equal(colours(4), colours(4))
    assert not np.array_equal(colours(4), colours(5))


def test_returned_arrays_are_not_changed_by_later_steps():
    env = DiscoMaze(DiscoMazeConfig(), num_envs=4)
    env.reset()
    step = env.step(np.array([LEFT, RIGHT, UP, DOWN]))
    copies = [np.array(part) for part in step]
    for _ in range(5):
        env.step(np.array([DOWN, DOWN, DOWN, DOWN]))
    assert all(np.array_equal(part, copy) for part, copy in zip(step, copies, strict=True))


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.array([0, 4]), "action 4 of copy 1 is illegal; expected integers from 0 to 3"),
        (np.array([-1, 0]), "action -1 of copy 0"),
        (np.array([0]), r"shape \(1,\); expected integers of shape \(2,\)"),
        (np.array([0.0, 1.0]), "float64"),
    ],
)
def test_illegal_actions_are_named(actions, message):
    env = DiscoMaze(num_envs=2)
    env.reset()
    with pytest.raises(ValueError, match=message):
        env.step(actions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 10}, "size is 10"),
        ({"size": 43}, "size is 43"),
        ({"window": 4}, "window is 4"),
        ({"layout": -1}, "layout is -1"),
        ({"observation": "grey"}, "'grey'"),
        ({"max_steps": 0}, "max_steps 0"),
    ],
)
def test_a_wrong_config_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        DiscoMazeConfig(**options)


@pytest.mark.parametrize(
    "options", [{}, {"observation": "palette"}, {"window": 5}, {"new_maze_each_episode": True}]
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gymnasium_checker_passes(options):
    check_env(DiscoMazeEnv(DiscoMazeConfig(**options), render_mode="rgb_array"), skip_render_check=True)


def test_the_gymnasium_environment_is_one_copy_of_the_vector_one():
    single, vector = DiscoMazeEnv(DiscoMazeConfig(size=11)), DiscoMaze(DiscoMazeConfig(size=11))
    observation, info = single.reset(seed=3)
    step = vector.reset(seed=3)
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert np.array_equal(observation, step.observation[0])
        assert info["place"] == step.place[0]
        action = rng.integers(4)
        if step.is_last[0]:
            (observation, info), step = single.reset(), vector.step(np.array([action]))
            continue
        observation, reward, terminated, truncated, info = single.step(int(action))
        step = vector.step(np.array([action]))
        assert (reward, terminated, terminated or truncated) == (
            step.reward[0],
            step.is_terminal[0],
            step.is_last[0],
        )


def test_the_gymnasium_environment_refuses_to_step_without_reset():
    env = DiscoMazeEnv(DiscoMazeConfig(size=11))
    with pytest.raises(RuntimeError, match="before reset"):
        env.step(0)
    env.reset(seed=0)
    env.step(DOWN)
    with pytest.raises(RuntimeError, match="is over"):
        env.step(DOWN)


def test_the_vector_maze_needs_neither_gymnasium_nor_torch():
    code = (
        "import sys; import softcount.envs.disco_maze; assert not {'gymnasium', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_portraits_show_the_agent_at_each_place_with_colours_of_their_own():
    env = DiscoMaze(DiscoMazeConfig(size=7, observation="palette"), num_envs=2, seed=0)
    env.reset()
    before = env.get_state()
    places = np.arange(env.num_places)
    first, second = (env.portray(places, np.random.default_rng(seed)) for seed in (1, 2))
    for place in places:
        assert np.argwhere(first[place] == AGENT).tolist() == [list(env.cell_of(place))]
    is_wall = env.distances < 0
    assert (first[:, is_wall] != second[:, is_wall]).any()
    assert (first[:, ~is_wall] == second[:, ~is_wall]).all()
    assert set(np.unique(first[:, is_wall])) == {1, 2, 3, 4, 5}
    assert first[0][env.goal] == GOAL
    np.testing.assert_equal(env.get_state(), before)


def test_portraits_are_what_the_agent_sees_through_its_window():
    whole = DiscoMaze(DiscoMazeConfig(size=7, observation="palette"), num_envs=1, seed=0)
    window = DiscoMaze(DiscoMazeConfig(size=7, observation="palette", window=3), num_envs=1, seed=0)
    seen = window.portray(np.array([4]), np.random.default_rng(0))[0]
    row, column = whole.cell_of(4)
    full = whole.portray(np.array([4]), np.random.default_rng(0))[0]
    np.testing.assert_array_equal(seen, full[row - 1 : row + 2, column - 1 : column + 2])


def test_places_that_are_not_there_cannot_be_portrayed():
    env = DiscoMaze(DiscoMazeConfig(size=7), num_envs=1)
    with pytest.raises(ValueError, match="expected numbers from 0 to 16"):
        env.portray(np.array([17]), np.random.default_rng(0))
    with pytest.raises(ValueError, match="every episode draws its own maze"):
        DiscoMaze(DiscoMazeConfig(size=7, new_maze_each_episode=True), num_envs=1).portray(
            np.array([0]), np.random.default_rng(0)
        )
