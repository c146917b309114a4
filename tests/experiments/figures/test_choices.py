"""One change at a time, and only that."""

from dataclasses import replace

import pytest

from softcount.config import changes
from softcount.experiments.figures.choices import BASE, CHANGES, config_of, plot
from softcount.presets import LAPTOP


@pytest.mark.parametrize("name", [name for name in CHANGES if name != BASE])
def test_each_change_changes_what_it_says_and_leaves_the_rest(name):
    found = {change.split(":")[0].split(".")[0] for change in changes(config_of(BASE, 1), config_of(name, 1))}
    assert found == set(CHANGES[name][1])


def test_the_first_is_the_preset_with_atoms_that_stay_in_the_maze_of_the_seed():
    fields = {"reembed_every": 0, "seed": 2, "steps": 150_000, "evaluate_every": 0, "report_every": 20_000}
    options = {"size": 11, "layout": 12, "observation": "palette"}
    assert config_of(BASE, 2) == replace(LAPTOP, env_options=options, **fields)


def test_the_picture_sorts_changes_by_their_mean_coverage():
    def row(name, seed, seen):
        return {"name": name, "seed": seed, "first_seen": [*seen, 0], "num_places": 4, "steps": 100}

    rows = [
        row(BASE, 0, [1, 1, 1]),
        row("k-5", 0, [1, 0, 0]),
        row("k-5", 1, [50, 0, 0]),
        row("k-20", 0, [1, 1]),
    ]
    axes = plot(rows).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["k = 5", "k = 20", "nothing changed"]
    assert axes.lines[0].get_xdata() == pytest.approx([0.25 * 0.991, 0.25 * 0.501])
    assert axes.lines[-1].get_xdata() == pytest.approx([0.75 * 0.991] * 2)
