"""`python -m chaos.kept train …` is `softcount train …` with every journal and snapshot of the memory kept."""

import sys
from functools import partial
from unittest import mock

from softcount.cli import main
from softcount.launch.ray import free, once

if __name__ == "__main__":
    with mock.patch.object(free.once, "OnceConfig", partial(once.OnceConfig, keep_history=True)):
        sys.exit(main(sys.argv[1:]))
