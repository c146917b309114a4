import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import dm_env
import grpc
import numpy as np
import pytest
from dm_env import specs as dm_specs
from dm_env_rpc.v1 import connection as stock_connection
from dm_env_rpc.v1 import dm_env_adaptor
from dm_env_rpc.v1 import dm_env_rpc_pb2 as pb
from fakes import dm_hard_8_server as fake
from gymnasium.utils.env_checker import check_env

from softcount.envs.dm_hard_8 import ACTIONS, LEVELS, SENSES, DmHard8, DmHard8Config, action_table
from softcount.envs.dm_rpc import ServerError
from softcount.envs.vector import GymnasiumVector

pytestmark = pytest.mark.timeout(60)
FORWARD = 1


@pytest.fixture
def server():
    with fake.LoopbackServer() as running:
        yield running


def config(server, **options):
    return DmHard8Config(port=server.port, **{"timeout": 5.0, **options})


def rpc_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("dm_env_rpc")]


def test_dm_env_rpcs_own_client_plays_on_the_loopback_server(server):
    client = stock_connection.create_secure_channel_and_connect(
        f"127.0.0.1:{server.port}", grpc.local_channel_credentials(), timeout=5
    )
    create = {"seed": 1, "episodeId": 0, "levelName": "throw_across"}
    world, _ = dm_env_adaptor.create_and_join_world(client, create, {"width": 96, "height": 72})
    step = world.reset()
    assert step.first()
    assert set(step.observation) == {"RGB_INTERLEAVED", *SENSES, "Score"}
    assert not world.step({"HAND_GRIP": 1.0}).last()
    world.close()
    client.close()


def test_world_is_created_with_the_published_settings_and_destroyed_on_close(server):
    env = DmHard8(config(server, level="push_blocks", seed=7, width=48, height=36))
    observation, info = env.reset()
    assert server.created == [{"seed": 7, "episodeId": 0, "levelName": "slot_colored_block"}]
    assert observation.shape == (36, 48, 3)
    assert info == {"score": 0.0}
    env.close()
    assert server.destroyed == ["world 1"]
    assert rpc_threads() == []


def test_all_nine_actions_are_sent_at_every_step(server):
    env = DmHard8(config(server))
    env.reset()
    env.step(FORWARD)
    env.step(0)
    assert [set(update) for update in server.received] == [set(ACTIONS)] * 2
    assert server.received[0] == {**dict.fromkeys(ACTIONS, 0.0), "MOVE_BACK_FORWARD": 1.0}
    assert server.received[1] == dict.fromkeys(ACTIONS, 0.0)  # nothing sticks
    env.close()


def test_continuous_actions_keep_their_order_and_signs_turn_them_round(server):
    signs = {"MOVE_BACK_FORWARD": -1, "LOOK_DOWN_UP": -1}
    env = DmHard8(config(server, actions="continuous", signs=signs))
    env.reset()
    action = np.linspace(0.1, 0.9, 9, dtype=np.float32)
    env.step(action)
    expected = dict(zip(ACTIONS, np.linspace(0.1, 0.9, 9), strict=True))
    expected.update({name: -expected[name] for name in signs})
    assert server.received[0] == pytest.approx(expected)
    assert env.action_space.low.tolist() == [-1] * 7 + [-10, 0]
    assert env.action_space.high.tolist() == [1] * 7 + [10, 1]
    env.close()


def test_the_apple_is_terminal_and_the_servers_limit_is_not(server):
    env = DmHard8(config(server))
    env.reset()
    steps = [env.step(FORWARD) for _ in range(fake.APPLE_AT)]
    assert [step[1] for step in steps] == [0] * 4 + [10]
    assert [step[2:4] for step in steps] == [(False, False)] * 4 + [(True, False)]
    assert steps[-1][4] == {"score": 10.0}
    env.reset()
    steps = [env.step(0) for _ in range(fake.EPISODE_STEPS)]
    assert [step[2:4] for step in steps] == [(False, False)] * 19 + [(False, True)]
    with pytest.raises(RuntimeError, match="call reset"):
        env.step(0)
    env.close()


def test_action_repeat_sends_the_action_again_and_stops_at_the_end(server):
    env = DmHard8(config(server, action_repeat=3))
    env.reset()
    assert env.step(FORWARD)[1:4] == (0.0, False, False)
    assert env.step(FORWARD)[1:4] == (10.0, True, False)
    assert len(server.received) == fake.APPLE_AT
    env.close()


def test_score_is_never_in_the_observation(server):
    env = DmHard8(config(server, observation="all"))
    observation, _ = env.reset()
    assert set(observation) == {"RGB_INTERLEAVED", *SENSES}
    assert env.observation_space.contains(observation)
    assert observation["ACCELERATION"].tolist() == pytest.approx([0, -9.8, 0])
    env.close()


@pytest.mark.parametrize("observation", ["image", "all"])
@pytest.mark.parametrize("actions", ["discrete", "continuous"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gymnasium_checker_passes_over_the_wire(server, observation, actions):
    env = DmHard8(config(server, observation=observation, actions=actions, width=8, height=6))
    check_env(env, skip_render_check=True)
    env.close()


def test_a_seed_opens_a_new_world_and_repeats_it(server):
    env = DmHard8(config(server))
    first, _ = env.reset(seed=3)
    other, _ = env.reset(seed=4)
    again, _ = env.reset(seed=3)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert [settings["seed"] for settings in server.created] == [0, 3, 4, 3]
    env.close()
    assert len(server.destroyed) == 4


def test_opening_and_closing_worlds_leaves_no_threads(server):
    DmHard8(config(server)).close()
    before = threading.active_count()
    for _ in range(5):
        env = DmHard8(config(server))
        env.reset()
        env.close()
    deadline = time.monotonic() + 5
    while threading.active_count() > before + 1 and time.monotonic() < deadline:
        time.sleep(0.02)  # gRPC ends its own threads a moment later
    assert threading.active_count() <= before + 1


def test_copies_on_one_server_make_a_vector_environment(server):
    env = GymnasiumVector([DmHard8(config(server, width=8, height=6)) for _ in range(2)], seed=0)
    assert env.reset().is_first.all()
    lasts = [env.step(np.array([FORWARD, 0])).is_last.tolist() for _ in range(5)]
    assert lasts == [[False, False]] * 4 + [[True, False]]
    after = env.step(np.array([FORWARD, 0]))
    assert after.is_first.tolist() == [True, False]
    with pytest.raises(NotImplementedError, match="cannot save its state"):
        env.get_state()
    env.close()


def test_a_server_with_local_credentials_is_reached_too():
    with fake.LoopbackServer(credentials=grpc.local_server_credentials()) as server:
        env = DmHard8(config(server))
        observation, _ = env.reset()
        assert observation in env.observation_space
        env.close()


class PlainWorld(dm_env.Environment):
    """A dm_env environment with the specs and nothing behind it."""

    def action_spec(self):
        return {name: dm_specs.BoundedArray((), float, low, high) for name, (low, high) in ACTIONS.items()}

    def observation_spec(self):
        senses = {name: dm_specs.Array((), float) for name in SENSES}
        return {"RGB_INTERLEAVED": dm_specs.Array((6, 8, 3), np.uint8), **senses}

    def reset(self):
        return dm_env.restart(self._see())

    def step(self, action):
        return dm_env.transition(sum(action.values()), self._see())

    def _see(self):
        return {"RGB_INTERLEAVED": np.zeros((6, 8, 3), np.uint8), **dict.fromkeys(SENSES, 0.0)}


def test_any_dm_env_environment_with_these_specs_can_be_wrapped():
    env = DmHard8(DmHard8Config(), world=PlainWorld())
    env.reset(seed=0)
    assert env.step(FORWARD)[1] == 1.0


def test_the_action_table_is_within_bounds_and_has_no_doubles():
    table = action_table()
    for entry in table:
        assert all(ACTIONS[name][0] <= value <= ACTIONS[name][1] for name, value in entry.items())
    assert len({tuple(sorted(entry.items())) for entry in table}) == len(table) == 38


def test_the_eight_levels_have_their_published_names():
    assert LEVELS["baseball"] == "use_object_knock_down"
    assert LEVELS["wall_sensor_stack"] == "reach_wall_require_stack"
    assert len(set(LEVELS.values())) == 8


def test_nobody_at_the_address_is_an_error_within_the_time_limit():
    with socket.socket() as taken:  # bound, not listening: nobody answers there
        taken.bind(("127.0.0.1", 0))
        start = time.monotonic()
        with pytest.raises(
            ServerError, match=r"no dm_env_rpc server answers at 127.0.0.1:\d+ \(waited 0.5 s\)"
        ):
            DmHard8(DmHard8Config(port=taken.getsockname()[1], timeout=0.5))
    assert time.monotonic() - start < 3
    assert rpc_threads() == []


def test_something_that_listens_but_is_no_such_server_is_an_error_within_the_time_limit():
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        start = time.monotonic()
        with pytest.raises(ServerError, match="no dm_env_rpc server answers"):
            DmHard8(DmHard8Config(port=mute.getsockname()[1], timeout=0.5))
    assert time.monotonic() - start < 3


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("late", "did not answer Step within 0.5 s"),
        ("end", "broke the connection during Step"),
        ("abort", "the game crashed"),
        ("error", "bad action"),
        ("wrong answer", "answer to Step cannot be used"),
        ("unknown observation", "answer to Step cannot be used"),
        ("nan reward", "the reward is nan; expected a finite number"),
        ("infinite reward", "the reward is inf; expected a finite number"),
        ("no image", "the observation RGB_INTERLEAVED is missing"),
        ("other image", r"answer to Step cannot be used: .*2 2 3"),
        ("large image", "larger than max"),
    ],
)
def test_a_fault_in_mid_episode_is_named_in_bounded_time_and_leaves_no_thread(fault, message):
    with fake.LoopbackServer(fault=fault, fault_step=3) as server:
        env = DmHard8(config(server, timeout=0.5 if fault == "late" else 5.0))
        env.reset()
        env.step(0)
        start = time.monotonic()
        with pytest.raises(ServerError, match=message):
            env.step(0)
        with pytest.raises(ServerError):  # and at once from then on
            env.step(0)
        env.close()
        env.close()
        assert time.monotonic() - start < 3
        assert rpc_threads() == []


def test_answers_that_nobody_asked_for_are_noticed_and_not_hoarded():
    with fake.LoopbackServer(fault="many answers", fault_step=3) as server:
        env = DmHard8(config(server))
        env.reset()
        env.step(0)
        env.step(0)  # answered a thousand times
        deadline = time.monotonic() + 5
        while rpc_threads() and time.monotonic() < deadline:
            time.sleep(0.01)  # the reader stops at the first answer too many
        assert rpc_threads() == []
        assert env.world._connection._responses.qsize() <= 1
        with pytest.raises(ServerError, match="sent an answer that nobody had asked for, before Step"):
            env.step(0)
        with pytest.raises(ServerError, match="closed"):
            env.step(0)
        env.close()


def giant_image(message):
    message.observations[1].shape[:] = [10**6, 10**6, 3]


def giant_sense(message):
    message.observations[2].shape[:] = [2**31 - 1]


@pytest.mark.parametrize(("spoil", "name"), [(giant_image, "RGB_INTERLEAVED"), (giant_sense, "ACCELERATION")])
def test_giant_specs_are_refused_before_memory_is_taken_for_them(spoil, name):
    def spoilt(**size):
        specs = fake.specs(**size)
        spoil(specs)
        return specs

    with fake.LoopbackServer(make_specs=spoilt) as server:
        with pytest.raises(ServerError, match=rf"{name} has shape .*; expected at most 67108864 bytes"):
            DmHard8(config(server))
        assert rpc_threads() == []


@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made with openssl")
def test_a_connection_can_be_encrypted_and_trusts_only_whom_it_is_told_to(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext"
    made = subprocess.run(
        [*command.split(), "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    with fake.LoopbackServer(credentials=credentials) as server:
        env = DmHard8(config(server, tls=str(certificate)))
        observation, _ = env.reset()
        assert observation in env.observation_space
        env.close()
        for tls in (False, True):
            with pytest.raises(ServerError):
                DmHard8(config(server, tls=tls, timeout=1.0))
        assert rpc_threads() == []


def test_a_server_process_that_is_killed_in_mid_episode_is_noticed():
    path = Path(fake.__file__)
    process = subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        port = int(process.stdout.readline())
        env = DmHard8(DmHard8Config(port=port, timeout=5))
        env.reset()
        env.step(0)
        process.kill()
        process.wait(5)
        start = time.monotonic()
        with pytest.raises(ServerError, match="broke the connection during Step"):
            env.step(0)
        env.close()
        assert time.monotonic() - start < 6
        assert rpc_threads() == []
    finally:
        process.kill()
        process.wait(5)
        process.stdout.close()


def without_grip(message):
    del message.actions[9]


def vector_action(message):
    message.actions[1].shape.append(2)


def unbounded_action(message):
    message.actions[1].ClearField("min")
    message.actions[1].ClearField("max")


def reversed_bounds(message):
    message.actions[1].min.doubles.array[:] = [2.0]


def flat_image(message):
    message.observations[1].shape.pop()


def float_image(message):
    message.observations[1].dtype = pb.DataType.FLOAT


def without_image(message):
    del message.observations[1]


def doubled_name(message):
    message.observations[2].name = "RGB_INTERLEAVED"


def unknown_type(message):
    message.observations[3].dtype = pb.DataType.INVALID_DATA_TYPE


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without_grip, "lack HAND_GRIP"),
        (vector_action, "MOVE_BACK_FORWARD"),
        (unbounded_action, "MOVE_BACK_FORWARD"),
        (reversed_bounds, "action specs cannot be used|MOVE_BACK_FORWARD"),
        (flat_image, "RGB_INTERLEAVED"),
        (float_image, "RGB_INTERLEAVED"),
        (without_image, "lack RGB_INTERLEAVED"),
        (doubled_name, "specs cannot be used"),
        (unknown_type, "specs cannot be used"),
    ],
)
def test_malformed_specs_are_named_and_leave_no_thread(spoil, message):
    def spoilt(**size):
        specs = fake.specs(**size)
        spoil(specs)
        return specs

    with fake.LoopbackServer(make_specs=spoilt) as server:
        with pytest.raises((ServerError, ValueError), match=message):
            DmHard8(config(server))
        assert rpc_threads() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"signs": {"MOVE_FORWARD_BACK": -1}}, "did you mean 'MOVE_BACK_FORWARD'"),
        ({"signs": {"HAND_GRIP": -1}}, "sign of HAND_GRIP is -1"),
        ({"timeout": 0}, "timeout is 0"),
        ({"actions": "both"}, "'both'"),
    ],
)
def test_a_wrong_config_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        DmHard8Config(**options)


def test_unknown_levels_suggest_the_nearest_and_illegal_actions_are_named(server):
    with pytest.raises(ValueError, match="did you mean 'baseball'"):
        DmHard8(config(server, level="basebal"))
    env = DmHard8(config(server))
    env.reset()
    with pytest.raises(ValueError, match="action 38 is illegal"):
        env.step(38)
    env.close()
