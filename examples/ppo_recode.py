"""PPO with RECODE in one file: two value heads, two discounts, non-episodic intrinsic returns.

    python examples/ppo_recode.py --env-id disco-maze --total-timesteps 300000
    python examples/ppo_recode.py --env-id MiniGrid-MultiRoom-N4-S5-v1 --bonus RND
    python examples/ppo_recode.py --env-id CartPole-v1 --bonus none
    python examples/ppo_recode.py --env-id key_and_door:KeyAndDoor-v0 --plain-world

Copy it and change it. The bonus is three lines (marked "bonus"); all the rest is PPO.

The environments restart in the step after an episode's end (Gymnasium's default). That step
is kept as a row: its observation is the true final one, its action was ignored. So

  - the policy does not learn from it,
  - the extrinsic return bootstraps from its value if a time limit cut the episode, and
    from 0 if the episode ended for good,
  - the intrinsic return runs through it into the next episode: novelty does not end.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
import tyro
from torch import nn
from torch.distributions import Categorical

from softcount.integrations import PLAIN_WORLD, SMALL_WORLD, IntrinsicRewardConfig
from softcount.integrations.gymnasium import IntrinsicRewardWrapper


@dataclass
class Args:
    env_id: str = "disco-maze"
    """A Gymnasium id with discrete actions (`module:ID` imports the module first), or `disco-maze`"""
    env_kwargs: dict[str, int] = field(default_factory=dict)
    """options of the environment"""
    bonus: str = "RECODE-AP"
    """RECODE-AP, RND, NGU-AP, … or `none`"""
    seed: int = 0
    total_timesteps: int = 300_000
    num_envs: int = 32
    num_steps: int = 16
    """steps of each environment per rollout: a bonus changes quickly, and long rollouts follow it too late"""
    learning_rate: float = 1e-3
    gamma: float = 0.99
    """discount of the extrinsic return"""
    int_gamma: float = 0.95
    """discount of the intrinsic return"""
    gae_lambda: float = 0.95
    ext_coef: float = 10.0
    """weight of extrinsic advantages"""
    int_coef: float = 1.0
    """weight of intrinsic advantages"""
    num_minibatches: int = 4
    update_epochs: int = 4
    clip_coef: float = 0.2
    ent_coef: float = 0.02
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    hidden: int = 128
    maze_size: int = 21
    """side of the disco maze"""
    lethal: bool = False
    """whether its walls kill; on-policy agents hardly get through, see docs/drop_in/weight.md"""
    plain_world: bool = False
    """RECODE's settings for worlds seen without noise, which pay earlier"""
    layout_seed: int | None = None
    """one fixed layout of a MiniGrid task instead of a new one each episode"""
    out: str | None = None
    """file for a JSON record of the run"""


def make_env(args: Args):
    """One environment: a maze, a MiniGrid task as one-hot vectors, or anything else as it is."""
    if args.env_id == "disco-maze":
        from softcount.envs.disco_maze import DiscoMazeConfig
        from softcount.envs.disco_maze_gym import DiscoMazeEnv

        return DiscoMazeEnv(DiscoMazeConfig(size=args.maze_size, lethal=args.lethal))
    if not args.env_id.startswith("MiniGrid"):
        env = gym.make(args.env_id, **args.env_kwargs)
        is_array = isinstance(env.observation_space, gym.spaces.Box)
        return env if is_array else gym.wrappers.FlattenObservation(env)  # categories become one-hot
    from minigrid.wrappers import ImgObsWrapper, ReseedWrapper

    env = gym.make(args.env_id)
    if args.layout_seed is not None:
        env = ReseedWrapper(env, seeds=[args.layout_seed])
    return MinigridOneHot(ImgObsWrapper(env))


class MinigridOneHot(gym.Wrapper):
    """Objects, colours and states as one-hot vectors; `info["place"]` is the agent's position."""

    SIZES = np.array([11, 6, 4])

    def __init__(self, env):
        super().__init__(env)
        height, width, _ = env.observation_space.shape
        self.offsets = np.arange(height * width)[:, None] * self.SIZES.sum() + np.array([0, 11, 17])
        self.observation_space = gym.spaces.Box(0, 1, (height * width * int(self.SIZES.sum()),), np.float32)

    def encode(self, image):
        vector = np.zeros(self.observation_space.shape, np.float32)
        vector[(self.offsets + image.reshape(-1, 3)).ravel()] = 1
        return vector

    def place(self):
        x, y = self.unwrapped.agent_pos
        return int(y) * self.unwrapped.width + int(x)

    def reset(self, **kwargs):
        image, info = self.env.reset(**kwargs)
        return self.encode(image), {**info, "place": self.place()}

    def step(self, action):
        image, reward, terminated, truncated, info = self.env.step(action)
        return self.encode(image), float(reward), terminated, truncated, {**info, "place": self.place()}


def layer(inputs, outputs, gain=2**0.5):
    linear = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(linear.weight, gain)
    nn.init.zeros_(linear.bias)
    return linear


class Agent(nn.Module):
    """A shared torso, a policy and one value head for each kind of reward."""

    def __init__(self, envs, hidden):
        super().__init__()
        space = envs.single_observation_space
        self.scale = 255.0 if space.dtype == np.uint8 else 1.0
        inputs = int(np.prod(space.shape))
        self.torso = nn.Sequential(layer(inputs, hidden), nn.ReLU(), layer(hidden, hidden), nn.ReLU())
        self.actor = layer(hidden, int(envs.single_action_space.n), 0.01)
        self.critic_ext = layer(hidden, 1, 0.0)  # zero: a reward not found yet adds no noise to the bonus
        self.critic_int = layer(hidden, 1, 0.0)

    def forward(self, obs):
        hidden = self.torso(obs.flatten(1).float() / self.scale)
        return (
            Categorical(logits=self.actor(hidden), validate_args=False),
            self.critic_ext(hidden)[:, 0],
            self.critic_int(hidden)[:, 0],
        )


def advantages(rewards, values, next_value, ends, cuts, gamma, gae_lambda):
    """Generalised advantages, time-major; `ends`: no bootstrap, `cuts`: nothing flows back over it."""
    result, running = torch.zeros_like(rewards), torch.zeros_like(next_value)
    for t in reversed(range(len(rewards))):
        following = values[t + 1] if t + 1 < len(rewards) else next_value
        delta = rewards[t] + gamma * following * ~ends[t] - values[t]
        running = delta + gamma * gae_lambda * running * ~cuts[t]
        result[t] = running
    return result


def train(args: Args) -> dict:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)

    envs = gym.vector.SyncVectorEnv([lambda: make_env(args) for _ in range(args.num_envs)])
    envs = gym.wrappers.vector.RecordEpisodeStatistics(envs)
    has_bonus = args.bonus != "none"
    if has_bonus:  # bonus: wrap the environments; extrinsic and intrinsic rewards stay apart in info
        # SMALL_WORLD and PLAIN_WORLD for small worlds; IntrinsicRewardConfig() is the paper's Atari memory.
        small = PLAIN_WORLD if args.plain_world else SMALL_WORLD
        config = small if "RECODE" in args.bonus else IntrinsicRewardConfig()
        envs = IntrinsicRewardWrapper(envs, args.bonus, reward="extrinsic", seed=args.seed, config=config)
    agent = Agent(envs, args.hidden)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5, fused=True)

    shape = (args.num_steps, args.num_envs)
    obs = torch.zeros(shape + envs.single_observation_space.shape)
    actions = torch.zeros(shape, dtype=torch.long)
    logprobs, rewards_ext, rewards_int, values_ext, values_int = (torch.zeros(shape) for _ in range(5))
    terminations, dones, dead = (torch.zeros(shape, dtype=torch.bool) for _ in range(3))

    record = {"args": asdict(args), "curve": [], "first_success": None}
    places, returns, ended, start = set(), [], [], time.perf_counter()
    first_obs, info = envs.reset(seed=args.seed)
    next_obs, next_dead = torch.tensor(first_obs), torch.zeros(args.num_envs, dtype=torch.bool)
    places.update(np.asarray(info.get("place", [])).tolist())
    batch_size = args.num_envs * args.num_steps

    for update in range(1, args.total_timesteps // batch_size + 1):
        global_step = update * batch_size
        for t in range(args.num_steps):
            obs[t], dead[t] = next_obs, next_dead
            with torch.no_grad():
                policy, values_ext[t], values_int[t] = agent(next_obs)
                actions[t] = policy.sample()
            logprobs[t] = policy.log_prob(actions[t])
            arrived, reward, terminated, truncated, info = envs.step(actions[t].numpy())
            rewards_ext[t] = torch.tensor(reward)
            if has_bonus:  # bonus: its own stream of rewards
                rewards_int[t] = torch.from_numpy(info["intrinsic_reward"])
            terminations[t] = torch.from_numpy(terminated)
            dones[t] = torch.from_numpy(terminated | truncated)
            next_obs, next_dead = torch.tensor(arrived), dones[t].clone()
            places.update(np.asarray(info.get("place", [])).tolist())
            places.discard(-1)  # dead, in a wall
            if "episode" in info:
                returns += info["episode"]["r"][info["_episode"]].tolist()
                ended += [global_step] * int(info["_episode"].sum())
                if record["first_success"] is None and max(returns[-args.num_envs :], default=0) > 0:
                    record["first_success"] = global_step - batch_size + (t + 1) * args.num_envs

        with torch.no_grad():
            _, next_ext, next_int = agent(next_obs)
        never = torch.zeros_like(dones)
        adv_ext = advantages(
            rewards_ext, values_ext, next_ext, terminations, dones, args.gamma, args.gae_lambda
        )
        adv_int = advantages(rewards_int, values_int, next_int, never, never, args.int_gamma, args.gae_lambda)
        returns_ext, returns_int = (adv_ext + values_ext).flatten(), (adv_int + values_int).flatten()
        adv = (args.ext_coef * adv_ext + (args.int_coef * adv_int if has_bonus else 0.0)).flatten()
        flat_obs, flat_actions, old_logprobs = obs.flatten(0, 1), actions.flatten(), logprobs.flatten()
        alive = ~dead.flatten()
        adv = (adv - adv[alive].mean()) / (adv[alive].std() + 1e-8)

        for _ in range(args.update_epochs):
            for rows in torch.randperm(batch_size).chunk(args.num_minibatches):
                policy, value_ext, value_int = agent(flat_obs[rows])
                live = alive[rows].float()
                logratio = policy.log_prob(flat_actions[rows]) - old_logprobs[rows]
                ratio = logratio.exp()
                clipped = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
                gain = torch.min(ratio * adv[rows], clipped * adv[rows])
                pg_loss = -(gain * live).sum() / live.sum()
                entropy = (policy.entropy() * live).sum() / live.sum()
                v_loss = ((value_ext - returns_ext[rows]) ** 2 * live).sum() / live.sum()
                if has_bonus:  # dead rows lead on to the next episode: the intrinsic value must know
                    v_loss = v_loss + ((value_int - returns_int[rows]) ** 2).mean()
                loss = pg_loss - args.ent_coef * entropy + args.vf_coef * v_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimizer.step()

        if update % 10 == 0 or update == args.total_timesteps // batch_size:
            row = {
                **(envs.bonus.metrics() if has_bonus else {}),  # bonus: anything it knows about itself
                "step": global_step,
                "episodic_return": float(np.mean(returns[-100:])) if returns else 0.0,
                "places": len(places),
                "intrinsic": float(rewards_int.mean()),
                "entropy": entropy.item(),
                "seconds": time.perf_counter() - start,
            }
            record["curve"].append(row)
            print(
                f"step {global_step:>8}  return {row['episodic_return']:.3f}  places {row['places']:>4}  "
                f"intrinsic {row['intrinsic']:.3f}  {global_step / row['seconds']:.0f} steps/s",
                flush=True,
            )
    envs.close()
    late = [r > 0 for r, step in zip(returns, ended) if step > 0.8 * args.total_timesteps]
    record["success"] = float(np.mean(late)) if late else 0.0  # over the last fifth of the steps
    if args.out:
        Path(args.out).parent.mkdir(parents=True, exist_ok=True)
        Path(args.out).write_text(json.dumps(record, indent=1))
    return record


if __name__ == "__main__":
    train(tyro.cli(Args))
