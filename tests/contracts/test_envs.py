"""One battery for every environment: what `types.VectorEnv` promises, and Gymnasium's own checker."""

import copy
import itertools

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from softcount import store
from softcount.envs.make import make, make_env
from softcount.types import ArraySpec, DiscreteActions, VectorEnv

CASES = {
    "maze": ("disco-maze", {"size": 11}),
    "maze, window": ("disco-maze", {"window": 5, "lethal": False, "observation": "palette", "max_steps": 30}),
    "maze, new each episode": ("disco-maze", {"size": 9, "new_maze_each_episode": True}),
    "noisy maze": ("noisy-disco-maze", {"size": 11}),
    "montezuma": ("atari/montezuma_revenge", {"max_steps": 60}),
    "pitfall, modern": ("atari/pitfall", {"sticky_probability": 0.25, "size": (84, 84), "max_steps": 60}),
    "qbert, every frame": ("atari/qbert", {"action_repeat": 1, "colour": True, "max_steps": 60}),
    "rooms": ("minigrid/MultiRoom-N4-S5-v1", {}),
    "keys": ("minigrid/KeyCorridorS3R3-v0", {"view": "full", "max_steps": 60}),
    "noisy pixels": ("noisy-minigrid/MultiRoom-N2-S4-v0", {"view": "rgb"}),
    "eight rooms": (
        "eight-rooms/throw_across",
        {"variant": "tiny", "max_steps": 40, "width": 32, "height": 24},
    ),
    "doom": ("vizdoom/my-way-home-very-sparse", {"max_tics": 240}),
}
LISTS = {
    "two mazes": ("disco-maze:layout=1,disco-maze:layout=2:lethal=false", {"size": 9, "max_steps": 50}),
    "noisy mazes": ("noisy-disco-maze:layout=1,noisy-disco-maze:layout=2", {"size": 7}),
    "two tasks": ("minigrid/MultiRoom-N2-S4-v0,minigrid/MultiRoom-N4-S5-v1", {"max_steps": 60}),
}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(params=CASES | LISTS)
def build(request):
    made = []

    def build(seed=0):
        name, options = (CASES | LISTS)[request.param]
        made.append(make(name, num_envs=2, seed=seed, **options))
        return made[-1]

    yield build
    for env in made:
        env.close()


def actions_for(env, steps, seed=0):
    assert isinstance(env.action_spec, DiscreteActions)
    return np.random.default_rng(seed).integers(env.action_spec.num, size=(steps, env.num_envs))


def assert_equal_steps(ours, theirs):
    for part, other in zip(ours, theirs, strict=True):
        assert (part is None) == (other is None)
        assert part is None or np.array_equal(part, other)


def test_rows_follow_the_spec_and_next_step_semantics(build):
    env = build()
    assert isinstance(env, VectorEnv)
    assert isinstance(env.observation_spec, ArraySpec)
    assert env.task_ids.dtype == np.int64
    assert env.task_ids.shape == (2,)
    assert np.array_equal(np.unique(env.task_ids), np.arange(len(env.task_names)))
    step = env.reset()
    assert step.is_first.all()
    was_last = np.zeros(2, bool)
    num_ends = 0
    for action in itertools.chain([None], actions_for(env, 125)):
        if action is not None:
            given = action.copy()
            step = env.step(action)
            assert np.array_equal(action, given)
            assert np.array_equal(step.is_first, was_last)
        assert step.observation.shape == (2, *env.observation_spec.shape)
        assert step.observation.dtype == env.observation_spec.dtype
        assert step.reward.shape == (2,)
        assert step.reward.dtype == np.float32
        assert not step.reward[step.is_first].any()
        assert not (step.is_first & step.is_last).any()
        assert not (step.is_terminal & ~step.is_last).any()
        if step.place is not None:
            assert step.place.dtype == np.int64
            assert (step.place >= -1).all()
            assert env.num_places is None or (step.place < env.num_places).all()
        was_last = step.is_last
        num_ends += int(was_last.sum())
    assert num_ends > 0


def test_places_lie_on_the_map(build):
    env = build()
    step = env.reset()
    if not hasattr(env, "map_shape"):
        assert len(env.task_names) > 1  # every task has a map of its own
        return
    if step.place is None:
        assert env.map_shape is None
        return
    rows, columns = env.map_shape
    for action in actions_for(env, 50):
        for place in step.place[step.place >= 0]:
            row, column = env.cell_of(int(place))
            assert 0 <= row < rows
            assert 0 <= column < columns
        step = env.step(action)


def test_seeded_runs_repeat_and_other_seeds_differ(build):
    runs = []
    other = build(2)
    for env, seed in ((build(1), None), (other, 1), (other, 5)):
        steps = [env.reset(seed)] + [env.step(action) for action in actions_for(env, 40)]
        runs.append(steps)
    for ours, theirs in zip(runs[0], runs[1], strict=True):
        assert_equal_steps(ours, theirs)
    assert any(
        not np.array_equal(a.observation, b.observation) for a, b in zip(runs[0], runs[2], strict=True)
    )


def test_copies_differ_from_each_other(build):
    env = build()
    steps = [env.reset()] + [env.step(np.array([a[0], a[0]])) for a in actions_for(env, 40)]
    assert any(not np.array_equal(step.observation[0], step.observation[1]) for step in steps)


def test_saved_and_restored_runs_are_identical_for_300_actions(build, tmp_path):
    env, other = build(0), build(9)
    actions = actions_for(env, 390)
    env.reset()
    for action in actions[:45]:
        env.step(action)
    state = env.get_state()
    store.save(tmp_path / "state", state, kind="env")
    before = copy.deepcopy(state)
    rest = [env.step(action) for action in actions[45:345]]
    other.set_state(store.load(tmp_path / "state", kind="env"))
    for step, action in zip(rest, actions[45:345], strict=True):
        assert_equal_steps(step, other.step(action))
    assert_equal_states(state, before)  # what was returned is a copy
    env.set_state(state)  # and back in the same object, from another moment
    for step, action in zip(rest[:60], actions[45:105], strict=True):
        assert_equal_steps(step, env.step(action))


def assert_equal_states(ours, theirs):
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        for key in ours:
            assert_equal_states(ours[key], theirs[key])
    elif isinstance(ours, list):
        for mine, other in zip(ours, theirs, strict=True):
            assert_equal_states(mine, other)
    else:
        assert np.array_equal(ours, theirs)


def test_illegal_actions_and_foreign_states_are_refused(build):
    env = build()
    env.reset()
    num = env.action_spec.num
    with pytest.raises(
        ValueError, match=f"action {num} of copy 1 is illegal; expected integers from 0 to {num - 1}"
    ):
        env.step(np.array([0, num]))
    with pytest.raises(ValueError, match="shape"):
        env.step(np.array([0]))


def test_gymnasiums_own_checker_passes(case):
    name, options = case
    env = make_env(name, **options)
    check_env(env, skip_render_check=True)
    env.close()


def test_the_single_environment_saves_and_restores_too(case, tmp_path):
    name, options = case
    env, other = make_env(name, **options), make_env(name, **options)
    rng = np.random.default_rng(0)
    env.reset(seed=3)
    is_over = False
    for t in range(130):
        if t == 30:
            store.save(tmp_path / "state", env.get_state(), kind="env")
            other.set_state(store.load(tmp_path / "state", kind="env"))
        action = int(rng.integers(env.action_space.n))
        copies = [env] if t < 30 else [env, other]
        results = [one.reset() if is_over else one.step(action) for one in copies]
        if t >= 30:
            assert np.array_equal(results[0][0], results[1][0])
            assert results[0][1:] == results[1][1:]
        is_over = not is_over and (results[0][2] or results[0][3])
    env.close()
    other.close()
