"""What `softcount train --help` and `--help-all` print."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from typing import Any

from softcount.config import RunConfig
from softcount.options import Option, field_docs, options_of

COMMON = ("steps", "seed", "num_envs", "device", "report_every", "evaluate_every")
"""Fields that most people set; `--help` explains these and names the rest."""
WIDTH, INDENT = 80, 26

USAGE = """usage: softcount train NAME [--preset P] [--env E] [--run FOLDER] [OPTIONS]

Trains an agent. NAME is agent-bonus-representation, as in the paper:
MEME-RECODE-AP, MEME-RECODE-CASM, MEME-NGU-AP, MEME-RND, VMPO-RECODE-AP, or
MEME alone for no bonus. `softcount list` shows all parts and environments.
"""
EXAMPLES = """examples:
  softcount train MEME-RECODE-AP --env-options size=11 --run runs/first
  softcount train MEME --steps 200000 --seed 1     # the same without a bonus
  softcount train MEME-RECODE-AP --env disco-maze:size=7,disco-maze:size=9
"""


def short_help(config: RunConfig, first: argparse.ArgumentParser) -> str:
    """Explains the common options, and says what else there is."""
    options = options_of(config)
    by_path = {option.path: option for option in options}
    common = [*_described(first), *(_describe(by_path[path]) for path in COMMON)]
    tables = _tables(options)
    taken = _taken(first) | set(COMMON)
    single = " ".join(option.name for option in tables.pop("") if option.path not in taken)
    docs = field_docs(RunConfig)
    parts = [
        (f"--{part.replace('_', '-')}.*", f"{docs.get(part, '')} ({_number(rows)})")
        for part, rows in _by_first_word(tables).items()
    ]
    return "\n".join(
        [
            USAGE,
            "common options, with the values of the preset:",
            *_columns(common),
            "",
            f"all others of {config.agent}, explained by --help-all:",
            *textwrap.wrap(
                single, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
            ),
            *_columns(parts),
            "",
            EXAMPLES,
        ]
    )


def full_help(config: RunConfig, first: argparse.ArgumentParser) -> str:
    """Explains every option, table by table."""
    tables = _tables(options_of(config))
    taken = _taken(first)
    lines = [USAGE, "options:", *_columns(_described(first))]
    lines += _columns([_describe(option) for option in tables.pop("") if option.path not in taken])
    for table, rows in tables.items():
        lines += ["", f"{table}:", *_columns([_describe(option) for option in rows])]
    return "\n".join([*lines, "", EXAMPLES])


def _tables(options: list[Option]) -> dict[str, list[Option]]:
    """Groups options by the record that they are fields of, named by its path."""
    tables: dict[str, list[Option]] = {"": []}
    for option in options:
        table = option.path.rpartition(".")[0].replace("_", "-")
        tables.setdefault(table, []).append(option)
    tables.pop("env-options", None)  # `--env-options NAME=VALUE` sets these
    return tables


def _by_first_word(tables: dict[str, list[Option]]) -> dict[str, list[Option]]:
    parts: dict[str, list[Option]] = {}
    for table, rows in tables.items():
        parts.setdefault(table.partition(".")[0].replace("-", "_"), []).extend(rows)
    return parts


def _number(rows: list[Option]) -> str:
    return f"{len(rows)} options" if len(rows) > 1 else "1 option"


def _taken(first: argparse.ArgumentParser) -> set[str]:
    """Returns the fields that the first options explain already."""
    return {action.dest for action in first._actions if action.help != argparse.SUPPRESS}


def _described(first: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in first._actions:
        if action.help != argparse.SUPPRESS:
            value = f" {action.metavar or action.dest.upper()}" if action.nargs != 0 else ""
            yield "/".join(action.option_strings) + value, action.help or ""


def _describe(option: Option) -> tuple[str, str]:
    if option.choices:
        kinds = ", ".join(word.partition(":")[2] for word in option.choices)
        return option.spelling, f"{option.about} ({kinds}; now {_kind(option.value)})"
    if option.kind is bool:
        name = option.name if not option.value else option.names[1]
        return name, f"{option.about} [{'on' if option.value else 'off'}]"
    return option.spelling, f"{option.about} [{_plain(option.value)}]"


def _kind(value: Any) -> str:
    return "None" if value is None else repr(value) if isinstance(value, str) else type(value).__name__


def _plain(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else f"{value}"


def _columns(rows: Any) -> list[str]:
    """Sets names in a column on the left, and what they mean beside or below them."""
    lines: list[str] = []
    for name, about in rows:
        told = textwrap.wrap(about, WIDTH - INDENT, break_on_hyphens=False) or [""]
        head = f"  {name}"
        if len(head) > INDENT - 2:
            lines.append(head)
        else:
            lines.append(head.ljust(INDENT) + told.pop(0))
        lines += [" " * INDENT + line for line in told]
    return [line.rstrip() for line in lines]
