from dataclasses import replace

import numpy as np
import pytest
import torch
from oracles import meme_loss as oracle
from oracles import networks

from softcount import store
from softcount.agents.body import inputs_of
from softcount.agents.meme.agent import Meme, MemeConfig, preferences
from softcount.agents.meme.loss import LossConfig
from softcount.agents.meme.network import MemeNetwork, NetworkConfig
from softcount.agents.meme.policies import act
from softcount.agents.protocols import Inputs
from softcount.optimiser import OptimiserConfig, make_optimiser
from softcount.replay.config import ReplayConfig
from softcount.replay.sequences import SequenceReplay
from softcount.tensors import load_module, to_arrays, to_tensors
from softcount.types import ArraySpec, DiscreteActions, Step

SPEC = ArraySpec((5,), "float32")
ACTIONS = DiscreteActions(3)
CONFIG = MemeConfig(
    network=NetworkConfig(torso="mlp", core_size=8, head_size=16, num_mixtures=2),
    loss=LossConfig(discount_max=0.9, discount_min=0.5),
    optimiser=OptimiserConfig(learning_rate=1e-3),
    target_update_period=3,
)
NUM_ENVS = 4


@torch.inference_mode()
def act_step(network, config, *, state, mixture, epsilon, rng, **rows):
    """Plays one step of a batch of environments, as an actor would."""
    inputs = Inputs(**{name: torch.from_numpy(x)[None] for name, x in rows.items()})
    preferred, state = preferences(network, inputs, to_tensors(state), config)
    action, log_prob = act(preferred[0].numpy(), mixture, np.asarray(epsilon), rng)
    return action, log_prob, to_arrays(state)


def play(agent, num_steps, seed=0, epsilon=0.3, trace_length=8, period=4):
    """Plays random observations with random episode ends; returns the replay and all logits."""
    rng = np.random.default_rng(seed)
    config = ReplayConfig(trace_length=trace_length, period=period, capacity=100, min_traces=1)
    replay = SequenceReplay(config, NUM_ENVS, SPEC, agent.initial_state(1))
    state = agent.initial_state(NUM_ENVS)
    action = np.zeros(NUM_ENVS, np.int64)
    intrinsic = np.zeros(NUM_ENVS, np.float32)
    is_first = np.ones(NUM_ENVS, bool)
    mixture = rng.integers(2, size=NUM_ENVS)
    states = []
    for _ in range(num_steps):
        observation = rng.normal(size=(NUM_ENVS, 5)).astype(np.float32)
        reward = np.where(is_first, 0, rng.normal(size=NUM_ENVS)).astype(np.float32)
        is_last = ~is_first & (rng.random(NUM_ENVS) < 0.2)
        chosen, log_prob, new_state = act_step(
            agent.online, agent.config, observation=observation, prev_action=action, reward=reward,
            prev_intrinsic=intrinsic, is_first=is_first, state=state, mixture=mixture,
            epsilon=epsilon, rng=rng,
        )  # fmt: skip
        extras = {"mixture": mixture, "prev_intrinsic": intrinsic, "log_prob": log_prob}
        arrived = rng.random(NUM_ENVS).astype(np.float32)
        step = Step(
            observation,
            action,
            reward,
            arrived,
            is_first,
            is_last,
            is_last & (reward > 0),
            chosen,
            extras,
        )
        replay.add(step, state)
        states.append(new_state)
        state, action, intrinsic, is_first = new_state, chosen, arrived, is_last
        mixture = np.where(is_last, rng.integers(2, size=NUM_ENVS), mixture)
    return replay, states


def batch(agent, seed=0, **options):
    return play(agent, 40, seed, **options)[0].sample(6, np.random.default_rng(seed)).sequence


def make(config=CONFIG, seed=0):
    return Meme(SPEC, ACTIONS, config, seed=seed)


def test_the_learner_reproduces_what_the_actor_computed_from_the_stored_state():
    agent = make()
    replay, _ = play(agent, 60, epsilon=0.0)
    sequence = to_tensors(replay.sample(20, np.random.default_rng(0)).sequence)
    steps = sequence.steps
    assert steps.is_first[1:].any()  # there are resets inside
    assert (sequence.state[0] != 0).any()
    with torch.no_grad():
        logits = agent.online(inputs_of(sequence), sequence.state)[0].logits
    own = logits.gather(2, steps.extras["mixture"][:, :, None, None].expand(-1, -1, 1, 3)).squeeze(2)
    assert (own.argmax(-1) == steps.action).all()
    without_state = tuple(torch.zeros_like(x) for x in sequence.state)
    with torch.no_grad():
        other = agent.online(inputs_of(sequence), without_state)[0].logits
    assert (other - logits).abs().max() > 1e-3  # and the stored state matters


def test_the_state_the_learner_ends_with_is_the_state_the_actor_had():
    agent = make()
    replay, states = play(agent, 4 * 5 + 1)
    sequence = to_tensors(replay.sample(64, np.random.default_rng(0)).sequence)
    with torch.no_grad():
        _, last = agent.online(inputs_of(sequence), sequence.state)
    # A trace's 9 rows end at row 8, 12, 16 or 20 of the run.
    found = np.concatenate([x.numpy() for x in last], axis=1)
    known = np.concatenate([np.concatenate(states[t], axis=1) for t in (8, 12, 16, 20)])
    distance = np.abs(found[:, None] - known[None]).max(-1).min(1)
    assert distance.max() < 1e-6


def test_an_update_learns_and_reports():
    near = replace(CONFIG.loss, discount_max=0.1, discount_min=0.1)  # targets that hardly move
    agent = make(replace(CONFIG, optimiser=OptimiserConfig(learning_rate=5e-3), loss=near))
    sequence = batch(agent)
    history = []
    for _ in range(200):
        priorities, metrics = agent.update(sequence)
        history.append([metrics["td_error"], metrics["policy_loss"]])
    assert priorities.shape == (6,)
    assert (priorities > 0).all()
    assert all(isinstance(x, float) and np.isfinite(x) for x in metrics.values())
    td_error, policy_loss = np.mean(history[-20:], axis=0) / history[0]
    assert td_error < 0.1
    assert policy_loss < 0.4


def test_targets_use_relabelled_rewards_and_network_inputs_the_stored_ones():
    agent = make()
    sequence = batch(agent)
    relabelled = sequence.steps.intrinsic + 1.0
    seen = []
    agent.online.register_forward_pre_hook(lambda _, args: seen.append(args[0].prev_intrinsic.clone()))
    plain = make().update(sequence)[1]["value_loss"]
    changed = agent.update(sequence, intrinsic_targets=relabelled)[1]["value_loss"]
    assert changed != plain
    np.testing.assert_array_equal(seen[0], sequence.steps.extras["prev_intrinsic"])
    stored = sequence._replace(steps=sequence.steps._replace(intrinsic=relabelled))
    assert make().update(stored)[1]["value_loss"] == changed


def assert_priorities_and_gradients(agent, found, expected):
    """The gradient of a bias is that of its outputs, added up."""
    priorities, metrics = found
    assert metrics["loss"] == pytest.approx(expected["loss"], rel=1e-4)
    np.testing.assert_allclose(priorities, expected["priorities"], rtol=1e-4)
    for name, x in zip(("mean", "square"), expected["moments"], strict=False):
        np.testing.assert_allclose(agent.state_dict()["moments"][name], x, rtol=1e-3, atol=1e-6)
    gradients = {name: p.grad.numpy() for name, p in agent.online.named_parameters()}
    q, intrinsic, logits = (np.sum(x, axis=(0, 1)) for x in expected["gradients"])  # [N, A]
    for name, x in (
        ("value_out.0.bias", q.sum(-1)),
        ("value_out.1.bias", intrinsic.sum(-1)),
        ("policy_out.bias", logits.ravel()),
    ):
        np.testing.assert_allclose(gradients[name], x, rtol=1e-3, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("priority_of", ["behaviour", "all"])
def test_an_update_is_what_an_oracle_makes_of_both_networks(priority_of):
    loss = replace(CONFIG.loss, trust_region=0.5, kl_limit=0.05, priority_of=priority_of)
    agent = make(replace(CONFIG, optimiser=OptimiserConfig(learning_rate=0.1, max_grad_norm=None), loss=loss))
    for seed in range(1, 5):
        agent.update(batch(agent, seed))  # the target network is the online one of the third
    sequence, rng = batch(agent), np.random.default_rng(0)
    weights = rng.random(6).astype(np.float32) + 0.5
    targets = rng.random(sequence.steps.intrinsic.shape).astype(np.float32)
    state, steps = agent.state_dict(), sequence.steps
    rows = {
        "action": steps.action,
        "mixture": steps.extras["mixture"],
        "reward": steps.reward,
        "intrinsic": targets,
        "first": steps.is_first,
        "last": steps.is_last,
        "terminal": steps.is_terminal,
        "weights": weights,
    }
    unrolled = [
        networks.meme_unroll(networks.numbers(state[name]), steps, sequence.state)
        for name in ("online", "target")
    ]
    expected = oracle.meme_loss(
        *unrolled,
        {name: np.asarray(x).tolist() for name, x in rows.items()},
        [0.0, 1.0],  # β and γ of two mixtures: the first exploits and looks far
        [0.9, 0.5],
        tuple(state["moments"][name].tolist() for name in ("mean", "square", "weight")),
        vars(loss),
    )
    num_pairs = 2 * int((~(steps.is_last[:-1] | steps.is_first[1:])).sum())
    assert all(0 < num < num_pairs for num in expected["masked"])  # so the target network matters
    assert_priorities_and_gradients(agent, agent.update(sequence, weights, targets), expected)


def test_the_optimiser_is_adamw_with_the_configured_settings():
    config = replace(
        CONFIG,
        optimiser=OptimiserConfig(
            learning_rate=3e-3, weight_decay=0.2, betas=(0.8, 0.95), epsilon=1e-3, max_grad_norm=None
        ),
    )
    agent = make(config)
    start = {name: p.detach().numpy().copy() for name, p in agent.online.named_parameters()}
    sequences, gradients = [batch(agent, seed) for seed in range(3)], []
    for sequence in sequences:
        agent.update(sequence)
        gradients.append({name: p.grad.numpy().copy() for name, p in agent.online.named_parameters()})
    for name, p in agent.online.named_parameters():
        expected = networks.adamw(
            start[name],
            [g[name].astype(np.float64) for g in gradients],
            rate=3e-3,
            decay=0.0 if name.endswith("bias") else 0.2,
            betas=(0.8, 0.95),
            epsilon=1e-3,
        )
        np.testing.assert_allclose(p.detach(), expected, rtol=1e-4, atol=1e-6, err_msg=name)


def test_the_target_network_is_a_copy_every_period():
    agent = make()
    sequence = batch(agent)
    start = [p.clone() for p in agent.online.parameters()]
    for n in range(1, 7):
        agent.update(sequence)
        is_copy = all(
            torch.equal(p, q)
            for p, q in zip(agent.online.parameters(), agent.target.parameters(), strict=True)
        )
        assert is_copy == (n % 3 == 0)
        if n < 3:
            assert all(torch.equal(p, q) for p, q in zip(start, agent.target.parameters(), strict=True))


def test_weight_decay_spares_biases_and_gains():
    network = MemeNetwork(ArraySpec((36, 36, 1), "uint8"), ACTIONS, NetworkConfig(core_size=8, head_size=8))
    optimiser = make_optimiser(network, CONFIG.optimiser)
    names = {id(p): name for name, p in network.named_parameters()}
    decayed, spared = ([names[id(p)] for p in group["params"]] for group in optimiser.param_groups)
    assert [group["weight_decay"] for group in optimiser.param_groups] == [0.05, 0.0]
    assert all(name.endswith(("weight", "palette")) for name in decayed)
    assert all(name.endswith(("bias", "gain")) for name in spared)
    assert any(name.endswith("skip_gain") for name in spared)
    assert any(name.endswith(".gain") for name in spared)
    assert len(decayed) + len(spared) == len(names)


def test_gradients_are_clipped_to_the_global_norm():
    sequence = batch(make())
    limited = make(replace(CONFIG, optimiser=OptimiserConfig(max_grad_norm=1e-3)))
    _, metrics = limited.update(sequence)
    norm = torch.sqrt(sum(p.grad.square().sum() for p in limited.online.parameters() if p.grad is not None))
    assert norm.item() == pytest.approx(1e-3, rel=1e-3)
    free = make(replace(CONFIG, optimiser=OptimiserConfig(max_grad_norm=None)))
    assert free.update(sequence)[1]["grad_norm"] == pytest.approx(metrics["grad_norm"])


def test_a_restored_agent_goes_on_bit_for_bit(tmp_path):
    agent = make()
    sequences = [batch(agent, seed) for seed in range(4)]
    for sequence in sequences:
        agent.update(sequence)
    store.save(tmp_path / "agent.safetensors", agent.state_dict(), kind="agent")
    other = make(seed=9)
    other.load_state_dict(store.load(tmp_path / "agent.safetensors", kind="agent"))
    for sequence in sequences:
        first, second = agent.update(sequence), other.update(sequence)
        np.testing.assert_array_equal(first[0], second[0])
        assert first[1] == second[1]
    for name, array in agent.parameters().items():
        np.testing.assert_array_equal(array, other.parameters()[name])


def test_what_is_published_acts_alike_elsewhere():
    agent = make()
    agent.update(batch(agent))
    network = MemeNetwork(SPEC, ACTIONS, CONFIG.network)
    load_module(network, agent.parameters())
    rng = np.random.default_rng(0)
    request = {
        "observation": rng.normal(size=(7, 5)).astype(np.float32),
        "prev_action": rng.integers(3, size=7),
        "reward": np.zeros(7, np.float32),
        "prev_intrinsic": np.zeros(7, np.float32),
        "is_first": np.zeros(7, bool),
        "state": tuple(x + 0.1 for x in agent.initial_state(7)),
        "mixture": rng.integers(2, size=7),
        "epsilon": np.linspace(0, 1, 7),
    }
    first = act_step(agent.online, CONFIG, **request, rng=np.random.default_rng(1))
    second = act_step(network, CONFIG, **request, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[2][1], second[2][1])


@pytest.mark.parametrize("act_on", ["policy", "values", "split"])
def test_acting_is_greedy_on_what_the_config_says(act_on):
    agent = make(replace(CONFIG, act_on=act_on))
    replay, _ = play(agent, 30, epsilon=0.0)
    sequence = to_tensors(replay.sample(20, np.random.default_rng(0)).sequence)
    with torch.no_grad():
        outputs, _ = agent.online(inputs_of(sequence), sequence.state)
    combined = outputs.q_extrinsic + agent.ladders.beta[:, None] * outputs.q_intrinsic
    mixture = sequence.steps.extras["mixture"][:, :, None, None].expand(-1, -1, 1, 3)
    greedy = {
        name: x.gather(2, mixture).squeeze(2).argmax(-1)
        for name, x in (("policy", outputs.logits), ("values", combined))
    }
    is_exploring = sequence.steps.extras["mixture"] == 1  # of the two mixtures, β is 0 and 1
    greedy["split"] = torch.where(is_exploring, greedy["values"], greedy["policy"])
    assert (greedy[act_on] == sequence.steps.action).all()
    assert (greedy["policy"] != greedy["values"])[is_exploring].any()
    assert (greedy["policy"] != greedy["values"])[~is_exploring].any()


def test_seeds_decide_the_parameters_and_global_randomness_is_left_alone():
    torch.manual_seed(5)
    first = make(seed=1)
    after = torch.rand(1)
    torch.manual_seed(5)
    assert torch.rand(1) == after
    for name, array in first.parameters().items():
        np.testing.assert_array_equal(array, make(seed=1).parameters()[name])
    weights = "value_hidden.weight"
    assert (first.parameters()[weights] != make(seed=2).parameters()[weights]).any()


def test_the_retrace_form_reads_the_behaviours_log_probabilities():
    config = replace(CONFIG, loss=replace(CONFIG.loss, return_form="retrace"))
    sequence = batch(make())
    found = make(config).update(sequence)[1]["value_loss"]
    assert found != make().update(sequence)[1]["value_loss"]
    extras = {name: x for name, x in sequence.steps.extras.items() if name != "log_prob"}
    with pytest.raises(ValueError, match="extras\\['log_prob'\\]"):
        make(config).update(sequence._replace(steps=sequence.steps._replace(extras=extras)))


def test_missing_extras_are_named():
    sequence = batch(make())
    with pytest.raises(ValueError, match="carry the extras \\['mixture'\\]"):
        make().update(
            sequence._replace(
                steps=sequence.steps._replace(extras={"mixture": sequence.steps.extras["mixture"]})
            )
        )


def test_a_feed_forward_agent_has_no_state_and_learns_the_same_way():
    agent = make(replace(CONFIG, network=replace(CONFIG.network, core="none")))
    assert agent.initial_state(3) == ()
    sequence = batch(agent)
    assert sequence.state == ()
    first = agent.update(sequence)[1]["td_error"]
    for _ in range(40):
        last = agent.update(sequence)[1]["td_error"]
    assert last < first
