"""One update against plain Python, PopArt around the step, publication, state, and bad input."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from oracles import vmpo as oracle

from softcount.agents.body import inputs_of
from softcount.agents.popart import PopArtConfig
from softcount.agents.vmpo.agent import Vmpo, VmpoConfig
from softcount.agents.vmpo.loss import LossConfig, kl_penalty
from softcount.agents.vmpo.network import NetworkConfig
from softcount.optimiser import OptimiserConfig
from softcount.tensors import to_tensors
from softcount.torsos import MlpConfig
from softcount.types import (
    ArraySpec,
    ContinuousActions,
    DiscreteActions,
    MultiDiscreteActions,
    Sequence,
    Step,
    action_array,
    map_arrays,
)

ROWS, BATCH, TASKS = 9, 6, 3
SEEN = ArraySpec((4,), "float32")
SPACES = {
    "discrete": DiscreteActions(3),
    "several": MultiDiscreteActions((2, 3)),
    "box": ContinuousActions((-1.0, 0.0), (1.0, 5.0)),
}
CONFIG = VmpoConfig(
    network=NetworkConfig(torso=MlpConfig(hidden_sizes=(16,)), core="lstm", core_size=8, head_size=8),
    loss=LossConfig(
        discount=0.9,
        trace_discount=0.8,
        intrinsic_weight=0.3,
        temperature_limit=0.2,
        kl_limit=0.03,
        mean_limit=0.04,
        cov_limit=0.05,
        temperature_start=0.7,
        kl_multiplier_start=2.0,
        gaussian_multiplier_start=3.0,
    ),
    popart=PopArtConfig(step=0.02),
    optimiser=OptimiserConfig(learning_rate=1e-3, weight_decay=0.0),
    dual_learning_rate=0.01,
    target_update_period=3,
)


def make_agent(space="discrete", config=CONFIG, seed=0):
    return Vmpo(SEEN, SPACES[space], config, num_tasks=TASKS, seed=seed)


def make_batch(agent, space="discrete", seed=0, tasks=(0, 0, 0, 1, 1, 1)):
    """Random traces whose episodes end for good, are cut, and begin; task 2 is absent unless asked for."""
    rng = np.random.default_rng(seed)
    shape = (ROWS, BATCH)
    is_last, is_terminal = np.zeros(shape, bool), np.zeros(shape, bool)
    is_last[3, 0] = is_last[5, 1] = is_last[0, 2] = is_last[8, 3] = is_last[7, 4] = True
    is_terminal[3, 0] = is_terminal[8, 3] = is_terminal[7, 4] = True
    is_first = np.zeros(shape, bool)
    is_first[1:] = is_last[:-1]
    is_first[0, 5] = True
    policy = rng.normal(size=(*shape, agent.distribution.num_parameters)).astype(np.float32)
    if space == "box":
        policy[..., 2:] = rng.uniform(0.2, 0.9, (*shape, 2))
    drawn = agent.distribution.sample(policy, rng)
    action = agent.distribution.to_env(drawn)
    prev_action = np.roll(action, 1, axis=0)
    prev_action[is_first] = 0
    extras = {
        "policy": policy,
        "raw_action": drawn,
        "prev_intrinsic": rng.random(shape, np.float32),
        "task": np.broadcast_to(np.array(tasks), shape).copy(),
    }
    steps = Step(
        rng.normal(size=(*shape, 4)).astype(np.float32),
        prev_action.astype(action_array(SPACES[space]).dtype),
        rng.normal(size=shape).astype(np.float32) * 3,
        rng.random(shape, np.float32),
        is_first,
        is_last,
        is_terminal,
        action,
        extras,
    )
    return Sequence(steps, tuple(rng.normal(size=(BATCH, 8)).astype(np.float32) for _ in range(2)))


def as_policy(numbers, space):
    numbers = np.asarray(numbers, float).tolist()
    return {"discrete": [numbers], "several": [numbers[:2], numbers[2:]], "box": [numbers[:2], numbers[2:]]}[
        space
    ]


def read_traces(agent, sequence, space, intrinsic=None):
    """The batch as the oracle reads it, with what the network says of it now."""
    with torch.no_grad():
        tensors = to_tensors(sequence)
        outputs, _ = agent.online(inputs_of(tensors), tensors.state)
    steps = sequence.steps
    intrinsic = steps.intrinsic if intrinsic is None else intrinsic
    return [
        [
            {
                "reward": float(steps.reward[t, b]),
                "intrinsic": float(intrinsic[t, b]),
                "values": outputs.value[t, b].tolist(),
                "policy": as_policy(outputs.policy[t, b], space),
                "behaviour": as_policy(steps.extras["policy"][t, b], space),
                "drawn": np.atleast_1d(steps.extras["raw_action"][t, b]).tolist(),
                "first": bool(steps.is_first[t, b]),
                "last": bool(steps.is_last[t, b]),
                "terminal": bool(steps.is_terminal[t, b]),
                "task": int(steps.extras["task"][t, b]) if agent.config.value_per_task else 0,
            }
            for t in range(ROWS)
        ]
        for b in range(BATCH)
    ]


def expected_losses(agent, traces, space):
    cfg = agent.config.loss
    settings = {
        "gamma": cfg.discount,
        "lam": cfg.trace_discount,
        "beta": cfg.intrinsic_weight,
        "fraction": cfg.top_fraction,
        "eta_limit": cfg.temperature_limit,
        "step": agent.config.popart.step,
        "lower": agent.config.popart.scale_least,
        "upper": agent.config.popart.scale_most,
        "by_task": cfg.top_half == "task",
        "heats": cfg.temperature == "task",
        "regions": cfg.trust_region == "task",
        "normalise": cfg.normalise_advantages,
        "log_prob": oracle.gaussian_log_prob if space == "box" else oracle.categorical_log_prob,
        "kl": oracle.gaussian_kl if space == "box" else oracle.categorical_kl,
    }
    head = agent.online.value_out
    statistics = list(zip(head.mean.tolist(), head.second.tolist(), head.scale.tolist(), strict=True))
    alphas = {name: alpha.tolist() for name, alpha in agent.duals.multipliers.items()}
    limits = {"kl": cfg.kl_limit, "mean": cfg.mean_limit, "cov": cfg.cov_limit}
    return oracle.losses(traces, statistics, agent.duals.temperature.tolist(), alphas, limits, settings)


VARIANTS = {
    "paper": {},
    "by task": {"top_half": "task"},
    "a temperature for each": {"temperature": "task"},
    "a region for each": {"trust_region": "task"},
    "all apart": {"top_half": "task", "temperature": "task", "trust_region": "task"},
    "raw advantages": {"normalise_advantages": False},
    "a third": {"top_fraction": 0.33},
}


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_two_updates_are_those_of_the_oracle(space, variant):
    config = replace(CONFIG, loss=replace(CONFIG.loss, **VARIANTS[variant]))
    agent = make_agent(space, config)
    for seed in (1, 2):
        batch = make_batch(agent, space, seed)
        expected, statistics = expected_losses(agent, read_traces(agent, batch, space), space)
        priorities, metrics = agent.update(batch)
        assert priorities is None
        for name, value in expected.items():
            assert metrics[name] == pytest.approx(value, rel=1e-4, abs=1e-6), name
        head = agent.online.value_out
        found = list(zip(head.mean.tolist(), head.second.tolist(), head.scale.tolist(), strict=True))
        for task, numbers in statistics.items():
            assert found[task] == pytest.approx(numbers, rel=1e-5), task


def test_one_value_for_all_tasks_has_one_set_of_statistics():
    agent = make_agent(config=replace(CONFIG, value_per_task=False))
    batch = make_batch(agent, seed=3)
    expected, statistics = expected_losses(agent, read_traces(agent, batch, "discrete"), "discrete")
    _, metrics = agent.update(batch)
    assert metrics["value"] == pytest.approx(expected["value"], rel=1e-4)
    assert metrics["policy"] == pytest.approx(expected["policy"], rel=1e-4)
    assert agent.online.value_out.scale.tolist() == pytest.approx([statistics[0][2]], rel=1e-5)


def test_rewards_made_in_learning_take_the_place_of_those_that_were_stored():
    agent = make_agent()
    batch = make_batch(agent)
    other = np.random.default_rng(9).random((ROWS, BATCH)).astype(np.float32)
    expected, _ = expected_losses(agent, read_traces(agent, batch, "discrete", other), "discrete")
    stored, _ = expected_losses(agent, read_traces(agent, batch, "discrete"), "discrete")
    _, metrics = agent.update(batch, intrinsic_targets=other)
    assert metrics["value"] == pytest.approx(expected["value"], rel=1e-4)
    assert abs(metrics["value"] - stored["value"]) > 1e-3


def test_with_a_baseline_only_what_is_above_the_mean_counts():
    agent = make_agent(config=replace(CONFIG, loss=replace(CONFIG.loss, intrinsic_baseline="mean")))
    means = []
    for seed in (1, 2):
        batch = make_batch(agent, seed=seed)
        steps = batch.steps
        means.append(np.mean(steps.intrinsic[1:][~(steps.is_last[:-1] | steps.is_first[1:])]))
        weights = [0.99**age for age in reversed(range(len(means)))]
        centred = steps.intrinsic - np.average(means, weights=weights)
        expected, _ = expected_losses(agent, read_traces(agent, batch, "discrete", centred), "discrete")
        _, metrics = agent.update(batch)
        assert metrics["value"] == pytest.approx(expected["value"], rel=1e-4)
    other = make_agent(config=agent.config, seed=4)
    other.load_state_dict(agent.state_dict())
    assert other.update(batch)[1] == agent.update(batch)[1]


def test_the_values_gradient_is_that_of_fixed_returns():
    """Closed form at the output's bias; a gradient through the bootstrap would change it."""
    agent = make_agent(config=replace(CONFIG, optimiser=replace(CONFIG.optimiser, max_grad_norm=None)))
    batch = make_batch(agent)
    traces = read_traces(agent, batch, "discrete")
    head = agent.online.value_out
    old = list(zip(head.mean.tolist(), head.scale.tolist(), strict=True))
    _, new = expected_losses(agent, traces, "discrete")
    pulls = [0.0] * TASKS
    num = 0
    for rows in traces:
        values = [old[r["task"]][1] * r["values"][r["task"]] + old[r["task"]][0] for r in rows]
        for t in range(ROWS - 1):
            if oracle.is_pair(rows, t):
                task = rows[t]["task"]
                g = oracle.target(rows, values, t, 0.9, 0.8, 0.3)
                pulls[task] += (values[t] - g) / new[task][2] * old[task][1] / new[task][2]
                num += 1
    agent.update(batch)
    assert head.linear.bias.grad.tolist() == pytest.approx([pull / num for pull in pulls], rel=1e-4, abs=1e-7)


def test_the_policys_losses_do_not_move_the_values_head():
    """With all values equal to their returns nothing pulls at the head, whatever the policy wants."""
    agent = make_agent()
    batch = make_batch(agent)
    steps = batch.steps._replace(
        reward=np.zeros_like(batch.steps.reward), intrinsic=np.zeros_like(batch.steps.intrinsic)
    )
    head = agent.online.value_out
    with torch.no_grad():
        head.linear.weight.zero_()
        head.linear.bias.zero_()
    agent.update(Sequence(steps, batch.state))
    assert head.linear.weight.grad.abs().max() == 0
    assert agent.online.policy_out.weight.grad.abs().max() > 0
    assert next(agent.online.torso.parameters()).grad.abs().max() > 0


def test_a_change_of_units_changes_no_value():
    still = replace(CONFIG, optimiser=replace(CONFIG.optimiser, learning_rate=1e-30))
    agent = make_agent(config=still)
    batch = make_batch(agent)

    def values():
        with torch.no_grad():
            tensors = to_tensors(batch)
            outputs, _ = agent.online(inputs_of(tensors), tensors.state)
        head = agent.online.value_out
        return (outputs.value * head.scale + head.mean).numpy()

    before, scale = values(), agent.online.value_out.scale.clone()
    for _ in range(5):
        agent.update(batch)
    assert (agent.online.value_out.scale - scale).abs()[:2].min() > 0.1
    assert agent.online.value_out.scale[2] == scale[2]  # no trace of task 2 was there
    np.testing.assert_allclose(values(), before, rtol=1e-4, atol=1e-5)


def test_temperature_and_multipliers_go_where_their_derivatives_say():
    agent = make_agent()
    batch = make_batch(agent)
    expected, _ = expected_losses(agent, read_traces(agent, batch, "discrete"), "discrete")
    agent.update(batch)
    is_far = expected["kl_distance"] > agent.config.loss.kl_limit
    assert is_far
    assert agent.duals.multipliers["kl"].item() == pytest.approx(2.0 + 0.01, abs=1e-5)  # Adam's first step
    assert agent.duals.temperature.item() != 0.7


def test_with_regions_each_row_is_held_by_the_multiplier_of_its_task():
    """Values alone would not show it: L_α is α ε whatever the distance. Task 1 of four is absent."""
    rng = np.random.default_rng(4)
    rows, limit = 12, 0.3
    task = rng.choice([0, 2, 3], rows)
    is_valid = rng.random(rows) < 0.7
    distance = torch.tensor(rng.random((rows, 2)), requires_grad=True)
    alpha = torch.tensor(rng.random(8) + 1, requires_grad=True)
    loss = kl_penalty(distance, torch.tensor(is_valid), alpha, limit, torch.tensor(task))
    loss.backward()
    counted = [i for i in range(rows) if is_valid[i]]
    pulls, total = np.zeros(8), 0.0
    for i in counted:
        for k in (0, 1):
            pulls[2 * task[i] + k] += (limit - distance[i, k].item()) / len(counted)
            total += alpha[2 * task[i] + k].item() * limit / len(counted)
    assert loss.item() == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(alpha.grad, pulls, rtol=1e-12)
    held = [[alpha[2 * task[i] + k].item() * is_valid[i] / len(counted) for k in (0, 1)] for i in range(rows)]
    np.testing.assert_allclose(distance.grad, held, rtol=1e-12)


def test_a_task_that_went_far_is_held_and_the_others_are_let_go():
    agent = make_agent(config=replace(CONFIG, loss=replace(CONFIG.loss, trust_region="task")))
    batch = make_batch(agent)
    tensors = to_tensors(batch)
    with torch.no_grad():
        outputs, _ = agent.online(inputs_of(tensors), tensors.state)
    batch.steps.extras["policy"][:, :3] = outputs.policy[:, :3]  # task 0 acted as it learns; task 1 did not
    _, metrics = agent.update(batch)
    assert agent.duals.multipliers["kl"].tolist() == pytest.approx([2 - 0.01, 2 + 0.01, 2], abs=1e-5)
    assert metrics["kl_distance_most"] == pytest.approx(2 * metrics["kl_distance"], rel=0.2)


def test_temperatures_of_tasks_go_their_own_ways_and_one_that_is_absent_stays():
    agent = make_agent(config=replace(CONFIG, loss=replace(CONFIG.loss, temperature="task")))
    batch = make_batch(agent)
    batch.steps.reward[:, :3] = batch.steps.intrinsic[:, :3] = 0  # in task 0 all is equally good
    with torch.no_grad():
        agent.online.value_out.linear.weight.zero_()
        agent.online.value_out.linear.bias.zero_()
    agent.update(batch)
    assert agent.duals.temperature.tolist() == pytest.approx([0.7 - 0.01, 0.7 + 0.01, 0.7], abs=1e-5)


def test_apart_a_batch_of_several_tasks_is_the_mean_of_batches_of_each():
    """Better halves, weights, temperatures and regions of one task do not depend on the other's rows."""
    config = replace(CONFIG, loss=replace(CONFIG.loss, **VARIANTS["all apart"]))
    batch = make_batch(make_agent(config=config))
    both = make_agent(config=config).update(batch)[1]
    parts = []
    for rows in (slice(0, 3), slice(3, 6)):
        steps = map_arrays(
            lambda x, rows=rows: x[:, rows], batch.steps._replace(extras=dict(batch.steps.extras))
        )
        own = Sequence(steps, map_arrays(lambda x, rows=rows: x[rows], batch.state))
        num = int((~(steps.is_last[:-1] | steps.is_first[1:])).sum())
        parts.append((num, make_agent(config=config).update(own)[1]))
    total = sum(num for num, _ in parts)
    assert both["value"] == pytest.approx(sum(num * part["value"] for num, part in parts) / total, rel=1e-6)
    chosen = [num * part["chosen"] for num, part in parts]
    for name in ("policy", "temperature"):
        mean = sum(n * part[name] for n, (_, part) in zip(chosen, parts, strict=True)) / sum(chosen)
        assert both[name] == pytest.approx(mean, rel=1e-6), name


def test_one_task_is_the_same_together_and_apart():
    agents = [
        Vmpo(SEEN, SPACES["box"], replace(CONFIG, loss=replace(CONFIG.loss, **VARIANTS[variant])), seed=1)
        for variant in ("paper", "all apart")
    ]
    for seed in (1, 2, 3):
        batch = make_batch(agents[0], "box", seed, tasks=[0] * BATCH)
        first, second = (agent.update(batch)[1] for agent in agents)
        assert first == second
    first, second = (agent.parameters() for agent in agents)
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])


def test_a_multiplier_never_falls_below_its_floor():
    agent = make_agent(config=replace(CONFIG, dual_learning_rate=5.0))
    batch = make_batch(agent)
    behaviour = np.zeros_like(batch.steps.extras["policy"])  # nearly what a new policy says
    batch.steps.extras["policy"][:] = behaviour
    for _ in range(3):
        agent.update(batch)
        assert agent.duals.multipliers["kl"].item() >= 1e-8
    assert agent.duals.multipliers["kl"].item() == 1e-8


def test_what_acts_changes_every_period_only():
    agent = make_agent()
    batch = make_batch(agent)
    published = [{name: array.copy() for name, array in agent.parameters().items()}]
    for _ in range(6):
        agent.update(batch)
        published.append({name: array.copy() for name, array in agent.parameters().items()})
    is_new = [any((a[name] != b[name]).any() for name in a) for a, b in pairwise(published)]
    assert is_new == [False, False, True, False, False, True]
    online = {name: tensor.numpy() for name, tensor in agent.online.state_dict().items()}
    for name, array in agent.parameters().items():
        np.testing.assert_array_equal(array, online[name])


@pytest.mark.parametrize("space", SPACES)
def test_a_restored_agent_learns_the_same(space):
    one, other = make_agent(space), make_agent(space, seed=5)
    batches = [make_batch(one, space, seed) for seed in range(6)]
    for batch in batches[:4]:
        one.update(batch)
    other.load_state_dict(one.state_dict())
    for batch in batches[4:]:
        assert one.update(batch)[1] == other.update(batch)[1]
    for name, array in one.parameters().items():
        np.testing.assert_array_equal(array, other.parameters()[name])


def test_seeds_decide_the_start():
    first, same, other = (make_agent(seed=seed).parameters() for seed in (0, 0, 1))
    assert all((first[name] == same[name]).all() for name in first)
    assert any((first[name] != other[name]).any() for name in first)


@pytest.mark.parametrize("space", SPACES)
def test_learning_from_one_batch_makes_its_better_half_likelier(space):
    config = replace(CONFIG, loss=replace(CONFIG.loss, kl_limit=1.0, mean_limit=1.0, cov_limit=1.0))
    agent = make_agent(space, config)
    batch = make_batch(agent, space)
    first = agent.update(batch)[1]
    for _ in range(60):
        last = agent.update(batch)[1]
    assert last["policy"] < first["policy"]
    assert last["value"] < first["value"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: VmpoConfig(target_update_period=1), "target_update_period is 1; expected at least 2"),
        (lambda: VmpoConfig(unroll_length=1), "unroll_length is 1; expected at least 2"),
        (lambda: LossConfig(kl_limit=0.0), "kl_limit is 0.0; expected a number above 0"),
        (lambda: LossConfig(discount=1.5), "discount is 1.5; expected a number in"),
        (lambda: LossConfig(trace_discount=1.5), "trace_discount is 1.5; expected a number in"),
        (
            lambda: Vmpo(SEEN, ContinuousActions((-np.inf,), (1.0,)), CONFIG),
            "needs finite bounds: wrap the environment",
        ),
        (
            lambda: make_agent().update(make_batch(make_agent()), weights=np.ones(BATCH)),
            "weights were given; expected none",
        ),
    ],
)
def test_what_cannot_work_says_what_to_do(make, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        make()
