"""How pictures are drawn and saved: the same colours, the same axes of steps, equal files for equal pictures.

docs/images/figures/NAME.png, .svg   most figures; some say another folder
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from softcount.hints import install
from softcount.types import Array

IMAGES = Path("docs/images/figures")
COLOURS = (
    "#1b6ca8", "#d1495b", "#2e933c", "#e09f3e", "#7b4fa3", "#8c564b", "#555555", "#17a2a2", "#e377c2",
    "#bcbd22", "#000000", "#9edae5",
)  # fmt: skip


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
        figure.savefig(paths[0], dpi=110)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def steps_below(axes: Any) -> None:
    """Makes the horizontal axis one of steps, written as 50k or 2M."""
    from matplotlib.ticker import EngFormatter

    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel("actor steps")


def draw_seeds(axes: Any, steps: Array, curves: Array, colour: str, label: str) -> None:
    """Draws a thin line for every seed and a thick one for their mean; `curves` are `[seeds, points]`."""
    for curve in curves:
        axes.plot(steps, curve, color=colour, linewidth=0.7, alpha=0.5)
    axes.plot(steps, np.nanmean(curves, axis=0), color=colour, linewidth=2, label=label)


def draw_steps(axes: Any, when: Any, end: float, **style: Any) -> None:
    """Draws a number that grows by one at each of these steps, until the end of a run."""
    numbers = [*range(1, len(when) + 1), len(when)]
    axes.step([*when, end], numbers, where="post", **style)
