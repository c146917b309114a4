"""What roles ask of an agent: MEME with its replay, V-MPO with its queue, and a random one."""

from dataclasses import replace

import numpy as np
import pytest
from contracts.proxies import far_away
from contracts.wanderer import Drifter, Meadow, Network, Noise
from launch.small_vmpo import MAZE, POINT
from launch.test_local import TINY, assert_same, everything

from softcount import store
from softcount.bonuses.make import BonusConfig, Place, make_bonus
from softcount.bonuses.normalise import NormaliserConfig
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.config import with_fields
from softcount.launch.build import build, build_evaluator
from softcount.launch.local import LocalLoop, Roles
from softcount.memory import RecodeConfig
from softcount.replay.queue import OnPolicyQueue
from softcount.representations import EmbeddingConfig, RepresentationTrainer
from softcount.representations.make import GRID, make_representation
from softcount.roles.actor import Actor
from softcount.roles.evaluator import Evaluator
from softcount.roles.inference import Inference
from softcount.roles.learner import Learner
from softcount.roles.memory_server import MemoryServer
from softcount.types import ContinuousActions, action_array

NUM_ENVS = 4


def wandering(env_seed=0):
    """Roles of the random agent, with RECODE on action prediction of continuous actions."""
    env = Meadow(NUM_ENVS, env_seed)
    settings = replace(GRID, embedding=EmbeddingConfig(torso="mlp", dim=3))
    models = [make_representation("ap", env.observation_spec, env.action_spec, settings) for _ in range(2)]
    inference = Inference(Network(), models[1], env.action_spec)
    recode = RecodeBonusConfig(
        memory=RecodeConfig(size=40, warmup_atoms=5, neighbours=3), normaliser=NormaliserConfig(kind="none")
    )
    memory = BonusConfig(recode=recode)
    actor = Actor(
        env,
        Noise(NUM_ENVS, env.action_spec),
        state=inference.initial_state(NUM_ENVS),
        feature_state=inference.initial_feature_state(NUM_ENVS),
        seed=1,
    )
    return Roles(
        actor=actor,
        inference=inference,
        memory=MemoryServer(make_bonus("recode", memory, Place(dim=3, num_envs=NUM_ENVS))),
        replay=OnPolicyQueue(4, 2, NUM_ENVS, seed=2),
        learner=Learner(Drifter(), RepresentationTrainer(models[0])),
    )


PLAIN = with_fields(TINY, {"meme.relabel": False, "recode.reembed_every": 0})
MAKERS = {
    "meme": lambda: build(PLAIN),
    "vmpo": lambda: build(MAZE),
    "vmpo, continuous": lambda: build(POINT),
    "wanderer": wandering,
}
EVALUATORS = {
    "meme": lambda roles: build_evaluator(TINY, roles.inference),
    "vmpo": lambda roles: build_evaluator(MAZE, roles.inference),
    "vmpo, continuous": lambda roles: build_evaluator(POINT, roles.inference),
    "wanderer": lambda roles: Evaluator(Meadow(3), roles.inference),
}


@pytest.fixture(params=MAKERS)
def name(request):
    return request.param


def run(roles, num_steps, overlap=False):
    loop = LocalLoop(roles, overlap=overlap)
    for _ in range(num_steps):
        loop.step()
    return loop


def test_it_learns_and_what_it_publishes_acts(name):
    loop = run(MAKERS[name](), 60)
    assert loop.num_updates > 10
    published = loop.roles.learner.parameters().policy
    loop._publish()
    held = loop.roles.inference.state_dict()["policy"]
    for key, value in loop.roles.learner.parameters().policy.items():
        np.testing.assert_array_equal(held[key], value)
    assert published.keys() == held.keys()
    assert {key.split("/")[0] for key in loop.means.take()} >= {"losses", "representation"}


def test_actions_of_any_kind_travel_from_the_behaviour_to_world_and_learner(name):
    roles = MAKERS[name]()
    spec = roles.actor.env.action_spec
    told, rows = [], []
    step, add = roles.actor.env.step, roles.replay.add
    roles.actor.env.step = lambda actions: told.append(actions.copy()) or step(actions)
    roles.replay.add = lambda row, state: rows.append(row) or add(row, state)
    run(roles, 40)
    shape = action_array(spec)
    for before, row, action in zip([None, *rows], rows, told):
        assert row.action.shape == (NUM_ENVS, *shape.shape)
        assert row.action.dtype == row.prev_action.dtype == shape.dtype
        np.testing.assert_array_equal(row.action, action)
        if before is not None:
            expected = before.action.copy()
            expected[row.is_first] = 0
            np.testing.assert_array_equal(row.prev_action, expected)
    assert any(row.is_first.any() for row in rows[1:])
    if isinstance(spec, ContinuousActions):
        assert (np.stack(told) >= spec.low).all()
        assert (np.stack(told) <= spec.high).all()
        assert len(np.unique(np.stack(told))) > 50


def test_the_recurrent_state_is_stored_before_each_trace(name):
    if name != "wanderer":
        return  # networks are checked in `tests/launch/test_local_wires.py` and `test_vmpo.py`
    roles = MAKERS[name]()
    samples = []
    sample = roles.replay.sample
    roles.replay.sample = lambda: samples.append(sample()) or samples[-1]
    run(roles, 40)
    assert len(samples) > 10
    for one in samples:
        is_first, steps = one.sequence.steps.is_first[0], one.sequence.state[0][:, 0]
        assert (steps[~is_first] >= 1).all()


def test_neither_overlap_nor_a_border_changes_a_bit(name):
    loops = [
        run(MAKERS[name](), 50),
        run(MAKERS[name](), 50, overlap=True),
        run(far_away(MAKERS[name]()), 50),
    ]
    assert_same(everything(loops[0]), everything(loops[1]))
    assert_same(everything(loops[0]), everything(loops[2]))


@pytest.mark.parametrize("cut", [1, 9, 22, 31])
def test_a_restored_loop_continues_as_if_nothing_had_happened(name, cut, tmp_path):
    loop = run(MAKERS[name](), cut)
    for part, state in loop.state_dict().items():
        store.save(tmp_path / part, state, kind=part)
    segments = {key: make() for key, make in loop.segments().items()}
    twin = run(MAKERS[name](), 7)
    parts = {part: store.load(tmp_path / part, kind=part) for part in loop.state_dict()}
    twin.load_state_dict(parts, segments)
    for _ in range(30):
        loop.step()
        twin.step()
    assert_same(everything(loop), everything(twin))
    assert loop.roles.actor.metrics([]) == twin.roles.actor.metrics([])


def test_an_evaluator_plays_whole_episodes_and_changes_nothing(name):
    loop = run(MAKERS[name](), 40)
    before = everything(loop)
    evaluator = EVALUATORS[name](loop.roles)
    plays = [evaluator(loop.roles.actor.behaviour, loop.roles.memory, seed=3) for _ in range(2)]
    assert len(plays[0].episodes) == evaluator.env.num_envs
    assert plays[0].episodes == plays[1].episodes
    assert_same(before, everything(loop))
