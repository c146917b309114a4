"""`python -m chaos.kept train …` is `softcount train …` that keeps all of the memory's journals."""

import os
import sys
from functools import partial
from unittest import mock

from softcount.cli import main
from softcount.launch.ray import free, once
from softcount.runs.allocator import ALLOCATOR

if __name__ == "__main__":
    os.environ.update(ALLOCATOR)  # set: the command does not start itself anew without what is patched
    with mock.patch.object(free.once, "OnceConfig", partial(once.OnceConfig, keep_history=True)):
        sys.exit(main(sys.argv[1:]))
