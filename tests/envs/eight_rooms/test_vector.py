"""The vector environment.

The same bits whoever computes them, exact states, places, and Gymnasium's checkers.
"""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from fakes.eight_rooms_worlds import Single, action, room
from gymnasium.utils.env_checker import check_env

from softcount import store
from softcount.envs import families
from softcount.envs.eight_rooms import core
from softcount.envs.eight_rooms.gym import EightRoomsEnv
from softcount.envs.eight_rooms.maps import film_strip, map_image, walkable
from softcount.envs.eight_rooms.playing import random_actions
from softcount.envs.eight_rooms.tasks import TASKS
from softcount.envs.eight_rooms.vector import EightRooms, EightRoomsConfig
from softcount.envs.make import listing, make, make_env

SMALL = {"width": 32, "height": 24}
GOLDEN = {
    "baseball": "60282f9283c21dff",
    "drawbridge": "cc930ba4cf18cf48",
    "navigate_cubes": "d495b17c7a6ad6cb",
    "push_blocks": "c70d3493dbbdd4cb",
    "remember_sensor": "b00367c04f1dfa08",
    "throw_across": "0d1d1e874f929768",
    "wall_sensor": "40c032cb932baf46",
    "wall_sensor_stack": "5533e1dc1a765de2",
}
"""Of three frames of each task; they change with the suite's version and never otherwise."""


def run(env, steps, seed=0):
    """Plays held random actions; returns every observation, reward and place."""
    rng, rows, last = np.random.default_rng(seed), [env.reset()], np.zeros(env.num_envs, np.int64)
    for _ in range(steps):
        last = random_actions(rng, last, env.action_spec.num)
        rows.append(env.step(last))
    return rows


def assert_same(ours, theirs):
    for mine, other in zip(ours, theirs, strict=True):
        for part, counterpart in zip(mine, other, strict=True):
            assert np.array_equal(part, counterpart)


def short(task, **options):
    return EightRoomsConfig(**{"task": task, "variant": "tiny", "max_steps": 25, **SMALL, **options})


@pytest.mark.parametrize("task", TASKS)
def test_instruction_sets_and_threads_give_the_same_bits(task):
    reference = run(EightRooms(short(task), num_envs=6, seed=3), 60)
    for rank in range(len(core.kernel_names())):
        env = EightRooms(short(task, threads=1 + rank), num_envs=6, seed=3, rank=rank)
        assert_same(reference, run(env, 60))
    threaded = EightRooms(short(task, threads=3), num_envs=6, seed=3)
    assert_same(reference, run(threaded, 60))


def test_a_copy_does_not_depend_on_the_size_of_its_batch():
    config = short("wall_sensor")
    many, few = EightRooms(config, num_envs=9, seed=1), EightRooms(config, num_envs=2, seed=1)
    many.reset(), few.reset()
    rng = np.random.default_rng(0)
    for _ in range(40):
        actions = rng.integers(38, size=9)
        assert np.array_equal(many.step(actions).observation[:2], few.step(actions[:2]).observation)


@pytest.mark.parametrize("task", TASKS)
def test_a_state_continues_bit_for_bit_in_another_slot(task):
    config = short(task, max_steps=500)
    env = EightRooms(config, num_envs=2, seed=0)
    run(env, 30)
    other = core.Batch(5, config.width, config.height)
    other.load(3, env.batch.states[1])
    for slot in (0, 1, 2, 4):
        other.load(slot, env.batch.states[0])
    rng = np.random.default_rng(1)
    for _ in range(100):
        actions = rng.uniform(-1, 1, (5, 9)).astype(np.float32)
        ours = env.batch.step(np.ascontiguousarray(actions[[0, 3]]), np.full(2, 4, np.int32))
        theirs = other.step(actions, np.full(5, 4, np.int32))
        assert np.array_equal(ours[1], theirs[3])
    assert env.batch.states[1].tobytes() == other.states[3].tobytes()


def test_a_saved_run_continues_across_episodes(tmp_path):
    env, other = (EightRooms(short("throw_across"), num_envs=3, seed=seed) for seed in (4, 5))
    run(env, 20)
    store.save(tmp_path / "state", env.get_state(), kind="env")
    other.set_state(store.load(tmp_path / "state", kind="env"))
    rng = np.random.default_rng(2)
    num_ends = 0
    for _ in range(60):
        actions = rng.integers(38, size=3)
        ours, theirs = env.step(actions), other.step(actions)
        assert_same([ours], [theirs])
        num_ends += int(ours.is_last.sum())
    assert num_ends > 0


def test_states_of_other_tasks_versions_and_sizes_are_refused():
    state = EightRooms(short("baseball"), num_envs=2).get_state()
    with pytest.raises(ValueError, match=r"baseball tiny.*expected.*drawbridge tiny"):
        EightRooms(short("drawbridge"), num_envs=2).set_state(state)
    with pytest.raises(ValueError, match="expected"):
        EightRooms(short("baseball"), num_envs=3).set_state(state)
    with pytest.raises(ValueError, match="eight-rooms 0"):
        EightRooms(short("baseball"), num_envs=2).set_state({**state, "suite": "eight-rooms 0"})


def test_a_broken_state_is_refused_before_it_is_used():
    world = Single(room())
    for field, value, message in (
        ("num_bodies", 99, "num_bodies is 99; expected from 0 to 72"),
        ("version", 7, "the version is 7"),
        ("columns", 0, "columns is 0"),
    ):
        broken = world.level.state.copy()
        broken[field] = value
        with pytest.raises(ValueError, match=message):
            world.batch.load(0, broken)


@pytest.mark.parametrize("task", TASKS)
def test_frames_are_the_golden_ones(task):
    env = EightRooms(EightRoomsConfig(task=task, layout=0), num_envs=1)
    seen = [env.reset()] + [env.step(np.array([a])) for a in [5] * 4 + [1] * 6 + [9] * 3]
    digest = hashlib.sha256(b"".join(seen[i].observation.tobytes() for i in (0, 7, 13))).hexdigest()
    assert digest[:16] == GOLDEN[task]


def test_what_is_left_is_drawn_left_and_what_is_up_is_drawn_up():
    builder = room()
    red = builder.paint("red")
    builder.box((7.5, 4.5), 0.3, red, floor=1.2)  # ahead is +x; right is +y, so this is left
    world = Single(builder)
    image = world.image().astype(int)
    is_red = (image[..., 0] > 120) & (image[..., 1] < 60)
    rows, columns = np.nonzero(is_red)
    assert columns.mean() < 48
    assert abs(rows.mean() - 36) < 4
    world.tick(action(nod=-1.0), 4)  # looking down moves it up
    is_red = (world.image()[..., 0] > 120) & (world.image()[..., 1] < 60)
    assert np.nonzero(is_red)[0].mean() < rows.mean() - 5


def test_an_active_sensor_is_bleached_and_nothing_else_changes():
    builder = room()
    builder.plate((1, 1, 21, 21), "east", 5.0, 1, core.LATCH, "blue")
    world = Single(builder)
    before = world.image().astype(int)
    world.state["sensors"][0]["is_on"] = 1
    after = world.image().astype(int)
    is_changed = (before != after).any(-1)
    assert is_changed.any()
    assert (before[is_changed][:, 2] > before[is_changed][:, 0] + 60).all()
    assert (after[is_changed] > before[is_changed] - 1).all()


def test_the_apple_ends_for_good_and_the_limit_does_not():
    config = EightRoomsConfig(task="wall_sensor", variant="tiny", assist=3, **SMALL)
    env = EightRooms(config, num_envs=1)
    env.reset()
    steps = [env.step(np.array([1])) for _ in range(6)]
    last = next(step for step in steps if step.is_last[0])
    assert last.is_terminal[0]
    assert last.reward[0] == 10.0
    env = EightRooms(replace(config, assist=0, max_steps=3), num_envs=1)
    env.reset()
    last = [env.step(np.array([0])) for _ in range(3)][-1]
    assert last.is_last[0]
    assert not last.is_terminal[0]
    env = EightRooms(replace(config, assist=0, max_steps=3, limit_is_terminal=True), num_envs=1)
    env.reset()
    assert [env.step(np.array([0])) for _ in range(3)][-1].is_terminal[0]


def test_limits_follow_the_size_and_the_memory_task_has_twice_as_long():
    assert EightRoomsConfig(task="baseball", variant="tiny").limit == 400
    assert EightRoomsConfig(task="baseball", variant="small").limit == 900
    assert EightRoomsConfig(task="remember_sensor", variant="full").limit == 3600


def test_a_fixed_layout_is_one_level_with_cells_and_new_levels_have_stages_only():
    fixed = EightRooms(short("drawbridge", layout=7), num_envs=2, seed=0)
    first = fixed.reset().observation
    assert np.array_equal(first[0], first[1])
    assert fixed.num_places == 16 * 1024
    assert fixed.map_shape == (32, 32)
    rows = run(fixed, 40)
    for step in rows:
        agent = fixed.cell_of(int(step.place[0]))
        assert walkable(fixed.batch.states[0])[agent]
    free = EightRooms(short("drawbridge"), num_envs=2, seed=0)
    first = free.reset().observation
    assert not np.array_equal(first[0], first[1])
    assert free.num_places == 16
    assert free.cell_of(9) == (0, 9)


def test_place_changes_if_and_only_if_stage_or_cell_do():
    env = EightRooms(short("navigate_cubes", layout=2, max_steps=400), num_envs=4, seed=0)
    rng = np.random.default_rng(0)
    env.reset()
    for _ in range(60):
        step = env.step(rng.integers(38, size=4))
        agent = env.batch.states["agent"]
        expected = env.stage * 1024 + np.floor(agent["y"]).astype(int) * 32 + np.floor(agent["x"]).astype(int)
        assert np.array_equal(step.place, expected)


def test_lost_levels_are_known():
    env = EightRooms(short("push_blocks", max_steps=400), num_envs=2)
    env.reset()
    assert not env.is_lost.any()
    bodies, mark = env.batch.states["bodies"], env.worlds.marks[0, 0]
    bodies["x"][0, 1], bodies["y"][0, 1], bodies["z"][0, 1] = mark[0], mark[1], 0.1
    assert env.is_lost.tolist() == [True, False]
    assert env.stage[0] == 3
    env = EightRooms(short("throw_across", max_steps=400), num_envs=3)
    env.reset()
    env.batch.states["bodies"]["flags"][1, 0] &= ~core.ALIVE  # a key in the void
    env.batch.states["agent"]["x"][2], env.batch.states["agent"]["y"][2] = env.worlds.marks[2, 3]
    env.batch.states["sensors"]["is_on"][2, 0] = 1  # behind the ledge, and no key across
    assert env.is_lost.tolist() == [False, True, True]
    assert env.stage.tolist() == [0, 5, 5]


def test_senses_have_the_published_names_and_bounds():
    env = EightRooms(short("wall_sensor", observation="all", assist=1), num_envs=2)
    step = env.reset()
    assert list(step.observation) == [
        "RGB_INTERLEAVED",
        "ACCELERATION",
        "HAND_FORCE",
        "HAND_IS_HOLDING",
        "HAND_DISTANCE",
    ]
    step = env.step(np.array([15, 0]))  # keep the grip; let go
    assert step.observation["HAND_IS_HOLDING"].tolist() == [1.0, 0.0]
    assert 0.0 < step.observation["HAND_DISTANCE"][0] <= 1.0
    assert step.observation["HAND_DISTANCE"][1] == 0.0
    for name, spec in env.observation_spec.items():
        assert step.observation[name].shape == (2, *spec.shape)
        assert step.observation[name].dtype == spec.dtype


def test_the_table_can_open_the_hand():
    table = EightRoomsConfig().table
    assert sum("HAND_GRIP" not in entry for entry in table) >= 10
    assert table[15] == {"HAND_GRIP": 1.0}


@pytest.mark.parametrize("observation", ["image", "all"])
@pytest.mark.parametrize("actions", ["discrete", "continuous"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gymnasiums_checker_passes(observation, actions):
    env = EightRoomsEnv(short("baseball", observation=observation, actions=actions), render_mode="rgb_array")
    check_env(env, skip_render_check=True)
    env.reset()
    assert env.render().shape == (24, 32, 3)


def test_info_has_score_and_whether_all_is_lost():
    env = make_env("eight-rooms/push_blocks", variant="tiny", max_steps=2, **SMALL)
    _, info = env.reset(seed=0)
    assert info.keys() == {"place", "score", "is_lost"}
    env.step(0)
    assert env.step(0)[3]
    with pytest.raises(RuntimeError, match="call reset"):
        env.step(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "huge"}, "variant is 'huge'; expected one of 'tiny', 'small', 'full'"),
        ({"assist": 4}, "assist is 4"),
        ({"width": 4}, "width is 4; expected at least 8"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"layout": -1}, "layout is -1"),
        ({"table": ({"JUMP": 1.0},)}, "no action is called 'JUMP'"),
        ({"table": ({"HAND_GRIP": 2.0},)}, "HAND_GRIP is 2.0; expected from 0.0 to 1.0"),
        ({"varian": "tiny"}, "no option 'varian'; did you mean 'variant'"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make("eight-rooms/baseball", **options)


def test_step_before_reset_and_illegal_actions_are_refused():
    env = EightRooms(short("baseball", actions="continuous"), num_envs=1)
    with pytest.raises(RuntimeError, match="before reset"):
        env.step(np.zeros((1, 9), np.float32))
    env.reset()
    with pytest.raises(ValueError, match="illegal"):
        env.step(np.full((1, 9), 2.0, np.float32))


def test_without_a_compiler_the_family_is_listed_as_unavailable_with_the_reason(monkeypatch):
    find = families.find_spec
    monkeypatch.setattr(families, "find_spec", lambda name: None if name.endswith("_rooms") else find(name))
    row = {row.name: row for row in listing()}["eight-rooms/baseball"]
    assert not row.is_installed
    assert "C++ compiler" in row.install
    with pytest.raises(ImportError, match="a C\\+\\+ compiler"):
        make("eight-rooms/baseball")
    monkeypatch.setattr(core, "_rooms", None)
    with pytest.raises(ImportError, match="without a C\\+\\+ compiler"):
        core.Batch(1, 8, 6)


def test_maps_show_walls_apple_and_agent():
    env = EightRooms(EightRoomsConfig(task="drawbridge", variant="tiny", layout=0))
    env.reset()
    state = env.batch.states[0]
    image = map_image(state, scale=8)
    assert image.shape == (8 * int(state["rows"]), 8 * int(state["columns"]), 3)
    assert image[0, 0].tolist() == [105, 105, 105]
    apple = state["apples"][state["apples"]["is_terminal"] > 0][0]
    assert image[int(apple["y"] * 16), int(apple["x"] * 16)].tolist() == [220, 30, 40]
    agent = state["agent"]
    assert image[int(agent["y"] * 16), int(agent["x"] * 16)].tolist() == [40, 90, 250]
    sheet = film_strip([np.zeros((4, 6, 3), np.uint8)] * 3, columns=2, scale=1)
    assert sheet.shape == (12, 16, 3)
    assert (sheet[:4, :6] == 0).all()
    assert (sheet[4] == 255).all()
