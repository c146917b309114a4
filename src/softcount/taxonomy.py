"""The names of the paper's agents, taken apart (App. "Agent Taxonomy").

    MEME-RECODE-CASM   =   base agent – intrinsic reward – representation

| name                    | bonus         | representation | surprise |
|-------------------------|---------------|----------------|----------|
| RECODE-AP, -CASM, …     | `recode`      | that one       |          |
| EMM-AP, …               | `episodic`    | that one       |          |
| NGU-AP, NGU-CASM, …     | `ngu`         | that one       | `rnd`    |
| RND                     | `surprise`    | `rnd`          |          |
| RNDonAP                 | `surprise`    | `rnd-on-ap`    |          |
| BYOL-Explore            | `surprise`    | `byol`         |          |
| COUNT                   | `place_count` | `none`         |          |
| (nothing)               | `none`        | `none`         |          |

Names are read part by part, longest first (BYOL-Explore contains the separator), in any
case. The agent, MEME or VMPO, may be left out in drop-in use.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

AGENTS = {"MEME": "meme", "VMPO": "vmpo"}
"""Base agents by their part of the name."""

EMBEDDINGS = {
    "AP": "ap",
    "CASM": "casm",
    "CASnotM": "casnotm",
    "BYOL": "byol",
    "RANDOM": "random",
    "FRAME": "frame",
}
"""Representations that give an embedding; FRAME, the picture itself made small, is ours."""

ON_EMBEDDINGS = {"RECODE": ("recode", "none"), "EMM": ("episodic", "none"), "NGU": ("ngu", "rnd")}
"""Bonuses of an embedding, which the name must give: kind, and the kind of its surprise."""

WHOLE = {
    "BYOL-Explore": ("surprise", "byol"),
    "RNDonAP": ("surprise", "rnd-on-ap"),
    "RND": ("surprise", "rnd"),
    "COUNT": ("place_count", "none"),
}
"""Bonuses that bring their representation: kind, and the kind of representation."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a name asks for."""

    name: str
    """The name as the paper writes it."""
    agent: str | None
    """`meme`, `vmpo`, or None where the name gives only the bonus."""
    bonus: str
    """`recode`, `episodic`, `ngu`, `surprise`, `place_count` or `none`."""
    representation: str
    """`ap`, `casm`, `casnotm`, `byol`, `rnd`, `rnd-on-ap`, `random`, `frame` or `none`."""
    surprise: str = "none"
    """Where a second representation gives the surprise (NGU): `rnd`, else `none`."""

    @property
    def representation_kind(self) -> str:
        """What `make_representation` is to build: `ap`, or `ap+rnd` where both features are needed."""
        return self.representation if self.surprise == "none" else f"{self.representation}+{self.surprise}"


def parse(name: str) -> Recipe:
    """Reads a name of the paper's taxonomy.

    >>> recipe = parse("MEME-RECODE-CASM")
    >>> recipe.agent, recipe.bonus, recipe.representation
    ('meme', 'recode', 'casm')
    >>> parse("ngu-ap").surprise, parse("VMPO-BYOL-Explore").bonus
    ('rnd', 'surprise')
    """
    agent_part, rest = _take(name.strip(), AGENTS)
    agent = AGENTS[agent_part] if agent_part else None
    if not rest:
        if agent_part is None:
            raise ValueError(f"the name is empty; expected one like 'MEME-RECODE-AP' or 'RND'; {_KNOWN}")
        return Recipe(name=agent_part, agent=agent, bonus="none", representation="none")
    bonus_part, rest = _take(rest, {**WHOLE, **ON_EMBEDDINGS})
    if bonus_part is None:
        expected = "a bonus" if agent_part else "an agent or a bonus"
        known = [*WHOLE, *ON_EMBEDDINGS] if agent_part else [*AGENTS, *WHOLE, *ON_EMBEDDINGS]
        raise ValueError(_unknown(name, rest, expected, known))
    parts = [part for part in (agent_part, bonus_part) if part]
    if bonus_part in WHOLE:
        if rest:
            raise ValueError(
                f"{name!r}: {bonus_part} brings its own representation, so {rest!r} cannot follow"
            )
        bonus, representation = WHOLE[bonus_part]
        return Recipe(name="-".join(parts), agent=agent, bonus=bonus, representation=representation)
    embedding_part, left = _take(rest, EMBEDDINGS)
    if embedding_part is None or left:
        raise ValueError(_unknown(name, rest, f"a representation after {bonus_part}", list(EMBEDDINGS)))
    bonus, surprise = ON_EMBEDDINGS[bonus_part]
    full = "-".join([*parts, embedding_part])
    return Recipe(
        name=full, agent=agent, bonus=bonus, representation=EMBEDDINGS[embedding_part], surprise=surprise
    )


def _take(text: str, parts: Mapping[str, object]) -> tuple[str | None, str]:
    """Takes the longest known part off the front of a name; None if there is none."""
    for part in sorted(parts, key=len, reverse=True):
        head, tail = text[: len(part)], text[len(part) :]
        if head.lower() == part.lower() and (not tail or tail[0] == "-"):
            return part, tail[1:]
    return None, text


def _unknown(name: str, rest: str, expected: str, known: list[str]) -> str:
    """Says which part is not known, what is, and what may have been meant."""
    part = rest.split("-")[0]
    lower = {choice.lower(): choice for choice in known}
    close = difflib.get_close_matches(part.lower(), lower, n=1, cutoff=0.5)
    hint = f"; did you mean {lower[close[0]]!r}?" if close else ""
    found = f"{part!r} is not known" if part else "the name stops"
    return f"{name!r}: {found}; expected {expected}, one of {', '.join(known)}{hint}"


_KNOWN = (
    f"agents {', '.join(AGENTS)}; bonuses {', '.join([*WHOLE, *ON_EMBEDDINGS])}; "
    f"representations {', '.join(EMBEDDINGS)}"
)
