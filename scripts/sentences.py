"""Lists sentences of the documentation that are too long to follow at one reading.

    python scripts/sentences.py            # fails if more than a few are over the limit
    python scripts/sentences.py --words    # and shows the mean number of words per sentence, page by page

Only prose counts: headings, tables, code blocks and pictures are left out. A span of code is one
word, and so is a row of numbers such as 0.63 / 0.49 / 0.74.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LIMIT = 35
ALLOWED = 3
ROOT = Path(__file__).parents[1]

FENCE = re.compile(r"^ *```.*?^ *```[^\n]*$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"``.+?``|`[^`]+`", re.DOTALL)
NUMBERS = re.compile(r"[+−-]?[\d.,]+%?(?: ?/ ?[+−-]?[\d.,]*\d%?)+")
ITEM = re.compile(r"^(?: *[-*]|\d+\.) ")  # an indented number is prose that was wrapped there
SHORT = re.compile(r"\b(Figs?|Eq|Alg|App|Sec|vs|e\.g|i\.e)\.")
END = re.compile(r"(?<=[.!?])[*_)\"']* +(?=[^a-z ])")


def paragraphs(page: str) -> Iterator[tuple[int, str]]:
    """Yields each paragraph and list item of a page as one line, with the line where it starts."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")  # lines keep their numbers

    gathered: list[str] = []
    start = 0
    lines = COMMENT.sub(blank, FENCE.sub(blank, page)).splitlines()
    for number, line in enumerate([*lines, ""], 1):
        ends = not line.strip() or line.lstrip().startswith(("#", "|"))
        if gathered and (ends or ITEM.match(line)):
            yield start, " ".join(gathered)
            gathered = []
        if not ends:
            start = start if gathered else number
            gathered.append(ITEM.sub("", line, count=1).strip())


def sentences(paragraph: str) -> list[str]:
    """Returns the sentences of a paragraph."""
    text = LINK.sub(r"\1", PICTURE.sub("", paragraph))
    text = NUMBERS.sub("0", CODE.sub("`code`", text))
    return END.split(SHORT.sub(r"\1", text))


def words(sentence: str) -> int:
    """Counts what is read as a word: signs alone are not."""
    return sum(any(char.isalnum() for char in word) for word in sentence.split())


def pages(root: Path) -> list[Path]:
    """Returns the pages that are checked."""
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]


def main(arguments: list[str]) -> int:
    """Prints what is too long. Returns 1 if that is more than a few, else 0."""
    too_long = 0
    for page in pages(ROOT):
        name = page.relative_to(ROOT)
        lengths = []
        for line, paragraph in paragraphs(page.read_text()):
            for sentence in filter(words, sentences(paragraph)):
                lengths.append(words(sentence))
                if lengths[-1] > LIMIT:
                    too_long += 1
                    print(f"{name}:{line}: {lengths[-1]} words: {sentence}")
        if "--words" in arguments and lengths:
            print(f"{name}: {sum(lengths) / len(lengths):.1f} words per sentence, {len(lengths)} sentences")
    print(f"{too_long} sentences have more than {LIMIT} words; at most {ALLOWED} may")
    return int(too_long > ALLOWED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
