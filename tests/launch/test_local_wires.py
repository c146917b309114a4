"""What flows between the roles, against what was configured, what was returned and what oracles say.

Every role of a small loop is overheard (`watched.py`). The networks are small enough for `oracles.networks`.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from launch.test_local import TINY
from launch.watched import watch, weights_of_traces
from oracles import bandit as bandit_oracle
from oracles import networks
from oracles.bonuses import prioritised
from oracles.recode import Recode
from oracles.replay import Replay
from oracles.representations import byol_losses, byol_surprise

from softcount.config import with_fields
from softcount.representations.embedding import EmbeddingConfig
from softcount.torsos import MlpConfig

NUM_STEPS, NUM_ENVS, NUM_ACTIONS, NUM_MIXTURES = 90, 4, 4, 6
MLP = MlpConfig(hidden_sizes=(8,))
WIRED = replace(
    TINY,
    meme=replace(
        TINY.meme,
        network=replace(TINY.meme.network, torso=MLP, core="lstm"),
        epsilon_base=0.3,
        epsilon_power=2.0,
        replay=replace(TINY.meme.replay, newest=1),
        importance_exponent=0.6,
    ),
    representation=replace(
        TINY.representation,
        embedding=EmbeddingConfig(torso=MLP, dim=4, layer_norm=True),
        rnd=replace(TINY.representation.rnd, torso=MLP),
    ),
    recode=replace(
        TINY.recode, memory=replace(TINY.recode.memory, embeddings_per_step=NUM_ENVS), reembed_every=0
    ),
)
BETAS = [0.0, *(1 / (1 + math.exp(-10 * (2 * j - 4) / 4)) for j in (1, 2, 3, 4)), 1.0]
EPSILONS = [0.3 ** (1 + 2 * actor / 3) for actor in range(NUM_ENVS)]
PIXELS = {"scale": 1 / 255, "has_norm": True}


@pytest.fixture(scope="module")
def heard():
    return watch(WIRED, NUM_STEPS)


def parameters_after(heard, num):
    """What the learner had after so many updates: policy, target network, representation, its slow copy."""
    learner = heard.learned[num - 1].learner if num else heard.at_start["learner"]
    trainer = learner["trainer"]
    return learner["agent"]["online"], learner["agent"]["target"], trainer["module"], trainer["slow"]


def assert_equal_bits(found, expected):
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def is_same(one, other):
    return all(np.array_equal(one[name], other[name]) for name in one)


# Parameters, forwards


@pytest.mark.parametrize("acting", ["latest", "slow"])
def test_actors_hold_what_the_learner_had_after_the_last_published_update_bit_for_bit(acting):
    heard = watch(replace(WIRED, trainer=replace(WIRED.trainer, acting=acting)), 30)
    assert {0, 1, 2, 3} < {step.num_updates for step in heard.acted}
    for step in heard.acted:
        policy, _, module, slow = parameters_after(heard, step.num_updates)
        assert_equal_bits(step.acting["policy"], policy)
        assert_equal_bits(step.acting["representation"], {**module, **slow})
        assert bool(slow) == (acting == "slow")
    first, last = heard.acted[0], heard.acted[-1]
    for name in ("policy", "representation"):
        assert not is_same(first.acting[name], last.acting[name])
    _, _, latest, _ = parameters_after(heard, last.num_updates)
    assert is_same(last.acting["representation"], latest) == (acting == "latest")


def test_the_slow_copy_follows_the_learned_representation(heard):
    name = "embedder.linear.weight"
    mean = np.array(parameters_after(heard, 0)[2][name], np.float64)
    for num in range(1, len(heard.learned) + 1):
        *_, module, slow = parameters_after(heard, num)
        mean += max(WIRED.trainer.slow_step, 1 / (num + 1)) * (module[name] - mean)
        np.testing.assert_allclose(slow[name], mean, rtol=1e-4, atol=1e-6)


def test_an_update_is_published_when_the_next_one_starts(heard):
    for num, update in enumerate(heard.learned):
        assert_equal_bits(update.acting["policy"], parameters_after(heard, num)[0])
    assert len(heard.learned) == heard.loop.num_updates + 1  # the last one waits


def test_the_target_network_is_the_online_one_of_the_last_full_period(heard):
    period = WIRED.meme.target_update_period
    assert len(heard.learned) > 3 * period
    for num in range(len(heard.learned) + 1):
        _, target, *_ = parameters_after(heard, num)
        assert_equal_bits(target, parameters_after(heard, num // period * period)[0])


def test_the_representations_learning_rate_follows_its_schedule():
    changes = {"optimiser.learning_rate": 0.01, "schedule": "linear", "total_updates": 20}
    heard = watch(replace(WIRED, trainer=with_fields(WIRED.trainer, changes)), 25)
    rates = [update.update.metrics["representation/learning_rate"] for update in heard.learned]
    assert len(rates) > 5
    assert rates == pytest.approx([0.01 * max(0, 1 - num / 20) for num in range(len(rates))])


# Priorities, backwards


def test_the_replay_holds_the_priorities_that_were_returned(heard):
    returned = {}
    for update in heard.learned[: heard.loop.num_updates]:
        returned |= dict(zip(update.update.ids.tolist(), update.update.priorities.tolist(), strict=True))
    kept = weights_of_traces(heard.loop.roles.replay)
    known = sorted(returned.keys() & kept.keys())
    assert len(known) > 3
    expected = [max(returned[i], 1e-6) ** WIRED.meme.replay.priority_exponent for i in known]
    np.testing.assert_allclose([kept[i] for i in known], expected, rtol=1e-6)
    assert len(set(expected)) > 3


def test_importance_weights_undo_how_likely_each_trace_was_drawn(heard):
    seen = set()
    for update in heard.learned:
        total = sum(update.replay.values())
        drawn = [update.replay[i] / total for i in update.sample.ids.tolist()]
        np.testing.assert_array_equal(update.drawn.ids, update.sample.ids)
        np.testing.assert_allclose(update.drawn.probabilities, drawn, rtol=1e-9)
        raw = [(len(update.replay) * p) ** -0.6 for p in drawn]
        np.testing.assert_allclose(update.weights, [w / max(raw) for w in raw], rtol=1e-6)
        np.testing.assert_array_equal(update.weights, update.sample.weights)
        seen |= set(update.weights.tolist())
    assert len(seen) > 10


def test_what_is_learned_from_is_what_was_acted_with_the_state_before_it(heard):
    replay = Replay(WIRED.meme.replay.trace_length, WIRED.meme.replay.period, 10**9, NUM_ENVS)
    for step in heard.acted:
        singles = [{name: x[b] for name, x in columns(step.row).items()} for b in range(NUM_ENVS)]
        replay.add(singles, [tuple(x[b] for x in step.state) for b in range(NUM_ENVS)], range(NUM_ENVS))
    for update in heard.learned:
        found, state = columns(update.sample.sequence.steps), update.sample.sequence.state
        for b, serial in enumerate(update.sample.ids.tolist()):
            rows, before = replay.trace(serial)
            for name in found:
                expected = np.array([row[name] for row in rows])
                np.testing.assert_array_equal(found[name][:, b], expected, err_msg=name)
            for leaf, expected in zip(state, before, strict=True):
                np.testing.assert_array_equal(leaf[b], expected)
    assert any(update.sample.sequence.state[0].any() for update in heard.learned)


def columns(step):
    return {name: x for name, x in step._asdict().items() if name != "extras"} | dict(step.extras)


# Acting


def test_every_actor_explores_with_its_own_epsilon(heard):
    log_probs = np.array([step.row.extras["log_prob"] for step in heard.acted])  # [T, B]
    for actor, epsilon in enumerate(EPSILONS):
        likely, unlikely = 1 - epsilon + epsilon / NUM_ACTIONS, epsilon / NUM_ACTIONS
        found = np.exp(log_probs[:, actor].astype(float))
        is_likely = np.isclose(found, likely, rtol=1e-5)
        assert (is_likely | np.isclose(found, unlikely, rtol=1e-5)).all()
        share = (1 - is_likely).mean()  # a random action is another one three times of four
        deviation = math.sqrt(0.75 * epsilon * (1 - 0.75 * epsilon) / NUM_STEPS)
        assert abs(share - 0.75 * epsilon) < 3.5 * deviation


def test_actions_are_those_that_the_published_network_prefers_given_what_the_row_holds(heard):
    num_checked = 0
    for now, later in zip(heard.acted[:-1], heard.acted[1:], strict=True):
        p = networks.numbers(now.acting["policy"])
        for b in range(NUM_ENVS):
            row, mixture = now.row, int(now.row.extras["mixture"][b])
            (q_e, q_i, logits), state = networks.meme_step(
                p,
                row.observation[b],
                int(row.prev_action[b]),
                row.reward[b],
                row.extras["prev_intrinsic"][b],
                bool(row.is_first[b]),
                tuple(x[b] for x in now.state),
                scale=1 / 255,
            )
            for found, expected in zip(later.state, state, strict=True):
                np.testing.assert_allclose(found[b], expected, atol=1e-5)
            preferred = logits[mixture]
            if BETAS[mixture] >= 0.5:  # "split": exploring mixtures act on their values
                preferred = q_e[mixture] + BETAS[mixture] * q_i[mixture]
            best, second = np.sort(preferred)[[-1, -2]]
            if best - second < 1e-5:
                continue
            is_greedy = int(row.action[b]) == preferred.argmax()
            epsilon = EPSILONS[b]
            probability = epsilon / NUM_ACTIONS + (1 - epsilon) * is_greedy
            assert math.exp(row.extras["log_prob"][b]) == pytest.approx(probability, rel=1e-5)
            num_checked += 1
    assert num_checked > 0.9 * (NUM_STEPS - 1) * NUM_ENVS


def test_a_row_holds_the_action_and_the_pay_of_the_row_before(heard):
    for before, now in zip(heard.acted[:-1], heard.acted[1:], strict=True):
        first = now.row.is_first
        np.testing.assert_array_equal(first, before.row.is_last)
        np.testing.assert_array_equal(now.row.prev_action, np.where(first, 0, before.row.action))
        expected = np.where(first, 0, before.intrinsic)
        np.testing.assert_array_equal(now.row.extras["prev_intrinsic"], expected)
        np.testing.assert_array_equal(now.row.intrinsic, now.intrinsic)
        kept = ~first
        np.testing.assert_array_equal(now.row.extras["mixture"][kept], before.row.extras["mixture"][kept])
    assert any(step.row.is_last.any() for step in heard.acted[:-1])


def test_each_bandit_knows_the_extrinsic_returns_of_its_own_environment(heard):
    histories = [[] for _ in range(NUM_ENVS)]
    totals = np.zeros(NUM_ENVS)
    for step in heard.acted:
        totals += step.row.reward
        for b in np.flatnonzero(step.row.is_last):
            histories[b].append((int(step.row.extras["mixture"][b]), totals[b]))
            totals[b] = 0
    assert min(map(len, histories)) > 0
    bandits = heard.loop.roles.actor.state_dict()["behaviour"]["bandits"]
    for history, bandit in zip(histories, bandits, strict=True):
        counts, sums = bandit_oracle.statistics(
            history, NUM_MIXTURES, "discounted", WIRED.meme.bandit.discount, None
        )
        np.testing.assert_allclose(bandit["discounted"]["counts"], counts, rtol=1e-9)
        np.testing.assert_allclose(bandit["discounted"]["sums"], sums, rtol=1e-6, atol=1e-9)


# Pay


def embedding_of(p, observation):
    return networks.embed(networks.part(p, "embedder"), observation, **PIXELS)


def recode_of(memory):
    """The oracle's memory with what a state holds."""
    config = WIRED.recode.memory
    names = (
        "size", "neighbours", "count_discount", "embeddings_per_step", "insertion_probability", "removal",
        "far_tolerance", "d2_step", "reward_constant", "kernel_epsilon", "warmup_atoms",
    )  # fmt: skip
    return Recode(
        **{name: getattr(config, name) for name in names},
        atoms=memory["atoms"].astype(float).tolist(),
        log_counts=(memory["log_counts"] + memory["log_scale"]).tolist(),
        births=memory["births"].tolist(),
        d2=memory["d2_biased"],
        d2_weight=memory["d2_weight"],
        steps=memory["num_observed"],
    )


def test_the_memory_is_shown_the_published_embeddings_and_pays_what_algorithm_1_says(heard):
    start = heard.at_start["memory"]["memory"]
    oracle, rng = recode_of(start), np.random.default_rng()
    rng.bit_generator.state = json.loads(start["generator"])
    for step in heard.acted:
        embedding, row = step.reply.features.embedding, step.row
        p = networks.numbers(step.acting["representation"])
        shown = np.flatnonzero(~row.is_terminal)  # last observations are skipped
        uniforms = rng.random((len(shown), 2)) if len(shown) else []
        expected = np.zeros(NUM_ENVS)
        for b, (u, v) in zip(shown, uniforms, strict=True):
            np.testing.assert_allclose(embedding[b], embedding_of(p, row.observation[b]), atol=1e-4)
            is_warm = len(oracle.atoms) >= WIRED.recode.memory.warmup_atoms
            reward = oracle.observe(embedding[b].tolist(), u, v).reward
            expected[b] = reward if is_warm and not row.is_first[b] else 0.0
        np.testing.assert_allclose(row.intrinsic, expected, rtol=1e-5)
    final = heard.loop.roles.memory.state_dict()["memory"]
    np.testing.assert_allclose(final["atoms"], oracle.atoms, atol=1e-6)
    assert final["num_observed"] == oracle.steps > 200


def test_relabelled_targets_are_what_todays_memory_would_pay_for_todays_embeddings(heard):
    num_paid = 0
    for update in heard.learned[::2]:
        oracle = recode_of(update.memory["memory"])
        p = networks.numbers(update.acting["representation"])
        steps = update.sample.sequence.steps
        for t, b in np.ndindex(steps.reward.shape):
            expected = 0.0
            if not steps.is_first[t, b] and not steps.is_terminal[t, b]:
                expected = oracle.score(embedding_of(p, steps.observation[t, b]).tolist())
                num_paid += 1
            assert update.targets[t, b] == pytest.approx(expected, rel=5e-3), (t, b)
        assert not np.allclose(update.targets, steps.intrinsic)
    assert num_paid > 50


def test_without_relabelling_the_stored_pay_makes_the_targets():
    heard = watch(with_fields(WIRED, {"meme.relabel": False}), 20)
    assert len(heard.learned) > 2
    assert all(update.targets is None for update in heard.learned)


def test_byol_pays_each_row_of_a_batch_for_its_own_surprise():
    heard = watch(with_fields(WIRED, {"agent": "MEME-BYOL-Explore", "meme.relabel": False}), 24)
    surprises, rows = [], []
    for num, update in enumerate(heard.learned):  # paid by the world model as the batch found it
        steps, p = update.sample.sequence.steps, networks.numbers(parameters_after(heard, num)[2])
        surprise = np.zeros(steps.reward.shape)
        for b in range(surprise.shape[1]):
            is_first = steps.is_first[:, b].tolist()
            predict, target = networks.byol_predictions(
                p,
                steps.observation[:, b],
                steps.action[:, b].tolist(),
                steps.prev_action[:, b].tolist(),
                is_first,
                NUM_ACTIONS,
                **PIXELS,
            )
            losses = byol_losses(predict, target, is_first, WIRED.representation.byol.horizon)
            surprise[:, b] = byol_surprise(losses, len(is_first))
        is_paid = ~steps.is_first & ~steps.is_terminal  # last observations are skipped
        is_paid[0] = False  # nothing predicts it
        surprises.append(surprise[is_paid].tolist())
        rows.append(is_paid)
    assert len(rows) > 3
    paid = prioritised(surprises, step=0.01)
    for update, is_paid, expected in zip(heard.learned, rows, paid, strict=True):
        np.testing.assert_allclose(update.targets[is_paid], expected, rtol=1e-3, atol=1e-3)
        assert (update.targets[~is_paid] == 0).all()
    assert max(update.targets.max() for update in heard.learned) > 0.5
    assert all((step.row.intrinsic == 0).all() for step in heard.acted)


def test_actors_normalise_pixels_by_all_that_was_seen_before_learning_and_learned_from_since():
    config = with_fields(WIRED, {"agent": "MEME-RND", "trainer.acting": "latest"})
    heard = watch(config, 20)
    last = heard.acted[-1]
    assert last.num_updates > 2
    before = [step.row.observation for step in heard.acted[: heard.learned[0].num_acted]]
    batches = [u.sample.sequence.steps.observation for u in heard.learned[1 : last.num_updates]]
    learned = np.concatenate([x.reshape(-1, 147) for x in (*before, *batches)]).astype(float)
    state = last.acting["representation"]
    count = float(state["normaliser.count"])
    assert count == len(learned)
    np.testing.assert_allclose(np.ravel(state["normaliser.mean"]), learned.mean(0), rtol=1e-9, atol=1e-9)
    spread = np.sqrt(np.ravel(state["normaliser.square"]) / count)
    np.testing.assert_allclose(spread, learned.std(0), rtol=1e-6, atol=1e-9)
