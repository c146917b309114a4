"""Roles speak data only: behind a border that copies all through bytes, loop and run give the same bits."""

from dataclasses import replace

import pytest
from contracts.proxies import Far, far_away
from launch.test_local import TINY, assert_same, everything
from report.runs import TWO_TASKS, data_of

from softcount import checkpoint
from softcount.config import with_fields
from softcount.launch.build import build
from softcount.launch.local import LocalLoop
from softcount.metrics import TIMING_PREFIX
from softcount.presets import suited
from softcount.report.page import write_report
from softcount.runs import run as run_module
from softcount.runs.playback import evaluate_run, inspect_run
from softcount.runs.run import Run, read_reports

NAMES = [
    "MEME-RECODE-AP",
    "MEME-RECODE-CASM",
    "MEME-NGU-AP",
    "MEME-RND",
    "MEME-COUNT",
    "MEME-BYOL-Explore",
    "MEME",
]


def loop_of(config, far):
    roles = build(config)
    return LocalLoop(
        far_away(roles) if far else roles,
        relabel=config.meme.relabel,
        overlap=False,
        reembed_every=config.recode.reembed_every,
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_loop_over_borders_gives_the_same_bits(name):
    is_recode = name == "MEME-RECODE-AP"
    config = with_fields(
        suited(TINY, name), {"meme.relabel": is_recode, "recode.reembed_every": 4 * is_recode}
    )
    near, far = loop_of(config, False), loop_of(config, True)
    for _ in range(45):
        near.step()
        far.step()
    assert near.num_updates > 8
    assert_same(everything(near), everything(far))
    assert near.means.take() == far.means.take()
    assert near.roles.memory.metrics() == far.roles.memory.metrics()


def test_a_state_crosses_the_border_too():
    near, far = loop_of(TINY, False), loop_of(TINY, True)
    for _ in range(30):
        near.step()
    state = near.state_dict()
    far.load_state_dict(state, {name: make() for name, make in near.segments().items()})
    for _ in range(15):
        near.step()
        far.step()
    assert_same(everything(near), everything(far))


def trained(folder, config):
    """A run to its end, continued once; what it reports, but for the clock."""
    run = Run.create(folder, config)
    for step, _ in run.train():
        if step >= config.steps // 2:
            run.save()
            break
    run.close()
    run = Run.resume(folder)
    list(run.train())
    run.close()
    return [
        {k: v for k, v in row.items() if not k.startswith(TIMING_PREFIX) and k != "charts/SPS"}
        for row in read_reports(folder)
    ]


def shown(folder):
    """What is said and drawn of a run, without its name."""
    said = evaluate_run(folder, 2, None) + inspect_run(folder, folder / "pictures")
    pictures = {path.name: path.read_bytes() for path in (folder / "pictures").iterdir()}
    (page,) = data_of(write_report([folder], folder / "page.html", episodes=2))["runs"]
    return (
        said.replace(str(folder), ""),
        pictures,
        {part: page[part] for part in ("worlds", "memories", "clip")},
    )


@pytest.mark.parametrize("changes", [{}, TWO_TASKS], ids=["one task", "two tasks"])
def test_a_run_over_borders_reports_saves_resumes_and_shows_the_same(tmp_path, monkeypatch, changes):
    config = replace(
        TINY,
        **{**changes, "steps": 240},
        report_every=80,
        evaluate_every=120,
        checkpoint_seconds=1e9,
        overlap=False,
    )
    folders = tmp_path / "near" / "run", tmp_path / "far" / "run"
    found = []
    for folder in folders:
        if folder == folders[1]:
            monkeypatch.setattr(run_module, "build", lambda config: far_away(build(config)))
        found.append((trained(folder, config), shown(folder), checkpoint.read(folder / "checkpoints")))
    (near, near_shown, near_saved), (far, far_shown, far_saved) = found
    assert near == far
    assert ("truth/correlation" in near[-1]) == (not changes)  # measured in one world at a time
    assert {"eval/return", "coverage/places"} <= near[-1].keys()
    assert near_shown == far_shown
    assert len(near_shown[1]) == (4 if changes else 2)  # a map and a memory of each task
    assert_same(near_saved.parts, far_saved.parts)
    assert_same(near_saved.segments, far_saved.segments)


def test_the_border_lets_nothing_but_calls_through():
    roles = build(TINY)
    with pytest.raises(AttributeError, match="env of a role far away cannot be read"):
        _ = Far(roles.actor).env
    with pytest.raises(AttributeError, match="behaviour of a role far away cannot be read"):
        _ = Far(roles.actor).behaviour
    request = Far(roles.actor).request()
    assert request.observation is not roles.actor.timestep.observation
