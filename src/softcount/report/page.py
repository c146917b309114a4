"""Puts evidence into the page: one JSON document inside one HTML file.

Nothing that a run wrote ever becomes markup: names and values travel as JSON with every
character that could end a script escaped, and the page's script only sets text.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from softcount import store
from softcount.report.atoms import describe_memories
from softcount.report.clip import describe_clip
from softcount.report.curves import (
    FINAL,
    ROLES,
    curves,
    final_numbers,
    groups_of,
    shares_of_time,
    steps_of_finals,
)
from softcount.report.foreign import describe_remains
from softcount.report.read_run import Evidence, read_runs
from softcount.report.world import describe_worlds

REPORT = "report.html"
LIVE = "live.js"
SCRIPTS = ("elements.js", "chart.js", "curves.js", "world.js", "memory.js", "clip.js", "tables.js", "page.js")


def write_report(folders: Sequence[Path], out: Path | None = None, *, episodes: int = 10) -> Path:
    """Writes the report of one run or several; returns where it is.

    By default one run's goes into its folder and that of several into the current one. `episodes`
    are played with what each run has learned, for the clip; 0 plays none.
    """
    out = out or (folders[0] / REPORT if len(folders) == 1 else Path(REPORT))
    if out.is_dir():
        raise IsADirectoryError(f"{out} is a folder; expected the name of a file to write")
    data = describe_runs(read_runs(folders), episodes)
    store.write_atomically(out, render(data).encode())
    return out


def describe_runs(runs: Iterable[Evidence], episodes: int) -> dict[str, Any]:
    """Returns everything the page shows; runs are read one at a time, their replays are large."""
    described, all_rows = [], []
    for run in runs:
        described.append(_describe_run(run, episodes))
        all_rows.append(run.rows)
    return describe_page(described, all_rows)


def describe_page(described: list[dict[str, Any]], all_rows: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Returns what the page shows of runs that are described already."""
    return {
        "version": version("softcount"),
        "groups": groups_of(all_rows),
        "final": FINAL,
        "roles": ROLES,
        "runs": described,
    }


def render(data: dict[str, Any], *, is_live: bool = False) -> str:
    """Returns the page; what is put in is never searched for places to put things in.

    A live one may ask the server that it came from for newer data, and nobody else.
    """
    runs = data["runs"]
    title = runs[0]["name"] if len(runs) == 1 else f"{len(runs)} runs"
    parts = {
        "title": html.escape(f"{title} · softcount"),
        "style": _asset("page.css"),
        "data": as_script_data(data),
        "script": "\n".join(_asset(name) for name in (*SCRIPTS, *((LIVE,) if is_live else ()))),
        "connect": "; connect-src 'self'" if is_live else "",
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def as_script_data(data: Any) -> str:
    """Returns JSON that is safe between script tags.

    >>> as_script_data("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = as_json(data)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _describe_run(run: Evidence, episodes: int) -> dict[str, Any]:
    missing = {"missing": run.no_loop}
    parts: dict[str, Any] = {"worlds": [missing], "memories": [missing], "clip": missing}
    if run.saved is not None:
        parts |= describe_remains(run.saved, run.fields)
    if run.loop is not None and run.config is not None:
        roles, coverage = run.loop.roles, run.loop.coverage
        seen = np.zeros(0, np.int64) if coverage is None else np.flatnonzero(coverage.visits)
        parts = {
            "worlds": describe_worlds(coverage, roles.actor.worlds(seen)),
            "memories": describe_memories(roles.memory.memories()),
            "clip": describe_clip(run.config, run.loop, episodes),
        }
        roles.actor.close()
    described = describe_reports(run.name, run.fields, run.rows)
    if run.step is not None:
        _add_episodes_played(described, parts["clip"], run.step)
    return described | {"notes": run.notes, "checkpoint": run.step, **parts}


def describe_reports(name: str, fields: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns what configuration and reports tell of a run."""
    return {
        "name": name,
        "config": {name: _plain(value) for name, value in fields.items()},
        "planned": fields.get("steps"),
        "num_reports": len(rows),
        "final": final_numbers(rows),
        "final_at": steps_of_finals(rows),
        "curves": curves(rows),
        "time": shares_of_time(rows),
    }


def _add_episodes_played(described: dict[str, Any], clip: dict[str, Any], step: int) -> None:
    """Takes the episodes of the clip for the last evaluation of a run that has older ones."""
    played = {"eval/success_rate": "success_rate", "eval/return": "mean_return"}
    for metric, name in played.items():
        if name in clip and described["final_at"].get(metric, step) < step:
            described["final"][metric] = clip[name]
            described["final_at"][metric] = step


def as_json(data: Any) -> str:
    """Returns compact JSON; a number that is not finite becomes null."""
    return json.dumps(_finite(data), separators=(",", ":"), allow_nan=False)


def _finite(tree: Any) -> Any:
    """Replaces what JSON cannot say by null: a run that diverged needs its report most."""
    if isinstance(tree, dict):
        return {key: _finite(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_finite(value) for value in tree]
    return None if isinstance(tree, float) and not math.isfinite(tree) else tree


def _plain(value: Any) -> str:
    """Returns a value of the configuration as people write it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _asset(name: str) -> str:
    return (files("softcount.report") / "assets" / name).read_text(encoding="utf-8")
