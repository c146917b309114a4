"""The examples run."""

import importlib.util
import itertools
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_counts_in_2d_draws_and_does_without_matplotlib(tmp_path, monkeypatch, capsys):
    example = load("counts_in_2d")
    example.MOMENTS = (300, 600, 1200)
    example.main(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 20_000
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    example.main(tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()
    assert 'pip install ".[plots]"' in capsys.readouterr().out


def test_the_walker_respects_walls_and_borders():
    example = load("counts_in_2d")
    path = example.walk(5000, seed=1)
    assert abs(path).max() <= 1.0
    assert not any(example.crosses_a_wall(here, there) for here, there in itertools.pairwise(path))


def test_a_film_of_the_solver_is_written_and_keys_become_actions(tmp_path):
    example = load("play_eight_rooms")
    config = example.EightRoomsConfig(task="wall_sensor", variant="tiny", actions="continuous")
    assert example.film(config, 0, tmp_path / "film.png") == 10.0
    assert (tmp_path / "film.png").stat().st_size > 5_000
    assert example.action_of({"w", "Left", "space", "x"})[0].tolist() == pytest.approx(
        [1, 0, -0.6, 0, 0, 0, 0, 0, 1]
    )
