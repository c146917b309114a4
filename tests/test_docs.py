"""Every ```python block of the documentation runs, in order, file by file.

A block that cannot run here says so: ```python not-run.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = [
    path for path in FILES if path.parent.name != "drop_in"
]  # those are run with the libraries they are for
BLOCK = re.compile(r"^```python[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(path):
    """Returns the code, with empty lines before it so that errors name the right line."""
    text = path.read_text()
    return ["\n" * text[: match.start(1)].count("\n") + match[1] for match in BLOCK.finditer(text)]


@pytest.mark.parametrize("path", [path for path in RUN if blocks(path)], ids=lambda path: path.name)
def test_the_snippets_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names = {"__name__": "__main__"}
    for block in blocks(path):
        exec(compile(block, str(path), "exec"), names)


def anchors(path):
    """Returns what links may name after #, made from headings as GitHub makes it."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S), re.M)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def test_links_between_documents_lead_somewhere():
    for path in FILES:
        for target, anchor in re.findall(
            r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)", path.read_text()
        ):
            page = path.parent / target if target else path
            assert page.exists(), f"{path.name} links to {target}"
            assert not anchor or anchor in anchors(page), f"{path.name} links to {target}#{anchor}"
