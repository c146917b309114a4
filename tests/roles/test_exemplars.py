"""Atoms that follow the representation: which observation founded which atom, and where it is put."""

from dataclasses import replace

import numpy as np
import pytest
from launch.test_local import TINY

from softcount.bonuses.normalise import NormaliserConfig
from softcount.bonuses.place_count import PlaceCount
from softcount.bonuses.recode import Recode, RecodeBonusConfig
from softcount.launch.run import make_loop
from softcount.memory import RecodeConfig
from softcount.roles import memory_server
from softcount.roles.exemplars import Exemplars
from softcount.roles.memory_server import MemoryServer
from softcount.types import Features


def server_of(treatment="paid", **fields):
    config = RecodeConfig(**{"size": 8, "dim": 2, "warmup_atoms": 1, "insertion_probability": 1.0} | fields)
    bonus = Recode(RecodeBonusConfig(memory=config, normaliser=NormaliserConfig(kind="none")), seed=0)
    return MemoryServer(bonus, treatment, keeps_exemplars=True)


def embed(observation, scale=1.0):
    """A representation that only scales, as observations of two numbers allow."""
    return Features(embedding=(scale * observation["xy"]).astype(np.float32))


def show(server, xy, is_terminal=None):
    observation = {"xy": np.array(xy, float)}
    num = len(observation["xy"])
    no = np.zeros(num, bool)
    is_terminal = no if is_terminal is None else np.array(is_terminal)
    server(embed(observation), np.arange(num), no, is_terminal, None, observation)


FAR_APART = [[0, 0], [100, 0], [0, 300], [-700, 50]]


def test_every_atom_goes_where_the_observation_that_founded_it_is_seen_now():
    server = server_of()
    show(server, FAR_APART)
    show(server, [[0, 0.5]])  # near: moves the first atom, founds nothing
    assert 0 < server.bonus.memory.atoms[0, 1] < 0.5
    before = server.bonus.memory.state_dict()
    server.reembed(lambda observation: embed(observation, scale=-2.0))
    np.testing.assert_array_equal(server.bonus.memory.atoms, -2.0 * np.array(FAR_APART))
    after = server.bonus.memory.state_dict()
    for name in before.keys() - {"atoms"}:
        np.testing.assert_array_equal(after[name], before[name], err_msg=name)


def test_an_atom_that_replaces_another_brings_its_own_observation():
    server = server_of(size=4)
    show(server, FAR_APART)
    before = server.bonus.memory.atoms
    show(server, [[5000, 5000]])
    (slot,) = np.flatnonzero((server.bonus.memory.atoms != before).any(axis=1))
    server.reembed(lambda observation: embed(observation, scale=3.0))
    expected = 3.0 * np.array(FAR_APART, float)
    expected[slot] = [15000, 15000]
    np.testing.assert_array_equal(server.bonus.memory.atoms, expected)


def test_observations_that_the_memory_does_not_see_found_nothing():
    server = server_of("skipped")
    show(server, FAR_APART, is_terminal=[False, True, False, False])
    server.reembed(lambda observation: embed(observation, scale=2.0))
    np.testing.assert_array_equal(server.bonus.memory.atoms, 2.0 * np.array(FAR_APART)[[0, 2, 3]])


def test_many_atoms_are_embedded_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(memory_server, "AT_ONCE", 3)
    server, sizes = server_of(), []
    show(server, FAR_APART)
    server.reembed(lambda observation: sizes.append(len(observation["xy"])) or embed(observation, scale=4.0))
    assert sizes == [3, 1]
    np.testing.assert_array_equal(server.bonus.memory.atoms, 4.0 * np.array(FAR_APART))


def test_a_restored_server_moves_its_atoms_to_the_same_places():
    server, twin = server_of(), server_of()
    show(server, FAR_APART)
    twin.load_state_dict(server.state_dict())
    for one in (server, twin):
        show(one, [[9, 9000], [1, 1]])
        one.reembed(lambda observation: embed(observation, scale=0.5))
    np.testing.assert_array_equal(server.bonus.memory.atoms, twin.bonus.memory.atoms)
    empty = server_of()
    twin.load_state_dict(empty.state_dict())
    assert len(twin.bonus.memory) == 0
    twin.reembed(embed)  # nothing to move


def test_other_bonuses_have_no_exemplars_and_say_nothing():
    server = MemoryServer(PlaceCount(), keeps_exemplars=True)
    assert server.exemplars is None
    server.reembed(embed)


def test_nothing_can_be_taken_before_something_was_kept():
    with pytest.raises(ValueError, match="no observation was kept"):
        Exemplars(size=3).take(0, 1)


def test_the_loop_moves_atoms_after_every_so_many_updates():
    loop = make_loop(replace(TINY, reembed_every=5, overlap=False))
    memory, moved = loop.roles.memory, []
    reembed = memory.reembed
    memory.reembed = lambda embed: (reembed(embed), moved.append(loop.num_updates))
    for _ in range(80):
        loop.step()
    assert loop.num_updates > 20
    assert moved == list(range(5, loop.num_updates + 1, 5))
    reembed(loop.roles.inference.embed)
    kept = memory.exemplars.take(0, len(memory.bonus.memory))
    np.testing.assert_array_equal(memory.bonus.memory.atoms, loop.roles.inference.embed(kept).embedding)
    assert make_loop(replace(TINY, reembed_every=0)).roles.memory.exemplars is None
