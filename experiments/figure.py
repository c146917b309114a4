"""What a figure is, all of them by name, and how one is made; `softcount figure` comes here.

Every `Figure` at the top of a module of `experiments`, alone or in a tuple, is found; no list names them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import experiments
from experiments import jobs, paper_scale
from experiments.drawing import IMAGES, save_picture
from experiments.jobs import Job, Row


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure made of jobs: each leaves a file, all of them together are drawn."""

    name: str
    """What follows `softcount figure`, and the name of its picture."""
    paper: str
    """The paper's figure or section, or what it lacks."""
    claim: str
    """What should be seen."""
    laptop_cost: str
    """What the laptop scale takes."""
    paper_cost: str
    """What the paper's own scale takes."""
    folder: Path
    """Where its jobs leave their files."""
    jobs: Callable[[], Sequence[Job]]
    """Its measurements, the most telling first."""
    plot: Callable[[list[Row]], Any]
    """Draws the rows that are there; returns a matplotlib figure."""
    describe: Callable[[list[Row]], list[str]]
    """Says the same in numbers, one line each."""
    images: Path = IMAGES
    """Folder of the picture."""
    earlier: Callable[[], Mapping[str, Row]] = dict
    """Rows by key from a file that holds many, of runs made before each job had a file of its own."""

    def rows(self) -> list[Row]:
        """Returns what was measured so far, in the order of the jobs."""
        todo = self.jobs()
        known = {**self.earlier(), **jobs.read(todo, self.folder)}
        return [known[job.key] for job in todo if job.key in known]

    def missing(self, seeds: Sequence[int] | None = None, only: str | None = None) -> list[Job]:
        """Returns the jobs that were not run: of these seeds, and with `only` in their key, if given."""
        todo, earlier = self.jobs(), self.earlier()
        unknown = set(seeds or ()) - {job.seed for job in todo}
        if unknown:
            own = sorted({job.seed for job in todo})
            raise ValueError(f"{self.name} has no seed {min(unknown)}; its seeds are {own}")
        if only is not None and not any(only in job.key for job in todo):
            keys = ", ".join(job.key for job in todo)
            raise ValueError(f"{self.name} has no run with {only!r} in its name; it has {keys}")
        left = [j for j in todo if j.key not in earlier and not jobs.path_of(self.folder, j.key).exists()]
        return [
            job for job in left if (seeds is None or job.seed in seeds) and (only is None or only in job.key)
        ]

    def state(self) -> str:
        """Says whether it was run."""
        num, left = len(self.jobs()), len(self.missing())
        return {0: "run", num: "not run"}.get(left, f"{num - left} of {num} runs")


@cache
def all_figures() -> dict[str, Figure]:
    """Returns the figures of all modules by name, in the order of the alphabet."""
    names = [module.name for module in pkgutil.walk_packages(experiments.__path__, "experiments.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    found = {figure.name: figure for module in modules for figure in _figures_of(module)}
    return dict(sorted(found.items()))


def _figures_of(module: ModuleType) -> Iterator[Figure]:
    """Yields the figures at the top of a module, alone or in tuples."""
    for value in vars(module).values():
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Figure):
                yield one


def find(name: str) -> Figure:
    known = all_figures()
    if name not in known:
        raise ValueError(f"no figure is called {name!r}; expected one of {', '.join(known)}")
    return known[name]


def listing() -> str:
    """Returns a paragraph per figure: the paper's, the claim, the cost at both scales, whether it was run."""
    lines = (
        []
        if jobs.RESULTS.exists()
        else [f"(no {jobs.RESULTS} here; the project's results are in its folder)"]
    )
    for figure in all_figures().values():
        lines += [
            f"{figure.name}   [{figure.state()}]   {figure.paper}",
            f"    {figure.claim}",
            f"    laptop: {figure.laptop_cost}",
            f"    paper:  {figure.paper_cost}",
        ]
    return "\n".join(lines)


def make(
    name: str,
    *,
    seeds: Sequence[int] | None = None,
    only: str | None = None,
    plot_only: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Runs what is missing of a figure (see `Figure.missing`), draws it and says what is to be seen."""
    figure = find(name)
    todo, there, num = figure.missing(seeds, only), len(figure.rows()), len(figure.jobs())
    if not plot_only:
        if there:
            say(f"{there} of {num} runs are there already")
        jobs.run(todo, figure.folder, say)
    rows = figure.rows()
    if not rows:
        raise ValueError(f"{name} has no results yet; run `softcount figure {name}` first")
    for path in save_picture(figure.plot(rows), name, figure.images):
        say(f"drew {path}")
    for line in figure.describe(rows):
        say(f"  {line}")


def paper_scale_of(name: str) -> str:
    """Returns the command lines of the paper's experiments behind a figure; none of them was run."""
    figure = find(name)
    lines = paper_scale.commands_of(figure.paper)
    return "\n".join(lines or [f"{name}: {figure.paper_cost}"])
