r"""Pictures of how an audit works, from runs whose true labels are known.

    python benchmarks/audit_pictures.py TITLE=RUN [TITLE=RUN ...] [--save results/figures]

The first row shows how the share of wrong labels is told: how often given labels differ from
predictions, the most confident on the left, and the line that is continued to all. The second shows
what came true: P(wrong) against the real share, and precision by depth, expected and real.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from unswayed import Audit, Run, audit
from unswayed.audits.evidence import EVIDENCE, Inputs
from unswayed.audits.opinion import opinion_of
from unswayed.noise.estimate import EASY, compare_confident

RED, BLUE, GREY = "#c2410c", "#1d4ed8", "#6b7280"
STEPS, BINS = 20, 15
Vector = NDArray[np.float64]


def draw_rate(axis: Any, title: str, run: Run, found: Audit, wrong: NDArray[np.bool_]) -> None:
    """Draw how often labels differ from predictions, by confidence."""
    samples, predictions = run.samples(), run.predictions()
    trained = np.ones(len(wrong), dtype=bool)
    inputs = Inputs(
        samples.given, len(found.classes), predictions.logits, predictions.features, trained
    )
    opinion = opinion_of(EVIDENCE.build("consensus"), inputs)
    rank = np.empty(len(wrong))
    for label in range(len(found.classes)):
        rows = np.flatnonzero(opinion.predicted == label)
        order = rows[np.argsort(-opinion.confidence[rows], kind="stable")]
        rank[order] = (np.arange(len(rows)) + 0.5) / max(len(rows), 1)
    step = np.minimum((rank * STEPS).astype(int), STEPS - 1)
    x = (np.arange(STEPS) + 0.5) / STEPS
    count = np.bincount(step, minlength=STEPS)
    differs = np.bincount(step, opinion.predicted != samples.given, STEPS) / count
    axis.plot(x, 100 * np.bincount(step, wrong, STEPS) / count, color=GREY, label="really wrong")
    axis.plot(x, 100 * differs, "o", color=BLUE, label="label differs from prediction")
    told = compare_confident(
        opinion.predicted, opinion.confidence, samples.given, len(found.classes)
    )
    seen = EASY * (np.arange(len(told.seen)) + 0.5) / len(told.seen)
    slope, start = np.polyfit(seen, told.differing / told.seen, 1)
    axis.plot([0, 1], [100 * start, 100 * (start + slope)], "--", color=RED, label="continued")
    axis.axvspan(0, EASY, color=BLUE, alpha=0.06)
    axis.set(title=title, xlabel="confidence: surest … least sure", ylabel="labels, %")
    axis.set(ylim=(0, 75), xticks=[])


def draw_trust(axis: Any, found: Audit, wrong: NDArray[np.bool_]) -> None:
    """Draw what came true."""
    for rows in np.array_split(np.argsort(found.p_wrong, kind="stable"), BINS):
        axis.plot(100 * found.p_wrong[rows].mean(), 100 * wrong[rows].mean(), "o", color=BLUE)
    axis.plot([0, 100], [0, 100], color=GREY, linewidth=0.8)
    axis.set(xlabel="P(wrong), %", ylabel="really wrong, %")


def draw_depth(axis: Any, found: Audit, wrong: NDArray[np.bool_]) -> None:
    """Draw precision by depth."""
    depth = np.arange(1, len(wrong) + 1)
    share = 100 * depth / len(wrong)
    axis.plot(share, 100 * found.expected_precision(), color=RED, label="expected")
    real: Vector = np.cumsum(wrong[found.order]) / depth
    axis.plot(share, 100 * real, color=GREY, label="real")
    axis.axvline(100 * found.to_review / len(wrong), color=BLUE, linestyle=":", label="stop line")
    axis.set(xlabel="labels looked at, %", ylabel="wrong among them, %", xlim=(0, 60))


def main() -> None:
    """Draw all runs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="+", metavar="TITLE=RUN")
    parser.add_argument("--save", metavar="DIR", default="results/figures")
    args = parser.parse_args()
    size = (4 * len(args.runs), 10)
    figure, axes = plt.subplots(3, len(args.runs), figsize=size, squeeze=False)
    for column, word in zip(axes.T, args.runs, strict=True):
        title, _, path = word.rpartition("=")
        run = Run(path)
        samples, found = run.samples(), audit(run)
        wrong = samples.given != samples.true
        draw_rate(column[0], title, run, found, wrong)
        draw_trust(column[1], found, wrong)
        draw_depth(column[2], found, wrong)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].legend(frameon=False, fontsize=8)
    axes[2, 0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    Path(args.save).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(args.save) / "audit.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
