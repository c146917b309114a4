"""Every Python snippet of the drop-in pages runs as printed, page by page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("torchrl")
ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "drop_in").glob("*.md"))
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_snippets_of_the_page_run(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    namespace = {"__name__": "snippet"}
    for number, code in enumerate(SNIPPET.findall(page.read_text())):
        exec(compile(code, f"{page.name}, snippet {number + 1}", "exec"), namespace)


def test_the_pages_have_snippets_to_run():
    assert sum(len(SNIPPET.findall(page.read_text())) for page in PAGES) >= 12


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
