"""PPO with RECODE in one file: two value heads, two discounts, non-episodic intrinsic returns.

    python examples/ppo_recode.py --env-id disco-maze --stagger 500 --int-gamma 0.99 --total-timesteps 300000
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

Novelty fades, by a hundred times and more. Intrinsic values are learned in units of r / (1 - gamma), what
going on is worth at the time, else their loss fades with its square and they stop learning.
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
from softcount.integrations.stagger import Staggered
from softcount.torsos import GridConfig, make_torso
from softcount.types import ArraySpec


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
    """discount of the intrinsic return; 0.99 where what is new is 50 steps away"""
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
    stagger: int = 0
    """length of an episode, if most last equally long: then environments do not all restart together"""
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
        self.is_image = len(space.shape) == 3
        if self.is_image:  # a table of what colours mean, then one dense layer over all cells
            self.torso = make_torso(GridConfig(hidden_sizes=(hidden,)), ArraySpec(space.shape, "uint8"))
        else:
            inputs = int(np.prod(space.shape))
            self.torso = nn.Sequential(layer(inputs, hidden), nn.ReLU(), layer(hidden, hidden), nn.ReLU())
        self.actor = layer(hidden, int(envs.single_action_space.n), 0.01)
        self.critic_ext = layer(hidden, 1, 0.0)  # zero: a reward not found yet adds no noise to the bonus
        self.critic_int = layer(hidden, 1, 0.0)

    def forward(self, obs):
        hidden = self.torso(obs.to(torch.uint8) if self.is_image else obs.flatten(1).float())
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


class Log:
    """Episodes, places and the record of a run."""

    def __init__(self, args):
        self.record = {"args": asdict(args), "curve": [], "first_success": None}
        self.places, self.returns, self.ended, self.start = set(), [], [], time.perf_counter()

    def visit(self, info):
        self.places.update(np.asarray(info.get("place", [])).tolist())
        self.places.discard(-1)  # dead, in a wall

    def step(self, step, info):
        self.visit(info)
        if "episode" in info:
            ended = info["episode"]["r"][info["_episode"]].tolist()
            self.returns += ended
            self.ended += [step] * len(ended)
            if self.record["first_success"] is None and max(ended, default=0) > 0:
                self.record["first_success"] = step

    def row(self, step, **numbers):
        seconds = time.perf_counter() - self.start
        mean = float(np.mean(self.returns[-100:])) if self.returns else 0.0
        own = {"step": step, "episodic_return": mean, "places": len(self.places), "seconds": seconds}
        row = {**numbers, **own}
        self.record["curve"].append(row)
        print(
            f"step {step:>8}  return {mean:.3f}  places {row['places']:>4}  "
            f"intrinsic {row['intrinsic']:.3f}  {step / seconds:.0f} steps/s",
            flush=True,
        )

    def finish(self, args):
        late = [r > 0 for r, step in zip(self.returns, self.ended) if step > 0.8 * args.total_timesteps]
        self.record["success"] = float(np.mean(late)) if late else 0.0  # over the last fifth of the steps
        if args.out:
            Path(args.out).parent.mkdir(parents=True, exist_ok=True)
            Path(args.out).write_text(json.dumps(self.record, indent=1))
        return self.record


def make_envs(args: Args):
    """All environments, with the bonus if there is one."""
    cuts = [index * args.stagger // args.num_envs for index in range(args.num_envs)]
    envs = gym.vector.SyncVectorEnv([lambda cut=cut: Staggered(make_env(args), cut) for cut in cuts])
    envs = gym.wrappers.vector.RecordEpisodeStatistics(envs)
    if args.bonus == "none":
        return envs
    # bonus: wrap the environments; extrinsic and intrinsic rewards stay apart in info
    # SMALL_WORLD and PLAIN_WORLD for small worlds; IntrinsicRewardConfig() is the paper's Atari memory.
    small = PLAIN_WORLD if args.plain_world else SMALL_WORLD
    config = small if "RECODE" in args.bonus else IntrinsicRewardConfig()
    return IntrinsicRewardWrapper(envs, args.bonus, reward="extrinsic", seed=args.seed, config=config)


def learn(agent, optimizer, batch, args: Args):
    """Some passes over a rollout, whose tensors are flat; returns the last entropy."""
    for _ in range(args.update_epochs):
        for rows in torch.randperm(len(batch["obs"])).chunk(args.num_minibatches):
            obs, actions, old_logprobs, adv, returns_ext, returns_int, alive = (
                batch[key][rows]
                for key in ("obs", "actions", "logprobs", "adv", "returns_ext", "returns_int", "alive")
            )
            policy, value_ext, value_int = agent(obs)
            live = alive.float()
            ratio = (policy.log_prob(actions) - old_logprobs).exp()
            clipped = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
            pg_loss = -(torch.min(ratio * adv, clipped * adv) * live).sum() / live.sum()
            entropy = (policy.entropy() * live).sum() / live.sum()
            v_loss = ((value_ext - returns_ext) ** 2 * live).sum() / live.sum()
            if args.bonus != "none":  # dead rows lead on to the next episode: the intrinsic value must know
                v_loss = v_loss + ((value_int - returns_int) ** 2).mean()
            loss = pg_loss - args.ent_coef * entropy + args.vf_coef * v_loss
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
            optimizer.step()
    return entropy.item()


def train(args: Args) -> dict:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    envs, has_bonus = make_envs(args), args.bonus != "none"
    agent = Agent(envs, args.hidden)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5, fused=True)

    shape = (args.num_steps, args.num_envs)
    obs = torch.zeros(shape + envs.single_observation_space.shape)
    actions = torch.zeros(shape, dtype=torch.long)
    logprobs, rewards_ext, rewards_int, values_ext, values_int = (torch.zeros(shape) for _ in range(5))
    terminations, dones, dead = (torch.zeros(shape, dtype=torch.bool) for _ in range(3))
    never, mean_int = torch.zeros(shape, dtype=torch.bool), None

    log = Log(args)
    first_obs, info = envs.reset(seed=args.seed)
    log.visit(info)
    next_obs, next_dead = torch.tensor(first_obs), torch.zeros(args.num_envs, dtype=torch.bool)
    batch_size = args.num_envs * args.num_steps
    num_updates = args.total_timesteps // batch_size

    for update in range(1, num_updates + 1):
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
            log.step((update - 1) * batch_size + (t + 1) * args.num_envs, info)

        with torch.no_grad():
            _, next_ext, next_int = agent(next_obs)
        now = rewards_int.mean()
        mean_int = now if not mean_int else mean_int + 0.05 * (now - mean_int)
        unit = mean_int / (1 - args.int_gamma) if mean_int else torch.ones(())
        adv_ext = advantages(
            rewards_ext, values_ext, next_ext, terminations, dones, args.gamma, args.gae_lambda
        )
        adv_int = advantages(
            rewards_int / unit, values_int, next_int, never, never, args.int_gamma, args.gae_lambda
        )
        alive = ~dead.flatten()
        adv = (args.ext_coef * adv_ext + args.int_coef * unit * adv_int * has_bonus).flatten()
        batch = {
            "obs": obs.flatten(0, 1),
            "actions": actions.flatten(),
            "logprobs": logprobs.flatten(),
            "adv": (adv - adv[alive].mean()) / (adv[alive].std() + 1e-8),
            "returns_ext": (adv_ext + values_ext).flatten(),
            "returns_int": (adv_int + values_int).flatten(),
            "alive": alive,
        }
        entropy = learn(agent, optimizer, batch, args)
        if update % 10 == 0 or update == num_updates:
            metrics = envs.bonus.metrics() if has_bonus else {}  # bonus: anything it knows about itself
            log.row(update * batch_size, intrinsic=float(now), entropy=entropy, **metrics)
    envs.close()
    return log.finish(args)


if __name__ == "__main__":
    train(tyro.cli(Args))
