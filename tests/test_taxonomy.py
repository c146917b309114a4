"""The names of the paper's table, and what wrong ones are told."""

from __future__ import annotations

import pytest

from softcount.taxonomy import parse

PAPER = {
    "MEME-NGU-AP": ("meme", "ngu", "ap", "rnd"),
    "MEME-RND": ("meme", "surprise", "rnd", "none"),
    "MEME-EMM-AP": ("meme", "episodic", "ap", "none"),
    "MEME-RNDonAP": ("meme", "surprise", "rnd-on-ap", "none"),
    "MEME-RECODE-AP": ("meme", "recode", "ap", "none"),
    "MEME-RECODE-CASM": ("meme", "recode", "casm", "none"),
    "MEME-NGU-CASM": ("meme", "ngu", "casm", "rnd"),
    "VMPO-BYOL-Explore": ("vmpo", "surprise", "byol", "none"),
}
MORE = {
    "MEME-RECODE-CASnotM": ("meme", "recode", "casnotm", "none"),
    "MEME-RECODE-BYOL": ("meme", "recode", "byol", "none"),
    "VMPO-RECODE-AP": ("vmpo", "recode", "ap", "none"),
    "MEME": ("meme", "none", "none", "none"),
    "MEME-COUNT": ("meme", "place_count", "none", "none"),
    "RECODE-AP": (None, "recode", "ap", "none"),
    "MEME-RECODE-FRAME": ("meme", "recode", "frame", "none"),
    "EMM-FRAME": (None, "episodic", "frame", "none"),
    "RECODE-RANDOM": (None, "recode", "random", "none"),
    "EMM-CASM": (None, "episodic", "casm", "none"),
    "NGU-BYOL": (None, "ngu", "byol", "rnd"),
    "RND": (None, "surprise", "rnd", "none"),
    "BYOL-Explore": (None, "surprise", "byol", "none"),
}


@pytest.mark.parametrize("name", [*PAPER, *MORE])
def test_every_name_is_taken_apart_as_the_table_says(name):
    recipe = parse(name)
    assert (recipe.agent, recipe.bonus, recipe.representation, recipe.surprise) == {**PAPER, **MORE}[name]
    assert recipe.name == name


def test_ngu_asks_for_two_representations_and_others_for_one():
    assert parse("NGU-CASM").representation_kind == "casm+rnd"
    assert parse("RECODE-CASM").representation_kind == "casm"


def test_case_does_not_matter_and_the_paper_spelling_comes_back():
    assert parse("meme-recode-casnotm").name == "MEME-RECODE-CASnotM"
    assert parse("vmpo-byol-explore") == parse("VMPO-BYOL-Explore")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "PPO-RECODE-AP",
            "'PPO' is not known; expected an agent or a bonus, one of MEME, VMPO, BYOL-Explore",
        ),
        ("MEME-RECORD-AP", "'RECORD' is not known; expected a bonus, .* did you mean 'RECODE'?"),
        (
            "MEME-RECODE-CASMM",
            "'CASMM' is not known; expected a representation after RECODE, one of AP, CASM",
        ),
        ("RECODE-CSAM", "did you mean 'CASM'?"),
        ("RECODE", "the name stops; expected a representation after RECODE"),
        ("RND-AP", "RND brings its own representation, so 'AP' cannot follow"),
        ("RECODE-AP-AP", "expected a representation after RECODE"),
        ("", "the name is empty"),
    ],
)
def test_an_unknown_part_is_named_with_the_known_ones(name, says):
    with pytest.raises(ValueError, match=says.replace("?", r"\?")):
        parse(name)
