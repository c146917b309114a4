"""How commands read their words: as argparse does, with better answers to what it does not know."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from softcount.hints import nearest


class UsageError(ValueError):
    """What was typed is no command."""


class Parser(argparse.ArgumentParser):
    """Names the nearest option for an unknown one, takes no short forms, and raises what it refuses."""

    def __init__(self, prog: str, **kwargs: Any) -> None:
        super().__init__(prog, allow_abbrev=False, **kwargs)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, unknown = self.parse_known_args(args, namespace)
        for word in unknown:
            if word.startswith("-"):
                known = [name for action in self._actions for name in action.option_strings]
                name = word.partition("=")[0]
                raise UsageError(f"no option is called {name}{nearest(name, known)}")
            raise UsageError(f"{word!r} is one word too many")
        return parsed

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)
