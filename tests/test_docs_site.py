"""The site: links lead where things are on it, every page is in a menu, nothing leads nowhere."""

import re
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.fixture(scope="module")
def site():
    sys.path.insert(0, str(SCRIPTS))
    import docs_site

    yield docs_site
    sys.path.remove(str(SCRIPTS))


@pytest.fixture(scope="module")
def gathered(site, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "source"
    site.gather(folder)
    return folder


@pytest.mark.parametrize(
    ("target", "source", "page", "leads_to"),
    [
        ("docs/agent.md#speed", "README.md", "index.md", "agent.md#speed"),
        ("docs/drop_in", "README.md", "index.md", "drop_in/README.md"),
        ("../CONTRIBUTING.md", "docs/architecture.md", "architecture.md", "contributing.md"),
        ("../../README.md", "docs/notes/README.md", "notes/README.md", "../index.md"),
        ("../images/a.png", "docs/agent/vmpo.md", "agent/vmpo.md", "../images/a.png"),
        ("#below", "README.md", "index.md", "#below"),
        ("https://example.org/a", "README.md", "index.md", "https://example.org/a"),
        ("src/softcount/config.py", "README.md", "index.md", "reference/softcount.md#softcount-config"),
        (
            "../src/softcount/memory/recode.py",
            "docs/a.md",
            "a.md",
            "reference/memory.md#softcount-memory-recode",
        ),
        ("results", "README.md", "index.md", None),
        ("../tests/test_docs.py", "docs/a.md", "a.md", None),
    ],
)
def test_links_lead_to_where_things_are_on_the_site(site, target, source, page, leads_to):
    assert site.moved(target, source, page) == leads_to


def test_links_are_turned_and_code_is_not(site):
    text = "See [`code`](docs/agent.md) and ![p](docs/images/a.png), [raw](results).\n\n"
    text += "```python not-run\na[0](b)\n```\n`[x](y)`\n"
    turned = "See [`code`](agent.md) and ![p](images/a.png), raw.\n\n```python\na[0](b)\n```\n`[x](y)`\n"
    assert site.turn_links(text, "README.md", "index.md") == turned


def test_every_page_is_in_exactly_one_menu(gathered):
    menus = re.findall(r"```\{toctree\}.*?\n\n(.*?)\n```", (gathered / "index.md").read_text(), re.DOTALL)
    listed = [name for menu in menus for name in menu.splitlines()]
    pages = {str(path.relative_to(gathered).with_suffix("")) for path in gathered.rglob("*.md")}
    assert sorted(listed) == sorted(pages - {"index"})
    assert len(listed) > 40


def test_the_reference_has_signatures_values_and_examples(gathered):
    text = (gathered / "reference/memory.md").read_text()
    assert "{py:class} softcount.memory.config.RecodeConfig" in text
    assert ":type: int" in text
    method = r"\{py:method\} softcount\.memory\.memory\.RecodeMemory\.observe\(embeddings: .*\) -> "
    assert re.search(method, text)
    assert "```pycon\n>>> " in text
    assert "_native_engine" not in text
    single = (gathered / "reference/softcount.md").read_text()
    assert "## softcount.config" in single
    assert "## softcount.cli" in single


@pytest.mark.parametrize(
    ("target", "code"), [("second.md#there", 0), ("second.md#nowhere", 1), ("third.md", 1)]
)
def test_a_link_that_leads_nowhere_is_an_error(site, tmp_path, target, code, capfd):
    source = tmp_path / "source"
    source.mkdir()
    (source / "conf.py").write_text(site.CONF)
    (source / "index.md").write_text(f"# First\n\n[a]({target})\n\n```{{toctree}}\nsecond\n```\n")
    (source / "second.md").write_text("# Second\n\n## There\n\nwords to search\n")
    assert site.build(source, tmp_path / "out") == code
    if code == 0:
        assert "search" in (tmp_path / "out/searchindex.js").read_text()
        page = (tmp_path / "out/index.html").read_text()
        assert not re.search(r"<(script|link|img)[^>]+https?://", page)  # works offline


def test_every_module_is_on_the_reference_once_also_where_others_import_it(gathered):
    text = "".join(path.read_text() for path in (gathered / "reference").iterdir())
    modules = re.findall(r"^## (softcount[\w.]*)$", text, re.MULTILINE)
    assert len(modules) == len(set(modules)) > 100
    assert "softcount.runs.live" in modules  # which `softcount.runs.run` imports
    assert not any(name.startswith("softcount.runs.run.") for name in modules)
