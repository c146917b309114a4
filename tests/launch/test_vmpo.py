"""V-MPO through the loop: acting is learning, all bonuses, many tasks, exact resume, bad input."""

import json
from dataclasses import replace
from itertools import product

import gymnasium
import numpy as np
import pytest
import torch
from launch.small_vmpo import CONFIGS, MAZE, NUM_ENVS, UNROLL
from launch.test_local import assert_same, everything

from softcount import store
from softcount.agents.body import inputs_of
from softcount.agents.vmpo.network import VmpoNetwork
from softcount.config import with_fields
from softcount.launch.build import build, build_evaluator
from softcount.runs.folder import METRICS
from softcount.runs.playback import evaluate_run
from softcount.runs.run import Run, make_loop
from softcount.taxonomy import EMBEDDINGS, ON_EMBEDDINGS, WHOLE
from softcount.tensors import load_module, to_tensors
from softcount.types import map_arrays


class Overheard:
    """A loop whose rows, states, acting parameters and batches are kept."""

    def __init__(self, config, num_steps):
        self.loop = make_loop(replace(config, overlap=False))
        roles = self.loop.roles
        self.rows, self.states, self.acting, self.batches = [], [], [], []
        add, sample = roles.replay.add, roles.replay.sample

        def add_and_keep(row, state):
            self.rows.append(row)
            self.states.append(state)
            self.acting.append(roles.inference.state_dict()["policy"])
            add(row, state)

        def sample_and_keep():
            self.batches.append((len(self.rows) - 1, sample()))
            return self.batches[-1][1]

        roles.replay.add, roles.replay.sample = add_and_keep, sample_and_keep
        for _ in range(num_steps):
            self.loop.step()

    def network(self, row):
        """A learner's network with the parameters that acted at a row."""
        env, config = self.loop.roles.actor.env, self.loop.roles.learner.agent.config
        network = VmpoNetwork(
            env.observation_spec, env.action_spec, config.network, num_tasks=len(env.task_names)
        )
        load_module(network, self.acting[row])
        return network


def unrolled(network, sequence):
    tensors = to_tensors(sequence)
    with torch.no_grad():
        return network(inputs_of(tensors), tensors.state)[0].policy.numpy()


def is_same(one, other):
    return all(np.array_equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module", params=CONFIGS)
def heard(request):
    return Overheard(CONFIGS[request.param], 8 * UNROLL + 1)


def test_the_stored_policy_is_that_of_the_stored_state(heard):
    """Unrolls between publications: every row is reproduced by the network that acted."""
    num = 0
    for end, sample in heard.batches:
        start = end - UNROLL
        if not all(is_same(heard.acting[start], heard.acting[t]) for t in range(start, end + 1)):
            continue
        found = unrolled(heard.network(end), sample.sequence)
        np.testing.assert_allclose(found, sample.sequence.steps.extras["policy"], atol=1e-6)
        num += 1
    assert num >= 4


def test_over_a_publication_only_the_carried_row_is_of_the_network_before(heard):
    num = 0
    for end, sample in heard.batches:
        start = end - UNROLL
        if start == 0 or is_same(heard.acting[start], heard.acting[start + 1]):
            continue
        assert all(is_same(heard.acting[start + 1], heard.acting[t]) for t in range(start + 2, end + 1))
        steps = sample.sequence.steps
        stored = steps.extras["policy"]
        before = unrolled(heard.network(start), sample.sequence)
        np.testing.assert_allclose(before[0], stored[0], atol=1e-6)
        trail = np.stack([row.extras["policy"] for row in heard.rows[start : end + 1]])
        envs = [
            [np.array_equal(trail[:, e], stored[:, b]) for e in range(NUM_ENVS)].index(True)
            for b in range(stored.shape[1])
        ]
        rest = map_arrays(lambda x: x[1:], steps._replace(extras=dict(steps.extras)))
        state = map_arrays(lambda x, e=envs: x[e], heard.states[start + 1])
        after = unrolled(heard.network(end), sample.sequence._replace(steps=rest, state=state))
        np.testing.assert_allclose(after, stored[1:], atol=1e-6)
        num += 1
    assert num >= 4


@pytest.mark.parametrize("mistake", ["no state", "reward of the step before", "action of the step before"])
def test_the_comparison_would_notice(heard, mistake):
    end, sample = [
        (end, sample)
        for end, sample in heard.batches
        if is_same(heard.acting[end - UNROLL], heard.acting[end])
    ][-1]
    steps, state = sample.sequence.steps, sample.sequence.state
    if mistake == "no state":
        state = map_arrays(np.zeros_like, state)
    elif mistake == "reward of the step before":
        intrinsic = np.roll(steps.extras["prev_intrinsic"], 1, axis=0)
        steps = steps._replace(extras={**steps.extras, "prev_intrinsic": intrinsic})
    else:
        steps = steps._replace(prev_action=np.roll(steps.prev_action, 1, axis=0))
    found = unrolled(heard.network(end), sample.sequence._replace(steps=steps, state=state))
    assert np.abs(found - sample.sequence.steps.extras["policy"]).max() > 1e-5


def test_what_is_sent_is_what_was_drawn_made_to_fit(heard):
    spec = heard.loop.roles.actor.env.action_spec
    drawn = np.concatenate([row.extras["raw_action"] for row in heard.rows])
    sent = np.concatenate([row.action for row in heard.rows])
    if not hasattr(spec, "low"):
        np.testing.assert_array_equal(drawn, sent)
        return
    assert (np.abs(drawn) > 1).any()
    np.testing.assert_allclose(sent, np.clip(drawn, -1, 1), atol=1e-6)  # this box is [−1, 1]


def test_a_strict_queue_lets_all_that_was_learned_act_before_the_next_row(heard):
    """With a period of two unrolls, every second unroll begins with new parameters."""
    changes = [t for t in range(1, len(heard.acting)) if not is_same(heard.acting[t - 1], heard.acting[t])]
    assert changes == [2 * UNROLL + 1, 4 * UNROLL + 1, 6 * UNROLL + 1]


def test_without_strictness_it_acts_one_unroll_later():
    late = Overheard(replace(MAZE, vmpo=replace(MAZE.vmpo, strict=False)), 6 * UNROLL + 1)
    changes = [t for t in range(1, len(late.acting)) if not is_same(late.acting[t - 1], late.acting[t])]
    assert changes == [3 * UNROLL + 1, 5 * UNROLL + 1]


def test_atoms_follow_every_update_of_an_unroll():
    """They are moved in between two batches of an unroll too, by what the first of them taught."""
    loop = make_loop(with_fields(MAZE, {"recode.reembed_every": 1, "overlap": False}))
    move, learner, seen = loop.roles.memory.move_atoms, loop.roles.learner, []

    def move_and_compare(features):
        learned, acting = learner.parameters(), loop.roles.inference.state_dict()
        seen.append(is_same(learned.representation, acting["representation"]))
        move(features)

    loop.roles.memory.move_atoms = move_and_compare
    while loop.num_updates < 6:
        loop.step()
    assert seen == [True] * loop.num_updates


NAMES = [
    "VMPO",
    *(f"VMPO-{bonus}" for bonus in WHOLE),
    *(f"VMPO-{bonus}-{part}" for bonus, part in product(ON_EMBEDDINGS, EMBEDDINGS)),
]


@pytest.mark.parametrize(("name", "space"), list(product(NAMES, CONFIGS)))
def test_every_bonus_and_representation_pays_with_every_kind_of_action(name, space):
    base = CONFIGS[space]
    near = replace(base.episodic.memory, neighbours=2)
    config = replace(
        base,
        agent=name,
        env_options={**base.env_options, "max_steps": 20, **({"lethal": False} if base is MAZE else {})},
        episodic=replace(base.episodic, memory=near),
        ngu=replace(base.ngu, memory=near),
    )
    heard = Overheard(config, 8 * UNROLL + 3)
    assert heard.loop.num_updates == 16
    metrics = heard.loop.means.take()
    assert np.isfinite(list(metrics.values())).all()
    if name == "VMPO-BYOL-Explore":  # it pays in learning
        assert metrics["losses/advantage_size"] > 0.05
    else:
        assert (sum(row.intrinsic.sum() for row in heard.rows) > 0) == (name != "VMPO")


class Switches(gymnasium.Env):
    """Two switches; the sum of what they were set to is paid."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.MultiDiscrete([2, 3])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.age = 0
        return self.np_random.random(2).astype(np.float32), {}

    def step(self, action):
        self.age += 1
        seen = self.np_random.random(2).astype(np.float32)
        return seen, float(sum(action)), self.age == 5, False, {}


def test_several_choices_at_once_travel_through_the_loop():
    gymnasium.register("Switches-v0", entry_point=Switches)
    try:
        heard = Overheard(replace(MAZE, env="gym/Switches-v0", env_options={}), 2 * UNROLL + 1)
    finally:
        del gymnasium.registry["Switches-v0"]
    row = heard.rows[-1]
    assert row.action.shape == (NUM_ENVS, 2)
    assert row.extras["policy"].shape == (NUM_ENVS, 5)
    assert heard.loop.num_updates == 4
    for end, sample in heard.batches[:2]:
        found = unrolled(heard.network(end), sample.sequence)
        np.testing.assert_allclose(found, sample.sequence.steps.extras["policy"], atol=1e-6)


TASKS = replace(
    MAZE,
    env="disco-maze:layout=1,disco-maze:layout=2",
    env_options={"size": 7, "observation": "palette", "max_steps": 9},
    memory_per_task=True,
)


def test_every_batch_holds_every_task_and_every_task_has_its_units():
    heard = Overheard(TASKS, 6 * UNROLL + 1)
    for _, sample in heard.batches:
        assert sorted(sample.sequence.steps.extras["task"][0].tolist()) == [0, 1]
    scale = heard.loop.roles.learner.agent.online.value_out.scale
    assert len(scale) == 2
    assert scale[0] != scale[1]


@pytest.mark.parametrize(("space", "overlap"), list(product(CONFIGS, (False, True))))
def test_a_run_cut_at_every_row_of_two_unrolls_continues_as_if_nothing_had_happened(space, overlap, tmp_path):
    config = replace(CONFIGS[space], overlap=overlap)
    loop = make_loop(config)
    for cut in range(2 * UNROLL + 2):
        loop.step()
        state = loop.state_dict()
        for part in state:
            store.save(tmp_path / f"{cut}-{part}", state[part], kind=part)
        parts = list(state)
    for _ in range(UNROLL):
        loop.step()
    end = everything(loop)
    for cut in range(2 * UNROLL + 2):
        twin = make_loop(config)
        twin.load_state_dict({part: store.load(tmp_path / f"{cut}-{part}", kind=part) for part in parts}, {})
        for _ in range(2 * UNROLL + 2 - (cut + 1) + UNROLL):
            twin.step()
        assert_same(end, everything(twin))


def test_a_run_of_two_tasks_reports_each_and_resumes_from_its_folder(tmp_path):
    config = replace(TASKS, steps=300, report_every=100, evaluate_every=150, checkpoint_seconds=1e9)
    whole = Run.create(tmp_path / "whole", config)
    list(whole.train())
    whole.close()
    first = Run.create(tmp_path / "parts", config)
    reports = first.train()
    next(reports)
    first.save()
    first.close()
    second = Run.resume(tmp_path / "parts")
    list(second.train())
    second.close()
    rows = [
        [json.loads(line) for line in (tmp_path / name / METRICS).read_text().splitlines()]
        for name in ("whole", "parts")
    ]
    timeless = [
        [{k: v for k, v in row.items() if not k.startswith("time/") and k != "charts/SPS"} for row in part]
        for part in rows
    ]
    assert timeless[0] == timeless[1]
    row = rows[0][-1]
    assert {f"eval/return/disco-maze:layout={n}" for n in (1, 2)} <= row.keys()
    assert row["losses/kl_distance"] >= 0
    said = evaluate_run(tmp_path / "whole", 3, None).splitlines()
    assert said[0].endswith("actions drawn from its policy, 4 episodes")  # two of each task
    assert said[1::3] == ["  disco-maze:layout=1", "  disco-maze:layout=2"]
    assert [line.split()[0] for line in said[2:4] + said[5:]] == ["return", "length"] * 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"env": "disco-maze:size=7,disco-maze:size=9", "env_options": {}},
            "expected tasks with equal specs",
        ),
        ({"env": "disco-maze:layout=1,disco-maze:layout=2,disco-maze:layout=3"}, "expected a multiple of 3"),
        ({"vmpo": replace(MAZE.vmpo, batch_size=3)}, "batch_size is 3; expected a divisor of the 4"),
    ],
)
def test_what_cannot_work_says_what_to_do(change, message):
    with pytest.raises(ValueError, match=message):
        build(replace(MAZE, **change))


def test_tasks_that_do_not_divide_a_batch_or_the_evaluation_are_refused_before_anything_is_played():
    with pytest.raises(ValueError, match="a batch that 2 divides"):
        build(replace(TASKS, vmpo=replace(TASKS.vmpo, batch_size=1)))
    config = replace(TASKS, evaluation_episodes=3)
    with pytest.raises(ValueError, match=r"evaluation_episodes is 3, but .* names 2 tasks; .* such as 4"):
        build_evaluator(config, build(config).inference)
