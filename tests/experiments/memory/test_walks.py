"""Counting on recorded walks: the streams, how a memory is judged, and the figures made of them."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.memory import (
    frozen,
    knobs_walks,
    reembedding,
    representation_walks,
    rnd_walks,
    true_counts,
    walk_streams,
)
from experiments.memory.walk_streams import Judgement, Stream, judge, replay, summarise
from softcount import RecodeConfig, RecodeMemory
from softcount.envs.disco_maze import AGENT
from softcount.measure.scored_places import rank_correlation


@pytest.fixture
def short(monkeypatch):
    """Walks of 24 steps of four copies."""
    lengths = {"EPISODES": (5, 9), "PHASE": 12, "MOMENT": 6, "LENGTH": 4, "HEAD_START": 6}
    for name, value in {"NUM_ENVS": 4, "TRACES": 3, "PRETRAINING": 2, "FIRST_UPDATES": 2, **lengths}.items():
        monkeypatch.setattr(walk_streams, name, value)
    walk_streams.record.cache_clear()
    walk_streams.make_stream.cache_clear()
    yield
    walk_streams.record.cache_clear()
    walk_streams.make_stream.cache_clear()


def stream_of(embedding_of_place, num_places=5, steps=60, seed=0):
    """A stream whose places are visited in proportion to 5, 4, 3, 2, 1, embedded by a function."""
    rng = np.random.default_rng(seed)
    p = np.arange(num_places, 0, -1)
    places = rng.choice(num_places, size=(steps, 8), p=p / p.sum())
    moments = np.arange(20, steps + 1, 20)
    noise = 0.01 * rng.standard_normal((steps, 8, 3))
    return Stream(
        embeddings=np.float32(embedding_of_place(places) + noise),
        places=places,
        moments=moments,
        views=np.float32(np.tile(embedding_of_place(np.arange(num_places)), (len(moments), 4, 1, 1))),
        surprises=None,
        accuracy=None,
        start=0,
    )


def line(places):
    return np.stack([10.0 * places, 0 * places, 0 * places], axis=-1)


CONFIG = RecodeConfig(
    size=30,
    dim=3,
    warmup_atoms=30,
    neighbours=3,
    kernel_epsilon=0.1,
    embeddings_per_step=8,
    count_discount=1.0,
)


def test_judging_ranks_places_and_compares_rare_with_common():
    found = judge(np.array([8.0, 4.0, 2.0, 2.0]), np.array([0, 10, 500, 900]))
    assert found.contrast == pytest.approx(6.0 / 2.0)
    assert found.agreement == rank_correlation([8, 4, 2, 2], [4, 3, 2, 1])
    assert judge(np.ones(2), np.array([100, 200])).contrast is None


def test_a_course_is_summed_up_by_what_was_defined():
    course = [Judgement(0.5, None), Judgement(1.0, 2.0), Judgement(0.0, 8.0), Judgement(0.1, 3.0)]
    found = summarise(course)
    assert found == {"course": [0.5, 1.0, 0.0, 0.1], "agreement": pytest.approx(0.4), "contrast": 3.0}
    assert summarise(course[:1])["contrast"] is None


def test_a_memory_counts_places_that_lie_apart_and_cannot_count_what_looks_alike(monkeypatch):
    monkeypatch.setattr(walk_streams, "MOMENT", 20)
    monkeypatch.setattr(walk_streams, "HEAD_START", 0)
    apart = replay(stream_of(line), RecodeMemory(CONFIG, seed=0), keep=True)
    assert apart["course"] == [1.0, 1.0, 1.0]
    assert apart["visits"] == np.bincount(stream_of(line).places.ravel()).tolist()
    assert np.argsort(apart["scores"]).tolist() == np.argsort(apart["visits"])[::-1].tolist()
    alike = replay(stream_of(lambda places: 0 * line(places)), RecodeMemory(CONFIG, seed=0))
    assert alike["course"] == [0.0, 0.0, 0.0]


def test_soft_counts_are_read_back_from_rewards():
    n0 = walk_streams.memory_config().reward_constant
    np.testing.assert_allclose(
        true_counts.soft_counts(1 / (np.sqrt([0.0, 4.0, 9.0]) + n0)), [0, 4, 9], atol=1e-9
    )


def test_walks_start_anew_between_phases_and_visits_are_counted(short):
    walks, elsewhere = walk_streams.record(0)
    assert walks.place.shape == (24, 4)
    assert walks.is_first[12].all()
    assert walks.is_last[11].all()
    episodes = walks.is_last[:11].sum()  # of 5 steps: rows 0-5, 6-11
    assert episodes == 4
    stream = walk_streams.make_stream(0, "random", "frozen")
    assert stream.visits_at(24).sum() == 4 * (24 - 6)  # the memory does not see the first six steps
    np.testing.assert_array_equal(stream.visits_at(8), np.bincount(walks.place[6:8].ravel(), minlength=49))
    assert walk_streams.make_stream(0, "random", "cold").visits_at(24).sum() == 4 * 24
    assert len(elsewhere.place) == 500


def test_drawings_show_the_agent_at_every_place():
    whole = walk_streams.draw_places(0, None)
    window = walk_streams.draw_places(0, 5)
    assert whole[0].shape == (49, 11, 11)
    assert ((whole[0] == AGENT).sum(axis=(1, 2)) == 1).all()
    assert (window[0][:, 2, 2] == AGENT).all()
    assert not np.array_equal(whole[0], whole[1])


def test_a_frozen_embedding_stays_and_a_moving_one_moves(short):
    for mode, moves in (("frozen", False), ("moving", True)):
        stream = walk_streams.make_stream(0, "ap", mode)
        assert stream.embeddings.shape == (24, 4, 16)
        same_pictures = np.array_equal(stream.views[0], stream.views[-1])
        assert same_pictures is not moves


def test_the_predictor_on_a_frozen_embedding_goes_on_learning(short, monkeypatch):
    stream = walk_streams.make_stream(0, "rnd-on-ap", "frozen")
    np.testing.assert_array_equal(stream.views[0], stream.views[-1])
    assert not np.array_equal(stream.surprises[0], stream.surprises[-1])
    monkeypatch.setattr(rnd_walks, "HEAD_START", 6)
    found = rnd_walks.surprise_course(stream)
    assert len(found["course"]) == 3
    expected = judge(stream.surprises[-1].mean(axis=0), stream.visits_at(24)).agreement
    assert found["course"][-1] == pytest.approx(expected, abs=1e-4)


def test_every_walk_figure_measures_and_draws_what_it_measured(short, monkeypatch):
    monkeypatch.setattr(
        walk_streams,
        "memory_config",
        lambda **f: replace(CONFIG, **{"dim": 16, "size": 40, "warmup_atoms": 9, **f}),
    )
    for module in (true_counts, knobs_walks, frozen, representation_walks, rnd_walks):
        monkeypatch.setattr(module, "memory_config", walk_streams.memory_config)
    monkeypatch.setattr(
        knobs_walks, "SWEEPS", {"neighbours": (1, 3), "removal": ("inverse_square", "smallest")}
    )
    names = {
        true_counts: "AP, learned on the way",
        frozen: "moving",
        knobs_walks: "settling",
        representation_walks: "casm",
        rnd_walks: "RECODE, AP moving",
    }
    for module, name in names.items():
        job = next(job for job in module.jobs() if job.seed == 0 and name in job.settings.values())
        rows = [{"seed": 0, **job.settings, **job.measure()}]
        figure = module.plot(rows)
        courses = rows[0]["results"] if "results" in rows[0] else [rows[0]]
        drawn = [line.get_ydata() for axes in figure.axes for line in axes.lines]
        if module is knobs_walks:
            first = [r["agreement"] for r in courses if r["knob"] == "neighbours"]
            np.testing.assert_allclose(drawn[0], first)
        else:
            assert any(np.array_equal(ys, courses[0]["course"]) for ys in drawn)
        assert len(courses[0]["course"]) == 3  # after 12, 18 and 24 steps
        (said, *_) = module.describe(rows)
        assert f"{courses[0]['agreement']:.2f}" in said or f"{courses[0]['course'][-1]:.2f}" in said


def test_the_pay_of_rare_places_is_drawn_where_there_is_any():
    rows = [
        {"name": "RND on pixels", "seed": seed, "course": [0.1, 0.2], "agreement": 0.15, "contrast": contrast}
        for seed, contrast in ((0, 4.0), (1, None))
    ]
    left, right = rnd_walks.plot(rows).axes
    np.testing.assert_array_equal(left.lines[-1].get_ydata(), [0.1, 0.2])
    (dots,) = right.lines
    assert (dots.get_xdata(), dots.get_ydata()) == ([4], [4.0])
    assert rnd_walks.describe(rows) == [
        "RND on pixels: mean rank correlation 0.15 / 0.15; pay of rare over common places 4.00 / -"
    ]


@pytest.mark.parametrize("mode", ["settling", "cold"])
def test_atoms_that_stay_are_judged_as_on_a_stream_and_atoms_that_follow_otherwise(short, monkeypatch, mode):
    monkeypatch.setattr(reembedding, "PERIOD", 2)
    monkeypatch.setitem(walk_streams.TRAINERS, mode, walk_streams.TRAINERS["moving"])  # it moves visibly
    small = walk_streams.memory_config(size=12, warmup_atoms=12, embeddings_per_step=4)
    monkeypatch.setattr(reembedding, "memory_config", lambda **fields: replace(small, **fields))
    results = reembedding.measure(mode, 1)["results"]
    assert [(r["neighbours"], r["follow"]) for r in results] == [
        (5, False),
        (5, True),
        (10, False),
        (10, True),
    ]
    stream = walk_streams.make_stream(1, "ap", mode)
    for stays, follows in (results[:2], results[2:]):
        memory = RecodeMemory(replace(small, neighbours=stays["neighbours"]), seed=1)
        assert stays["course"] == replay(stream, memory)["course"]
        assert len(follows["course"]) == len(stays["course"])
    assert any(a["course"] != b["course"] for a, b in (results[:2], results[2:]))
    rows = [{"mode": mode, "results": results}]
    lines = reembedding.describe(rows)
    assert lines[0] == (
        f"{mode}, k = 5, atoms stay (the paper): mean {results[0]['agreement']:.2f}; "
        f"at the end {results[0]['course'][-1]:.2f}"
    )
    axes = reembedding.plot(rows).axes[reembedding.MODES.index(mode)]
    thick = [line for line in axes.lines if line.get_linewidth() == 2]
    assert [list(line.get_ydata()) for line in thick] == [r["course"] for r in results]
