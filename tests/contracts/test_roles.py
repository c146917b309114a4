"""Roles speak data only: behind a border that copies all through bytes, the loop gives the same bits."""

import pytest
from contracts.proxies import Far, far_away
from launch.test_local import TINY, assert_same, everything

from softcount.config import with_fields
from softcount.launch.build import build
from softcount.launch.local import LocalLoop
from softcount.presets import suited

NAMES = [
    "MEME-RECODE-AP",
    "MEME-RECODE-CASM",
    "MEME-NGU-AP",
    "MEME-RND",
    "MEME-COUNT",
    "MEME-BYOL-Explore",
    "MEME",
]


def loop_of(config, far):
    roles = build(config)
    return LocalLoop(
        far_away(roles) if far else roles,
        relabel=config.meme.relabel,
        overlap=False,
        reembed_every=config.recode.reembed_every,
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_loop_over_borders_gives_the_same_bits(name):
    is_recode = name == "MEME-RECODE-AP"
    config = with_fields(
        suited(TINY, name), {"meme.relabel": is_recode, "recode.reembed_every": 4 * is_recode}
    )
    near, far = loop_of(config, False), loop_of(config, True)
    for _ in range(45):
        near.step()
        far.step()
    assert near.num_updates > 8
    assert_same(everything(near), everything(far))
    assert near.means.take() == far.means.take()
    assert near.roles.memory.metrics() == far.roles.memory.metrics()


def test_a_state_crosses_the_border_too():
    near, far = loop_of(TINY, False), loop_of(TINY, True)
    for _ in range(30):
        near.step()
    state = near.state_dict()
    far.load_state_dict(state, {name: make() for name, make in near.segments().items()})
    for _ in range(15):
        near.step()
        far.step()
    assert_same(everything(near), everything(far))


def test_the_border_lets_nothing_but_calls_through():
    roles = build(TINY)
    with pytest.raises(AttributeError, match="env of a role far away cannot be read"):
        _ = Far(roles.actor).env
    request = Far(roles.actor).request()
    assert request.observation is not roles.actor.timestep.observation
