"""The memory's process: killed, hung or replaced, it is soon there again and has counted everything once."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from softcount.bonuses.make import BonusConfig, Place
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.launch.memory_plan import MemoryPlan
from softcount.launch.ray import once
from softcount.launch.ray.client import MemoryClient, Patience, Refused
from softcount.launch.ray.once import EvaluationLost, OnceConfig
from softcount.memory import RecodeConfig
from softcount.types import Features, leaves_of, map_arrays

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.ray
PLAN = MemoryPlan(
    kind="recode",
    bonus=BonusConfig(recode=RecodeBonusConfig(memory=RecodeConfig(size=500, warmup_atoms=20))),
    place=Place(dim=8, num_envs=16, seed=3),
)


@pytest.fixture
def memory(cluster, tmp_path):
    from softcount.launch.ray.memory_host import start

    once.found(tmp_path, PLAN.build())
    config = OnceConfig(snapshot_batches=15, keep_history=True)
    handle = start(
        PLAN,
        tmp_path,
        namespace=cluster.namespace,
        name=tmp_path.name,
        config=config,
        node_id=cluster.node_id,
    )
    yield handle
    ray.kill(handle)


def client_of(cluster, tmp_path, actor=0, **patience):
    from softcount.launch.ray.memory_host import RayCalls

    calls = RayCalls(cluster.namespace, tmp_path.name)
    return MemoryClient(calls, actor=actor, incarnation=1, patience=Patience(**patience))


def batch_of(rng):
    rows = rng.normal(size=(16, 8)).astype(np.float32)
    return Features(embedding=rows), np.arange(16), rng.random(16) < 0.1, rng.random(16) < 0.1


def assert_same(a, b):
    assert all(leaves_of(map_arrays(np.array_equal, a, b)))


def test_a_memory_that_is_killed_goes_on_where_it_was_with_the_same_bits(cluster, memory, tmp_path):
    client, alone, rng = client_of(cluster, tmp_path), PLAN.build(), np.random.default_rng(0)
    for turn in range(60):
        batch = batch_of(rng)
        assert np.array_equal(client(*batch), alone(*batch))
        if turn in (10, 37):
            os.kill(ray.get(memory.ping.remote()).pid, signal.SIGKILL)
    pulse = ray.get(memory.ping.remote())
    assert (pulse.position, pulse.epoch, client.position) == (60, 4, 59)
    assert client.num_retries >= 2
    assert_same(client.state_dict(), alone.state_dict())
    assert_same(ray.get(memory.checkpoint.remote()), alone.state_dict())
    assert "libtorch" not in Path(f"/proc/{pulse.pid}/maps").read_text()


def test_a_hung_memory_is_replaced_and_cannot_answer_when_it_wakes(cluster, memory, tmp_path):
    from softcount.launch.ray.memory_host import start

    client = client_of(cluster, tmp_path, call_timeout_s=1.0)
    rng = np.random.default_rng(0)
    client(*batch_of(rng))
    pid = ray.get(memory.ping.remote()).pid
    os.kill(pid, signal.SIGSTOP)
    late = memory.request.remote(request_of_next(client, rng), 0)
    name = f"{tmp_path.name}-2"
    other = start(PLAN, tmp_path, namespace=cluster.namespace, name=name)
    client._calls.name, client._calls._handle = name, None
    batch = batch_of(rng)
    client(*batch)
    os.kill(pid, signal.SIGCONT)
    assert ray.get(late).verdict == "superseded"
    assert ray.get(other.ping.remote()).position == 2
    ray.kill(other)


def request_of_next(client, rng):
    """What the client would send next."""
    from softcount import store
    from softcount.launch.ray.stamps import Request

    features, env_ids, is_first, is_terminal = batch_of(rng)
    asked = {"env_ids": env_ids, "is_first": is_first, "is_terminal": is_terminal}
    body = store.pack({**features._asdict(), **asked, "task_ids": None, "observation": None})
    return Request(client.actor, client.incarnation, client.sequence, "observe", body)


def test_errors_of_the_memory_reach_the_client_as_they_are(cluster, memory, tmp_path):
    client = client_of(cluster, tmp_path, actor=3)
    with pytest.raises(EvaluationLost):
        client.evaluate(Features(), np.arange(0), np.zeros(0, bool))
    with pytest.raises(Refused, match="failed: ValueError"):
        client(Features(embedding=np.zeros((2, 5), np.float32)), np.arange(2), *np.zeros((2, 2), bool))
    with pytest.raises(TypeError, match="keeps no observations"):
        client.founding_observations(0, 1)


def test_a_client_waits_for_a_memory_that_is_not_there_yet(cluster, tmp_path):
    from softcount.launch.ray.memory_host import start

    client = client_of(cluster, tmp_path)
    once.found(tmp_path, PLAN.build())
    started = []

    def start_late(seconds):
        time.sleep(seconds)
        if not started:
            started.append(start(PLAN, tmp_path, namespace=cluster.namespace, name=tmp_path.name))

    client._sleep = start_late
    client(*batch_of(np.random.default_rng(0)))
    assert client.num_retries >= 1
    ray.kill(started[0])
