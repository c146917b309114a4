"""All figures by name; `softcount figure` runs and draws them.

Every figure that a module of `experiments` has at its top is found: nothing needs to be listed here.
"""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import ModuleType

import experiments
from experiments import jobs, paper_scale
from experiments.figure import Command, Figure


@cache
def all_figures() -> dict[str, Figure | Command]:
    """Returns the figures of all modules by name, in the order of the alphabet."""
    names = [m.name for m in pkgutil.walk_packages(experiments.__path__, "experiments.") if not m.ispkg]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    found = {figure.name: figure for module in modules for figure in _figures_of(module)}
    return dict(sorted(found.items()))


def _figures_of(module: ModuleType) -> Iterator[Figure | Command]:
    """Yields the figures at the top of a module, alone or in tuples."""
    for value in vars(module).values():
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Figure | Command):
                yield one


def listing() -> str:
    """Returns a paragraph per figure: the paper's, the claim, the cost at both scales, whether it was run."""
    lines = (
        []
        if jobs.RESULTS.exists()
        else [f"(no {jobs.RESULTS} here; the project's results are in its folder)"]
    )
    for figure in all_figures().values():
        lines += [
            f"{figure.name}   [{state_of(figure)}]   {figure.paper}",
            f"    {figure.claim}",
            f"    laptop: {figure.laptop_cost}",
            f"    paper:  {figure.paper_cost}",
        ]
    return "\n".join(lines)


def state_of(figure: Figure | Command) -> str:
    """Says whether a figure was run."""
    if isinstance(figure, Command):
        there = sum(path.exists() for path in figure.results)
        return "run" if there == len(figure.results) else f"{there} of {len(figure.results)} results"
    todo = figure.jobs()
    there = sum(jobs.path_of(figure.folder, job.key).exists() for job in todo)
    return {0: "not run", len(todo): "run"}.get(there, f"{there} of {len(todo)} runs")


def make(
    name: str,
    *,
    seeds: Sequence[int] | None = None,
    plot_only: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Runs what is missing of a figure (of these seeds, if given), draws it and says what is to be seen."""
    figure = find(name)
    if isinstance(figure, Command):
        if seeds is not None:
            raise ValueError(f"{name} takes no --seeds; its commands are {_commands_of(figure)}")
        _run_command(figure, plot_only)
        return
    todo = figure.jobs()
    unknown = set(seeds or ()) - {job.seed for job in todo}
    if unknown:
        raise ValueError(f"{name} has no seed {min(unknown)}; its seeds are {sorted({j.seed for j in todo})}")
    if not plot_only:
        jobs.run([job for job in todo if seeds is None or job.seed in seeds], figure.folder, say)
    rows = jobs.read(todo, figure.folder)
    if not rows:
        raise ValueError(f"{name} has no results yet; run `softcount figure {name}` first")
    for path in jobs.save_picture(figure.plot(rows), name, jobs.IMAGES):
        say(f"drew {path}")
    for line in figure.describe(rows):
        say(f"  {line}")


def paper_scale_of(name: str) -> str:
    """Returns the command lines of the paper's experiments behind a figure; none of them was run."""
    figure = find(name)
    lines = paper_scale.commands_of(figure.paper)
    return "\n".join(lines or [f"{name}: {figure.paper_cost}"])


def find(name: str) -> Figure | Command:
    known = all_figures()
    if name not in known:
        raise ValueError(f"no figure is called {name!r}; expected one of {', '.join(known)}")
    return known[name]


def _run_command(figure: Command, plot_only: bool) -> None:
    if plot_only and figure.plot_command is None:
        raise ValueError(f"{figure.name} draws only while it runs; leave --plot-only out")
    commands = (figure.plot_command,) if plot_only and figure.plot_command else figure.commands
    for command in commands:
        ended = subprocess.run([sys.executable, "-m", *command])
        if ended.returncode != 0:
            raise RuntimeError(f"`python -m {' '.join(command)}` ended with code {ended.returncode}")


def _commands_of(figure: Command) -> str:
    return "; ".join(f"`python -m {' '.join(command)}`" for command in figure.commands)
