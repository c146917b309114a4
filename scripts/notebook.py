"""Writes docs/own_environment.ipynb from docs/own_environment.md: the same text, the code in cells.

python scripts/notebook.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "own_environment.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def notebook(text: str) -> str:
    """Returns the notebook of a page of Markdown."""
    parts = BLOCK.split(text)  # text, code, text, code, …
    cells = [
        _cell("code" if i % 2 else "markdown", part.strip()) for i, part in enumerate(parts) if part.strip()
    ]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _cell(kind: str, text: str) -> dict[str, object]:
    extra = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True), **extra}


if __name__ == "__main__":
    PAGE.with_suffix(".ipynb").write_text(notebook(PAGE.read_text()))
