"""The decisions are short, in the index, and where the code says they are."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/decisions.md").read_text()
INDEX, BODY = re.split(r"^## (?!Index)", PAGE, maxsplit=1, flags=re.MULTILINE)
ROWS = re.findall(r"^\| (\d+) \| (.+) \| (.+) \| `(.+)` \|$", INDEX, re.MULTILINE)
ENTRIES = {
    int(match[1]): match[0] for match in re.finditer(r"^(\d+)\. .*\n(?:^ +.*\n?)*", BODY, re.MULTILINE)
}


def test_every_entry_is_in_the_index_once_and_in_order():
    """If this fails: give the new entry a row in the index of docs/decisions.md, by its number."""
    assert [int(number) for number, *_ in ROWS] == sorted(ENTRIES)
    assert len(ENTRIES) == len(re.findall(r"^\d+\. ", BODY, re.MULTILINE)), "a number is used twice"


def test_the_index_names_places_that_exist():
    for number, _, _, where in ROWS:
        assert any((folder / where).exists() for folder in (ROOT / "src/softcount", ROOT)), (number, where)


def test_entries_have_at_most_four_lines():
    too_long = [number for number, text in ENTRIES.items() if len(text.strip().splitlines()) > 4]
    assert not too_long, f"shorten {too_long}; what was tried and measured goes to docs/notes"


def test_decisions_that_the_code_names_are_there():
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "native").iterdir()]:
        for number in re.findall(r"[Dd]ecisions? (\d+)", path.read_text()):
            assert int(number) in ENTRIES, f"{path.name} names decision {number}"
