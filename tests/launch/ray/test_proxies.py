"""Lockstep on Ray: the same bits as one process, across a state that is taken and loaded."""

from dataclasses import replace

import numpy as np
import pytest
from launch.small_vmpo import MAZE
from launch.test_local import TINY, assert_same, everything

from softcount.config import RuntimeConfig
from softcount.launch.ray.proxies import Far, LockstepLoop
from softcount.presets import suited
from softcount.runs.run import make_loop

pytestmark = pytest.mark.ray
DETERMINISTIC = RuntimeConfig(kind="ray", mode="deterministic")
OTHERS = ["MEME-RECODE-CASM", "MEME-NGU-AP", "MEME-RND", "MEME-BYOL-Explore", "MEME-COUNT", "VMPO-RECODE-AP"]


def config_of(name):
    return MAZE if name.startswith("VMPO") else suited(TINY, name)


def check_equal(cluster, config, steps):
    """Steps both ways, takes the state across in the middle, and compares everything at the end."""
    near = make_loop(config)
    far = LockstepLoop(replace(config, runtime=DETERMINISTIC), cluster)
    for _ in range(steps):
        near.step()
        far.step()
    assert_same(everything(near), everything(far))
    state, segments = near.state_dict(), {name: make() for name, make in near.segments().items()}
    for _ in range(5):  # which are forgotten again
        far.step()
    far.load_state_dict(state, segments)
    for _ in range(steps):
        near.step()
        far.step()
    assert near.num_updates > 15
    assert_same(everything(near), everything(far))
    assert near.means.take() == far.means.take()
    assert near.roles.memory.metrics() == far.roles.memory.metrics()
    return far


def test_roles_in_processes_of_their_own_give_the_same_bits(cluster):
    far = check_equal(cluster, TINY, 30)
    with pytest.raises(AttributeError, match="_env of a role in another process cannot be read"):
        _ = far.roles.actor._env
    assert isinstance(far.roles.inference, Far)
    reply = far.roles.inference(far.roles.actor.request())
    assert not reply.policy.flags.writeable  # arrays that come from elsewhere cannot be written to
    with pytest.raises(ValueError, match="expected finite numbers") as raised:  # as it was raised there
        far.roles.replay.reprioritise(np.arange(1), np.array([np.nan]))
    assert type(raised.value) is ValueError
    far.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_so_do_those_of_every_other_agent(cluster, name):
    check_equal(cluster, config_of(name), 40).close()
