"""Looking into a memory: numbers, a flat picture of its atoms, and what they cover.

The paper judges its memory by what the atoms are like: how old (figure on cluster ages),
how counts spread (figures on removal and discount), which places of a maze they stand for
(figure on coverage). The functions here give those numbers for any memory; those starting
with `draw_` put them on matplotlib axes (the extra `plots`).

The effective number of atoms is exp(H(p)) with p_l = c_l / Σc: the number of equally
visited atoms that would be as spread out. |M| if counts are uniform, 1 if one has all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.hints import install
from softcount.memory.config import RecodeConfig
from softcount.memory.kernels import squared_distances
from softcount.memory.memory import RecodeMemory
from softcount.types import Array, State

PERCENTILES = (0, 10, 50, 90, 100)


def memory_of(state: State) -> RecodeMemory:
    """Returns a memory to look into, from its state; one to go on with needs its constants too.

    >>> from softcount import RecodeConfig
    >>> memory = RecodeMemory(RecodeConfig(size=4, dim=1), engine="numpy")
    >>> rewards = memory.observe([[0.0], [1.0]])
    >>> memory_of(memory.state_dict()).atoms.tolist()
    [[0.0], [1.0]]
    """
    memory = RecodeMemory(RecodeConfig(size=state["size"], dim=state["dim"]))
    memory.load_state_dict(state)
    return memory


def summary(memory: RecodeMemory) -> dict[str, float]:
    """Returns what there is to say of a memory in numbers, fit for a logger.

    >>> from softcount import RecodeConfig
    >>> memory = RecodeMemory(RecodeConfig(size=4, dim=1), engine="numpy")
    >>> rewards = memory.observe([[0.0], [1.0]])
    >>> numbers = summary(memory)
    >>> numbers["fill"], numbers["age_p100"], round(numbers["effective_atoms"], 3)
    (0.5, 2.0, 2.0)
    """
    log_counts, ages = memory.log_counts, memory.ages
    numbers = {
        "num_atoms": float(len(memory)),
        "fill": len(memory) / memory.config.size,
        "num_observed": float(memory.num_observed),
        "d2_ema": memory.d2_ema,
        "total_count": float(np.exp(log_counts).sum()),
        "effective_atoms": effective_number(log_counts),
        "bytes_per_atom": memory.bytes / memory.config.size,
    }
    for name, values in (("age", ages), ("log_count", log_counts)):
        levels = np.percentile(values, PERCENTILES) if len(values) else np.zeros(len(PERCENTILES))
        numbers |= {f"{name}_p{level}": float(value) for level, value in zip(PERCENTILES, levels)}
    return numbers


def effective_number(log_counts: Array) -> float:
    """Returns exp of the entropy of normalised counts; 0 for none."""
    if len(log_counts) == 0:
        return 0.0
    weights = np.exp(log_counts - log_counts.max())
    p = weights / weights.sum()
    p = p[p > 0]
    return float(np.exp(-(p * np.log(p)).sum()))


def count_histogram(memory: RecodeMemory, num_bins: int = 30) -> tuple[Array, Array]:
    """Returns how many atoms have which log10 count: numbers `[num_bins]` and edges `[num_bins + 1]`."""
    return np.histogram(memory.log_counts / np.log(10.0), bins=num_bins)


def project_2d(points: Array, onto: Array | None = None, *, axes: Array | None = None) -> Array:
    """Projects points `[N, D]` on the two principal axes of `onto` (of themselves by default), `[N, 2]`.

    Given axes are taken in place of those, around the same centre.
    """
    reference = np.asarray(points if onto is None else onto, np.float64)
    axes = principal_axes(reference) if axes is None else axes
    flat = (np.asarray(points, np.float64) - reference.mean(axis=0)) @ axes
    return np.pad(flat, ((0, 0), (0, 2 - flat.shape[1])))  # one-dimensional embeddings lie on a line


def principal_axes(points: Array, *, like: Array | None = None) -> Array:
    """Returns the two axes `[D, 2]` along which points vary most; one where they have one dimension.

    Signs are fixed (the largest component of an axis is positive), so that pictures do not flip. Where
    other axes are given, the new ones are turned within their plane as near to those as they can be: a
    cloud that changes little then looks as it did before.

    >>> points = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    >>> np.allclose(principal_axes(points, like=np.eye(3)[:, :2]), np.eye(3)[:, :2])
    True
    """
    points = np.asarray(points, np.float64)
    if points.ndim != 2 or len(points) == 0:
        raise ValueError(f"points have shape {points.shape}; expected (N, D) with at least one row")
    centred = points - points.mean(axis=0)
    axes: Array = np.linalg.eigh(np.cov(centred.T, bias=True).reshape(2 * points.shape[1:]))[1]
    axes = axes[:, ::-1][:, :2]  # largest variance first
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    if like is None or like.shape != axes.shape:
        return axes
    left, _, right = np.linalg.svd(axes.T @ like)  # the rotation of an orthogonal Procrustes problem
    turned: Array = axes @ (left @ right)
    return turned


def nearest_atoms(atoms: Array, reference: Array) -> tuple[Array, Array]:
    """Returns for each reference embedding the nearest atom's index and its squared distance."""
    d2 = [squared_distances(np.asarray(atoms), e) for e in np.asarray(reference)]
    index = np.array([row.argmin() for row in d2], np.int64)
    return index, np.array([row[i] for row, i in zip(d2, index)])


def coverage(memory: RecodeMemory, reference: Array, radius2: float | None = None) -> float:
    """Returns the fraction of reference embeddings with an atom within √radius2.

    By default that is the far test of Algorithm 1, κ d²_ema: what is covered would not become
    an atom.
    """
    if len(memory) == 0:
        return 0.0
    radius2 = memory.config.far_tolerance * memory.d2_ema if radius2 is None else radius2
    return float((nearest_atoms(memory.atoms, reference)[1] <= radius2).mean())


def draw_atoms(axes: Any, memory: RecodeMemory, *, by: str = "counts", onto: Array | None = None) -> Any:
    """Scatters atoms in two dimensions, area by count, colour by `counts` or `ages`; returns the artist."""
    if by not in ("counts", "ages"):
        raise ValueError(f"by is {by!r}; expected 'counts' or 'ages'")
    atoms = memory.atoms
    flat = atoms if atoms.shape[1] == 2 and onto is None else project_2d(atoms, onto)
    counts = memory.counts
    colours = counts if by == "counts" else memory.ages
    area = 4.0 + 60.0 * counts / max(float(counts.max(initial=0.0)), 1e-300)
    return axes.scatter(
        flat[:, 0], flat[:, 1], s=area, c=colours, cmap="viridis", alpha=0.85, linewidths=0, rasterized=True
    )


def draw_ages(axes: Any, memory: RecodeMemory, num_bins: int = 40) -> None:
    """Draws the histogram of atom ages, in embeddings."""
    axes.hist(memory.ages, bins=num_bins, color="#33638d")
    axes.set(xlabel="age (embeddings)", ylabel="atoms")


def draw_counts(axes: Any, memory: RecodeMemory, num_bins: int = 40) -> None:
    """Draws the histogram of atom counts on a logarithmic axis."""
    numbers, edges = count_histogram(memory, num_bins)
    axes.stairs(numbers, edges, fill=True, color="#33638d")
    axes.set(xlabel="log₁₀ count", ylabel="atoms")


def draw_memory(memory: RecodeMemory, *, onto: Array | None = None) -> Any:
    """Returns a figure with the atoms by count and by age, and both histograms."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"drawing needs matplotlib: {install('plots')}") from error
    figure = Figure(figsize=(10, 8), layout="constrained")
    panels = figure.subplots(2, 2)
    for panel, by in zip(panels[0], ("counts", "ages"), strict=True):
        panel.set_title(f"atoms, colour by {by}")
        figure.colorbar(draw_atoms(panel, memory, by=by, onto=onto), ax=panel)
    draw_counts(panels[1, 0], memory)
    draw_ages(panels[1, 1], memory)
    return figure
