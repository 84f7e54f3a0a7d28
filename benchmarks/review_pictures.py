"""The picture of `benchmarks/review.py`: label noise and test accuracy by number of decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from audit_measures import mean_and_spread
from review_tables import MARKS, ORDERS, Case, Value, _accuracy, values_of

RED, BLUE, GREY = "#c2410c", "#1d4ed8", "#6b7280"  # as in audit_pictures
STYLES = {"random": (GREY, "s", 3.0), "cleanlab": (RED, "^", 0.0), "ours": (BLUE, "o", -3.0)}
"""Colour, marker, and a shift in pixels that keeps the bars apart."""


def draw(cases: Sequence[Case], path: Path) -> None:
    """Draw all settings."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    groups = [list(group) for _, group in groupby(cases, key=lambda case: case["setting"])]
    size = (3.4 * len(groups), 5.6)
    figure, axes = plt.subplots(2, len(groups), figsize=size, squeeze=False, sharex="col")
    for column, group in zip(axes.T, groups, strict=True):
        draw_lines(column[0], group, lambda point: 100 * point["noise"])
        draw_best(column[0], group)
        draw_lines(column[1], group, _accuracy("last"))
        draw_clean(column[1], group)
        column[0].set(title=group[0]["title"])
        column[1].set(xlabel="decisions")
        _scale(column, group)
    axes[0, 0].set(ylabel="wrong labels, %")
    axes[1, 0].set(ylabel="test accuracy, %")
    named = dict(zip(*reversed(axes[0, 0].get_legend_handles_labels()), strict=True))
    named |= dict(zip(*reversed(axes[1, 0].get_legend_handles_labels()), strict=True))
    figure.legend(named.values(), named.keys(), loc="lower center", ncols=len(named), frameon=False)
    for axis in axes.flat:
        axis.autoscale_view(scalex=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path, dpi=130, metadata={"Software": None})
    plt.close(figure)


def draw_lines(axis: Any, group: Sequence[Case], read: Callable[[Case], Value]) -> None:
    """Draw a line for each order, with the standard deviation over seeds as a bar."""
    from matplotlib.transforms import ScaledTranslation

    for order, (colour, marker, shift) in STYLES.items():
        points = []
        for mark in MARKS:
            known = [v for v in values_of(list(group), order, mark, read) if v is not None]
            if known:
                points.append((mark, *mean_and_spread(known)))
        x, mean, spread = np.nan_to_num(np.array(points)).T
        axis.update_datalim(np.stack([np.tile(x, 2), [*mean - spread, *mean + spread]], axis=1))
        move = ScaledTranslation(shift / 130, 0, axis.figure.dpi_scale_trans)
        axis.errorbar(
            x,
            mean,
            spread,
            color=colour,
            marker=marker,
            markersize=5,
            linewidth=1.6,
            elinewidth=1.2,
            capsize=2.5,
            label=ORDERS[order],
            transform=axis.transData + move,
        )


def draw_best(axis: Any, group: Sequence[Case]) -> None:
    """Draw what a reviewer would reach who is shown nothing but wrong labels, and never errs."""
    case = group[0]
    x = np.linspace(0, _last(group), 200)
    best = 100 * np.maximum(case["wrong"] - x, 0) / case["samples"]
    axis.plot(x, best, ":", color=GREY, linewidth=1.2, label="best possible")


def draw_clean(axis: Any, group: Sequence[Case]) -> None:
    """Draw the accuracy of a training on the true labels."""
    found = [v for case in group if (v := _accuracy("last")(case.get("clean") or {})) is not None]
    if found:
        axis.axhline(np.mean(found), color=GREY, linestyle="--", linewidth=1, label="true labels")


def _last(group: Sequence[Case]) -> int:
    return max(point["decisions"] for case in group for point in case["points"])


def _scale(column: Any, group: Sequence[Case]) -> None:
    """Show all points; those of 0 and 250 decisions lie too close to name both."""
    last = _last(group)
    named = [mark for mark in MARKS if mark == 0 or last / 10 < mark <= last]
    for axis in column:
        axis.set_xticks(named, [f"{mark:,}" for mark in named])
        axis.set_xticks([mark for mark in MARKS if mark <= last], minor=True)
        axis.set_xlim(-0.04 * last, 1.06 * last)
        axis.spines[["top", "right"]].set_visible(False)
