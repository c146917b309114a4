"""How pictures are drawn and saved: the same colours, the same axes of steps, equal files for equal pictures.

docs/images/figures/NAME.png, .svg   most figures; some say another folder
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from softcount.hints import install
from softcount.taxonomy import AGENTS
from softcount.types import Array

IMAGES = Path("docs/images/figures")
COLOURS = (
    "#1b6ca8", "#d1495b", "#2e933c", "#e09f3e", "#7b4fa3", "#8c564b", "#555555", "#17a2a2", "#e377c2",
    "#bcbd22", "#000000", "#9edae5",
)  # fmt: skip


BONUS_COLOURS = {
    "none": "#8a8f98",
    "RECODE": "#1b6ca8",
    "RNDonAP": "#e377c2",
    "RND": "#e09f3e",
    "NGU": "#7b4fa3",
    "EMM": "#8c564b",
    "BYOL-Explore": "#17a2a2",
    "COUNT": "#2e933c",
}
"""One colour for each bonus, in every picture."""
WIDTH = 9.0
"""Inches of a picture as wide as a page: letters of 9 points stay readable there."""

SPOKEN = {"no bonus": "none", "true counts": "COUNT"}
"""Bonuses as captions call them."""
LETTERS = 120
"""How many of them have room beside each other in a legend."""


def bonus_of(name: str) -> str | None:
    """Returns which bonus a name speaks of: none for an agent alone, None where it speaks of something else.

    >>> bonus_of("MEME-RNDonAP"), bonus_of("RECODE, AP frozen"), bonus_of("MEME"), bonus_of("EMM-AP")
    ('RNDonAP', 'RECODE', 'none', 'EMM')
    >>> bonus_of("discount-off")
    """
    words = set(re.findall(r"BYOL-Explore|\w+", SPOKEN.get(name, name)))
    held = [bonus for bonus in BONUS_COLOURS if bonus in words]
    return held[0] if held else "none" if words <= set(AGENTS) else None


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """Returns a colour for each name: that of its bonus, lighter for the second of the same one.

    Where other things than bonuses are compared, each name gets the next colour.

    >>> colours_of(["MEME-RECODE-AP", "MEME"])
    {'MEME-RECODE-AP': '#1b6ca8', 'MEME': '#8a8f98'}
    >>> colours_of(["RECODE-AP", "RECODE-CASM"])
    {'RECODE-AP': '#1b6ca8', 'RECODE-CASM': '#d1495b'}
    """
    names = list(dict.fromkeys(names))
    bonuses = [bonus_of(name) for name in names]
    if None in bonuses or len(set(bonuses)) == 1:
        return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    earlier = [bonuses[:i].count(bonus) for i, bonus in enumerate(bonuses)]
    shades = (
        lighter(BONUS_COLOURS[str(bonus)], 0.5 * min(num, 1))
        for bonus, num in zip(bonuses, earlier, strict=True)
    )
    return dict(zip(names, shades, strict=True))


def lighter(colour: str, share: float) -> str:
    """Mixes a colour with white."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * share):02x}" for part in parts)


def legend_beside(figure: Any, *, columns: int = 4, place: str = "outside upper center") -> None:
    """Explains all labelled lines of a figure once, beside its axes; long labels share a line with few."""
    found = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if found:
        fitting = max(1, LETTERS // (max(map(len, found)) + 8))
        columns = min(columns, len(found), fitting)
        figure.legend(found.values(), found.keys(), loc=place, ncols=columns, frameon=False, fontsize=9)


def new_figure(width: float, height: float) -> Any:
    """Returns an empty matplotlib figure that needs no screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"drawing needs matplotlib: {install('plots')}") from error
    return Figure(figsize=(width, height), layout="constrained")


def save_picture(figure: Any, name: str, images: Path) -> list[Path]:
    """Writes a matplotlib figure as PNG and SVG; equal figures give equal files."""
    import matplotlib

    images.mkdir(parents=True, exist_ok=True)
    paths = [images / f"{name}.{suffix}" for suffix in ("png", "svg")]
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(paths[0], dpi=140)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def steps_below(axes: Any, label: str = "actor steps") -> None:
    """Makes the horizontal axis one of steps, or of what the label says, written as 50k or 2M; few ticks."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel(label)


def draw_seeds(axes: Any, steps: Array, curves: Array, colour: str, label: str) -> None:
    """Draws a thin line for every seed and a thick one for their mean; `curves` are `[seeds, points]`."""
    is_known = ~np.isnan(curves)
    for curve, known in zip(curves, is_known, strict=True):  # lines go over points that nothing is known of
        axes.plot(steps[known], curve[known], color=colour, linewidth=0.7, alpha=0.5)
    some = is_known.any(0)
    axes.plot(steps[some], np.nanmean(curves[:, some], axis=0), color=colour, linewidth=2, label=label)


def draw_steps(axes: Any, when: Any, end: float, **style: Any) -> None:
    """Draws a number that grows by one at each of these steps, until the end of a run."""
    numbers = [*range(1, len(when) + 1), len(when)]
    axes.step([*when, end], numbers, where="post", **style)
