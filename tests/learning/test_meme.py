"""MEME learns four small worlds, and misses each without the one part that world needs."""

import pytest
import torch

from experiments import runs
from experiments.agent.meme_learning import TASKS, last_fifth

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True)
def _one_thread():
    num = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(num)


@pytest.fixture(scope="module")
def final(tmp_path_factory):
    """Mean return over the last fifth of a run; each is made once."""
    known = {}

    def get(world, variant, seed):
        key = (world, variant, seed)
        if key not in known:
            task, folder = TASKS[world][variant], tmp_path_factory.mktemp("run")
            known[key] = last_fifth(runs.train_here(task.config_of(seed), folder, task))
        return known[key]

    return get


@pytest.mark.parametrize("seed", [0, 1])
def test_a_cue_is_remembered_and_without_state_it_is_chance(final, seed):
    assert final("cue memory", "MEME", seed) > 0.95
    assert final("cue memory", "state zeroed", seed) < 0.4  # four cues: 0.25 is the best there is


@pytest.mark.parametrize("seed", [0, 1])
def test_the_far_end_of_a_chain_needs_the_ladder_of_discounts(final, seed):
    assert final("chain", "MEME", seed) > 0.95
    assert final("chain", "one short discount", seed) < 0.35


@pytest.mark.parametrize("seed", [0, 1])
def test_two_worlds_need_the_meta_controller(final, seed):
    with_bandits = final("two worlds", "MEME", seed)
    assert with_bandits > final("two worlds", "only the far-sighted arm", seed) + 0.08
    assert with_bandits > final("two worlds", "only the short-sighted arm", seed) + 0.2


@pytest.mark.parametrize("seed", [0, 1])
def test_catch_is_played_almost_perfectly_and_not_without_distillation(final, seed):
    assert final("catch", "MEME", seed) > 0.95
    assert final("catch", "no distillation", seed) < 0.2
