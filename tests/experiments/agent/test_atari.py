"""The runs on Atari: what is read from them, and how embeddings are judged on a recorded stream."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from experiments import runs
from experiments.agent import atari, atari_runs
from experiments.memory import atari_stream, atari_streams
from experiments.memory.atari_stream import Stream
from softcount.envs.atari import Atari, AtariConfig
from softcount.presets import LAPTOP, LAPTOP_ATARI
from softcount.representations import (
    ActionPrediction,
    CellPrediction,
    EmbeddingConfig,
    RepresentationConfig,
)
from softcount.representations.rnd import RndConfig
from softcount.torsos import DqnConfig

STREAM_KINDS = {
    "ap": ActionPrediction,
    "ap by cells": CellPrediction,
    "ap, fast bandwidth": ActionPrediction,
    "ap by cells, often": CellPrediction,
    "ap by cells, often, restless": CellPrediction,
}
TINY = DqnConfig(channels=(2,), kernels=(6,), strides=(6,), hidden_sizes=())


def row(name="RECODE-FRAME", seed=0):
    """A run that started in room 1, got the key, and left through the door to room 2."""
    reports = [
        {"step": 10, "points": {}, "frames": 55, "cpu_seconds": 40.0, "evaluation_return": None},
        {"step": 20, "points": {"100": 1}, "frames": 99, "cpu_seconds": 80.0, "evaluation_return": 1.5},
        {
            "step": 30,
            "points": {"100": 3, "300": 1},
            "frames": 150,
            "cpu_seconds": 130.0,
            "evaluation_return": None,
        },
    ]
    return {
        "name": name,
        "seed": seed,
        "steps": 30,
        "cpu_seconds": 130.0,
        "rows": reports,
        "places": [280, 281, 560, 561, 0],
        "first_seen": [1, 4, 25, 29, 27],
    }


def test_rooms_are_dated_by_their_first_place_and_keys_by_the_report():
    assert atari.first_steps(row()) == {1: 1, 2: 25, 0: 27}
    assert atari.keys_of(row()) == [0, 1, 3]
    header, _, line, stayed = atari.describe([row(), {**row("COUNT", 1), "places": [280], "first_seen": [1]}])
    assert line == "| RECODE-FRAME | 0 | 1, 2 (25), 0 (27) | 2 | 5 | 3 | 1.5 | 30 | 150 | 2 |"
    assert stayed == "| true counts | 1 | 1 | - | 1 | 3 | 1.5 | 30 | 150 | 2 |"
    assert header.count("|") == line.count("|")
    assert len(atari.plot([row(), row("COUNT", 1)]).axes) == 3
    names = [atari.label_of(row(name)) for name in ("COUNT", "RECODE-FRAME_long", "change_all_pay")]
    assert names == ["true counts", "RECODE-FRAME", "all pay"]


def test_the_map_shows_the_rooms_that_were_found():
    shown = {**row(), "visits": [5, 4, 3, 2, 1]}
    (axes, *_) = atari.plot_map([shown]).axes
    assert axes.get_xlim() == (3 * 20 - 0.5, 6 * 20 - 0.5)  # rooms 0, 1 and 2, side by side
    assert axes.get_ylim() == (13.5, -0.5)
    assert atari.describe_map([shown]) == ["RECODE-FRAME, seed 0: rooms 1, 2, 0 in this order"]
    stayed = {
        **row("COUNT", 1),
        "places": [*range(280, 300)],
        "first_seen": [*range(20)],
    }  # one room, more positions
    assert atari.describe_map([stayed, shown]) == atari.describe_map([shown])


def test_the_runs_have_the_preset_and_the_working_setting_comes_first():
    keys = [job.key for job in atari.jobs()]
    assert keys[:3] == [f"RECODE-FRAME__seed{seed}" for seed in range(3)]
    assert len(set(keys)) == len(keys) == 13
    config = atari.config_of("RECODE-FRAME", 2)
    assert config == replace(
        LAPTOP_ATARI, seed=2, steps=atari_runs.STEPS, recode=replace(LAPTOP_ATARI.recode, reembed_every=0)
    )
    (long,) = atari.long_jobs()
    assert (long.key, long.seed) == ("RECODE-FRAME_long__seed0", 0)
    assert atari.config_of("none", 0).agent == "MEME"


def test_a_run_is_followed_summarised_and_ends_with_its_time(tmp_path, capsys):
    options = {**LAPTOP_ATARI.env_options, "max_steps": 30}
    config = atari_runs.atari_config(
        "MEME-RECODE-FRAME", 1, env_options=options, num_envs=2, evaluation_episodes=1, evaluate_every=0
    )
    recode = replace(config.recode, memory=replace(config.recode.memory, size=50, warmup_atoms=20))
    config = replace(config, steps=60, report_every=20, recode=recode)
    summary = runs.train_here(config, tmp_path / "run", atari_runs.Game())
    assert [report["step"] // 20 for report in summary["rows"]] == [1, 2, 3]
    assert summary["rows"][-1]["frames"] > 4 * 60
    assert summary["steps"] in (60, 61)
    assert len(summary["places"]) == len(summary["first_seen"]) == summary["rows"][-1]["places"]
    assert 40 < sum(summary["visits"]) <= 61 + 10  # rows that start an episode are visits too
    assert capsys.readouterr().out.count(" places, points {") == 3
    over = partial(atari_runs.is_over, -1.0)
    one = runs.train_here(config, tmp_path / "short", atari_runs.Game(), over)
    assert len(one["rows"]) == 1  # its time was over at the first report


def small_stream(num_actions=3):
    """Two copies; actions 0 and 2 of the first moment show the same, all of the second do."""
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (40, 2, 12, 12), dtype=np.uint8)
    after = rng.integers(0, 256, (2, num_actions, 12, 12), dtype=np.uint8)
    after[0, 2] = after[0, 0]
    after[1, 1:] = after[1, 0]
    numbers = np.arange(80).reshape(40, 2)
    ends = numbers % 20 == 19
    return Stream(frames, numbers % num_actions, numbers % 20 == 0, ends, numbers % 5, frames[0], after)


def test_actions_that_show_the_same_are_one_class():
    stream = small_stream()
    first, second = stream.classes()
    assert first[0] == first[2] != first[1]
    assert len(set(second.tolist())) == 1
    assert stream.knowable() == pytest.approx((2 / 3 + 1 / 3) / 2)


def test_traces_are_those_of_the_stream_and_end_before_the_row():
    stream = small_stream()
    steps = stream.sample(30, np.random.default_rng(1), length=4, batch=6).steps
    for trace in range(6):
        column = steps.observation[:, trace, ..., 0]
        starts = [
            (t, copy)
            for t in range(30)
            for copy in range(2)
            if np.array_equal(stream.observation[t, copy], column[0])
        ]
        ((t, copy),) = starts
        assert t + 4 < 30
        assert np.array_equal(stream.observation[t : t + 5, copy], column)
        assert np.array_equal(stream.action[t : t + 5, copy], steps.action[:, trace])
        assert np.array_equal(stream.is_last[t : t + 5, copy], steps.is_last[:, trace])


class Names(torch.nn.Module):
    """Names the same action whatever it is shown."""

    def __init__(self, action):
        super().__init__()
        self.action = action

    def logits(self, before, after):
        assert before.shape == after.shape
        return torch.nn.functional.one_hot(torch.full((len(after),), self.action), 3).float()


@pytest.mark.parametrize(("action", "expected"), [(0, (2 + 3) / 6), (1, (1 + 3) / 6), (2, (2 + 3) / 6)])
def test_an_aliased_action_is_as_right_as_the_one_that_was_taken(action, expected):
    assert atari_streams.class_accuracy(Names(action), small_stream()) == pytest.approx(expected)


def test_identification_is_of_the_nearest_other():
    embedding = np.array([[0.0], [0.1], [1.0], [1.2], [0.55]], np.float32)
    places = np.array([7, 7, 8, 9, 8])
    assert atari_streams.identification(embedding, places) == pytest.approx(3 / 5)


def test_noise_is_the_spread_of_a_place_over_the_way_to_the_next():
    embedding = np.array([[0.0, 0.0], [2.0, 0.0], [5.0, 0.0], [5.0, 2.0], [9.0, 9.0]], np.float32)
    places = np.array([7, 7, 8, 8, 9])  # means (1, 0), (5, 1), (9, 9); the last has one frame and no spread
    assert atari_streams.noise(embedding, places) == pytest.approx(1 / np.sqrt(17))
    assert np.isnan(atari_streams.noise(embedding[:2], places[:2]))


def test_moved_is_the_way_over_the_spread():
    before = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 6.0]], np.float32)
    now = before + np.float32([[3.0, 4.0]])  # all by 5
    spread = np.linalg.norm(before - [4 / 3, 2.0], axis=1)
    assert atari_streams.moved(before, now) == pytest.approx(5 / np.median(spread))
    assert atari_streams.moved(before, before) == 0


def test_predicting_by_cells_is_the_presets_and_the_encoder_the_papers():
    frames = np.zeros((2, 2, 42, 40), np.uint8)
    stream = replace(small_stream(), observation=frames)
    kinds = {kind: atari_streams.Listener(kind, stream, LAPTOP_ATARI.recode, 0) for kind in STREAM_KINDS}
    assert {kind: type(listener.learning) for kind, listener in kinds.items()} == STREAM_KINDS
    trainers = {kind: listener.trainer.config for kind, listener in kinds.items()}
    assert trainers.pop("ap by cells") == trainers.pop("ap by cells, often") == LAPTOP_ATARI.trainer
    assert set(trainers.values()) == {LAPTOP.trainer}


@pytest.mark.parametrize("kind", ["frame", "ap by cells", "ap, fast bandwidth", "rnd", "ap by cells, often"])
def test_a_stream_is_heard_and_judged(monkeypatch, kind):
    preset = replace(
        LAPTOP_ATARI,
        recode=replace(
            LAPTOP_ATARI.recode, memory=replace(LAPTOP_ATARI.recode.memory, size=40, warmup_atoms=10)
        ),
        representation=RepresentationConfig(
            embedding=EmbeddingConfig(torso=TINY, dim=4),
            rnd=RndConfig(torso=TINY, outputs=4, hidden_sizes=(4,)),
        ),
    )
    monkeypatch.setattr(atari_streams, "LAPTOP_ATARI", preset)
    monkeypatch.setattr(atari_streams, "recorded", lambda num: small_stream(num))
    measured = atari_streams.measure(kind, 3)
    steps = [16, 32, 48, 64, 80]
    assert [moment["step"] for moment in measured["rows"]] == (steps[2:] if kind == "rnd" else steps)
    assert measured["num_places"] == 5
    last = measured["rows"][-1]
    assert ("class_accuracy" in last) == ("accuracy" in last) == kind.startswith("ap")
    assert ("identification" in last) == ("noise" in last) == ("moved" in last) == (kind != "rnd")
    assert kind == "rnd" or "moved" not in measured["rows"][0]
    times = {"frame": 0, "ap by cells, often": atari_streams.OFTEN}.get(kind, 1)
    assert last["updates"] == times * (40 - 17)
    described = [{**measured, "kind": kind, "num_actions": 3, "seed": 0}]
    assert len(atari_streams.describe(described)) == 2


def test_a_probe_leaves_the_game_where_it_was():
    env = Atari(AtariConfig(size=(42, 40), stack=2, actions=("NOOP", "LEFT", "RIGHT")))
    env.reset(seed=0)
    env.step(1)
    before = env.get_state()
    now, after = atari_stream.probe(env)
    assert np.array_equal(now, before["stack"][..., -1])
    for action in range(3):
        env.set_state(before)
        assert np.array_equal(env.step(action)[0][..., -1], after[action])
    env.set_state(before)
    assert env.num_frames == before["num_frames"]
    assert not np.array_equal(after[1], after[2])
