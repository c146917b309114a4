"""Bodies, hand, sensors and doors, on small levels made for each question."""

import numpy as np
import pytest
from fakes.eight_rooms_worlds import GRIP, NOTHING, Single, action, depth_in_cells, energy, room

from softcount.envs.eight_rooms import core
from softcount.envs.eight_rooms.levels import GENERATORS, generate


def awake(world):
    world.bodies["flags"] &= ~core.ASLEEP
    return world


def violent(rng, actions):
    """Random hands that push and pull with all force and let go at random."""
    num = len(actions)
    fresh = rng.uniform(-1, 1, (num, 9)).astype(np.float32)
    fresh[:, 0] = rng.choice([-1, 1, 1], num)
    fresh[:, 7] = rng.choice([-10, 0, 10], num)
    fresh[:, 8] = rng.uniform(size=num) < 0.85
    is_new = rng.uniform(size=num) < 0.15
    return np.where(is_new[:, None], fresh, actions).astype(np.float32)


@pytest.mark.parametrize("task", GENERATORS)
@pytest.mark.parametrize(
    "num_ticks", [pytest.param(120, id="short"), pytest.param(3000, id="long", marks=pytest.mark.slow)]
)
def test_nothing_is_ever_inside_a_wall_on_any_tick(task, num_ticks):
    num = 6
    batch = core.Batch(num, 8, 6)
    for slot in range(num):
        variant = ("tiny", "full")[slot % 2]
        level = generate(task, variant, np.random.default_rng(slot), assist=(0, 1)[slot // 2 % 2])
        batch.load(slot, level.state)
    rng, actions = np.random.default_rng(0), np.zeros((num, 9), np.float32)
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    for _ in range(num_ticks):
        actions = violent(rng, actions)
        batch.step_blindly(actions, np.ones(num, np.int32))
        batch.states["is_over"] = 0
        for state in batch.states:
            agent = state["agent"]
            x, y = agent["x"] + 0.28 * np.cos(angles), agent["y"] + 0.28 * np.sin(angles)
            heights = state["heights"][(y / core.CELL).astype(int), (x / core.CELL).astype(int)]
            assert (heights <= agent["z"] + 0.32).all()
            assert (heights >= agent["z"] - 1.6).all()
            for i in np.flatnonzero((state["bodies"]["flags"] & (core.ALIVE | core.ASLEEP)) == core.ALIVE):
                assert depth_in_cells(state, i) < 0.02
            if agent["held"] >= 0:
                body = state["bodies"][agent["held"]]
                eye = np.array([agent["x"], agent["y"], agent["z"] + 1.5])
                assert np.linalg.norm(np.array([body["x"], body["y"], body["z"]]) - eye) < 2.0 + 1.2


def test_towers_of_five_stand_for_twenty_seconds_and_fall_asleep():
    builder = room(30, 30)
    rng = np.random.default_rng(1)
    for tower in range(8):
        x, y = 2.0 + 1.6 * tower, 3.0 + 1.2 * (tower % 3)
        for storey in range(5):
            at = (x + rng.uniform(-0.05, 0.05), y + rng.uniform(-0.05, 0.05))
            builder.box(at, 0.25, 0, floor=0.5 * storey, yaw=float(rng.uniform(-3, 3)))
    builder.start((13.0, 13.0))
    world = awake(Single(builder))
    before = world.bodies[:40].copy()
    world.tick(ticks=600)
    for axis in "xyz":
        assert np.abs(world.bodies[axis][:40] - before[axis]).max() < 1e-3
    assert (world.bodies["flags"][:40] & core.ASLEEP).all()


def test_energy_never_rises_while_nobody_acts():
    builder = room(16, 16)
    rng = np.random.default_rng(2)
    for i in range(30):
        at, height = tuple(rng.uniform(1.5, 7.0, 2)), float(rng.uniform(0.5, 4.0))
        add = builder.box if i % 2 else builder.ball
        add(at, float(rng.uniform(0.15, 0.3)), 0, floor=height, yaw=0.0, mass=float(rng.uniform(0.5, 3)))
    builder.start((8.0, 8.0))
    world = awake(Single(builder))
    world.bodies["vx"][:30] = rng.uniform(-4, 4, 30)
    last = first = energy(world.state)
    for _ in range(240):
        world.tick()
        now = energy(world.state)
        assert now <= last + 1e-3
        last = now
    assert last < 0.5 * first


def test_boxes_at_rest_do_not_overlap():
    builder = room(12, 12)
    rng = np.random.default_rng(3)
    for _ in range(20):
        at = tuple(rng.uniform(2.5, 4.5, 2))
        builder.box(at, 0.25, 0, floor=float(rng.uniform(0, 5)), yaw=float(rng.uniform(-3, 3)))
    builder.start((1.2, 1.2))
    world = awake(Single(builder))
    world.tick(ticks=900)
    bodies = world.bodies[:20]
    assert (bodies["flags"] & core.ASLEEP).sum() >= 18
    for i in range(20):
        for j in range(i):
            if min(bodies["z"][i], bodies["z"][j]) + 0.5 - max(bodies["z"][i], bodies["z"][j]) > 0.04:
                assert overlap(bodies[i], bodies[j]) < 0.02


def overlap(a, b):
    """How far two upright squares would have to part at least, by projections on their four axes."""
    least = np.inf
    for yaw in (a["yaw"], b["yaw"]):
        for angle in (yaw, yaw + np.pi / 2):
            axis = np.array([np.cos(angle), np.sin(angle)])
            reach = sum(
                box["hx"] * (abs(np.cos(box["yaw"] - angle)) + abs(np.sin(box["yaw"] - angle)))
                for box in (a, b)
            )
            least = min(least, reach - abs(np.dot(axis, [a["x"] - b["x"], a["y"] - b["y"]])))
    return max(least, 0.0)


def test_a_box_falls_as_gravity_says():
    builder = room()
    builder.box((3.0, 3.0), 0.2, 0, floor=4.0)
    world = awake(Single(builder))
    world.tick(ticks=15)  # half a second
    assert world.bodies["z"][0] == pytest.approx(4.2 - 0.5 * 9.81 * 0.5**2, abs=0.05)


def test_a_ball_half_over_an_edge_rolls_off_and_a_box_over_its_middle_stays():
    builder = room()
    builder.ground((5, 5, 8, 8), 1.0)
    builder.ball((4.1, 3.0), 0.2, 0, floor=1.0)  # the edge is at x = 4: its lowest point is beyond
    builder.box((3.9, 3.6), 0.3, 0, floor=1.0)
    world = awake(Single(builder))
    world.tick(ticks=60)
    assert world.bodies["z"][0] == pytest.approx(0.2, abs=0.01)
    assert world.bodies["z"][1] == pytest.approx(1.3, abs=0.01)


def holding(half=0.2, at=1.2, **options):
    """A world whose agent has just gripped a box before it."""
    builder = room(40, 12, **options)
    builder.start((2.0, 3.5), 0.0)
    builder.box((2.0 + at, 3.5), half, 0, floor=1.5 - half)
    world = Single(builder)
    world.tick(GRIP)
    assert world.agent["held"] == 0
    return world


def test_the_hand_grips_only_on_a_rising_edge_within_reach_and_not_through_walls():
    builder = room(40, 12)
    builder.start((2.0, 3.5), 0.0)
    builder.box((4.4, 3.5), 0.2, 0, floor=1.3)  # its face is 2.2 m away
    world = Single(builder)
    world.bodies["flags"][0] |= core.ASLEEP
    world.tick(GRIP)
    assert world.agent["held"] == -1
    world.tick(action(move=1.0, grip=1.0), 8)  # comes near, but the hand was closed all the time
    assert world.agent["held"] == -1
    world.tick(NOTHING)
    world.tick(GRIP)
    assert world.agent["held"] == 0

    builder = room(40, 12)
    builder.start((2.0, 3.5), 0.0)
    builder.ground((5, 1, 6, 13), 1.6)
    builder.box((3.3, 3.5), 0.2, 0, floor=1.3)
    world = Single(builder)
    world.tick(GRIP)
    assert world.agent["held"] == -1


def test_a_held_body_is_lifted_turned_and_follows_the_view():
    world = holding()
    world.tick(action(nod=1.0, grip=1.0), 10)  # 30 degrees up
    assert world.bodies["z"][0] == pytest.approx(1.5 + world.agent["hand"] * np.sin(np.pi / 6), abs=0.03)
    yaw = float(world.bodies["yaw"][0])
    world.tick(action(turn=1.0, grip=1.0), 6)
    assert float(world.bodies["yaw"][0]) - yaw == pytest.approx(0.2 * np.pi, abs=0.02)
    world.tick(action(push=-10.0, grip=1.0), 6)
    assert world.agent["hand"] == pytest.approx(0.7)


def throw_range(speed):
    """How far a thrown body flies until it is as low as where it left the hand."""
    world = holding(at=0.75)
    world.tick(action(nod=1.0, grip=1.0), 9)  # 27 degrees
    world.tick(action(push=-10.0, grip=1.0), 6)
    world.tick(action(push=speed, grip=1.0), 4)
    start, height = float(world.bodies["x"][0]), float(world.bodies["z"][0])
    world.tick(NOTHING)
    for _ in range(120):
        world.tick()
        if world.bodies["z"][0] < height:
            return float(world.bodies["x"][0]) - start
    raise AssertionError("it never came down")


def test_a_full_push_throws_as_far_as_ten_metres_a_second_do():
    expected = 10.0**2 * np.sin(2 * np.radians(27)) / 9.81  # 8.2 m
    assert throw_range(10.0) == pytest.approx(expected, rel=0.05)
    assert throw_range(10.0) == throw_range(10.0)
    assert throw_range(6.0) == pytest.approx(expected * 0.36, rel=0.15)


def test_a_slow_hand_lays_down():
    world = holding()
    world.tick(NOTHING)
    world.tick(ticks=60)
    assert abs(float(world.bodies["x"][0]) - 3.2) < 0.15
    assert world.bodies["z"][0] == pytest.approx(0.2, abs=0.01)


def test_a_heavy_block_is_pushed_slower_than_one_walks_and_not_into_another():
    builder = room(40, 12)
    builder.start((2.0, 3.5), 0.0)
    builder.box((3.0, 3.5), 0.4, 0, mass=8.0, flags=core.PUSHABLE)
    world = Single(builder)
    world.tick(action(move=1.0), 60)
    moved = float(world.bodies["x"][0]) - 3.0
    assert 2.5 < moved < 4.0  # two seconds at 3 m/s would be 6 m
    assert world.bodies["y"][0] == pytest.approx(3.5, abs=1e-3)
    at = float(world.bodies["x"][0])
    world.bodies[1] = world.bodies[0]
    world.bodies["x"][1] = at + 0.81
    world.state["num_bodies"] = 2
    world.tick(action(move=1.0), 60)
    assert float(world.bodies["x"][0]) - at < 0.05
    assert float(world.bodies["x"][1]) == pytest.approx(at + 0.81, abs=0.01)


def test_what_can_only_be_pushed_is_never_gripped():
    builder = room(40, 12)
    builder.start((2.0, 3.5), 0.0)
    builder.box((3.0, 3.5), 0.4, 0, floor=0.9, mass=8.0, flags=core.PUSHABLE)
    world = Single(builder)
    world.tick(GRIP)
    assert world.agent["held"] == -1


def sensor_world(mode):
    """A plate on the east wall, a door in the south one, and a key in the hand before the plate."""
    builder = room(12, 12)
    plate = builder.plate((1, 1, 13, 13), "east", 3.0, 7, mode, "red")
    builder.ground((1, 12, 13, 13), core.WALL)
    builder.door((2, 12, 5, 13), [plate])
    builder.start((5.0, 3.5), 0.0)
    builder.box((5.9, 3.5), 0.2, 0, floor=1.0, key=7)
    builder.box((1.5, 1.5), 0.2, 0)
    world = Single(builder)
    world.agent["pitch"] = -0.33
    world.tick(GRIP)
    assert world.agent["held"] == 0
    return world


@pytest.mark.parametrize("mode", [core.LATCH, core.HOLD, core.CONSUME])
def test_a_sensor_does_what_its_mode_says_when_the_key_comes_and_goes(mode):
    world = sensor_world(mode)
    sensor, door = world.state["sensors"][0], world.state["movers"][0]
    assert not sensor["is_on"]
    world.tick(action(push=2.0, nod=0.2, grip=1.0), 20)
    assert sensor["is_on"]
    assert bool(world.bodies["flags"][0] & core.ALIVE) == (mode != core.CONSUME)
    world.tick(action(push=-10.0, grip=1.0), 30)  # the key leaves
    assert bool(sensor["is_on"]) == (mode != core.HOLD)
    world.tick(GRIP, 60)
    assert door["height"] == (door["closed"] if mode == core.HOLD else door["open"])
    assert world.state["heights"][12, 3] == (core.WALL if mode == core.HOLD else 0.0)


def test_another_key_number_does_nothing():
    world = sensor_world(core.LATCH)
    world.bodies["key"][0] = 6
    world.tick(action(push=2.0, nod=0.5, grip=1.0), 30)
    assert not world.state["sensors"][0]["is_on"]


def doorway(num_bodies):
    """An open door held by a sensor that is switched off by hand, with bodies in the doorway."""
    builder = room(12, 12)
    builder.ground((7, 1, 8, 13), core.WALL)
    plate = builder.plate((1, 1, 7, 13), "west", 3.0, 7, core.HOLD, "red")
    builder.door((7, 5, 8, 8), [plate])
    rng = np.random.default_rng(num_bodies)
    for _ in range(num_bodies):
        at = (3.75 + rng.uniform(-0.1, 0.1), 3.25 + rng.uniform(-0.4, 0.4))
        builder.box(at, 0.2, 0, floor=float(rng.uniform(0, 1)), yaw=float(rng.uniform(-1, 1)))
    builder.start((1.5, 1.5))
    builder.state["movers"][0]["height"] = 0.0
    builder.state["heights"][5:8, 7] = 0.0
    world = awake(Single(builder))
    return world


@pytest.mark.parametrize("num", [1, 2, 4])
def test_bodies_cannot_prop_a_door(num):
    world = doorway(num)
    world.tick(ticks=300)
    assert world.state["movers"][0]["height"] == world.state["movers"][0]["closed"]
    for i in range(num):
        assert depth_in_cells(world.state, i) < 0.02


def test_a_door_does_not_rise_under_the_agent_and_does_once_it_left():
    world = doorway(0)
    world.agent["x"], world.agent["y"], world.agent["yaw"] = 3.75, 3.25, 0.0
    world.tick(ticks=60)
    assert world.state["movers"][0]["height"] == 0.0
    world.tick(action(move=1.0), 30)
    world.tick(ticks=60)
    assert world.state["movers"][0]["height"] == world.state["movers"][0]["closed"]


def test_nobody_falls_into_the_void_climbs_a_high_step_or_comes_back_up_a_ledge():
    for height, reaches in ((core.VOID, False), (0.25, True), (0.4, False), (-0.6, True)):
        builder = room(20, 6)
        builder.ground((8, 1, 21, 7), height)
        builder.start((2.0, 2.0), 0.0)
        world = Single(builder)
        world.tick(action(move=1.0), 60)
        assert (world.agent["x"] > 4.5) == reaches
        assert world.agent["z"] == pytest.approx(height if reaches else 0.0)
        if height == -0.6:
            world.tick(action(move=-1.0), 90)
            assert world.agent["x"] > 4.0


def test_a_body_in_the_void_is_gone():
    builder = room(20, 6)
    builder.ground((8, 1, 21, 7), core.VOID)
    builder.ball((5.0, 2.0), 0.2, 0, floor=1.0)
    builder.start((2.0, 2.0), 0.0)
    world = awake(Single(builder))
    world.tick(ticks=90)
    assert not world.bodies["flags"][0] & core.ALIVE


def test_strips_pay_on_every_entry_and_apples_once():
    builder = room(20, 6)
    builder.strip((3.0, 0.5, 3.5, 3.5), -0.1)
    builder.apple((5.0, 2.0), is_large=False)
    builder.start((2.0, 2.0), 0.0)
    world = Single(builder)
    world.tick(action(move=1.0), 40)
    assert world.state["score"] == pytest.approx(0.9)
    world.tick(action(move=-1.0), 40)
    assert world.state["reward"] == pytest.approx(-0.1)
    assert not world.state["is_over"]


def test_the_large_apple_pays_ten_and_ends():
    builder = room(20, 6)
    builder.apple((4.0, 2.0))
    builder.start((2.0, 2.0), 0.0)
    world = Single(builder)
    world.tick(action(move=1.0), 60)
    assert world.state["score"] == 10.0
    assert world.state["is_over"]
    tick = int(world.state["tick"])
    world.tick(action(move=1.0), 5)
    assert world.state["tick"] == tick


def test_acceleration_is_right_up_forward():
    builder = room()
    world = Single(builder)
    world.tick(action(move=1.0))
    assert world.agent["acceleration"].tolist() == pytest.approx([0, 0, 30], abs=0.5)
    world.tick(ticks=10)
    world.tick(action(strafe=1.0))
    assert world.agent["acceleration"].tolist() == pytest.approx([30, 0, 0], abs=0.5)


@pytest.mark.parametrize("speed", [(3.0, 0.0), (9.0, 4.0), (4.0, 9.0)])
def test_no_key_passes_the_veil_carried_kicked_or_thrown_high(speed):
    for seed in range(4):
        level = generate("throw_across", "tiny", np.random.default_rng(seed))
        state, (before, behind) = level.state.copy(), level.marks[2:4]
        way = behind - before
        state["movers"][0]["height"] = state["movers"][0]["open"]
        m = state["movers"][0]
        state["heights"][m["row0"] : m["row1"], m["column0"] : m["column1"]] = 0.0
        state["sensors"][0]["is_on"] = 1
        body = state["bodies"][0]
        body["x"], body["y"] = before - 1.0 * way
        body["z"], body["flags"] = 1.6, body["flags"] & ~core.ASLEEP
        body["vx"], body["vy"] = speed[0] * way
        body["vz"] = speed[1]
        batch = core.Batch(1, 8, 6)
        batch.load(0, state)
        for _ in range(90):
            batch.step_blindly(NOTHING[None], np.ones(1, np.int32))
            body = batch.states["bodies"][0, 0]
            is_past = (body["x"] - before[0]) * way[0] + (body["y"] - before[1]) * way[1] > 0.5
            assert not (body["flags"] & core.ALIVE and is_past)
        assert not batch.states["bodies"]["flags"][0, 0] & core.ALIVE
