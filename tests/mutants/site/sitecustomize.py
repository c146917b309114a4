"""Takes the editable install's finder away, so that `softcount` is the copy that comes first on the path.

Python runs this file by its name when it starts, also in processes that tests start.
"""

import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if not type(finder).__name__.startswith("ScikitBuild")]
