"""One change at a time, and only that."""

from dataclasses import replace

import pytest

from experiments.agent.choices import BASE, CHANGES, config_of, plot
from softcount.config_json import changes
from softcount.presets import LAPTOP

FIELDS = {
    "table-1": "representation.embedding.torso.palette_scale: 0.1 -> 1.0",
    "no-layer-norm": "representation.embedding.layer_norm: True -> False",
    "paper-rate": "trainer.optimiser.learning_rate: 0.002 -> 0.0006",
    "constant-rate": "trainer.schedule: saturating -> constant",
    "fast-copy": "trainer.acting: slow -> latest",
    "reembed": "recode.reembed_every: 0 -> 20",
    "reembed-near": "recode.memory.far_tolerance: 0.2 -> 0.05, recode.reembed_every: 0 -> 20",
    "reembed-eager": "recode.memory.insertion_probability: 0.05 -> 0.3, recode.reembed_every: 0 -> 20",
    "reembed-k-5": "recode.memory.neighbours: 10 -> 5, recode.reembed_every: 0 -> 20",
    "reembed-fast-copy": "recode.reembed_every: 0 -> 20, trainer.acting: slow -> latest",
    "reembed-ratio-8": "meme.replay.replay_ratio: 4.0 -> 8.0, recode.reembed_every: 0 -> 20",
    "warmup-paper": "recode.memory.warmup_atoms: 400 -> 200",
    "k-20": "recode.memory.neighbours: 10 -> 20",
    "k-5": "recode.memory.neighbours: 10 -> 5",
    "paper-constants": "recode.memory.kernel_epsilon: 0.1 -> 0.0001, "
    "recode.memory.reward_constant: 1.0 -> 0.01, recode.normaliser.kind: none -> reward_std",
    "normalised": "recode.normaliser.kind: none -> reward_std",
    "paper-discounts": "meme.loss.discount_max: 0.99 -> 0.9997, meme.loss.discount_min: 0.85 -> 0.97",
    "no-relabel": "meme.relabel: True -> False",
    "paid-deaths": "terminal_observations: skipped -> paid",
    "paper-noise": "meme.epsilon_base: 0.06 -> 0.4, meme.epsilon_power: 0.64 -> 7.0",
    "flat-noise": "meme.epsilon_base: 0.06 -> 0.02, meme.epsilon_power: 0.64 -> 0.0",
    "uniform-replay": "meme.replay.newest: 8 -> 0, meme.replay.priority_exponent: 0.9 -> 0.0",
    "behaviour-priority": "meme.loss.priority_of: all -> behaviour",
    "ratio-1": "meme.replay.replay_ratio: 4.0 -> 1.0",
    "act-on-policy": "meme.act_on: split -> policy",
    "act-on-values": "meme.act_on: split -> values",
    "target-200": "meme.target_update_period: 25 -> 200",
}


@pytest.mark.parametrize("name", [name for name in CHANGES if name != BASE])
def test_each_change_changes_what_it_says_and_leaves_the_rest(name):
    assert ", ".join(changes(config_of(BASE, 1), config_of(name, 1))) == FIELDS[name]


def test_the_first_is_the_preset_with_atoms_that_stay_in_the_maze_of_the_seed():
    fields = {"seed": 2, "steps": 150_000, "evaluate_every": 0, "report_every": 20_000}
    options = {"size": 11, "layout": 12, "observation": "palette"}
    assert config_of(BASE, 2) == replace(
        LAPTOP, env_options=options, recode=replace(LAPTOP.recode, reembed_every=0), **fields
    )


def test_the_picture_compares_coverage_with_the_same_seed_and_shows_what_is_paid():
    def row(name, seed, seen, scores):
        snapshot = {"step": 40, "visits": [9, 3, 0, 0], "scores": scores}
        seen = {"first_seen": [*seen, 0], "num_places": 4, "steps": 100}
        return {"name": name, "seed": seed, "snapshots": [snapshot], **seen}

    good, bad = [0.1, 0.3, 0.8, 0.8], [0.4, 0.2, 0.15, 0.15]
    rows = [
        row(BASE, 0, [1, 1, 1], good),
        row(BASE, 1, [1, 1], good),
        row("k-5", 0, [1, 0, 0], bad),
        row("k-5", 1, [50, 0, 0], good),
        row("k-20", 1, [1, 1, 1], good),
        row("k-20", 2, [1, 1, 1], good),  # nothing to compare it with
    ]
    coverage, agreement, contrast = plot(rows).axes
    assert [label.get_text() for label in coverage.get_yticklabels()] == [
        "k = 5",
        "nothing changed",
        "k = 20",
    ]
    assert coverage.lines[0].get_xdata() == pytest.approx([(0.25 - 0.75) * 0.991, 0.25 * 0.501 - 0.5 * 0.991])
    assert coverage.lines[1].get_xdata() == pytest.approx([0, 0])
    assert coverage.lines[2].get_xdata() == pytest.approx([0.25 * 0.991])
    assert agreement.lines[0].get_xdata() == pytest.approx([-1, 1], abs=0.06)
    assert contrast.lines[0].get_xdata() == pytest.approx([0.5, 4.0])
