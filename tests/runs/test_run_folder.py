"""A run's folder: whose files are touched, what happens when it goes away, and what odd files are called."""

import json
import os
import shutil
import warnings
from dataclasses import replace

import numpy as np
import pytest
from launch.test_local import TINY

from softcount import checkpoint, cli, store
from softcount.report.foreign import describe_remains
from softcount.report.read_run import read_runs
from softcount.runs import run as run_module
from softcount.runs.playback import inspect_run, open_run
from softcount.runs.run import Run, read_config

SMALL = replace(TINY, steps=120, report_every=40, evaluate_every=0, checkpoint_seconds=1e9)
STEP = 123  # where it ends: steps come in fours


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    monkeypatch.setenv("MALLOC_TOP_PAD_", "67108864")  # `resume` starts itself anew where this is not set


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "done"
    run = Run.create(folder, SMALL)
    list(run.train())
    run.close()
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# Whose files are touched


@pytest.mark.parametrize(
    "name", ["metrics.jsonl", "checkpoints/my_model.safetensors", "events.out.tfevents.1.host.2.0"]
)
def test_a_folder_with_somebodys_files_under_a_runs_names_is_refused_and_left_as_it_is(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"precious")
    with pytest.raises(
        FileExistsError, match=rf"holds {name.split('/')[0]} but no config.json.*nothing was touched"
    ):
        Run.create(tmp_path, SMALL)
    assert contents(tmp_path) == {name: b"precious"}


def test_files_that_no_manifest_named_outlive_every_checkpoint(folder):
    foreign = {
        f"checkpoints/{name}": name.encode()
        for name in ("my_model.safetensors", "learner-2.safetensors", ".notes.part", "segment-x.safetensors")
    }
    for name, content in foreign.items():
        (folder / name).write_bytes(content)
    run = Run.resume(folder, steps=240)
    for _ in range(3):
        run.save()
    run.close()
    assert foreign.items() <= contents(folder).items()
    assert checkpoint.read(folder / "checkpoints").step == STEP


def test_a_start_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    (tmp_path / "notes.txt").write_bytes(b"mine")
    with monkeypatch.context() as patch:
        patch.setattr(store, "save", full)
        with pytest.raises(checkpoint.CheckpointError, match="No space left"):
            Run.create(tmp_path, SMALL)
    assert contents(tmp_path) == {"notes.txt": b"mine"}
    Run.create(tmp_path, SMALL).close()


@pytest.mark.parametrize("name", ["metrics.jsonl", "checkpoints"])
def test_nothing_is_written_through_a_link_in_a_received_folder(folder, tmp_path, name):
    elsewhere = tmp_path / "elsewhere"
    (folder / name).rename(elsewhere)
    (folder / name).symlink_to(elsewhere)
    before = contents(tmp_path)
    with pytest.raises((ValueError, OSError), match=f"{name} is a link"):
        Run.resume(folder, steps=200)
    assert contents(tmp_path) == before


def test_pictures_replace_links_and_do_not_follow_them(folder, tmp_path, capsys):
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    (folder / "pictures").mkdir()
    (folder / "pictures" / "memory.png").symlink_to(precious)
    inspect_run(folder, folder / "pictures")
    assert precious.read_bytes() == b"precious"
    assert (folder / "pictures" / "memory.png").read_bytes().startswith(b"\x89PNG")
    (folder / "pictures").rename(tmp_path / "aside")
    (folder / "pictures").symlink_to(tmp_path / "aside")
    assert cli.main(["inspect", str(folder)]) == 1
    assert "pictures is a link" in capsys.readouterr().err


# A folder that goes away


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
def test_a_run_whose_folder_goes_away_ends_and_recreates_nothing(folder, tmp_path, how):
    run = Run.resume(folder, steps=160)
    if how == "deleted":
        shutil.rmtree(folder)
    else:
        folder.rename(tmp_path / "aside")
    if how == "replaced":
        folder.mkdir()
    with pytest.raises(
        checkpoint.CheckpointError, match="was deleted, moved or emptied while its run was training"
    ):
        list(run.train())
    run.close()
    assert not folder.exists() or list(folder.iterdir()) == []
    if how != "deleted":
        assert open_run(tmp_path / "aside").num_steps == STEP


def test_a_folder_that_goes_away_in_the_middle_of_a_checkpoint_is_not_made_again(
    folder, tmp_path, monkeypatch
):
    run = Run.resume(folder, steps=160)
    real = store.save

    def save(path, *arguments, **options):
        if folder.exists():
            folder.rename(tmp_path / "aside")
        real(path, *arguments, **options)

    monkeypatch.setattr(store, "save", save)
    with pytest.raises(checkpoint.CheckpointError, match="deleted or moved"):
        run.save()
    run.close()
    assert not folder.exists()
    monkeypatch.undo()
    resumed = Run.resume(tmp_path / "aside")
    resumed.save()
    resumed.close()
    assert not list((tmp_path / "aside" / "checkpoints").glob("announced*"))


# Reports that are missing


@pytest.mark.parametrize("left", [0, 50])
def test_reports_that_were_lost_are_noted_and_the_file_never_grows(folder, left):
    path = folder / "metrics.jsonl"
    first_line = path.read_bytes().splitlines(keepends=True)[0]
    kept = 0 if left == 0 else len(first_line)
    path.write_bytes(path.read_bytes()[: kept + left])
    with pytest.warns(UserWarning, match=rf"metrics.jsonl has .* those of the first {kept:,} bytes are kept"):
        run = Run.resume(folder)
    run.save()
    run.close()
    assert path.read_bytes() == first_line[:kept]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Run.resume(folder).close()


def test_a_manifest_that_asks_for_a_terabyte_of_reports_gets_what_is_there(folder):
    size = (folder / "metrics.jsonl").stat().st_size
    edit_manifest(folder, metrics_bytes=10**12)
    with pytest.warns(UserWarning, match="taken at 1,000,000,000,000"):
        Run.resume(folder).close()
    assert (folder / "metrics.jsonl").stat().st_size == size


# Odd files


def edit_manifest(folder, **changes):
    path = folder / "checkpoints" / "manifest.json"
    manifest = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in manifest.items() if value is not ...}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parts": ["learner"]}, r"parts is \['learner'\]; expected parts and their files"),
        ({"parts": {"learner": 3}}, "parts is"),
        ({"parts": {"learner": "../../config.json"}}, "parts is"),
        ({"parts": {}}, "config"),
        ({"segments": "0-1"}, "segments is '0-1'; expected a list"),
        ({"segments": ["../0-1"]}, "segments is"),
        ({"segments": {"0-1": 1}}, "segments is"),
        ({"stale": ["../../config.json"]}, "stale is"),
        ({"step": "many"}, "step is 'many'; expected a whole number"),
        ({"step": 7}, f"num_steps is {STEP}; expected the manifest's step, 7"),
        ({"step": -1}, "step is -1"),
        ({"step": True}, "step is True"),
        ({"serial": 10**30}, "serial is 1000"),
        ({"metrics_bytes": None}, "metrics_bytes is None"),
        ({"metrics_bytes": 1.5}, "metrics_bytes is 1.5"),
        ({"metrics_bytes": ...}, "it lacks metrics_bytes"),
        ({"format": 3}, "has format 3"),
    ],
    ids=str,
)
def test_a_tampered_manifest_is_one_line_that_names_the_field(folder, changes, message, capsys):
    edit_manifest(folder, **changes)
    before = contents(folder)
    for command in ("resume", "inspect", "evaluate"):
        assert cli.main([command, str(folder)]) == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        with pytest.raises(RuntimeError, match=message):
            raise RuntimeError(said)
    assert contents(folder) == before


def edit_part(folder, part, change):
    """Changes a part as somebody would who knows the format: with a digest that fits."""
    (path,) = (folder / "checkpoints").glob(f"{part}-*.safetensors")
    state = store.load(path, kind=part)
    change(state)
    store.save(path, state, kind=part)
    return path.name


def setter(*path, to):
    def change(state):
        for name in path[:-1]:
            state = state[name]
        if to is ...:
            del state[path[-1]]
        else:
            state[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("part", "path", "value", "message"),
    [
        ("memory", ("memory", "atoms"), ..., "memory.atoms is missing"),
        ("memory", ("memory", "size"), 10**12, "size 1000000000000"),
        ("memory", ("memory", "num_observed"), "many", "memory.num_observed is 'many'; expected a number"),
        ("memory", ("memory", "num_observed"), 10**40, "memory.num_observed is 1000"),
        ("memory", ("memory", "births"), np.zeros(3), "births"),
        ("loop", ("num_steps",), "many", "num_steps is 'many'; expected a number"),
        ("loop", ("num_steps",), 10**40, "num_steps is 1000"),
        ("loop", ("coverage", "visits"), ..., "coverage.visits is missing"),
        ("loop", ("coverage", "places"), np.array([10**6]), "shape mismatch"),
        ("loop", ("means", "names"), [1, 2], "zip"),
        ("replay", ("replay",), None, "replay is None; expected fields"),
        ("replay", ("replay", "cuts"), np.array([0, 10**9]), "segment"),
        ("actor", ("state",), 5, "state is 5; expected a list"),
        ("config", ("json",), 5, "JSON object must be str"),
        ("config", ("json",), "[" * 100_000, "recursion"),
    ],
)
def test_a_tampered_part_is_one_line_that_names_the_file_and_the_field(
    folder, part, path, value, message, capsys
):
    file = edit_part(folder, part, setter(*path, to=value))
    before = contents(folder)
    for command in ("resume",) if part == "config" else ("resume", "inspect", "evaluate"):
        assert cli.main([command, str(folder)]) == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        assert file in said
        assert message in said
    assert contents(folder) == before


def make_older(folder):
    """Gives a run what the first version wrote: bandits in the actor, rows without their task."""

    def actor(state):
        state |= state.pop("behaviour")
        state["episodes"] = []

    def replay(state):
        del state["replay"]["columns"]["extras.task"]

    edit_part(folder, "actor", actor)
    edit_part(folder, "replay", replay)
    edit_part(folder, "learner", setter("bonus", to=...))
    edit_manifest(folder, format="softcount-checkpoint-1", stale=...)


def test_a_checkpoint_of_an_older_format_is_refused_with_one_line_that_names_both(folder, capsys):
    make_older(folder)
    before = contents(folder)
    for command in ("resume", "inspect", "evaluate"):
        assert cli.main([command, str(folder)]) == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        assert f"step {STEP} has format 'softcount-checkpoint-1'" in said
        assert f"continues '{checkpoint.FORMAT}'" in said
    assert contents(folder) == before


def test_a_report_still_shows_what_an_older_checkpoint_remembers(folder):
    make_older(folder)
    (found,) = read_runs([folder])
    assert found.loop is None
    assert found.step == STEP
    assert "softcount-checkpoint-1" in found.notes[-1]
    shown = describe_remains(found.saved, found.fields)
    assert shown["worlds"][0]["visited"] > 0
    assert len(shown["memories"][0]["x"]) > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "config.json does not fit this version"),
        ('{"steps": ' + "9" * 5000 + "}", "config.json does not fit this version"),
        (..., "RecodeConfig.size is 1000000000000"),
    ],
    ids=["deep", "long", "large"],
)
def test_a_tampered_configuration_is_one_line_that_names_it(folder, text, message, capsys):
    path = folder / "config.json"
    if text is ...:
        content = json.loads(path.read_text())
        content["recode"]["memory"]["size"] = 10**12
        text = json.dumps(content)
    path.write_text(text)
    for command in ("resume", "inspect", "evaluate"):
        assert cli.main([command, str(folder)]) == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert message in said


def test_roles_that_cannot_be_built_name_what_was_changed(folder, monkeypatch):
    def too_large(config):
        raise MemoryError("Unable to allocate 7.28 TiB")

    config, saved = replace(read_config(folder), num_envs=5), checkpoint.read(folder / "checkpoints")
    monkeypatch.setattr(run_module, "build", too_large)
    with pytest.raises(
        ValueError, match=r"config.json cannot be built: Unable .*changed in num_envs: 4 -> 5"
    ):
        run_module.restore(config, saved)


@pytest.mark.skipif(os.name != "posix", reason="folders are locked by other means")
def test_a_refused_resume_leaves_the_folder_free(folder):
    edit_manifest(folder, step="many")
    with pytest.raises(checkpoint.CheckpointError):
        Run.resume(folder)
    edit_manifest(folder, step=STEP)
    Run.resume(folder).close()
