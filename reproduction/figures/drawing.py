"""What the figures share in drawing."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

mpl.use("Agg")


def panels(count: int, *, rows: int = 1, side: float = 3.6) -> tuple[Figure, list[Axes]]:
    """Return a figure with so many panels in each row, and the panels row by row."""
    drawn = Figure(figsize=(side * 1.25 * count, side * rows), layout="constrained")
    axes = drawn.subplots(rows, count, squeeze=False)
    return drawn, list(axes.flat)


def band(axes: Axes, seeds: Sequence[Sequence[float | None]], label: str, colour: str) -> None:
    """Draw the mean over seeds from epoch 1 on, and the range from the lowest to the highest."""
    known = np.array([[np.nan if v is None else v for v in seed] for seed in seeds], dtype=float)
    keep = ~np.isnan(known).any(axis=0)
    if not keep.any():
        return
    x = np.arange(1, known.shape[1] + 1)[keep]
    low, mean, high = (f(known[:, keep], axis=0) for f in (np.min, np.mean, np.max))
    axes.plot(x, 100 * mean, label=label, color=colour)
    axes.fill_between(x, 100 * low, 100 * high, color=colour, alpha=0.2, linewidth=0)


def finish(axes: Axes, title: str, ylabel: str = "", xlabel: str = "epoch") -> None:
    """Name the panel and its axes."""
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    axes.grid(alpha=0.3)


def legend(axes: Axes) -> None:
    """Explain the lines, if there are any."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend()
