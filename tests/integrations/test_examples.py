"""The examples run, and `ppo_recode.py`'s two kinds of advantages are what its text says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def ppo():
    pytest.importorskip("tyro")
    return load("ppo_recode")


def by_definition(rewards, values, last, ends, cuts, gamma, lam):
    """GAE as the sum of discounted errors up to the first cut."""
    time = len(rewards)
    following = [*values[1:], last]
    deltas = [rewards[t] + gamma * following[t] * (not ends[t]) - values[t] for t in range(time)]
    result = []
    for t in range(time):
        total, factor = 0.0, 1.0
        for k in range(t, time):
            total += factor * deltas[k]
            if cuts[k]:
                break
            factor *= gamma * lam
        result.append(total)
    return result


def test_extrinsic_advantages_end_with_the_episode_and_intrinsic_ones_do_not(ppo):
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=20), rng.normal(size=20)
    ends, cuts = np.zeros(20, bool), np.zeros(20, bool)
    ends[[4, 12]], cuts[[4, 9, 12]] = True, True  # two ends for good, one time limit
    as_rows = lambda x, dtype=torch.float64: torch.tensor(x, dtype=dtype)[:, None]  # noqa: E731
    for e, c in ((ends, cuts), (ends & False, cuts & False)):
        inputs = as_rows(rewards), as_rows(values), torch.ones(1, dtype=torch.float64)
        flags = as_rows(e, torch.bool), as_rows(c, torch.bool)
        result = ppo.advantages(*inputs, *flags, 0.9, 0.8)
        expected = by_definition(rewards, values, 1.0, e, c, 0.9, 0.8)
        np.testing.assert_allclose(result[:, 0], expected, rtol=1e-9)


@pytest.mark.parametrize("bonus", ["none", "RECODE-AP"])
def test_ppo_recode_runs_and_writes_its_record(ppo, bonus, tmp_path):
    args = ppo.Args(
        bonus=bonus,
        maze_size=7,
        total_timesteps=1024,
        num_envs=8,
        num_steps=32,
        out=str(tmp_path / "run.json"),
    )
    record = ppo.train(args)
    assert (tmp_path / "run.json").exists()
    assert record["curve"][-1]["step"] == 1024
    assert record["curve"][-1]["places"] > 3
    again = ppo.train(args)
    assert [row["entropy"] for row in record["curve"]] == [row["entropy"] for row in again["curve"]]


def test_minigrid_observations_are_one_hot_and_know_their_place(ppo):
    pytest.importorskip("minigrid")
    env = ppo.make_env(ppo.Args(env_id="MiniGrid-MultiRoom-N2-S4-v0", layout_seed=3))
    obs, info = env.reset()
    assert obs.shape == (7 * 7 * 21,)
    assert obs.sum() == 7 * 7 * 3
    places = {info["place"]}
    for action in (2, 2, 0, 2, 2):
        obs, *_, info = env.step(action)
        places.add(info["place"])
    assert obs.sum() == 7 * 7 * 3
    assert len(places) > 1
    again, _ = env.reset()
    np.testing.assert_array_equal(again, env.reset()[0])  # one layout


def test_the_memory_runs_beside_jax_or_without_it():
    means = load("jax_memory").main()
    assert len(means) == 50
    assert all(np.isfinite(means))


def test_arrays_that_know_only_dlpack_are_taken():
    from softcount import RecodeConfig, RecodeMemory

    class OnlyDlpack:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    embeddings = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    one, two = (RecodeMemory(RecodeConfig(size=10, dim=3), seed=0) for _ in range(2))
    np.testing.assert_array_equal(one.observe(OnlyDlpack(embeddings)), two.observe(embeddings))
    torch.testing.assert_close(
        torch.from_dlpack(one.score(embeddings)), torch.from_numpy(two.score(embeddings))
    )


def test_intrinsic_values_are_learned_in_units_of_what_going_on_is_worth(ppo, monkeypatch):
    """Until a goal is found, a bonus a thousand times smaller is the same run."""
    from experiments.drop_in.counts import CountingVectorEnv

    def curve(factor):
        class Paid(CountingVectorEnv):
            def step(self, actions):
                *step, info = super().step(actions)
                return *step, {**info, "intrinsic_reward": np.float32(factor) * info["intrinsic_reward"]}

        monkeypatch.setattr(ppo, "IntrinsicRewardWrapper", lambda envs, name, **options: Paid(envs))
        args = ppo.Args(bonus="COUNT", maze_size=15, total_timesteps=2560, num_envs=8, num_steps=16)
        return [row["places"] for row in ppo.train(args)["curve"]]

    assert curve(2.0**-10) == curve(1.0)


def test_staggered_environments_do_not_restart_together(ppo):
    args = ppo.Args(maze_size=7, num_envs=4, stagger=40, bonus="none")
    envs = ppo.make_envs(args)
    envs.reset(seed=0)
    cuts = [np.flatnonzero(envs.step(np.zeros(4, int))[3]).tolist() for _ in range(35)]
    assert [(step, rows) for step, rows in enumerate(cuts, 1) if rows] == [(10, [1]), (20, [2]), (30, [3])]
