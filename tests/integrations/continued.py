"""The same run for each adapter, in one go or in two processes; also a script that does the second part.

Both ways draw new random numbers and begin new episodes at the middle, because the libraries
do not save their environments; everything that the bonus knows must come from its file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3 import PPO
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import DummyVecEnv
from torchrl.envs import GymWrapper, TransformedEnv

from softcount.bonuses import NormaliserConfig
from softcount.integrations import IntrinsicRewardConfig
from softcount.integrations.gymnasium import IntrinsicRewardWrapper
from softcount.integrations.rlexplore import RECODE
from softcount.integrations.sb3 import IntrinsicRewardCallback, IntrinsicVecEnv
from softcount.integrations.torchrl import IntrinsicRewardTransform
from softcount.memory import RecodeConfig

sys.path.insert(0, str(Path(__file__).parents[1]))
from integrations.worlds import Counter

CONFIG = IntrinsicRewardConfig(
    memory=RecodeConfig(size=60, neighbours=3, warmup_atoms=5),
    normaliser=NormaliserConfig(kind="none"),
    steps_per_update=16,
    first_update=32,
    batch_size=4,
    sequence_length=5,
    history_size=300,
)
STEPS = 42  # the middle lies inside episodes


def games(num=2):
    return [lambda i=i: Counter(i) for i in range(num)]


def gymnasium_run(folder: Path, part: str) -> np.ndarray:
    def drive(envs):
        envs.reset(seed=0)
        rng = np.random.default_rng(1)
        return np.stack([envs.step(rng.integers(0, 3, 2))[4]["intrinsic_reward"] for _ in range(STEPS)])

    def make():
        vector = SyncVectorEnv(games(), autoreset_mode=AutoresetMode.SAME_STEP)
        return IntrinsicRewardWrapper(vector, "RECODE-AP", config=CONFIG)

    envs = make()
    if part != "second":
        drive(envs)
        envs.save(folder / "gymnasium")
    if part == "first":
        return np.zeros(0)
    if part == "second":
        envs.load(folder / "gymnasium")
    else:
        envs.env = SyncVectorEnv(games(), autoreset_mode=AutoresetMode.SAME_STEP)
    return drive(envs)


def sb3_wrapper_run(folder: Path, part: str) -> np.ndarray:
    def drive(env):
        env.reset()
        return np.stack([env.step(np.full(2, t % 3))[1] for t in range(STEPS)])

    def wrap():
        return IntrinsicVecEnv(DummyVecEnv(games()), "RECODE-AP", config=CONFIG)

    if part == "second":
        return drive(
            IntrinsicVecEnv.load(folder / "wrapper", DummyVecEnv(games()), "RECODE-AP", config=CONFIG)
        )
    env = wrap()
    drive(env)
    env.save(folder / "wrapper")
    env.venv = DummyVecEnv(games())
    return np.zeros(0) if part == "first" else drive(env)


def sb3_callback_run(folder: Path, part: str) -> np.ndarray:
    """PPO itself goes on too: its parameters at the end depend on every bonus."""
    callback = IntrinsicRewardCallback("RECODE-AP", config=CONFIG)
    if part == "second":
        model = PPO.load(folder / "ppo", env=DummyVecEnv(games()), device="cpu")
        callback.load(folder / "callback")
    else:
        model = PPO(
            "MlpPolicy", DummyVecEnv(games()), n_steps=21, batch_size=21, n_epochs=2, seed=0, device="cpu"
        )
        model.learn(STEPS * 2, callback=callback)
        model.save(folder / "ppo")
        callback.save(folder / "callback")
        if part == "first":
            return np.zeros(0)
        model.set_env(DummyVecEnv(games()))
    set_random_seed(3)
    model.learn(STEPS * 2, callback=callback, reset_num_timesteps=False)
    parameters = np.concatenate([p.detach().numpy().ravel() for p in model.policy.parameters()])
    return np.concatenate((parameters, callback.bonus.history.num_rows, callback.bonus.bonus.memory.counts))


def torchrl_run(folder: Path, part: str) -> np.ndarray:
    def make():
        return TransformedEnv(GymWrapper(Counter()), IntrinsicRewardTransform("RECODE-AP", config=CONFIG))

    def drive(env):
        torch.manual_seed(5)
        return env.rollout(STEPS, break_when_any_done=False)["next", "intrinsic_reward"].numpy()

    env = make()
    if part == "second":
        env.transform.load(folder / "torchrl")
        return drive(env)
    drive(env)
    env.transform.save(folder / "torchrl")
    env.base_env._env.episode = -1
    return np.zeros(0) if part == "first" else drive(env)


def rlexplore_run(folder: Path, part: str) -> np.ndarray:
    from softcount import store

    envs = SyncVectorEnv(games(), autoreset_mode=AutoresetMode.NEXT_STEP)
    irs = RECODE(envs, config=CONFIG)

    def drive():
        rows, obs = [], SyncVectorEnv(games()).reset()[0]
        vector = SyncVectorEnv(games())
        obs, _ = vector.reset(seed=0)
        irs.reward.reset()
        for t in range(STEPS):
            action = np.full(2, t % 3)
            arrived, reward, terminated, truncated, _ = vector.step(action)
            rows.append((obs, action, reward, terminated, truncated, arrived))
            obs = arrived
        names = ("observations", "actions", "rewards", "terminateds", "truncateds", "next_observations")
        return irs.compute({name: np.stack(column) for name, column in zip(names, zip(*rows))})

    if part == "second":
        irs.load_state_dict(store.load(folder / "rlexplore", kind="test"))
        return drive()
    drive()
    store.save(folder / "rlexplore", irs.state_dict(), kind="test")
    return np.zeros(0) if part == "first" else drive()


RUNS = {
    "gymnasium": gymnasium_run,
    "sb3 wrapper": sb3_wrapper_run,
    "sb3 callback": sb3_callback_run,
    "torchrl": torchrl_run,
    "rlexplore": rlexplore_run,
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    np.savez(folder / "second.npz", **{name: run(folder, "second") for name, run in RUNS.items()})
