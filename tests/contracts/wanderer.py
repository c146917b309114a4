"""A world of continuous actions, and an agent that acts at random in it: the least that roles must serve."""

import json

import numpy as np
import torch
from torch import nn

from softcount.types import ArraySpec, ContinuousActions, TimeStep


class Meadow:
    """Points that are pushed about in the plane; an episode ends at the border or after twelve steps."""

    observation_spec = ArraySpec((2,), "float32")
    action_spec = ContinuousActions((-1.0, -0.5), (1.0, 0.5))
    num_places = None
    task_names = ("meadow",)

    def __init__(self, num_envs, seed=0):
        self.num_envs = num_envs
        self.task_ids = np.zeros(num_envs, np.int64)
        self.rng = np.random.default_rng(seed)
        self.at = np.zeros((num_envs, 2), np.float32)
        self.age = np.zeros(num_envs, np.int64)
        self.is_over = np.ones(num_envs, bool)
        self.told = []

    def reset(self, seed=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.is_over[:] = True
        return self._advance(np.zeros((self.num_envs, 2), np.float32))

    def step(self, actions):
        self.told.append(actions.copy())
        return self._advance(actions)

    def _advance(self, actions):
        is_first = self.is_over
        moved = self.at + 0.3 * actions + 0.05 * self.rng.normal(size=self.at.shape)
        self.at = np.where(is_first[:, None], 0, moved).astype(np.float32)
        self.age = np.where(is_first, 0, self.age + 1)
        is_out = np.abs(self.at).max(1) > 1
        self.is_over = is_out | (self.age >= 12)
        reward = np.where(is_first, 0, self.at[:, 0]).astype(np.float32)
        return TimeStep(self.at.copy(), reward, is_first, self.is_over.copy(), is_out.copy())

    def get_state(self):
        rng = json.dumps(self.rng.bit_generator.state)
        return {"at": self.at.copy(), "age": self.age.copy(), "is_over": self.is_over.copy(), "rng": rng}

    def set_state(self, state):
        self.at, self.age = np.array(state["at"]), np.array(state["age"])
        self.is_over = np.array(state["is_over"])
        self.rng.bit_generator.state = json.loads(state["rng"])

    def close(self):
        pass


class Network(nn.Module):
    """Says the mean of a Gaussian; remembers how long it has been going."""

    def __init__(self):
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(2))

    def initial_state(self, batch):
        return (torch.zeros(batch, 1),)

    def act(self, inputs, condition, state):
        steps = torch.where(inputs.is_first[:, None], 0, state[0]) + 1
        return self.mean.expand(len(condition), 2), (steps,)

    def evaluating(self):
        return self


class Noise:
    """Draws around the mean, within the box."""

    def __init__(self, num_envs, spec, spread=0.5):
        self.num_envs, self.spec, self.spread = num_envs, spec, spread
        self.num_started = 0

    def condition(self):
        return np.zeros(self.num_envs, np.int64)

    def start(self, is_first):
        self.num_started += int(is_first.sum())

    def act(self, policy, rng):
        drawn = policy + self.spread * rng.normal(size=policy.shape)
        return np.clip(drawn, self.spec.low, self.spec.high).astype(np.float32), {"mean": policy.copy()}

    def end(self, is_last, extrinsic):
        pass

    def for_evaluation(self, num_envs):
        return Noise(num_envs, self.spec, 0.0)

    def describe(self):
        return "noise"

    def metrics(self, conditions):
        return {"noise/started": float(self.num_started)}

    def state_dict(self):
        return {"num_started": self.num_started}

    def load_state_dict(self, state):
        self.num_started = int(state["num_started"])


class Drifter:
    """Learns to push where rewards were: the least that changes with every batch."""

    def __init__(self):
        self.network = Network()
        self.num_updates = 0

    def parameters(self):
        return {"mean": self.network.mean.detach().numpy().copy()}

    def update(self, sequence, weights=None, intrinsic_targets=None):
        assert weights is None
        steps = sequence.steps
        gain = torch.as_tensor(steps.reward)[1:, :, None] * torch.as_tensor(steps.action)[:-1]
        with torch.no_grad():
            self.network.mean += 0.1 * gain.mean((0, 1))
        self.num_updates += 1
        return None, {"gain": float(gain.mean())}

    def state_dict(self):
        return {"mean": self.parameters()["mean"], "num_updates": self.num_updates}

    def load_state_dict(self, state):
        with torch.no_grad():
            self.network.mean.copy_(torch.as_tensor(np.array(state["mean"])))
        self.num_updates = int(state["num_updates"])
