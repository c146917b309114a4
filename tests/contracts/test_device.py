"""`device` reaches everything that computes: on a device that is not there, runs give the CPU's own bits.

`fakes.elsewhere` refuses what an accelerator refuses, so that one tensor made in the wrong place fails here.
"""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from fakes.elsewhere import DEVICE, WrongDevice, device_elsewhere
from integrations.test_reward import NAMES as DROP_IN_NAMES
from integrations.test_reward import Loop, make
from launch.test_local import TINY, assert_same, everything

from softcount.config import with_fields
from softcount.presets import suited
from softcount.runs.run import make_loop
from softcount.torsos import NfNetConfig, encode, make_torso
from softcount.types import ArraySpec

NAMES = ["MEME-RECODE-AP", "MEME-RECODE-CASM", "MEME-RND", "MEME-RNDonAP", "MEME-BYOL-Explore", "MEME"]


def tensors_in(thing, path="", seen=None):
    """Every tensor that an object of this project or of torch holds, with the path to it."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, torch.Tensor):
        yield path, thing
        parts = {".grad": thing.grad} if thing.is_leaf else {}
    elif isinstance(thing, dict):
        parts = {f"[{key}]": part for key, part in thing.items()}
    elif isinstance(thing, list | tuple | set):
        parts = {f"[{i}]": part for i, part in enumerate(thing)}
    elif type(thing).__module__.startswith(("softcount", "torch.optim", "torch.nn")):
        parts = {f".{name}": part for name, part in getattr(thing, "__dict__", {}).items()}
    else:
        return
    for name, part in parts.items():
        yield from tensors_in(part, path + name, seen)


def assert_all_there(thing, least):
    found = dict(tensors_in(thing))
    assert len(found) >= least
    assert [path for path, tensor in found.items() if tensor.device.type != DEVICE] == []


def test_what_an_accelerator_refuses_is_refused():
    with device_elsewhere():
        there = torch.ones(2, device=DEVICE)
        assert (there + 1).device.type == (there * torch.tensor(2.0)).device.type == DEVICE
        assert (there + there).cpu().numpy().tolist() == [2.0, 2.0]
        for meet in (
            lambda: there + torch.ones(2),
            lambda: torch.where(torch.ones(2, dtype=torch.bool), there, there),
            lambda: torch.nn.Linear(2, 2)(there),
            lambda: there[torch.tensor([0])],
            lambda: torch.cat([there, torch.ones(1)]),
        ):
            with pytest.raises(WrongDevice):
                meet()
        with pytest.raises(RuntimeError, match="numpy"):
            there.numpy()


@pytest.mark.parametrize("name", NAMES)
def test_a_run_computes_on_its_device_and_gives_the_same_bits(name):
    is_recode = name == "MEME-RECODE-AP"
    changes = {"meme.relabel": True, "recode.reembed_every": 3} if is_recode else {}
    config = with_fields(replace(suited(TINY, name), overlap=False), changes)
    here = make_loop(config)
    with device_elsewhere():
        there = make_loop(replace(config, device=DEVICE))
        for _ in range(18):
            here.step()
            there.step()
        assert there.num_updates > 3
        assert_same(everything(here), everything(there))
        for part in (there.roles.inference, there.roles.learner):
            assert_all_there(part, least=20)
        replies = [loop.roles.inference.evaluate(loop.roles.actor.request()) for loop in (here, there)]
        assert_same(*({"policy": reply.policy, "state": reply.state} for reply in replies))


def test_a_run_is_continued_on_its_device():
    config = replace(TINY, overlap=False)
    loop = make_loop(config)
    for _ in range(14):
        loop.step()
    state, segments = loop.state_dict(), {name: make() for name, make in loop.segments().items()}
    with device_elsewhere():
        there = make_loop(replace(config, device=DEVICE))
        there.load_state_dict(state, segments)
        for _ in range(4):
            loop.step()
            there.step()
        assert there.num_updates > 3
        assert_same(everything(loop), everything(there))
        assert_all_there(there.roles.learner, least=20)


@pytest.mark.parametrize("act_on", ["values", "split"])
def test_whatever_is_acted_on(act_on):
    config = with_fields(replace(TINY, overlap=False), {"meme.act_on": act_on})
    here = make_loop(config)
    with device_elsewhere():
        there = make_loop(replace(config, device=DEVICE))
        while here.num_updates < 2:
            here.step()
            there.step()
        assert_same(here.roles.learner.state_dict(), there.roles.learner.state_dict())


@pytest.mark.parametrize(
    "torso", ["grid", "dqn", NfNetConfig(blocks=(1, 1), channels=(8, 8), strides=(1, 2), drop_rate=0.9)]
)
def test_torsos_learn_on_a_device_as_on_the_cpu(torso):
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 255, (2, 3, 40, 40, 3), np.uint8))
    module = make_torso(torso, ArraySpec((40, 40, 3), "uint8")).train()
    with device_elsewhere():
        twin = copy.deepcopy(module).to(DEVICE)
        found = []
        for one, seen in ((module, images), (twin, images.to(DEVICE))):
            encode(one, seen, torch.Generator().manual_seed(3)).square().sum().backward()
            found.append([p.grad.cpu().numpy() for p in one.parameters()])
        for here, there in zip(*found, strict=True):
            np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("name", DROP_IN_NAMES)
def test_a_drop_in_bonus_computes_on_its_device_and_gives_the_same_bits(name, tmp_path):
    here, one = make(name), Loop()
    with device_elsewhere():
        there, other = make(name, device=DEVICE), Loop()
        for step in range(13):
            np.testing.assert_array_equal(one.step(here), other.step(there), err_msg=str(step))
        assert_same(here.state_dict(), there.state_dict())
        assert here.metrics() == there.metrics()
        if here.bonus.paid_in == "acting":
            np.testing.assert_array_equal(here.score(one.obs), there.score(other.obs))
        there.save(tmp_path / "bonus")
        again = make(name, device=DEVICE)
        again.load(tmp_path / "bonus")
        for _ in range(3):
            np.testing.assert_array_equal(one.step(here), other.step(again))
        assert_all_there([again.trainer, again._acting, again._state], least=4)
