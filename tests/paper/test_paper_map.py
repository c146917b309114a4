"""Every row of docs/paper_map.md names code that exists and a test that exists."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def rows():
    for line in (ROOT / "docs" / "paper_map.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and cells[0] != "paper" and not set(line) <= set("|-: "):
            yield cells


def resolve(name):
    """Finds a dotted name: the longest importable module, then attributes."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            fields = getattr(found, "__dataclass_fields__", {})
            found = fields[attribute] if attribute in fields else getattr(found, attribute)
        return found
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row[0])
def test_the_row_names_code_and_tests_that_exist(row):
    _, code, tests = row
    names, guards = (
        re.findall(r"`((?:softcount|experiments)[\w.]*)`", code),
        re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", tests),
    )
    assert names, f"no code is named in {code!r}"
    assert guards, f"no test is named in {tests!r}"
    for name in names:
        resolve(name)
    for file, test in guards:
        assert re.search(rf"^def {test}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file} has no {test}"


def test_all_lines_of_algorithm_1_are_mapped():
    text = (ROOT / "docs" / "paper_map.md").read_text()
    mapped = set()
    for first, last in re.findall(r"Alg\. 1, L(\d+)(?:-(\d+))?", text):
        mapped |= set(range(int(first), int(last or first) + 1))
    assert mapped == set(range(1, 18))  # L18 is the end of the branch
