import numpy as np
import pytest

from softcount import store
from softcount.envs.disco_maze import DiscoMaze, DiscoMazeConfig
from softcount.measure.coverage import Coverage, draw_heat_map, heat_map


def test_counts_firsts_and_fractions_match_a_plain_dictionary():
    places = np.random.default_rng(0).integers(-1, 40, size=(50, 8))
    coverage, visits, firsts, time = Coverage(num_places=40), {}, {}, 0
    for row in places:
        coverage.update_places(row)
        for place in row.tolist():
            time += 1
            if place >= 0:
                visits[place] = visits.get(place, 0) + 1
                firsts.setdefault(place, time)
    assert coverage.steps == 400
    assert {place: int(n) for place, n in enumerate(coverage.visits) if n} == visits
    assert {place: int(coverage.first_seen[place]) for place in firsts} == firsts
    assert coverage.fraction == len(visits) / 40
    steps, known = coverage.curve()
    assert steps.tolist() == sorted(firsts.values())
    assert known.tolist() == list(range(1, len(firsts) + 1))


def test_unknown_numbers_of_places_grow_and_known_ones_are_enforced():
    coverage = Coverage()
    coverage.update_places(np.array([3]))
    coverage.update_places(np.array([100_000, 3]))
    assert coverage.num_visited == 2
    assert coverage.visits[3] == 2
    assert coverage.fraction is None
    with pytest.raises(ValueError, match="place 9 was reported; expected less than 9"):
        Coverage(num_places=9).update_places(np.array([9]))


@pytest.mark.parametrize("num_places", [None, 20])
def test_a_restored_count_goes_on(num_places, tmp_path):
    first, second = Coverage(num_places), Coverage(num_places)
    first.update_places(np.array([4, 4, 7]))
    store.save(tmp_path / "coverage", first.state_dict(), kind="coverage")
    second.load_state_dict(store.load(tmp_path / "coverage", kind="coverage"))
    for coverage in (first, second):
        coverage.update_places(np.array([7, 12]))
    assert first.steps == second.steps == 5
    assert first.curve()[0].tolist() == second.curve()[0].tolist() == [1, 3, 5]
    assert first.visits[[4, 7, 12]].tolist() == second.visits[[4, 7, 12]].tolist() == [2, 2, 1]


def test_an_empty_count_can_be_saved_and_loaded():
    coverage = Coverage()
    coverage.load_state_dict(Coverage().state_dict())
    assert coverage.num_visited == 0
    with pytest.raises(ValueError, match="None places; expected 3"):
        Coverage(3).load_state_dict(Coverage().state_dict())


def test_the_heat_map_of_a_walk_in_the_maze_has_its_counts_where_the_agent_was(tmp_path):
    env = DiscoMaze(DiscoMazeConfig(size=11, lethal=False), num_envs=3)
    coverage, expected = Coverage(env.num_places), np.zeros((11, 11))
    step = env.reset()
    for action in np.random.default_rng(0).integers(4, size=(100, 3)):
        coverage.update(step)
        for row, column in env.positions:
            expected[row, column] += 1
        step = env.step(action)
    image = heat_map(coverage, env)
    assert np.array_equal(np.nan_to_num(image), expected)
    assert coverage.fraction == (expected > 0).sum() / 49
    draw_heat_map(tmp_path / "map.png", coverage, env, title="maze", background=env.distances >= 0)
    assert (tmp_path / "map.png").stat().st_size > 1000


def test_an_environment_without_places_cannot_be_measured():
    env = DiscoMaze(DiscoMazeConfig(size=7))
    with pytest.raises(ValueError, match="reports no places"):
        Coverage().update(env.reset()._replace(place=None))
