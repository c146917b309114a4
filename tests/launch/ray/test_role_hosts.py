"""Hosts of roles without Ray: handles that call at once stand where processes would be."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from launch.ray.test_trainer import Scene
from launch.small_vmpo import MAZE
from launch.test_local import TINY

from softcount.config import RuntimeConfig
from softcount.launch.build import build, look_at_world
from softcount.launch.ray import actor_host, hosts
from softcount.launch.ray.actor_host import ActorHost
from softcount.launch.ray.hosts import InferenceHost, Setup, TrainerHost
from softcount.launch.ray.shares import share_out
from softcount.types import leaves_of

ON_RAY = RuntimeConfig(kind="ray", num_actors=2, num_inference=2, send_rows=3, call_timeout_s=0.4)
LOOSE = replace(MAZE, vmpo=replace(MAZE.vmpo, strict=False))


class Near:
    """Stands where a handle of Ray stands, and calls at once."""

    def __init__(self, target):
        self._target = target

    def __getattr__(self, name):
        return SimpleNamespace(remote=getattr(self._target, name))


@pytest.fixture
def named(monkeypatch):
    """Who can be found by name; the test fills it."""
    known = {}
    for module in (actor_host, hosts):
        monkeypatch.setattr(module, "named", lambda setup, name: known[name])
        monkeypatch.setattr(module, "until_answered", lambda call, *_: call())
    return known


def setup_of(config):
    config = replace(config, runtime=ON_RAY)
    return Setup(config, look_at_world(config)[0], "nowhere")


class Acting:
    """Answers as an inference worker does, with what was published last."""

    def __init__(self, scene):
        self.inference, self.version, self.lock = scene.acting, 0, threading.Lock()
        scene.trainer._publish_to = self.load

    def load(self, parameters, version):
        with self.lock:
            self.inference.load(parameters)
            self.version = version

    def infer(self, request):
        with self.lock:
            return self.inference(request), self.version


def two_actors(config, named, monkeypatch):
    """A trainer and two actors that each have half of the environments."""
    scene, memory, lock = Scene(config, publish_every=1), build(config).memory, threading.Lock()

    class Memory:
        num_retries = 0
        wants_observations = memory.wants_observations

        def __call__(self, *asked):
            with lock:
                return memory(*asked)

    monkeypatch.setattr(actor_host, "client_of_memory", lambda *_, **__: Memory())
    acting = Acting(scene)
    named |= {"trainer": Near(scene.trainer), "inference 0": Near(acting), "inference 1": Near(acting)}
    shares = share_out(config.num_envs, 1, 2)
    actors = [ActorHost(setup_of(config), number, ids) for number, ids in enumerate(shares)]
    scene.trainer.expect([0, 1])
    scene.trainer.start()
    for actor in actors:
        actor.start(1, 0, scene.trainer.roles.replay.is_strict())
    return scene, actors


def test_where_it_is_strict_actors_wait_between_unrolls_until_what_was_learned_acts(named, monkeypatch):
    scene, actors = two_actors(MAZE, named, monkeypatch)
    learn = scene.trainer._learn
    scene.trainer._learn = lambda *asked: time.sleep(0.02) or learn(*asked)  # time to run away in
    for actor in actors:
        actor.go_on()
    deadline = time.monotonic() + 60
    while scene.trainer.num_updates < 12 and time.monotonic() < deadline:
        time.sleep(0.01)
    rows = [actor.pause() for actor in actors]
    assert scene.trainer.num_updates >= 12
    assert abs(rows[0] - rows[1]) <= MAZE.vmpo.unroll_length + 1
    assert scene.trainer.report()["means"]["runtime/parameter_lag"] == 0.0
    for actor in actors:
        actor.close()
    scene.trainer.end()


def test_an_actor_that_waits_for_another_can_pause_and_loses_nothing(named, monkeypatch):
    scene, actors = two_actors(LOOSE, named, monkeypatch)
    actors[1].go_on()  # the first one stands still
    deadline, before = time.monotonic() + 60, -1
    while actors[1].num_rows != before and time.monotonic() < deadline:
        before = actors[1].num_rows
        time.sleep(1.0)
    assert before > 16
    paused = ThreadPoolExecutor(1).submit(actors[1].pause)
    assert paused.result(10) == before == scene.trainer.num_rows[1]
    actors[0].go_on()
    actors[1].go_on()
    while actors[1].num_rows <= before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert actors[1].num_rows > before
    for actor in actors:
        actor.interrupt()
        actor.close()
    scene.trainer.end()


def test_actors_are_shared_out_among_inference_workers(named):
    named |= {"trainer": "trainer", "inference 0": "first", "inference 1": "second"}
    setup = setup_of(TINY)
    made = [ActorHost(setup, number, np.arange(1)) for number in range(4)]
    assert [actor.inference for actor in made] == ["first", "second", "first", "second"]


def test_every_worker_gets_what_is_published_after_the_last_has_arrived(named, monkeypatch):
    got, waited = [], []
    monkeypatch.setattr(hosts.ray, "put", lambda x: x)
    monkeypatch.setattr(hosts.ray, "wait", lambda sent, **_: waited.append(list(sent)))
    for number in range(2):
        worker = SimpleNamespace(
            load=lambda x, version, number=number: got.append((number, version)) or number
        )
        named[f"inference {number}"] = Near(worker)
    for config, waits in ((TINY, [[0, 1]]), (MAZE, [[0, 1]] * 3)):
        got.clear(), waited.clear()
        host = TrainerHost(setup_of(config), 2, None)
        host.inference = [named["inference 0"], named["inference 1"]]
        host._publish("parameters", 3)
        host._publish("parameters", 5)
        assert got == [(0, 3), (1, 3), (0, 5), (1, 5)]
        assert waited == waits  # strict: nobody goes on before it has arrived


def test_a_new_worker_asks_the_trainer_and_says_how_old_its_answers_are(named):
    roles = build(TINY)
    trainer = SimpleNamespace(parameters=lambda: (roles.learner.parameters(), 7))
    named["trainer"] = Near(trainer)
    host = InferenceHost(setup_of(TINY), 1)
    roles.inference.load(roles.learner.parameters())
    request = roles.actor.request()
    reply, version = host.infer(request)
    assert version == 7
    for found, leaf in zip(leaves_of(reply), leaves_of(roles.inference(request)), strict=True):
        np.testing.assert_array_equal(found, leaf)
    host.load(roles.learner.parameters(), 9)
    assert host.infer(request)[1] == 9


def test_what_is_published_while_a_new_worker_asks_is_not_overwritten(named):
    roles = build(TINY)
    host = InferenceHost(setup_of(TINY), 1)

    def parameters():
        host.load(roles.learner.parameters(), 9)
        return build(replace(TINY, seed=1)).learner.parameters(), 7

    named["trainer"] = Near(SimpleNamespace(parameters=parameters))
    roles.inference.load(roles.learner.parameters())
    request = roles.actor.request()
    reply, version = host.infer(request)
    assert version == 9
    for found, leaf in zip(leaves_of(reply), leaves_of(roles.inference(request)), strict=True):
        np.testing.assert_array_equal(found, leaf)
