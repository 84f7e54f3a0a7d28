"""How the cost of training grows with the data, the batch and the classes, in one run.

    python benchmarks/growth.py [--recipe WORD ...] [--steps 15] [--threads N] [--save results]

An epoch is not trained to its end. Every setting begins the first epoch again and again, what
happens once in it (the method's look at the data, the records, the order, the first step, in which
operations are counted) and one further step are timed, and the further step is multiplied by those
that are left. Evaluation is not part of it. All settings are built first, then take turns, so that
a slow moment of the machine hits them all alike; medians count.

Then the share of a step that the pair term takes: agreements, weights and eq. 6 in both directions,
forward and backward, on embeddings of width 256, against the step with the fewest classes.
The plot needs matplotlib.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import torch
from common import hardware, save

from unswayed.build import assemble
from unswayed.data import Dataset, Splits
from unswayed.recipe import Recipe
from unswayed.regularizers.ctrr import CTRR
from unswayed.regularizers.pairs import positives
from unswayed.training.trainer import Trainer
from unswayed.types import Beliefs, Pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RECIPE = [
    "method=ctrr",
    "model.name=fast",
    "model.width=16",
    "framework.projector_widths=[256, 256]",
    "train.precision=auto",
]
ALWAYS = ["data.name=memory", "train.holdout=0", "train.device=cpu"]
SIZE, WIDTH, TAU = 32, 256, 0.4
WARM_UP = 2
ALLOWED = 0.05
"""Share of a step that the pair term may take."""

ONCE = ("look", "records", "order", "first_step")
T = TypeVar("T")


class Point(NamedTuple):
    """What a training's cost depends on."""

    samples: int
    batch: int
    classes: int


def axes_of(
    sizes: Sequence[int], batches: Sequence[int], classes: Sequence[int], batch: int
) -> dict[str, list[Point]]:
    """Return the points along each axis: all the data, this batch and the fewest classes else."""
    most, fewest = max(sizes), min(classes)
    return {
        "samples": [Point(samples, batch, fewest) for samples in sizes],
        "batch": [Point(most, some, fewest) for some in batches],
        "classes": [Point(most, batch, many) for many in classes],
    }


def trainers_of(points: Sequence[Point], words: Sequence[str]) -> dict[Point, Trainer]:
    """Return a trainer for each point; what a step costs does not depend on what images show."""
    rng = np.random.default_rng(0)
    most = max(point.samples for point in points)
    images = rng.integers(0, 256, (most, 3, SIZE, SIZE), dtype=np.uint8)
    trainers = {}
    for point in points:
        labels = np.arange(point.samples) % point.classes
        data = Dataset.from_arrays(images[: point.samples], labels)
        recipe = Recipe.from_dict({}, *words, f"train.batch_size={point.batch}")
        trainers[point], _ = assemble(recipe, Splits(data, None))
    return trainers


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return the seconds that some work takes, and what it returns."""
    began = time.perf_counter()
    answer = work()
    return time.perf_counter() - began, answer


def begin_epoch(trainer: Trainer) -> dict[str, float]:
    """Begin an epoch, take two of its steps, and return the seconds of each part."""
    trainer.step = 0
    seconds = {
        "look": timed(trainer.before_epoch)[0],
        "records": timed(trainer._start_epoch)[0],
    }
    seconds["order"], _ = timed(lambda: trainer.batches.order(trainer.epoch + 1))
    trainer.batches.order(trainer.epoch)  # which is remembered
    for name in ("first_step", "step"):
        seconds[name] = timed(trainer.make_step)[0]
    return seconds


def pair_term(batch: int, classes: int) -> Callable[[], None]:
    """Return what computes the pair term and its gradient once, on random embeddings."""
    generator = torch.Generator().manual_seed(0)
    queries = [torch.randn(batch, WIDTH, generator=generator).requires_grad_() for _ in range(2)]
    keys = [torch.randn(batch, WIDTH, generator=generator) for _ in range(2)]
    p = torch.randn(batch, classes, generator=generator).softmax(dim=1)
    regularizer, labels = CTRR(tau=TAU), p.argmax(dim=1)

    def work() -> None:
        rows, positive = Beliefs(p, labels), positives(p)
        weights = regularizer.pair_weights(rows, rows, positive, 0.0)
        directions = [Pairs(*each) for each in zip(queries, keys, strict=True)]
        regularizer(directions, weights, positive).backward()
        for query in queries:
            query.grad = None

    return work


def rounds_of(
    trainers: dict[Point, Trainer], terms: dict[tuple[int, int], Callable[[], None]], rounds: int
) -> tuple[dict[Point, dict[str, float]], dict[tuple[int, int], float]]:
    """Let all take turns, and return median seconds: of an epoch's parts and of the pair term."""
    parts: dict[Point, dict[str, list[float]]] = {point: defaultdict(list) for point in trainers}
    alone: dict[tuple[int, int], list[float]] = {key: [] for key in terms}
    for number in range(WARM_UP + rounds):
        kept = number >= WARM_UP  # the first steps also reserve memory
        for point, trainer in trainers.items():
            for name, seconds in begin_epoch(trainer).items():
                parts[point][name] += [seconds] * kept
        for key, work in terms.items():
            alone[key] += [timed(work)[0]] * kept
    medians = {
        point: {name: statistics.median(taken) for name, taken in named.items()}
        for point, named in parts.items()
    }
    return medians, {key: statistics.median(taken) for key, taken in alone.items()}


def epoch_row(point: Point, steps: int, parts: dict[str, float]) -> dict[str, Any]:
    """Return what an epoch of so many steps costs at a point."""
    once = {name: parts[name] for name in ONCE}
    seconds = sum(once.values()) + parts["step"] * (steps - 1)
    return {
        **point._asdict(),
        "steps": steps,
        "step_seconds": parts["step"],
        "once_seconds": once,
        "epoch_seconds": seconds,
        "milliseconds_per_image": 1000 * seconds / (steps * point.batch),
    }


def term_row(batch: int, classes: int, seconds: float, step: float) -> dict[str, Any]:
    """Return the pair term's share of a step."""
    share = seconds / step
    return {
        "batch": batch,
        "classes": classes,
        "milliseconds": 1000 * seconds,
        "step_milliseconds": 1000 * step,
        "share": share,
        "met": share < ALLOWED,
    }


def measure(axes: dict[str, list[Point]], words: Sequence[str], rounds: int) -> dict[str, Any]:
    """Return all rows."""
    trainers = trainers_of(list(dict.fromkeys(chain.from_iterable(axes.values()))), words)
    counts = [point.classes for point in axes["classes"]]
    at_batch = {point.batch: point for point in axes["batch"]}
    keys = [(batch, many) for many in sorted({min(counts), max(counts)}) for batch in at_batch]
    parts, alone = rounds_of(trainers, {key: pair_term(*key) for key in keys}, rounds)
    return {
        "axes": {
            name: [epoch_row(point, trainers[point].steps, parts[point]) for point in points]
            for name, points in axes.items()
        },
        "pair_term": [
            term_row(*key, seconds, parts[at_batch[key[0]]]["step"])
            for key, seconds in alone.items()
        ],
    }


def show(found: dict[str, Any]) -> None:
    """Print the tables."""
    print(
        f"{'axis':8} {'samples':>8} {'batch':>6} {'classes':>8} {'steps':>6} {'ms/step':>8} "
        f"{'once, ms':>9} {'s/epoch':>8} {'ms/image':>9}"
    )
    for name, rows in found["axes"].items():
        for row in rows:
            print(
                f"{name:8} {row['samples']:8} {row['batch']:6} {row['classes']:8} "
                f"{row['steps']:6} {1000 * row['step_seconds']:8.1f} {1000 * overhead(row):9.1f} "
                f"{row['epoch_seconds']:8.1f} {row['milliseconds_per_image']:9.3f}"
            )
    print(f"\npair term {'batch':>6} {'classes':>8} {'ms':>8} {'of step':>8}")
    for row in found["pair_term"]:
        print(
            f"{'':9} {row['batch']:6} {row['classes']:8} {row['milliseconds']:8.2f} "
            f"{row['share']:8.2%} {'met' if row['met'] else 'missed'}"
        )


def overhead(row: dict[str, Any]) -> float:
    """Return the seconds of an epoch that are not spent in steps as all others."""
    return max(0.0, sum(row["once_seconds"].values()) - row["step_seconds"])


def draw_epochs(axes: Axes, rows: list[dict[str, Any]], name: str, label: str) -> None:
    """Draw seconds per epoch along one axis."""
    values = [row[name] for row in rows]
    axes.plot(values, [row["epoch_seconds"] for row in rows], "o-", label="measured")
    axes.set(xscale="log", xlabel=label, ylabel="seconds per epoch")
    if name == "samples":
        first = rows[0]["epoch_seconds"] / values[0]
        axes.plot(values, [first * value for value in values], "k:", label="proportional")
        axes.plot(values, [overhead(row) for row in rows], "s-", label="of it, once per epoch")
        axes.set_yscale("log")
        axes.legend()
    else:
        from_zero(axes)
    label_values(axes, values)


def draw_share(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """Draw the pair term's share of a step against the batch size."""
    for classes in dict.fromkeys(row["classes"] for row in rows):
        some = [row for row in rows if row["classes"] == classes]
        shares = [100 * row["share"] for row in some]
        axes.plot([row["batch"] for row in some], shares, "o-", label=f"{classes:,} classes")
    axes.axhline(100 * ALLOWED, color="k", linestyle=":", label="goal: below this")
    axes.set(xscale="log", xlabel="images in a batch", ylabel="pair term, % of a step")
    from_zero(axes)
    label_values(axes, sorted({row["batch"] for row in rows}))
    axes.legend()


def from_zero(axes: Axes) -> None:
    """Show heights from 0, with room above the highest."""
    axes.set_ylim(0, 1.15 * axes.dataLim.ymax)


def label_values(axes: Axes, values: Sequence[int]) -> None:
    """Name the measured values on the x axis, and no others."""
    axes.set_xticks(values, [f"{value:,}" for value in values])
    axes.set_xticks([], minor=True)


def plot(found: dict[str, Any], path: Path) -> None:
    """Draw four panels."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    labels = {
        "samples": "training images",
        "batch": "images in a batch",
        "classes": "classes",
    }
    figure, panels = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    for panel, (name, label) in zip(panels.flat, labels.items(), strict=False):
        draw_epochs(panel, found["axes"][name], name, label)
    draw_share(panels.flat[3], found["pair_term"])
    figure.suptitle(f"What training costs ({SIZE} px, CPU threads: {found['threads']})")
    figure.savefig(path, dpi=150)


def options() -> argparse.Namespace:
    """Read and check the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", nargs="+", default=RECIPE, metavar="WORD")
    parser.add_argument("--sizes", type=int, nargs="+", default=[5000, 10_000, 25_000, 50_000])
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 128, 256, 512, 1024])
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--save", type=Path)
    args = parser.parse_args()
    args.words = [*args.recipe, *ALWAYS]
    batch = Recipe.from_dict({}, *args.words).settings.batch_size
    args.axes = axes_of(args.sizes, args.batches, args.classes, batch)
    for point in chain.from_iterable(args.axes.values()):
        if point.samples < max(2 * point.batch, point.classes):
            parser.error(f"{point} has fewer than two batches, or fewer samples than classes")
    return args


def main() -> None:
    """Measure, print, and save numbers and plot."""
    args = options()
    torch.set_num_threads(args.threads)
    found = {
        "command": "python benchmarks/growth.py",
        "recipe": args.words,
        "image_size": SIZE,
        "threads": args.threads,
        "rounds": args.steps,
        "hardware": hardware(),
        "software": {"python": platform.python_version(), "torch": torch.__version__},
        "allowed_share": ALLOWED,
        **measure(args.axes, args.words, args.steps),
    }
    show(found)
    if args.save:
        save(found, args.save, "growth.json")
        plot(found, args.save / "growth.png")


if __name__ == "__main__":
    main()
