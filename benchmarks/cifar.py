"""CIFAR-10 with noisy labels within a budget of computation, on the full data.

    UNSWAYED_DATA=DIR python benchmarks/cifar.py final [--only sym80] [--save results]
    UNSWAYED_DATA=DIR python benchmarks/cifar.py frontier [--only 0.02] [--save results]
    UNSWAYED_DATA=DIR python benchmarks/cifar.py ablation [--seeds 2] [--save results]
    python benchmarks/cifar.py final --list

`final` trains the recipes `cpu/cifar10` (GCE) and `cpu/cifar10-ctrr` (CTRR with GCE) at every noise
level of the paper, at most 0.2 PFLOP a run; `frontier` trains CE, GCE, CTRR and CTRR+GCE on a
ladder of budgets; `ablation` changes one thing at a time, at a small budget.
All 50,000 images are trained on, noise is drawn by CTRR's published generator (symmetric: from all
classes), and what counts is the test accuracy of the last epoch. Every cell is a run folder below
`--runs`: the command goes on where it was stopped, and trains no cell twice. `--save` writes the
summaries of all finished cells.
"""

from __future__ import annotations

import argparse
import platform
import sys
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from common import save

from unswayed.bench.published import published
from unswayed.build import train
from unswayed.recipe import Recipe
from unswayed.report.table import Spread
from unswayed.training.run import Run
from unswayed.types import Epoch, Step

ASKED = {"sym20": 91.0, "sym40": 89.0, "sym60": 84.0, "sym80": 70.0, "asym40": 85.0}


class Other(NamedTuple):
    """A row of published accuracies, and what such a training costs."""

    label: str
    table: str
    kind: str
    row: str
    pflop: float
    marker: str

    def percent(self, noise: str) -> float | None:
        """Return the mean at "sym40" and the like; None where nothing is published."""
        column = noise.replace("sym", "sym ")
        found = published(self.table).get(self.kind, self.row, column)
        return None if found is None else 100 * found.mean


PUBLISHED = (
    Other("CTRR, best epoch on test", "table1", "oracle_best", "ctrr", 278.0, "*"),
    Other("CTRR (BYOL), last", "official-cifar10", "last", "ctrr-byol", 214.0, "D"),
    Other("CTRR (BYOL) + GCE, last", "official-cifar10", "last", "ctrr-byol-gce", 214.0, "s"),
)
"""Table 1 of the paper and the published code: 550 epochs of a PreAct ResNet-18. What they cost is
said by `unswayed bench --dry-run` of `paper/table1` and `paper/official-cifar10`."""

OFFICIAL = "2021"
LADDER = {"0.02": 16, "0.06": 32, "0.2": 32, "0.5": 64}
"""Budgets in PFLOP, and the width of the network that suits each."""

METHODS = {
    "ce": ("cpu/cifar10", ["method=ce"]),
    "gce": ("cpu/cifar10", []),
    "ctrr": ("cpu/cifar10-ctrr", ["loss.name=ce"]),
    "ctrr_gce": ("cpu/cifar10-ctrr", []),
}
LADDERED = ("ce", "gce", "ctrr", "ctrr_gce")
FINAL, FINAL_BUDGET = ("ctrr_gce", "gce"), "0.2"
"""The two recipes as they are shipped."""

SEEDS = 9
"""No more are looked for."""

WHICH = ("final", "frontier", "ablation")
SMALL, BASE = "0.02", "gce"
ABLATION = {
    "sgd": ["optimizer.name=sgd"],
    "half-filter-lr": ['optimizer.filter_lr={name = "ramp", start = 0.06, end = 0.0}'],
    "double-filter-lr": ['optimizer.filter_lr={name = "ramp", start = 0.24, end = 0.0}'],
    "filters-with-warm-up": ["optimizer.filter_lr=0.12"],
    "learnt-first-layer": ["model.whiten=false"],
    "random-filters": ["model.identity=false"],
    "slow-biases": ["optimizer.bias_lr=1.0"],
    "random-flip": ["views.weak.flip=0.5"],
    "resized-crop": ["views.weak.name=resized_crop", "views.weak.area=[0.25, 1.0]"],
    "no-mirror": ["model.mirror=false"],
    "cosine": ["schedule.name=cosine", "schedule.start=1.0", "schedule.end=0.0"],
    "average": ["train.ema=0.98"],
    "growing-images": ['train.side={name = "ramp", start = 0.75, end = 1.0, until = 0.6}'],
    "batch-256": ["train.batch_size=256", "optimizer.lr=0.375"],
    "batch-1024": ["train.batch_size=1024", "optimizer.lr=1.5"],
    "fp32": ["train.precision=fp32"],
    "label-smoothing": ["loss.name=label_smoothing", "loss.r=0.2"],
    "elr": ["loss.name=elr"],
}
"""What is changed, one thing at a time."""


class Cell(NamedTuple):
    """One training."""

    name: str
    method: str
    noise: str
    budget: str
    seed: int
    words: tuple[str, ...]
    change: str = ""

    @property
    def recipe(self) -> Recipe:
        """The recipe, which names the data only when they are needed."""
        return Recipe.load(METHODS[self.method][0], *self.words)


def noise_words(noise: str) -> list[str]:
    """Return the words for "sym40" and the like."""
    kind, rate = noise.rstrip("0123456789"), int(noise.lstrip("asym")) / 100
    words = [f"noise.rate={rate}", f'noise.official_seed="{OFFICIAL}"']
    if kind == "asym":
        return ["noise.name=asymmetric", "noise.map=cifar10", *words]
    return ["noise.name=symmetric", "noise.inclusive=true", *words]


def cell(method: str, noise: str, budget: str, seed: int) -> Cell:
    """Return a cell; equal ones of both lists have equal names, and are trained once."""
    words = [*METHODS[method][1], *noise_words(noise), f"train.seed={seed}"]
    words += [f"train.budget={budget} PFLOP", f"model.width={LADDER[budget]}"]
    name = f"{noise}-{method}-{budget}-seed{seed}"
    return Cell(name, method, noise, budget, seed, tuple(words))


def changed(change: str, noise: str, seed: int) -> Cell:
    """Return the recipe with one thing changed."""
    base = cell(BASE, noise, SMALL, seed)
    words = (*base.words, *ABLATION[change])
    return base._replace(name=f"{base.name}-{change}", change=change, words=words)


def cells(which: str, seeds: int) -> list[Cell]:
    """Return what is to be trained, cheap and important cells first."""
    if which == "final":
        return [
            cell(method, noise, FINAL_BUDGET, s)
            for s in range(seeds)
            for noise in ("sym80", "sym40", "asym40", "sym60", "sym20")
            for method in FINAL
        ]
    if which == "ablation":
        return [
            one
            for s in range(seeds)
            for noise in ("sym80", "sym40")
            for one in (
                cell(BASE, noise, SMALL, s),
                *(changed(change, noise, s) for change in ABLATION),
            )
        ]
    return [
        cell(method, noise, budget, s)
        for budget in LADDER
        for s in range(seeds)
        for noise in ("sym40", "sym80")
        for method in LADDERED
    ]


def say(event: Step | Epoch) -> None:
    """Print a line for every epoch."""
    if isinstance(event, Epoch):
        row = event.metrics
        tested = f", test {100 * row['test_accuracy']:.2f} %" if "test_accuracy" in row else ""
        print(
            f"  epoch {event.epoch + 1}/{event.epochs}, {row['seconds']:.0f} s, "
            f"{row['flops'] / 1e15:.3f} PFLOP{tested}",
            flush=True,
        )


def collect(runs: Path) -> list[dict[str, Any]]:
    """Return the numbers of all finished cells; runs of an older recipe are none of them."""
    everything = {c.name: c for which in WHICH for c in cells(which, SEEDS)}
    rows = []
    for name, one in sorted(everything.items()):
        if not (runs / name / "summary.json").is_file():
            continue
        run = Run(runs / name)
        trained = Recipe.from_dict(run.recipe)
        differing = set(one.recipe.difference(trained)) - {"train.threads", "data.root"}
        if differing:
            sys.exit(
                f"{runs / name} holds a run of another recipe (it differs in "
                f"{', '.join(sorted(differing))}); choose another --runs, or remove it"
            )
        rows.append(
            {
                **one._asdict(),
                "summary": run.summary,
                "curve": [
                    [row["epoch"] + 1, row["test_accuracy"]]
                    for row in run.metrics
                    if "test_accuracy" in row
                ],
                "resolved": run.provenance["resolved"],
                "commit": run.provenance["commit"],
                "hardware": run.provenance["hardware"],
                "software": run.provenance["software"],
                "noise_realised": run.provenance["noise"]["realised_rate"],
            }
        )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return Markdown tables: what was reached, what each loss and each change does."""
    parts = [_finals(rows), _ladder(rows), _changes(rows)]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _finals(rows: list[dict[str, Any]]) -> list[str]:
    """Return every training of a larger budget, with what was wanted and what is published."""
    names = ("noise", "method", "seed", "width", "PFLOP", "minutes", "last", "memorised")
    names = (*names, "recovered", "wanted at least")
    names += tuple(f"published: {other.label} ({other.pflop:.0f} PFLOP)" for other in PUBLISHED)
    lines = [f"| {' | '.join(names)} |", "| --- " * len(names) + "|"]
    for row in rows:
        if row["change"] or float(row["budget"]) < float(FINAL_BUDGET):
            continue
        noise, summary = row["noise"], row["summary"]
        last = summary["last"]
        shares = (last["test_accuracy"], last["wrong_as_given"], last["wrong_as_true"])
        lines.append(
            f"| {noise} | {row['method']} | {row['seed']} | {LADDER[row['budget']]} | "
            f"{summary['flops'] / 1e15:.3f} | {summary['seconds'] / 60:.0f} | "
            + " | ".join(f"{100 * share:.2f}" for share in shares)
            + f" | {ASKED[noise]:.0f}"
            + "".join(f" | {_two_digits(other.percent(noise))}" for other in PUBLISHED)
            + " |"
        )
    return lines


def _two_digits(number: float | None) -> str:
    return "–" if number is None else f"{number:.2f}"


def _ladder(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["The ladder: mean of the last epoch (n).", ""]
    lines += ["| noise | PFLOP, width | CE | GCE | CTRR | CTRR + GCE |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    for noise in ("sym40", "sym80"):
        for budget, width in LADDER.items():
            means = [_mean(rows, noise, method, budget) for method in LADDERED]
            if set(means) != {"–"}:
                lines.append(f"| {noise} | {budget}, {width} | {' | '.join(means)} |")
    return lines


def _changes(rows: list[dict[str, Any]]) -> list[str]:
    """Return the mean with each change, and how far it is from none, seed by seed."""
    noises = [
        noise
        for noise in ("sym40", "sym80")
        if any(row["change"] and row["noise"] == noise for row in rows)
    ]
    what = "mean of the last epoch (n), and differences from none by seed."
    lines = [f"Changes at {SMALL} PFLOP, width {LADDER[SMALL]}: {what}", ""]
    lines += [f"| change | {' | '.join(f'{noise} | difference' for noise in noises)} |"]
    lines += ["| --- " * (1 + 2 * len(noises)) + "|"]
    for change in ["", *ABLATION]:
        cells = []
        for noise in noises:
            found, plain = (_by_seed(rows, noise, BASE, SMALL, each) for each in (change, ""))
            differences = [100 * (found[s] - plain[s]) for s in sorted(found.keys() & plain.keys())]
            cells.append(_mean(rows, noise, BASE, SMALL, change))
            cells.append(", ".join(f"{each:+.1f}" for each in differences) if change else "")
        lines.append(f"| {change or 'none'} | {' | '.join(cells)} |")
    return lines


def _at(
    rows: list[dict[str, Any]], noise: str, method: str, budget: str, change: str = ""
) -> list[dict[str, Any]]:
    """Return the trainings of a place, one for each seed."""
    names = ("noise", "method", "budget", "change")
    wanted = [noise, method, budget, change]
    return [row for row in rows if [row[name] for name in names] == wanted]


def _by_seed(
    rows: list[dict[str, Any]], noise: str, method: str, budget: str, change: str = ""
) -> dict[int, float]:
    """Return the last test accuracies of a place, by seed."""
    found = _at(rows, noise, method, budget, change)
    return {row["seed"]: row["summary"]["last"]["test_accuracy"] for row in found}


def _mean(
    rows: list[dict[str, Any]], noise: str, method: str, budget: str, change: str = ""
) -> str:
    """Return mean, deviation and count of the last test accuracies of a place."""
    found = list(_by_seed(rows, noise, method, budget, change).values())
    return f"{Spread.of(found).percent()} ({len(found)})" if found else "–"


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Plot accuracy against computation: a point for each training, lines through the means."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), sharex=True)
    for panel, noise in zip(panels, ("sym40", "sym80"), strict=True):
        for method in LADDERED:
            steps = [
                [
                    (row["summary"]["flops"] / 1e15, 100 * row["summary"]["last"]["test_accuracy"])
                    for row in _at(rows, noise, method, budget)
                ]
                for budget in LADDER
            ]
            means = [[fmean(each) for each in zip(*some, strict=True)] for some in steps if some]
            if means:
                label = method.replace("_", "+").upper()
                (line,) = panel.plot(*zip(*means, strict=True), "-", label=label)
                points = list(chain.from_iterable(steps))
                panel.plot(*zip(*points, strict=True), "o", color=line.get_color(), markersize=5)
        for other in PUBLISHED:
            percent = other.percent(noise)
            if percent is not None:
                label = f"published: {other.label}"
                panel.plot(other.pflop, percent, f"k{other.marker}", mfc="none", label=label)
        panel.set(xscale="log", xlabel="training computation / PFLOP", title=noise)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("test accuracy, last epoch / %")
    panels[1].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def write(runs: Path, folder: Path) -> None:
    """Write the numbers of all finished cells, a table and a plot."""
    rows = collect(runs)
    found = {"command": "python benchmarks/cifar.py", "platform": platform.platform(), "runs": rows}
    save(found, folder, "cifar.json")
    (folder / "cifar.md").write_text(table(rows), encoding="utf-8")
    draw(rows, folder / "cifar-frontier.png")


def main() -> None:
    """Train the cells that are left, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=WHICH)
    parser.add_argument("--seeds", type=int, default=1, choices=range(1, SEEDS + 1))
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--runs", type=Path, default=Path("runs/cifar"))
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0 takes all")
    parser.add_argument("--list", action="store_true", help="name the cells and train nothing")
    parser.add_argument("--save", type=Path)
    args = parser.parse_args()
    wanted = [c for c in cells(args.which, args.seeds) if args.only in c.name]
    if not wanted:
        sys.exit(f"no cell has {args.only!r} in its name; see --list")
    for each in wanted:
        print(each.name, flush=True)
        if not args.list:
            recipe = Recipe.from_dict(each.recipe.sections, f"train.threads={args.threads}")
            train(recipe, run=args.runs / each.name, watch=say)
    if args.save:
        write(args.runs, args.save)


if __name__ == "__main__":
    main()
