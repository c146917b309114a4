"""`python -m softcount`, and the command `softcount`: quiet when it is interrupted early."""

from __future__ import annotations

import sys

INTERRUPTED = 130
"""What shells return for a command that was interrupted."""


def main() -> int:
    """Runs the command line; Ctrl-C while it is still being loaded ends it without a traceback."""
    try:
        from softcount.cli import main as run

        return run()
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
