"""Places of the games, against what the emulator does when one moves."""

import itertools

import numpy as np
import pytest

from softcount.envs.atari import Atari, AtariConfig
from softcount.envs.atari_places import PLACES, QbertPlaces
from softcount.envs.families import EIGHT_GAMES

NOOP, RIGHT, LEFT, DOWN = 0, 3, 4, 5


def start(game):
    env = Atari(AtariConfig(game=game, max_noops=0))
    return env, env.reset(seed=0)[1]


def test_six_of_the_eight_games_have_places_and_one_tells_deaths():
    assert set(PLACES) == set(EIGHT_GAMES) - {"gravitar", "solaris"}
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
    assert len(seen) >= (1 if game == "pitfall" else 4)
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
