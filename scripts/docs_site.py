"""Makes the documentation a site that works offline, from a folder: `make docs`.

    python scripts/docs_site.py --out build/site

The pages of `docs`, the README, contributing and the changelog are copied to a folder, with their links
turned to where things are on the site. The reference comes from docstrings (`docs_reference.py`). Sphinx
makes pages and search of it. Every warning is an error: a link that leads nowhere, a page in no menu.
"""

from __future__ import annotations

import argparse
import posixpath
import re
import shutil
import sys
from pathlib import Path

import docs_reference
from sphinx.cmd.build import main as sphinx

ROOT = Path(__file__).parents[1]
OUTSIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages that stand beside `docs`, and what they are called on the site."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]++|\[[^\[\]]*+\])*+)\]\(([^)\s]+)\)")  # never goes back: pages are long
CODE = re.compile(r"^ *```.*?^ *```[^\n]*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
MENUS = {
    "Start": ("how_it_works", "environments", "eight_rooms", "representations", "performance"),
    "Your own loop": ("own_environment", "which_bonus", "drop_in/README", "drop_in/*"),
    "Whole agents": ("agent", "agent/*", "atari", "report", "metrics", "reliability", "scale", "scale/*"),
    "The paper": ("reproduction", "reproduction/*", "paper_map", "references"),
    "Change it": (
        "architecture",
        "contributing",
        "decisions",
        "mutants",
        "changelog",
        "notes/README",
        "notes/*",
    ),
    "Reference": ("reference/*",),
}
"""The site's menus: pages in their order; a star stands for the rest of a folder."""

CONF = """
project = "softcount"
copyright = "the softcount authors, Apache-2.0"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "softcount"
html_show_sphinx = False
html_show_search_summary = False  # it would fetch pages, which browsers forbid in a folder
html_copy_source = False
html_show_sourcelink = False
myst_heading_anchors = 6
myst_enable_extensions = ["fieldlist"]
python_display_short_literal_types = True
python_use_unqualified_type_names = True
suppress_warnings = ["ref.python"]  # a name that two modules have, in an annotation
pygments_style = "friendly"
pygments_dark_style = "monokai"
toc_object_entries_show_parents = "hide"
"""


def gather(folder: Path) -> None:
    """Puts everything that the site is made of into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder)
    sources = {f"docs/{path.relative_to(folder)}": path for path in folder.rglob("*.md")}
    sources |= {source: folder / page for source, page in OUTSIDE.items()}
    for source, path in sources.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        path.write_text(turn_links(text, source, str(path.relative_to(folder))), encoding="utf-8")
    for page, text in docs_reference.pages(ROOT / "src").items():
        path = folder / "reference" / f"{page}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    names = {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.md")}
    with open(folder / "index.md", "a", encoding="utf-8") as index:
        index.write(menus(names - {"index"}))
    (folder / "conf.py").write_text(CONF, encoding="utf-8")


def turn_links(text: str, source: str, page: str) -> str:
    """Points the links of a page at where things are on the site; code stays as it is."""

    def turned(match: re.Match[str]) -> str:
        target = moved(match[3], source, page)
        return f"{match[1]}[{match[2]}]({target})" if target else match[2]

    parts, end = [], 0
    for code in CODE.finditer(text):
        before = text[end : code.start()]
        parts += [before, re.sub(r"^(```\w+) [\w-]+", r"\1", code[0])]  # `python not-run` is for our tests
        end = code.end()
    marks = [f"\x00{i}\x00" for i in range(len(parts) // 2)]
    whole = "".join(
        part if i % 2 == 0 else marks[i // 2] for i, part in enumerate([*parts, text[end:]])
    )  # a link may have code in its text
    whole = LINK.sub(turned, whole)
    for mark, code_text in zip(marks, parts[1::2], strict=True):
        whole = whole.replace(mark, code_text)
    return whole


def moved(target: str, source: str, page: str) -> str | None:
    """Returns where a link of a file of the checkout leads to on the site; None for nowhere.

    >>> moved("docs/agent.md#speed", "README.md", "index.md")
    'agent.md#speed'
    >>> moved("../../CONTRIBUTING.md", "docs/notes/README.md", "notes/README.md")
    '../contributing.md'
    >>> moved("src/softcount/memory/recode.py", "README.md", "index.md")
    'reference/memory.md#softcount-memory-recode'

    The site knows no address of the project, so a file that is not on it is only named.

    >>> moved("results", "README.md", "index.md") is None
    True
    """
    path, hash_sign, anchor = target.partition("#")
    if re.match(r"[a-z]+:", target) or not path:
        return target
    found = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if found in OUTSIDE:
        found = OUTSIDE[found]
    elif found.startswith("src/softcount/") and found.endswith(".py"):
        module = found.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        found, hash_sign, anchor = (
            docs_reference.page_of(module),
            "#",
            module.replace(".", "-").replace("_", "-"),
        )
        found = f"reference/{found}.md"
    elif not found.startswith("docs/"):
        return None
    else:
        found = found.removeprefix("docs/")
        found = f"{found}/README.md" if (ROOT / "docs" / found).is_dir() else found
    return posixpath.relpath(found, posixpath.dirname(page) or ".") + hash_sign + anchor


def menus(names: set[str]) -> str:
    """Returns the table of all pages, menu by menu; pages that no menu names go to the last but one.

    >>> print(menus({"agent", "agent/new"}))  # doctest: +ELLIPSIS
    <BLANKLINE>
    ...
    :caption: Whole agents
    <BLANKLINE>
    agent
    agent/new
    ```
    <BLANKLINE>
    """
    named = {name for pages in MENUS.values() for name in pages}
    left, text = names - named, ""
    for caption, pages in MENUS.items():
        found: list[str] = []
        for name in pages:
            rest = sorted(each for each in left if posixpath.dirname(each) == name[:-2])
            found += [name] * (name in names) if not name.endswith("/*") else rest
        left -= set(found)
        if caption == "Change it":
            found += sorted(each for each in left if not each.startswith("reference/"))
        lines = "\n".join(found)
        text += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n```\n" if found else ""
    return text


def build(source: Path, out: Path) -> int:
    """Makes the site; returns 1 if there was anything to warn of."""
    return sphinx(["-b", "html", "-W", "--keep-going", "-q", "-j", "auto", str(source), str(out)])


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes the documentation a site.")
    parser.add_argument("--out", type=Path, default=ROOT / "build/site", help="folder to write")
    arguments = parser.parse_args()
    source = ROOT / "build/site-source"
    gather(source)
    failed = build(source, arguments.out)
    if not failed:
        print(f"the documentation: {arguments.out / 'index.html'}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
