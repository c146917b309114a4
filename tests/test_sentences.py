"""What counts as a sentence of the documentation, and as a long one."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts/sentences.py"
spec = importlib.util.spec_from_file_location("sentences", SCRIPT)
sentences = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sentences)

PAGE = """# A heading that is not a sentence

One sentence
over two lines. *Another* one.

```
code that is not read
```

| a table | that is not read |
|---|---|
- An item, paid
  0. Its end.
1. A numbered item.
<!-- a comment -->
"""


def test_only_prose_is_read_and_lines_are_numbered_as_in_the_file():
    assert list(sentences.paragraphs(PAGE)) == [
        (3, "One sentence over two lines. *Another* one."),
        (12, "An item, paid 0. Its end."),
        (14, "A numbered item."),
    ]


@pytest.mark.parametrize(
    ("paragraph", "lengths"),
    [
        ("One two. Three four five! Six?", [2, 3, 1]),
        ("See Fig. 3 and e.g. that.", [6]),
        ("The area is 0.63 / 0.49 / 0.74 here. Next.", [5, 1]),
        ("Run `softcount train MEME --steps 5` [now](a/b.md#c). `x` is y.", [3, 3]),
        ("**Bold.** Then text. (In brackets.) *Holds.* And so on.", [1, 2, 2, 1, 3]),
        ("![a picture of something](x.png)", [0]),
        ("a; b: c, so — d", [5]),
        ("it is 1.5 times. 3 more", [4, 2]),
    ],
)
def test_words_are_counted_sentence_by_sentence(paragraph, lengths):
    assert [sentences.words(sentence) for sentence in sentences.sentences(paragraph)] == lengths


def test_a_page_with_too_many_long_sentences_fails_and_names_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sentences, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("Short.\n")
    (tmp_path / "CONTRIBUTING.md").write_text("Short.\n")
    just_right, too_long = ("word " * n + ".\n\n" for n in (sentences.LIMIT, sentences.LIMIT + 1))
    (tmp_path / "docs/a.md").write_text(just_right + too_long * sentences.ALLOWED)
    assert sentences.main([]) == 0
    (tmp_path / "docs/a.md").write_text(just_right + too_long * (sentences.ALLOWED + 1))
    assert sentences.main([]) == 1
    assert "docs/a.md:3: 36 words: word word" in capsys.readouterr().out
