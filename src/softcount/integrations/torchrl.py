"""TorchRL with a bonus: a transform that writes `("next", "intrinsic_reward")`.

    env = TransformedEnv(base, IntrinsicRewardTransform("RECODE-AP"))
    td["next", "intrinsic_reward"]                       beside ("next", "reward"), never mixed

By default the transform trains its representation by itself while data are collected. With
`train=False` it only collects, and `RepresentationUpdate` learns from the batches that are
collected, as `RNDTransform` and `RNDLoss` split it. `IntrinsicRelabel` scores what a replay samples.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from softcount.hints import install

try:
    import torch
    from tensordict import TensorDict, TensorDictBase
    from torch import Tensor, nn
    from torchrl.data import Unbounded
    from torchrl.envs.transforms import Transform
except ImportError as error:
    raise ImportError(f"this needs TorchRL: {install('torchrl')}") from error

from gymnasium import spaces

from softcount.integrations.relabel import Baseline, Relabel
from softcount.integrations.reward import IntrinsicReward
from softcount.types import Array, Sequence, Step


class IntrinsicRewardTransform(Transform):  # type: ignore[misc]
    """Pays for what each step leads to.

    >>> from torchrl.envs import GymEnv, TransformedEnv
    >>> env = TransformedEnv(GymEnv("CartPole-v1"), IntrinsicRewardTransform("RND"))
    >>> env.rollout(3)["next", "intrinsic_reward"].shape
    torch.Size([3, 1])
    """

    def __init__(
        self,
        name: str,
        *,
        in_key: str = "observation",
        out_key: str = "intrinsic_reward",
        train: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(in_keys=[in_key], out_keys=[out_key])
        self.name = name
        self.options = options
        self.trains_itself = train
        self._bonus: IntrinsicReward | None = None
        self._load_from: str | os.PathLike[str] | None = None

    @property
    def bonus(self) -> IntrinsicReward:
        """The bonus, built for the environment this transform belongs to."""
        if self._bonus is None:
            self._bonus = self._build()
            if self._load_from is not None:
                self._bonus.load(self._load_from)
        return self._bonus

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the bonus's whole state."""
        self.bonus.save(path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Continues a saved bonus, now or when it is built."""
        self._load_from = path
        if self._bonus is not None:
            self._bonus.load(path)

    def _build(self) -> IntrinsicReward:
        parent = self.parent
        if parent is None:
            raise RuntimeError("the transform has no environment yet; put it into a TransformedEnv first")
        batch = tuple(parent.batch_size)
        if len(batch) > 1:
            raise ValueError(f"the environment has batch size {batch}; expected none or one axis")
        observation = parent.full_observation_spec[self.in_keys[0]]
        return IntrinsicReward(
            self.name,
            _observation_space(observation, len(batch)),
            _action_space(parent.full_action_spec[parent.action_key], len(batch)),
            num_envs=batch[0] if batch else 1,
            autoreset_mode="same_step",
            **self.options,
        )

    def _step(self, tensordict: TensorDictBase, next_tensordict: TensorDictBase) -> TensorDictBase:
        parent, is_single = self.parent, not self.parent.batch_size
        assert parent is not None

        def rows(x: Tensor) -> Array:
            array = x.detach().cpu().numpy()
            return array[None] if is_single else array

        action = rows(tensordict[parent.action_key])
        if _is_one_hot(parent.full_action_spec[parent.action_key]):
            action = action.argmax(-1)
        done, terminated = rows(next_tensordict["done"])[..., 0], rows(next_tensordict["terminated"])[..., 0]
        self.bonus.see_rewards(rows(next_tensordict[parent.reward_key]))
        step = self.bonus.step if self.trains_itself else self.bonus.take_in
        rewards = step(
            rows(tensordict[self.in_keys[0]]),
            action,
            rows(next_tensordict[self.in_keys[0]]),
            terminated,
            done & ~terminated,
        )
        value = torch.from_numpy(rewards).reshape(*parent.batch_size, 1)
        next_tensordict.set(self.out_keys[0], value.to(next_tensordict.device or "cpu"))
        return next_tensordict

    def _reset(self, tensordict: TensorDictBase, tensordict_reset: TensorDictBase) -> TensorDictBase:
        """The environment was reset: what comes next begins an episode."""
        mask = None if tensordict is None else tensordict.get("_reset", None)
        self.bonus.reset(None if mask is None else mask.reshape(-1).cpu().numpy())
        return tensordict_reset

    def transform_reward_spec(self, reward_spec: Any) -> Any:
        """Declares the new key."""
        reward_spec[self.out_keys[0]] = Unbounded(
            shape=(*self.parent.batch_size, 1), dtype=torch.float32, device=reward_spec.device
        )
        return reward_spec

    def get_extra_state(self) -> dict[str, Any]:
        """Part of `state_dict()`, so that checkpoints of the environment hold the bonus."""
        return {} if self._bonus is None else {"bonus": self._bonus.state_dict()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        if "bonus" in state:
            self.bonus.load_state_dict(state["bonus"])


class IntrinsicRelabel(Transform):  # type: ignore[misc]
    """Writes what arriving is worth today into each batch that a replay buffer samples.

        replay.append_transform(IntrinsicRelabel(transform))

    The bonus that was paid when a row was stored is replaced; the game's reward stays as it is. With
    `baseline="mean"` the running mean is taken off (`relabel`).
    """

    def __init__(self, transform: IntrinsicRewardTransform, *, baseline: Baseline = "mean") -> None:
        key = transform.in_keys[0]
        super().__init__(in_keys=[("next", key)], out_keys=[("next", transform.out_keys[0])])
        self.transforms = [transform]  # in a list: not a submodule, it belongs to its environment
        self.baseline: Baseline = baseline
        self._relabel: Relabel | None = None

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Scores a batch of any shape."""
        if self._relabel is None:
            self._relabel = Relabel(self.transforms[0].bonus, self.baseline)
        flat = tensordict.reshape(-1)
        rewards = torch.from_numpy(self._relabel(flat[self.in_keys[0]]))
        tensordict.set(self.out_keys[0], rewards.reshape(*tensordict.shape, 1).to(tensordict.device or "cpu"))
        return tensordict


class RepresentationUpdate(nn.Module):
    """Trains the representation of a transform built with `train=False` on collected batches.

    Takes a batch of shape `[B, T]` or `[T]` as a collector returns it, makes one optimiser
    step and returns its numbers; what embeds follows as the trainer's config has it.
    """

    def __init__(self, transform: IntrinsicRewardTransform) -> None:
        super().__init__()
        if transform.trains_itself:
            raise ValueError("this transform trains itself; build it with train=False to train it here")
        self.transforms = [transform]  # in a list: not a submodule, it belongs to its environment

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Makes one update; time is the last axis of the batch."""
        (transform,) = self.transforms
        batch = tensordict if tensordict.ndim == 2 else tensordict.unsqueeze(0)
        metrics = transform.bonus.learn(_to_sequence(batch, transform))
        return TensorDict({key: torch.tensor(value) for key, value in metrics.items()}, [])


def _to_sequence(batch: TensorDictBase, transform: IntrinsicRewardTransform) -> Sequence:
    """Rows o_0 … o_{T−1} and the last row's successor, time-major.

    Final observations in the middle have no row of their own and are left out; the rows
    after them begin episodes, so that no pair crosses an end.
    """
    parent, key, bonus = transform.parent, transform.in_keys[0], transform.bonus
    steps: Any = batch.transpose(0, 1)  # [T, B]
    time, width = steps.shape
    rows = torch.cat((steps[key], steps["next", key][-1:]))
    observation = bonus.inputs.observation(rows.flatten(0, 1), key)
    action: Any = steps[parent.action_key]
    if _is_one_hot(parent.full_action_spec[parent.action_key]):
        action = action.argmax(-1)
    done, terminated = steps["next", "done"][..., 0], steps["next", "terminated"][..., 0]
    no: Any = torch.zeros_like(done)
    nothing = torch.zeros_like(action[:1])
    reward: Any = torch.zeros(time + 1, width)

    def join(*parts: Any) -> Any:
        return torch.cat(parts)

    step = Step(
        observation=torch.from_numpy(np.ascontiguousarray(observation)).unflatten(0, (time + 1, width)),
        prev_action=join(nothing, action),
        reward=reward,
        intrinsic=reward,
        is_first=join(~no[:1], done[:-1], no[:1]),
        is_last=join(no, done[-1:]),
        is_terminal=join(no, terminated[-1:]),
        action=join(action, nothing),
        extras={},
    )
    return Sequence(step, ())


def _observation_space(spec: Any, num_batch_axes: int) -> spaces.Space[Any]:
    shape = tuple(spec.shape[num_batch_axes:])
    if type(spec).__name__ == "Categorical":
        return (
            spaces.Discrete(int(spec.space.n))
            if shape == ()
            else spaces.MultiDiscrete(np.full(shape, spec.space.n))
        )
    if type(spec).__name__ == "MultiCategorical":
        return spaces.MultiDiscrete(spec.nvec.reshape(-1, shape[-1])[0].cpu().numpy())
    if spec.dtype == torch.uint8:
        return spaces.Box(0, 255, shape, np.uint8)
    return spaces.Box(-np.inf, np.inf, shape, np.float32)


def _is_one_hot(spec: Any) -> bool:
    return type(spec).__name__ == "OneHot"


def _action_space(spec: Any, num_batch_axes: int) -> spaces.Space[Any]:
    kind = type(spec).__name__
    if kind in ("OneHot", "Categorical"):
        return spaces.Discrete(int(spec.space.n))
    if kind == "Bounded":
        low, high = spec.space.low, spec.space.high
        for _ in range(num_batch_axes):
            low, high = low[0], high[0]
        return spaces.Box(low.cpu().numpy(), high.cpu().numpy(), dtype=np.float32)
    raise TypeError(f"the action spec is {kind}; expected OneHot, Categorical or Bounded")
