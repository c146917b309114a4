"""Tells people, once each, that nothing is paid yet and when it is."""

from __future__ import annotations

import logging

LOG = logging.getLogger("softcount")


class Notes:
    """Two lines in the log of `softcount`, shown unless logging is set up otherwise."""

    def __init__(self, name: str, num_unpaid: int) -> None:
        self.name, self.num_unpaid = name, num_unpaid
        self._is_waiting: bool | None = None  # None before the first step

    def __call__(self, step: int, is_paying: bool) -> None:
        """Says what has changed."""
        if self._is_waiting is None and not is_paying:
            LOG.warning(
                "%s pays nothing for about the first %s steps, while it learns and fills its memory",
                self.name,
                f"{self.num_unpaid:,}",
            )
        elif self._is_waiting and is_paying:
            LOG.warning("%s pays from step %s on", self.name, f"{step:,}")
        self._is_waiting = not is_paying
