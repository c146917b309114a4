"""The command line: train, resume, status, evaluate, inspect, report, watch, figure, list.

What a command needs is imported when it is called: `softcount --help` answers at once, and in an
install without extras.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from softcount import __version__
from softcount.hints import install, nearest
from softcount.parser import Parser, UsageError

if TYPE_CHECKING:
    from softcount.config import RunConfig
    from softcount.fitting import Spaces
    from softcount.runs.run import Run

STOPPED = 130
"""What shells return for a command that was interrupted."""
BROKEN_PIPE = 141
"""What shells return for a command whose reader went away."""

USAGE = """usage: softcount COMMAND ...

  softcount train MEME-RECODE-AP --env disco-maze [--preset laptop] [--run FOLDER] [any field]
  softcount resume RUN [--steps N]       continue a run exactly where its checkpoint was taken
  softcount status RUN                   who works on it, where, how fast
  softcount evaluate RUN [--gif FILE]    play episodes with what the run has learned
  softcount inspect RUN                  look into its memory: ages, counts, coverage, pictures
  softcount figure list | NAME           run and draw the paper's figures, or see which there are
  softcount report RUN...                one HTML file that shows a run, or compares several
  softcount watch RUN...                 the same as a live page, while the runs train
  softcount list                         agents, bonuses, representations, environments, presets

`softcount COMMAND --help` explains each; `softcount --version` says which this is.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; errors of the user are one line, not a traceback."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    _survive_plain_terminals()
    try:
        return _run(arguments)
    except BrokenPipeError:  # `softcount list | head`: the reader has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  Python's last flush would complain
        return BROKEN_PIPE


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    if arguments[0] in ("-V", "--version"):
        print(f"softcount {__version__}")
        return 0
    command, rest = arguments[0], arguments[1:]
    if command not in COMMANDS:
        print(f"softcount: no command is called {command!r}{nearest(command, COMMANDS)}\n", file=sys.stderr)
        print(USAGE, file=sys.stderr)
        return 2
    try:
        code = COMMANDS[command](rest)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("\nstopped at once; a run continues from its last checkpoint", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:
        raise
    except ModuleNotFoundError as error:
        needed = f"it needs {error.name}, which is not installed: {install('agent')}"
        print(f"softcount {command}: {needed if _is_foreign(error) else error}", file=sys.stderr)
        return 1
    except (ValueError, OSError, RuntimeError, ImportError, MemoryError) as error:
        is_usage = isinstance(error, UsageError)
        hint = f"\n`softcount {command} --help` explains the options" if is_usage else ""
        print(f"softcount {command}: {error}{hint}", file=sys.stderr)
        return 2 if is_usage else 1


def train(arguments: list[str]) -> int:
    """softcount train NAME: trains any agent of the paper's taxonomy."""
    import tyro

    from softcount.config import RunConfig
    from softcount.options import check_read, check_words
    from softcount.train_help import full_help, short_help

    first = _first_options()
    known, rest = first.parse_known_args(_with_named_agent(arguments))
    default = _preset(known)
    if known.help or known.help_all:
        print((full_help if known.help_all else short_help)(default, first))
        return 0
    check_read(default.agent, rest)
    check_words(rest, default)
    config = tyro.cli(RunConfig, args=rest, default=default, prog="softcount train")
    folder = known.run or Path("runs") / f"{_plain(config.env)}__{config.agent}__{config.seed}__{_stamp()}"
    _with_allocator(arguments if known.run else [*arguments, "--run", str(folder)], "train")
    from softcount.fitting import describe
    from softcount.runs.run import Run

    _say_start(config)
    return _follow(Run.create(folder, config), describe(config, known.spaces) if known.spaces else "")


def _first_options() -> Parser:
    """The options that decide what the others start from, and where a run is written."""
    from softcount.presets import PRESETS

    first = Parser("softcount train", add_help=False)
    first.add_argument("-h", "--help", action="store_true", help="this page")
    first.add_argument("--help-all", action="store_true", help="every option of the agent")
    first.add_argument("--agent", metavar="NAME", help="the same as NAME alone")
    first.add_argument(
        "--preset",
        default="laptop",
        metavar="P",
        help=f"where all values start: {', '.join(PRESETS)} [laptop]",
    )
    first.add_argument("--env", metavar="E", help="environment, or several tasks with commas between them")
    first.add_argument("--env-import", metavar="MODULE", help="imported first, to register --env gym/ID")
    first.add_argument(
        "--env-options", nargs="*", default=[], metavar="NAME=VALUE ...", help="such as size=11 layout=0"
    )
    first.add_argument("--run", type=Path, metavar="FOLDER", help="where to write [a new folder under runs/]")
    first.add_argument("--num-envs", type=int, help=argparse.SUPPRESS)
    return first


def _preset(known: argparse.Namespace) -> RunConfig:
    """Returns the values that the other options start from."""
    from softcount.envs.make import parse_option, with_import
    from softcount.fitting import agent_for
    from softcount.presets import PRESETS, suited

    if known.preset not in PRESETS:
        raise UsageError(
            f"no preset is called {known.preset!r}{nearest(known.preset, PRESETS)} ({', '.join(PRESETS)})"
        )
    if known.env_import is not None:
        known.env = with_import(known.env or "", known.env_import)
    known.spaces = _own_spaces(known)
    agent = known.agent or (agent_for(known.spaces) if known.spaces else PRESETS[known.preset].agent)
    default = suited(PRESETS[known.preset], agent, known.spaces)
    if known.env is not None and known.env != default.env:
        options = default.env_options if _are_of_one_family(known.env, default.env) else {}
        default = replace(default, env=known.env, env_options=options)
    default = replace(default, env_options=default.env_options | dict(map(parse_option, known.env_options)))
    if known.num_envs is not None:  # an evaluation plays at most as many episodes side by side
        episodes = min(default.evaluation_episodes, max(known.num_envs, 1))
        default = replace(default, num_envs=known.num_envs, evaluation_episodes=episodes)
    return default


def _own_spaces(known: argparse.Namespace) -> Spaces | None:
    """The spaces of an environment that no preset was made for."""
    from softcount.envs.make import is_own, parse_option, specs_of
    from softcount.fitting import Spaces

    if known.env is None or not is_own(known.env):
        return None
    return Spaces(*specs_of(known.env, dict(map(parse_option, known.env_options))))


def _with_named_agent(arguments: list[str]) -> list[str]:
    """Turns the agent's name, which may stand anywhere, into an option."""
    from softcount.taxonomy import AGENTS

    for i, word in enumerate(arguments):
        is_value = i > 0 and arguments[i - 1].startswith("--")
        is_named = word.partition("-")[0].upper() in AGENTS and not (
            is_value and arguments[i - 1] != "--help"
        )
        if is_named or (i == 0 and not word.startswith("-")):
            return ["--agent", word, *arguments[:i], *arguments[i + 1 :]]
    return arguments


def resume(arguments: list[str]) -> int:
    """softcount resume RUN: continues exactly where the last checkpoint was taken."""
    parser = _parser("resume", resume)
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("--steps", type=int, help="train to this many steps in all")
    parser.epilog = "--runtime.* as of `softcount train` moves it: --runtime.kind ray, --runtime.kind local."
    moved = [word for word in arguments if word.startswith("--runtime.")]
    first = arguments.index(moved[0]) if moved else len(arguments)
    parsed = parser.parse_args(arguments[:first])
    _with_allocator(arguments, "resume")
    from softcount.options import read_runtime
    from softcount.runs.run import Run, read_config

    new_values: dict[str, object] = {} if parsed.steps is None else {"steps": parsed.steps}
    if moved:
        new_values["runtime"] = read_runtime(read_config(parsed.run), arguments[first:])
    _say_start(replace(read_config(parsed.run), **new_values))  # type: ignore[arg-type]
    run = Run.resume(parsed.run, **new_values)
    if run.loop.num_steps >= run.config.steps and parsed.steps is None:
        print(f"all {run.config.steps:,} steps are done; `--steps N` trains to more in all", file=sys.stderr)
    return _follow(run)


def status(arguments: list[str]) -> int:
    """softcount status RUN: who works on a run, where, how fast, and how often it was started anew."""
    parser = _parser("status", status)
    parser.add_argument("run", type=Path, help="folder of the run")
    parsed = parser.parse_args(arguments)
    from softcount.runs.status import describe_status

    print(describe_status(parsed.run))
    return 0


def evaluate(arguments: list[str]) -> int:
    """softcount evaluate RUN: plays episodes with what the run has learned; the run stays as it is."""
    parser = _parser("evaluate", evaluate)
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("--episodes", type=int, default=10, help="how many (at most the run's environments)")
    parser.add_argument("--gif", type=Path, help="write the first episode as an animation")
    parsed = parser.parse_args(arguments)
    from softcount.runs.playback import evaluate_run

    print(evaluate_run(parsed.run, parsed.episodes, parsed.gif))
    return 0


def inspect(arguments: list[str]) -> int:
    """softcount inspect RUN: numbers and pictures of the run's memory and coverage."""
    parser = _parser("inspect", inspect)
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
    parser = _parser("report", report)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folders of runs")
    parser.add_argument(
        "--out", type=Path, help="file to write (default: RUN/report.html; report.html here for several runs)"
    )
    parser.add_argument("--episodes", type=int, default=10, help="how many to play for the clip; 0 for none")
    parsed = parser.parse_args(arguments)
    from softcount.report import write_report

    print(write_report(parsed.runs, parsed.out, episodes=parsed.episodes))
    return 0


def watch(arguments: list[str]) -> int:
    """softcount watch RUN...: a live page of runs while they train, on this machine alone."""
    parser = _parser("watch", watch)
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="folders of runs, or folders that hold runs"
    )
    parser.add_argument("--port", type=int, default=0, help="port of 127.0.0.1 (default: any that is free)")
    parsed = parser.parse_args(arguments)
    from softcount.report.read_run import find_runs
    from softcount.report.watch import WatchServer

    with WatchServer(find_runs(parsed.runs), parsed.port) as server:
        number = len(server.runs.runs)
        print(
            f"watching {number} run{'s' * (number > 1)}; Ctrl-C ends the watching, not the training",
            flush=True,
        )
        print(server.url, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


def show_list(arguments: list[str]) -> int:
    """softcount list: everything that can be named on the command line."""
    _parser("list", show_list).parse_args(arguments)
    from softcount.envs.make import listing
    from softcount.presets import PRESETS
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
    "watch": watch,
    "figure": figure,
    "list": show_list,
}


def _parser(command: str, function: Callable[[list[str]], int]) -> Parser:
    return Parser(f"softcount {command}", description=function.__doc__)


def _follow(run: Run, choice: str = "") -> int:
    """Trains and shows how it goes; a reader of the output that goes away stops it as Ctrl-C does."""
    from softcount.runs.display import Display
    from softcount.runs.stop import StopOnSignal

    title = f"{run.config.agent} on {run.config.env}"
    try:
        with StopOnSignal() as is_stopped, Display(title, run.config.steps) as display:
            display.say(f"run folder: {run.folder}")
            if choice:
                display.say(choice)
            if not run.loop.roles.actor.keeps_episodes():
                display.say(
                    f"{run.config.env} cannot save its state: if this run is resumed, new episodes begin"
                )
            for step, metrics in run.train(lambda: is_stopped() or not display.is_read):
                display.show(step, metrics)
    except Exception:
        with suppress(Exception):  # what went wrong is said already
            run.loop.close()  # its processes, if it has any
        raise
    run.close()
    if run.loop.num_steps >= run.config.steps:
        return 0
    print(
        f"stopped at step {run.loop.num_steps:,}; `softcount resume {shlex.quote(str(run.folder))}` "
        "goes on from there",
        file=sys.stderr,
    )
    return STOPPED


def _say_start(config: RunConfig) -> None:
    """Says what takes a while: processes on Ray load their libraries before anything is to be seen."""
    runtime = config.runtime
    if runtime.kind == "ray":
        where = f"the cluster at {runtime.address}" if runtime.address else "a cluster of its own"
        print(f"starting the run's processes on {where}: this may take half a minute", file=sys.stderr)


def _with_allocator(arguments: list[str], command: str) -> None:
    """Starts the process anew with settings that glibc reads only at its start."""
    from softcount.runs.allocator import ALLOCATOR

    if not sys.platform.startswith("linux") or any(name in os.environ for name in ALLOCATOR):
        return
    environment = {**os.environ, **ALLOCATOR}
    os.execve(sys.executable, [sys.executable, "-m", "softcount", command, *arguments], environment)


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
    return project.is_file() and 'name = "softcount"' in project.read_text(encoding="utf-8").splitlines()


def _are_of_one_family(env: str, other: str) -> bool:
    """Whether both are games of one console, say: then they have the same options."""
    from softcount.envs.make import NOISY

    (family, slash, _), (family_of_other, _, _) = (e.removeprefix(NOISY).partition("/") for e in (env, other))
    return bool(slash) and family == family_of_other


def _plain(env: str) -> str:
    """Returns the name of an environment, or the first of several, as a folder can be called."""
    first, _, more = env.partition(",")
    name = first.partition(":")[0].replace("/", "-")
    return f"{name}-and-{len(more.split(','))}-more" if more else name


def _stamp() -> str:
    return time.strftime("%Y%m%d-%H%M%S")


def _is_foreign(error: ModuleNotFoundError) -> bool:
    """Whether a package is missing, and not a module of this one."""
    return error.name is not None and not error.name.startswith("softcount")


def _survive_plain_terminals() -> None:
    """Where the terminal cannot write a sign such as β, a question mark stands for it."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
