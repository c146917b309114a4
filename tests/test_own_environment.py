"""The page of one's own environment: its world is the example's, its notebook has the same code."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "own_environment.md"


def script():
    spec = importlib.util.spec_from_file_location("notebook", ROOT / "scripts" / "notebook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notebook_is_the_page():
    written = json.loads(PAGE.with_suffix(".ipynb").read_text())
    assert written == json.loads(script().notebook(PAGE.read_text()))
    code = ["".join(cell["source"]) for cell in written["cells"] if cell["cell_type"] == "code"]
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert code == [block.strip() for block in blocks]  # which test_docs runs
    assert len(code) == 2


def test_the_world_on_the_page_is_the_one_of_the_example():
    example = (ROOT / "examples" / "key_and_door.py").read_text()
    world = example[example.index("import gymnasium") :].strip()
    assert world in PAGE.read_text()
