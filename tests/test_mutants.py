"""The mutants' own runner: what it takes for dead, what it refuses, which tenth it takes."""

import pytest
from mutants.__main__ import NOBODY, chosen
from mutants.entries import Mutant, problems, read_list
from mutants.judging import CRASHED, HUNG, KILLED, SURVIVED, UNUSABLE, Court, outcome_of

KERNELS = "src/softcount/memory/kernels.py"
TEST = "tests/memory/test_kernels.py::test_the_k_smallest_come_in_ascending_order"


def mutant(snippet="k - 1)[:k]", replacement="k - 1)[1:k]", file=KERNELS, tests=(TEST,), key="a/1"):
    return Mutant(key, file, snippet, replacement, "Because.", tests)


def test_a_list_is_read_in_order_and_an_incomplete_entry_is_named(tmp_path):
    entry = "[[mutant]]\nfile = 'f'\nsnippet = 'x'\nreplacement = 'y'\nwhy = 'w'\n"
    path = tmp_path / "area.toml"
    path.write_text(entry + "killed_by = ['t']\n" + entry.replace("'x'", "'z'") + "killed_by = ['u']\n")
    assert [(x.key, x.snippet, x.killed_by) for x in read_list(path)] == [
        ("area/1", "x", ("t",)),
        ("area/2", "z", ("u",)),
    ]
    path.write_text(entry)
    with pytest.raises(ValueError, match=r"area/1 has the fields .*expected .*killed_by"):
        read_list(path)
    path.write_text(entry.replace("'y'", "'x'") + "killed_by = ['t']\n")
    with pytest.raises(ValueError, match="area/1 changes nothing"):
        read_list(path)


def test_a_snippet_that_is_gone_or_not_alone_is_named_with_its_file(tmp_path):
    (tmp_path / "code.py").write_text("a = 1\nb = 1\n")
    (gone,) = problems([mutant("c = 1", file="code.py")], tmp_path)
    assert gone.startswith("a/1: code.py holds the snippet 'c = 1' 0 times; expected once")
    (twice,) = problems([mutant("= 1", file="code.py")], tmp_path)
    assert "'= 1' 2 times" in twice
    (moved,) = problems([mutant("a = 1", file="old.py")], tmp_path)
    assert moved.startswith("a/1: old.py does not exist")
    one = mutant("a = 1", file="code.py")
    assert problems([one], tmp_path) == []
    again = mutant("a = 1", file="code.py", key="a/2")
    assert problems([one, again], tmp_path) == ["a/2 is a/1 once more; remove one"]


def test_a_mutant_that_names_no_test_is_a_problem():
    assert problems([mutant(tests=())]) == ["a/1 names no test; expected the one that must notice it"]


def answer(exit=1, failed=("t::one",), last="t::one", is_late=False):
    return {"exit": exit, "failed": list(failed), "last": last, "is_late": is_late}


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (answer(), (KILLED, "t::one")),
        (answer(exit=0, failed=()), (SURVIVED, None)),
        (answer(exit=-11, failed=()), (CRASHED, "t::one")),
        (answer(exit=-9, failed=(), is_late=True), (HUNG, "t::one")),
    ],
)
def test_how_tests_end_decides(said, outcome):
    assert outcome_of(said) == outcome


@pytest.mark.parametrize("said", [answer(exit=4), answer(exit=2), answer(exit=5), answer(exit=0, last=None)])
def test_tests_that_could_not_be_run_kill_nothing(said):
    assert outcome_of(said)[0] == UNUSABLE


def test_tenths_share_all_mutants_out():
    mutants = [mutant(key=f"{area}/{i}") for area in "ab" for i in range(1, 18)]
    tenths = [chosen(mutants, tenth) for tenth in range(10)]
    assert sorted(x.key for tenth in tenths for x in tenth) == sorted(x.key for x in mutants)
    assert all({x.key[0] for x in tenth} == {"a", "b"} for tenth in tenths)
    assert [x.key for x in chosen(mutants, NOBODY, ["b", "a/3"])] == [
        "a/3",
        *(f"b/{i}" for i in range(1, 18)),
    ]
    assert chosen(mutants, NOBODY, [KERNELS]) == mutants
    assert chosen(mutants, NOBODY, ["a/"]) == []


def test_a_wrong_line_dies_a_harmless_one_survives_and_the_copy_is_right_again():
    mutants = [
        mutant(),
        mutant('"""Returns the k smallest', '"""Gives the k smallest', key="a/2"),
        mutant(tests=("tests/memory/test_kernels.py::test_that_is_gone",), key="a/3"),
        mutant("import numpy as np\n", "import numpy as np\nimport nothing_like_this\n", key="a/4"),
    ]
    court = Court(num_workers=1, limit=100.0)
    try:
        verdicts = {x.mutant.key: (x.outcome, x.test) for x in court.judge(mutants)}
        assert court.fails_when_right([TEST]) == []
    finally:
        court.close()
    assert verdicts["a/1"] == (KILLED, TEST)
    assert verdicts["a/2"] == (SURVIVED, None)
    assert verdicts["a/3"][0] == verdicts["a/4"][0] == UNUSABLE
