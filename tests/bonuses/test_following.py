"""Atoms that follow the representation: which observation founded which atom, and where it is put."""

import numpy as np
import pytest
from launch.test_local import TINY

from softcount.bonuses.following import Exemplars, Following
from softcount.bonuses.normalise import NormaliserConfig
from softcount.bonuses.place_count import PlaceCount
from softcount.bonuses.recode import Recode, RecodeBonusConfig
from softcount.config import with_fields
from softcount.launch import learning
from softcount.memory import RecodeConfig
from softcount.roles.memory_server import MemoryServer
from softcount.runs.run import make_loop
from softcount.types import Features


def server_of(treatment="paid", **fields):
    config = RecodeConfig(**{"size": 8, "dim": 2, "warmup_atoms": 1, "insertion_probability": 1.0} | fields)
    bonus = Recode(RecodeBonusConfig(memory=config, normaliser=NormaliserConfig(kind="none")), seed=0)
    return MemoryServer(Following(bonus), treatment)


def embed(observation, scale=1.0):
    """A representation that only scales, as observations of two numbers allow."""
    return Features(embedding=(scale * observation["xy"]).astype(np.float32))


def memory_of(server):
    return server.bonus.bonus.memory


def follow(server, scale):
    """Lets all atoms follow a representation that scales by something else now."""
    num = server.num_founded()
    if num:
        server.move_atoms(embed(server.founding_observations(0, num), scale))


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
    show(server, [[0, 0.5], [40, 9000]])  # near: moves the first atom, founds nothing; far: founds one
    assert 0 < memory_of(server).atoms[0, 1] < 0.5
    before = memory_of(server).state_dict()
    follow(server, -2.0)
    np.testing.assert_array_equal(memory_of(server).atoms, -2.0 * np.array([*FAR_APART, [40, 9000]]))
    after = memory_of(server).state_dict()
    for name in before.keys() - {"atoms"}:
        np.testing.assert_array_equal(after[name], before[name], err_msg=name)


def test_an_atom_that_replaces_another_brings_its_own_observation():
    server = server_of(size=4)
    show(server, FAR_APART)
    before = memory_of(server).atoms
    show(server, [[5000, 5000]])
    (slot,) = np.flatnonzero((memory_of(server).atoms != before).any(axis=1))
    follow(server, 3.0)
    expected = 3.0 * np.array(FAR_APART, float)
    expected[slot] = [15000, 15000]
    np.testing.assert_array_equal(memory_of(server).atoms, expected)


def test_observations_that_the_memory_does_not_see_found_nothing():
    server = server_of("skipped")
    show(server, FAR_APART, is_terminal=[False, True, False, False])
    follow(server, 2.0)
    np.testing.assert_array_equal(memory_of(server).atoms, 2.0 * np.array(FAR_APART)[[0, 2, 3]])


def test_a_restored_server_moves_its_atoms_to_the_same_places():
    server, twin = server_of(), server_of()
    show(server, FAR_APART)
    twin.load_state_dict(server.state_dict())
    for one in (server, twin):
        show(one, [[9, 9000], [1, 1]])
        follow(one, 0.5)
    np.testing.assert_array_equal(memory_of(server).atoms, memory_of(twin).atoms)
    empty = server_of()
    twin.load_state_dict(empty.state_dict())
    assert len(memory_of(twin)) == 0
    assert twin.num_founded() == 0  # nothing to move


def test_other_bonuses_keep_nothing():
    server = MemoryServer(PlaceCount())
    assert server.num_founded() == 0
    with pytest.raises(TypeError, match="PlaceCount keeps no observations"):
        server.founding_observations(0, 1)


def test_nothing_can_be_taken_before_something_was_kept():
    with pytest.raises(ValueError, match="no observation was kept"):
        Exemplars(size=3).take(0, 1)


def test_the_loop_moves_atoms_after_every_so_many_updates_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(learning, "AT_ONCE", 7)
    loop = make_loop(with_fields(TINY, {"recode.reembed_every": 5, "overlap": False}))
    server, moved, sizes = loop.roles.memory, [], []
    move, take = server.move_atoms, server.founding_observations
    server.move_atoms = lambda features: (move(features), moved.append(loop.num_updates))
    server.founding_observations = lambda start, stop: sizes.append(stop - start) or take(start, stop)
    while loop.num_updates < 21:
        loop.step()
    assert moved == list(range(5, loop.num_updates + 1, 5))
    assert max(sizes) == 7
    loop._move_atoms()
    kept = take(0, server.num_founded())
    embedded = loop.roles.inference.embed(kept).embedding
    np.testing.assert_allclose(memory_of(server).atoms, embedded, rtol=1e-4, atol=1e-5)
    assert not make_loop(with_fields(TINY, {"recode.reembed_every": 0})).roles.memory.bonus.wants_observations
