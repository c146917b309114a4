"""Roles behind a border: only methods can be called, and everything that crosses is copied through bytes."""

import pickle
from dataclasses import replace


def through_bytes(tree):
    """What arrives on another machine: equal, and sharing nothing."""
    return pickle.loads(pickle.dumps(tree))


class Far:
    """Stands where a role stands; has its methods and nothing else of it."""

    def __init__(self, role):
        self._role = role

    def __call__(self, *asked):
        return through_bytes(self._role(*through_bytes(asked)))

    def __getattr__(self, name):
        found = getattr(self._role, name)
        if not callable(found) or name.startswith("_"):
            raise AttributeError(f"{name} of a role far away cannot be read; expected a call")
        return lambda *asked: through_bytes(found(*through_bytes(asked)))


def far_away(roles):
    """All roles of a loop, each behind a border."""
    return replace(roles, **{name: Far(role) for name, role in vars(roles).items()})
