"""The command line: train, resume, status, evaluate, inspect, report, figure, list."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tyro

from softcount.config import READERS, RunConfig, RuntimeConfig, parts_read
from softcount.envs.make import NOISY, parse_option
from softcount.presets import PRESETS, suited
from softcount.runs.allocator import ALLOCATOR

STOPPED = 130
"""What shells return for a command that was interrupted."""

USAGE = """usage: softcount COMMAND ...

  softcount train MEME-RECODE-AP --env disco-maze [--preset laptop] [--run FOLDER] [any field]
  softcount resume RUN [--steps N]       continue a run exactly where its checkpoint was taken
  softcount status RUN                   who works on it, where, how fast
  softcount evaluate RUN [--gif FILE]    play episodes with what the run has learned
  softcount inspect RUN                  look into its memory: ages, counts, coverage, pictures
  softcount figure list | NAME           run and draw the paper's figures, or see which there are
  softcount report RUN...                one HTML file that shows a run, or compares several
  softcount list                         agents, bonuses, representations, environments, presets

`softcount COMMAND --help` explains each; `softcount train --help` lists every field.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; errors of the user are one line, not a traceback."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    command, rest = arguments[0], arguments[1:]
    if command not in COMMANDS:
        print(f"softcount: no command is called {command!r}\n\n{USAGE}", file=sys.stderr)
        return 2
    try:
        return COMMANDS[command](rest)
    except KeyboardInterrupt:
        print("\nstopped at once; a run continues from its last checkpoint", file=sys.stderr)
        return STOPPED
    except (ValueError, OSError, RuntimeError, ImportError, MemoryError) as error:
        print(f"softcount {command}: {error}", file=sys.stderr)
        return 1


def train(arguments: list[str]) -> int:
    """softcount train NAME: trains any agent of the paper's taxonomy."""
    first = argparse.ArgumentParser("softcount train", add_help=False, allow_abbrev=False)
    first.add_argument("--preset", choices=sorted(PRESETS), default="laptop")
    first.add_argument("--run", type=Path)
    first.add_argument("--env-options", nargs="*", default=[], metavar="NAME=VALUE")
    first.add_argument("--agent")
    first.add_argument("--env")
    known, rest = first.parse_known_args(arguments)
    if rest and not rest[0].startswith("-"):
        known.agent, rest = rest[0], rest[1:]
    default = suited(PRESETS[known.preset], known.agent or PRESETS[known.preset].agent)
    if known.env is not None and known.env != default.env:
        options = default.env_options if _are_of_one_family(known.env, default.env) else {}
        default = replace(default, env=known.env, env_options=options)
    default = replace(default, env_options=default.env_options | dict(map(parse_option, known.env_options)))
    description = (
        f"Trains an agent named as in the paper. First of all: --preset {'|'.join(PRESETS)} chooses the "
        "values below, --env-options size=11 layout=0 sets options of the environment, --env a:size=7,b "
        "names several tasks, --run FOLDER says where to write."
    )
    _check_read(default.agent, rest)
    config = tyro.cli(
        RunConfig, args=rest, default=default, prog="softcount train NAME", description=description
    )
    folder = known.run or Path("runs") / f"{_plain(config.env)}__{config.agent}__{config.seed}__{_stamp()}"
    _with_allocator(arguments if known.run else [*arguments, "--run", str(folder)], "train")
    from softcount.runs.run import Run

    return _follow(Run.create(folder, config))


def resume(arguments: list[str]) -> int:
    """softcount resume RUN: continues exactly where the last checkpoint was taken."""
    parser = argparse.ArgumentParser(
        "softcount resume",
        description=resume.__doc__,
        allow_abbrev=False,
        epilog="--runtime.* as of `softcount train` moves a run: --runtime.kind ray, --runtime.kind local.",
    )
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("--steps", type=int, help="train to this many steps in all")
    parsed, rest = parser.parse_known_args(arguments)
    _with_allocator(arguments, "resume")
    from softcount.runs.run import Run, read_config

    new_values: dict[str, object] = {} if parsed.steps is None else {"steps": parsed.steps}
    if rest:
        place = _Place(runtime=read_config(parsed.run).runtime)
        new_values["runtime"] = tyro.cli(
            _Place, args=rest, default=place, prog="softcount resume RUN", description=parser.epilog
        ).runtime
    return _follow(Run.resume(parsed.run, **new_values))


@dataclass(frozen=True)
class _Place:
    """What a resumed run may be told on the command line besides its steps."""

    runtime: RuntimeConfig
    """Where its roles live."""


def status(arguments: list[str]) -> int:
    """softcount status RUN: who works on a run, where, how fast, and how often it was started anew."""
    parser = argparse.ArgumentParser("softcount status", description=status.__doc__)
    parser.add_argument("run", type=Path, help="folder of the run")
    parsed = parser.parse_args(arguments)
    from softcount.runs.status import describe_status

    print(describe_status(parsed.run))
    return 0


def evaluate(arguments: list[str]) -> int:
    """softcount evaluate RUN: plays episodes with what the run has learned; the run stays as it is."""
    parser = argparse.ArgumentParser("softcount evaluate", description=evaluate.__doc__)
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("--episodes", type=int, default=10, help="how many (at most the run's environments)")
    parser.add_argument("--gif", type=Path, help="write the first episode as an animation")
    parsed = parser.parse_args(arguments)
    from softcount.runs.playback import evaluate_run

    print(evaluate_run(parsed.run, parsed.episodes, parsed.gif))
    return 0


def inspect(arguments: list[str]) -> int:
    """softcount inspect RUN: numbers and pictures of the run's memory and coverage."""
    parser = argparse.ArgumentParser("softcount inspect", description=inspect.__doc__)
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("--out", type=Path, help="where to put pictures (default: RUN/pictures)")
    parsed = parser.parse_args(arguments)
    from softcount.runs.playback import inspect_run

    pictures = parsed.run / "pictures"
    if parsed.out is None and pictures.is_symlink():
        raise ValueError(f"{pictures} is a link; say with --out where the pictures shall go")
    print(inspect_run(parsed.run, parsed.out or pictures))
    return 0


def figure(arguments: list[str]) -> int:
    """softcount figure NAME: starts `python -m experiments` in the checkout that this folder belongs to."""
    return subprocess.run([sys.executable, "-m", "experiments", *arguments], cwd=_checkout()).returncode


def report(arguments: list[str]) -> int:
    """softcount report RUN...: writes one HTML file that shows a run, or compares several."""
    parser = argparse.ArgumentParser("softcount report", description=report.__doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folders of runs")
    parser.add_argument(
        "--out", type=Path, help="file to write (default: RUN/report.html; report.html here for several runs)"
    )
    parser.add_argument("--episodes", type=int, default=10, help="how many to play for the clip; 0 for none")
    parsed = parser.parse_args(arguments)
    from softcount.report import write_report

    print(write_report(parsed.runs, parsed.out, episodes=parsed.episodes))
    return 0


def show_list(arguments: list[str]) -> int:
    """softcount list: everything that can be named on the command line."""
    argparse.ArgumentParser("softcount list", description=show_list.__doc__).parse_args(arguments)
    from softcount.envs.make import listing
    from softcount.taxonomy import AGENTS, EMBEDDINGS, ON_EMBEDDINGS, WHOLE

    print("agents           " + ", ".join(AGENTS))
    print("bonuses          " + ", ".join([*ON_EMBEDDINGS, *WHOLE]))
    print("representations  " + ", ".join(EMBEDDINGS) + "   (after " + ", ".join(ON_EMBEDDINGS) + ")")
    print("presets          " + ", ".join(PRESETS))
    print("\nenvironments")
    for entry in listing():
        print(
            f"  {entry.name:34s} {entry.about}" + ("" if entry.is_installed else f"   needs {entry.install}")
        )
    return 0


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "train": train,
    "resume": resume,
    "status": status,
    "evaluate": evaluate,
    "inspect": inspect,
    "report": report,
    "figure": figure,
    "list": show_list,
}


def _follow(run: object) -> int:
    """Trains and shows how it goes."""
    from softcount.runs.display import Display
    from softcount.runs.run import Run
    from softcount.runs.stop import StopOnSignal

    assert isinstance(run, Run)
    print(f"run folder: {run.folder}")
    title = f"{run.config.agent} on {run.config.env}"
    with StopOnSignal() as is_stopped, Display(title, run.config.steps) as display:
        for step, metrics in run.train(is_stopped):
            display.show(step, metrics)
    run.close()
    if run.loop.num_steps >= run.config.steps:
        return 0
    print(
        f"stopped at step {run.loop.num_steps:,}; `softcount resume {run.folder}` goes on from there",
        file=sys.stderr,
    )
    return STOPPED


def _with_allocator(arguments: list[str], command: str) -> None:
    """Starts the process anew with settings that glibc reads only at its start."""
    if not sys.platform.startswith("linux") or any(name in os.environ for name in ALLOCATOR):
        return
    environment = {**os.environ, **ALLOCATOR}
    os.execve(sys.executable, [sys.executable, "-m", "softcount.cli", command, *arguments], environment)


def _check_read(agent: str, options: Sequence[str]) -> None:
    """Refuses an option of a part that the agent does not read."""
    read = parts_read(agent)
    for option in options:
        part = option.removeprefix("--").partition(".")[0]
        if option.startswith("--") and part in READERS and part not in read:
            raise ValueError(
                f"{option.partition('=')[0]} would do nothing: {agent} does not read {part!r}, "
                f"{READERS[part]} would; it reads {', '.join(read)}"
            )


def _checkout() -> Path:
    """Returns the folder with the project's experiments: the current one, or one above it."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "experiments").is_dir() and _is_softcount(folder / "pyproject.toml"):
            return folder
    raise ValueError(
        f"figures need a checkout of softcount, and {here} is in none; clone the project and call this there"
    )


def _is_softcount(project: Path) -> bool:
    """Says whether a project file is this project's: others have experiments too."""
    return project.is_file() and 'name = "softcount"' in project.read_text().splitlines()


def _are_of_one_family(env: str, other: str) -> bool:
    """Whether both are games of one console, say: then they have the same options."""
    (family, slash, _), (family_of_other, _, _) = (e.removeprefix(NOISY).partition("/") for e in (env, other))
    return bool(slash) and family == family_of_other


def _plain(env: str) -> str:
    """Returns the name of an environment, or the first of several, as a folder can be called."""
    first, _, more = env.partition(",")
    name = first.partition(":")[0].replace("/", "-")
    return f"{name}-and-{len(more.split(','))}-more" if more else name


def _stamp() -> str:
    return time.strftime("%Y%m%d-%H%M%S")


if __name__ == "__main__":
    sys.exit(main())
