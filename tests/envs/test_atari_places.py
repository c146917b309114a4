"""Places of the games, against what the emulator does when one moves."""

import itertools

import numpy as np
import pytest

from softcount.envs.atari import Atari, AtariConfig
from softcount.envs.atari_places import PLACES, GravitarPlaces, QbertPlaces, SolarisPlaces
from softcount.envs.families import EIGHT_GAMES

NOOP, FIRE, UP, RIGHT, LEFT, DOWN = range(6)
SHIP = (101, 183, 217)


FEWEST = {"pitfall": 1, "solaris": 1}
"""Places that 200 steps of chance show in games whose places are whole rooms; 4 in all others."""


def start(game):
    env = Atari(AtariConfig(game=game, max_noops=0))
    return env, env.reset(seed=0)[1]


def test_all_eight_games_have_places_and_one_tells_deaths():
    assert set(PLACES) == set(EIGHT_GAMES)
    assert [game for game in PLACES if PLACES[game]().tells_deaths] == ["montezuma_revenge"]


@pytest.mark.parametrize("game", sorted(PLACES))
def test_places_lie_on_the_map_and_change_as_one_plays(game):
    env, info = start(game)
    rng = np.random.default_rng(0)
    seen = {info["place"]}
    for action in np.repeat(rng.integers(18, size=40), 5).tolist():
        _, _, is_over, _, info = env.step(action)
        seen.add(info["place"])
        if is_over:
            env.reset()
    seen.discard(-1)
    assert len(seen) >= FEWEST.get(game, 4)
    rows, columns = env.map_shape
    cells = {env.cell_of(place) for place in seen}
    assert len(cells) == len(seen)
    assert all(0 <= row < rows and 0 <= column < columns for row, column in cells)


@pytest.mark.parametrize(("game", "num_before", "num"), [("hero", 60, 8), ("private_eye", 40, 8)])
def test_who_goes_right_is_further_right_on_the_map(game, num_before, num):
    env, _ = start(game)
    for _ in range(num_before):
        before = env.step(NOOP)[4]["place"]
    for _ in range(num):
        after = env.step(RIGHT)[4]["place"]
    (row, column), (later_row, later_column) = env.cell_of(before), env.cell_of(after)
    assert later_column > column
    assert later_row >= row  # and whoever hangs in the air falls


def test_venture_starts_outside_its_rooms_and_y_counts_downwards():
    env, _ = start("venture")
    for _ in range(60):
        before = env.step(NOOP)[4]["place"]
    assert before // (env.places.rows * env.places.columns) == 8
    for _ in range(12):
        after = env.step(2)[4]["place"]
    assert env.cell_of(after)[0] < env.cell_of(before)[0]


def test_qbert_jumps_from_cube_to_cube():
    env, _ = start("qbert")
    visited = []
    for action in [NOOP] * 60 + [DOWN] * 14 + [NOOP] * 10 + [RIGHT] * 14 + [NOOP] * 10:
        place = env.step(action)[4]["place"]
        if place >= 0 and (not visited or visited[-1] != place):
            visited.append(place)
    assert visited[0] == 0
    assert len(visited) >= 3
    cells = [env.cell_of(place) for place in visited]
    for (row, column), (next_row, next_column) in itertools.pairwise(cells):
        assert abs(next_row - row) == abs(next_column - column) == 1  # jumps are diagonal
    assert len({QbertPlaces().cell_of(place) for place in range(21)}) == 21


def test_gravitars_cell_is_where_the_ship_is_on_the_screen():
    env = Atari(AtariConfig(game="gravitar", max_noops=0, max_pool=False, colour=True))
    env.reset(seed=0)
    rng, looked_at, screens = np.random.default_rng(1), 0, set()
    for action in np.repeat(rng.integers(18, size=120), 4).tolist():
        picture, _, is_over, _, info = env.step(action)
        if is_over:
            env.reset()
            continue
        ship = np.argwhere((picture == SHIP).all(-1))
        ship = ship[ship[:, 0] >= 25]  # below the score
        if not 5 <= len(ship) <= 16 or ship.std(0).max() > 3:
            continue  # there are fragments, or fuel of the same colour
        y, x = ship.mean(0)
        screen, cell = divmod(info["place"], 400)
        assert abs(8 * (cell % 20) + 4 - (x - 4)) <= 7  # half a cell, and the ship's own width
        assert abs(8 * (cell // 20) + 4 - (y - 32)) <= 8
        looked_at += 1
        screens.add(screen)
    assert looked_at > 100
    assert len(screens) > 1


@pytest.mark.parametrize(
    ("kind", "planet", "screen"),
    [(2, 0, 0), (2, 128, 0), (5, 0, 1), (4, 128, 2), (3, 0, 3), (3, 3, 6), (3, 4, 7)],
)
def test_gravitars_screens_are_told_apart(kind, planet, screen):
    places = GravitarPlaces()
    place = places.place({1: kind, 2: planet, 30: 17, 32: 41})
    assert divmod(place, 400) == (screen, 5 * 20 + 2)
    assert places.cell_of(place) == (screen // 4 * 20 + 5, screen % 4 * 20 + 2)


def test_gravitar_without_a_flight_is_no_place():
    assert GravitarPlaces().place({1: 0, 2: 0, 30: 17, 32: 41}) == -1


def test_solaris_sectors_are_those_of_its_scanner():
    """The first four were read off the scanner's picture, where a cross marks the ship; the rest follow."""
    places = SolarisPlaces()
    shown = {21: (4, 2), 22: (4, 1), 16: (5, 1), 28: (3, 1), 20: (4, 3), 0: (7, 5), 47: (0, 0)}
    assert {byte: places.cell_of(places.place({8: byte})) for byte in shown} == shown
    assert places.place({8: 48}) == -1
    assert start("solaris")[1]["place"] == places.place({8: 21})
