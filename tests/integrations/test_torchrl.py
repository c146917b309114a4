"""TorchRL: a key of its own beside the reward, specs that hold, and a loss that sees it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from integrations.worlds import Counter, Lever, not_pulled, pulled

pytest.importorskip("torchrl")
from tensordict.nn import TensorDictModule
from torchrl.envs import GymWrapper, SerialEnv, TransformedEnv
from torchrl.envs.utils import check_env_specs
from torchrl.modules import OneHotCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from softcount.bonuses import NormaliserConfig
from softcount.integrations import IntrinsicRewardConfig
from softcount.integrations.torchrl import (
    IntrinsicRelabel,
    IntrinsicRewardTransform,
    RepresentationUpdate,
)
from softcount.memory import RecodeConfig
from softcount.representations.compose import Function

PLAIN = IntrinsicRewardConfig(normaliser=NormaliserConfig(kind="none"))
SMALL = IntrinsicRewardConfig(
    memory=RecodeConfig(size=50, neighbours=3, warmup_atoms=5),
    normaliser=NormaliserConfig(kind="none"),
    steps_per_update=16,
    first_update=32,
    batch_size=4,
    sequence_length=5,
    history_size=600,
)


def make(world, num=None, name="RECODE-AP", **options):
    base = GymWrapper(world()) if num is None else SerialEnv(num, lambda: GymWrapper(world()))
    return TransformedEnv(base, IntrinsicRewardTransform(name, **{"config": SMALL, **options}))


@pytest.mark.parametrize("num", [None, 2])
def test_torchrls_own_check_of_specs_passes(num):
    check_env_specs(make(Lever, num))


@pytest.mark.parametrize("num", [None, 2])
def test_the_bonus_is_written_beside_the_reward(num):
    env = make(Lever, num, name="RND", encoder=Function(pulled), config=PLAIN)
    batch = env.rollout(20, break_when_any_done=False)
    pulls = batch["action"][..., 1].float()
    torch.testing.assert_close(batch["next", "intrinsic_reward"][..., 0], pulls)
    assert (batch["next", "reward"] == 0).all()


def test_the_game_is_left_as_it_is():
    def collect(env):
        env.set_seed(0)
        torch.manual_seed(0)
        return env.rollout(40, break_when_any_done=False)

    plain, wrapped = collect(SerialEnv(2, lambda: GymWrapper(Counter()))), collect(make(Counter, 2))
    for key in plain.keys(True, True):
        assert torch.equal(plain[key], wrapped[key]), key


@pytest.mark.parametrize("num", [None, 2])
def test_streams_hold_final_observations_and_begin_anew_after_resets(num):
    env = make(Counter, num)
    env.rollout(25, break_when_any_done=False)
    env.rollout(7, break_when_any_done=False)  # begins with a reset in the middle of an episode
    history = env.transform.bonus.history
    rows = history.latest(np.array([0]), int(history.num_rows[0])).steps
    times, first = rows.observation[:, 0, 2], rows.is_first[:, 0]
    np.testing.assert_array_equal(first, times == 0)
    assert ((np.diff(times) == 1) | first[1:]).all()
    assert rows.observation[rows.is_last[:, 0], 0, 2].tolist()[:3] == [3, 1, 4]
    is_cut = rows.observation[:, 0, 1] % 2 == 1
    np.testing.assert_array_equal(rows.is_terminal[:, 0], rows.is_last[:, 0] & ~is_cut)


@pytest.mark.parametrize(("surprise", "sign"), [(pulled, 1), (not_pulled, -1)])
def test_the_bonus_reaches_the_gradient_of_ppo(surprise, sign):
    torch.manual_seed(0)
    env = make(Lever, 4, name="RND", encoder=Function(surprise), config=PLAIN)
    net = torch.nn.Linear(2, 2)
    actor = ProbabilisticActor(
        TensorDictModule(net, in_keys=["observation"], out_keys=["logits"]),
        in_keys=["logits"],
        distribution_class=OneHotCategorical,
        return_log_prob=True,
    )
    critic = ValueOperator(torch.nn.Linear(2, 1), in_keys=["observation"])
    with torch.no_grad():
        batch = env.rollout(32, actor, break_when_any_done=False)
    gradients = []
    for weight in (0.0, 1.0):
        data = batch.clone()
        data["next", "reward"] = data["next", "reward"] + weight * data["next", "intrinsic_reward"]
        GAE(gamma=0.0, lmbda=0.95, value_network=critic)(data)
        if weight == 1.0:
            pulls = data["action"][..., 1].bool()
            assert sign * (data["advantage"][pulls].mean() - data["advantage"][~pulls].mean()) > 0.9
        loss = ClipPPOLoss(actor, critic, normalize_advantage=False)(data)["loss_objective"]
        (gradient,) = torch.autograd.grad(loss, net.bias)
        gradients.append(gradient)
    assert sign * (gradients[1][1] - gradients[0][1]) < -0.05  # descent raises the paid action's logit


def test_a_transform_that_does_not_train_itself_is_trained_by_its_module():
    env = make(Counter, 2, train=False)
    batch = env.rollout(20, break_when_any_done=False)
    bonus = env.transform.bonus
    assert bonus.trainer.num_updates == 0
    metrics = RepresentationUpdate(env.transform)(batch)
    assert bonus.trainer.num_updates == 1
    assert np.isfinite(metrics["loss"].item())
    RepresentationUpdate(env.transform)(batch[0])
    assert (env.rollout(20, break_when_any_done=False)["next", "intrinsic_reward"] > 0).any()
    with pytest.raises(ValueError, match="train=False"):
        RepresentationUpdate(make(Counter).transform)


def test_its_sequences_have_no_pair_across_an_end():
    from softcount.integrations.torchrl import _to_sequence

    env = make(Counter, 2, train=False)
    batch = env.rollout(20, break_when_any_done=False)
    steps = _to_sequence(batch, env.transform).steps
    times, episodes = steps.observation[..., 2], steps.observation[..., 1]
    connected = ~steps.is_first[1:] & ~steps.is_last[:-1]
    assert (times[1:][connected] - times[:-1][connected] == 1).all()
    assert (episodes[1:][connected] == episodes[:-1][connected]).all()
    assert connected.sum() > 10
    assert torch.equal(steps.prev_action[1:], steps.action[:-1])
    assert torch.equal(steps.action[:-1], batch["action"].argmax(-1).T)


def test_saved_and_state_dict_both_continue_bit_for_bit(tmp_path):
    env = make(Counter)
    env.rollout(30, break_when_any_done=False)
    env.transform.save(tmp_path / "bonus")
    state = env.state_dict()
    others = make(Counter, seed=7), make(Counter, seed=7)
    others[0].transform.load(tmp_path / "bonus")
    others[1].load_state_dict(state)
    rewards = []
    for source in (env, *others):
        source.base_env._env.episode = -1
        torch.manual_seed(0)
        rewards.append(source.rollout(30, break_when_any_done=False)["next", "intrinsic_reward"])
    assert rewards[0].max() > 0
    assert torch.equal(rewards[0], rewards[1])
    assert torch.equal(rewards[0], rewards[2])


def test_a_transform_without_environment_is_explained():
    with pytest.raises(RuntimeError, match="put it into a TransformedEnv"):
        _ = IntrinsicRewardTransform("RND").bonus


@pytest.mark.parametrize("baseline", ["none", "mean"])
def test_a_replay_samples_todays_bonus_in_place_of_the_one_that_was_paid(baseline):
    from torchrl.data import LazyTensorStorage, ReplayBuffer

    env = make(Lever, name="RND", encoder=Function(pulled), config=PLAIN)
    replay = ReplayBuffer(storage=LazyTensorStorage(200), batch_size=64)
    replay.append_transform(IntrinsicRelabel(env.transform, baseline=baseline))
    rollout = env.rollout(60, break_when_any_done=False)
    replay.extend(rollout)
    env.transform.bonus.weight = lambda step: 3.0  # since then all is paid three times as much
    batch = replay.sample()
    paid, arrived = batch["next", "intrinsic_reward"], batch["next", "observation"][:, :1]
    mean = 3 * arrived.mean() if baseline == "mean" else 0.0
    torch.testing.assert_close(paid, 3 * arrived - mean)
    assert (batch["next", "reward"] == 0).all()


@pytest.mark.parametrize("is_categorical", [False, True])
def test_categories_are_one_hot_however_torchrl_writes_them(is_categorical):
    from torchrl.envs import GymEnv

    base = GymEnv("FrozenLake-v1", categorical_action_encoding=is_categorical)
    env = TransformedEnv(base, IntrinsicRewardTransform("RECODE-AP", config=SMALL))
    env.rollout(60, break_when_any_done=False)
    history = env.transform.bonus.history
    rows = history.latest(np.array([0]), 20).steps.observation[:, 0]
    assert rows.shape == (20, 16)
    assert (rows.sum(1) == 1).all()
    assert env.transform.bonus.trainer.num_updates > 0
