"""Write the study of noisy CIFAR-10 within a budget of computation, from finished runs.

    unswayed bench reproduction/grids/cifar-final.toml       # two recipes, every noise
    unswayed bench reproduction/grids/cifar-frontier.toml    # four methods, growing budgets
    unswayed bench reproduction/grids/cifar-ablation.toml    # one change at a time
    python -m reproduction.cifar --save results

All 50,000 images are trained on. What counts is the test accuracy of the last epoch. The last
command writes cifar.json, cifar.md and cifar-frontier.png. Trainings that cifar.json has already
stay in it; a finished run of the same cell replaces its entry. So the page can be made anew from
the file alone.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from reproduction import PUBLISHED, TEMPLATES, grid_file
from unswayed.bench.grid import Cell, Grid
from unswayed.bench.published import Published
from unswayed.bench.runner import finished
from unswayed.cli import parse_with_overrides, run_safely
from unswayed.files import write_json, write_text
from unswayed.report.colours import colours_of
from unswayed.report.table import Spread
from unswayed.report.templates import fill
from unswayed.runs import Run

Training = dict[str, Any]

WANTED = {"sym20": 91.0, "sym40": 89.0, "sym60": 84.0, "sym80": 70.0, "asym40": 85.0}
LADDER = {"0.02": 16, "0.06": 32, "0.2": 32, "0.5": 64}
"""Budgets in PFLOP, and the width of the network that suits each."""

METHODS = ("ce", "gce", "ctrr", "ctrr_gce")
FINAL_BUDGET = "0.2"
SMALL, BASE = "0.02", "gce"
"""Budget and method of the ablation."""

GRIDS = ("cifar-final", "cifar-frontier", "cifar-ablation")
SEEDS = 9
"""No more are looked for."""


class Other(NamedTuple):
    """A row of published accuracies, and what such a training costs."""

    label: str
    table: str
    kind: str
    row: str
    pflop: float
    style: str  # of its line in the plot

    def percent(self, noise: str) -> float | None:
        """Return the mean at "sym40" and the like; None where nothing is published."""
        table = Published.load(PUBLISHED / f"{self.table}.toml")
        found = table.get(self.kind, self.row, noise.replace("sym", "sym "))
        return None if found is None else 100 * found.mean


OTHERS = (
    Other("CTRR, best epoch on test", "table1", "oracle_best", "ctrr", 278.0, ":"),
    Other("CTRR (BYOL), last", "official-cifar10", "last", "ctrr-byol", 214.0, "--"),
    Other("CTRR (BYOL) + GCE, last", "official-cifar10", "last", "ctrr-byol-gce", 214.0, "-."),
)
"""Table 1 of the paper and the published code: 550 epochs of a PreAct ResNet-18. What they cost is
said by `unswayed bench --dry-run` of the grids `table1` and `official-cifar10`."""


TITLES = {"sym40": "40 % symmetric noise", "sym80": "80 % symmetric noise"}


def place_of(grid: str, cell: Cell) -> Training:
    """Return what is trained in a cell; equal trainings of two grids have equal names."""
    noise, _, budget = cell.column.partition(" ")
    method, change = cell.row.key, ""
    if grid == "cifar-ablation":
        method, budget = BASE, SMALL
        change = "" if cell.row.key == "none" else cell.row.key
    budget = budget or FINAL_BUDGET
    name = f"{noise}-{method}-{budget}-seed{cell.seed}" + (f"-{change}" if change else "")
    place = {"name": name, "method": method, "noise": noise, "budget": budget}
    return {**place, "seed": cell.seed, "change": change}


def collect(runs: Path, overrides: Sequence[str] = ()) -> Iterator[Training]:
    """Yield the finished trainings of the three grids."""
    for name in GRIDS:
        grid = Grid.load(grid_file(name), seeds=SEEDS, overrides=overrides)
        for cell in finished(grid.cells, runs / name):
            yield {**place_of(name, cell), **_facts(Run(runs / name / cell.folder))}


def _facts(run: Run) -> Training:
    summary, provenance, metrics = run.summary, run.provenance, run.metrics
    return {
        "summary": summary.model_dump(exclude_none=True),
        "curve": [
            [row.epoch + 1, row.test_accuracy] for row in metrics if row.test_accuracy is not None
        ],
        **provenance.model_dump(
            include={"resolved", "commit", "hardware", "software"}, exclude_none=True
        ),
        "noise_realised": provenance.noise.realised_rate,
    }


def page(trainings: Sequence[Training]) -> str:
    """Return Markdown tables: what was reached, what each loss and each change does."""
    return fill(
        "cifar.md.j2",
        TEMPLATES,
        trainings=_finals(trainings),
        ladder=_ladder(trainings),
        changes=_changes(trainings),
        budget=SMALL,
        width=LADDER[SMALL],
    )


def _finals(trainings: Sequence[Training]) -> list[list[str]]:
    """Return every training of a larger budget, with what was wanted and what is published."""
    names = ["noise", "method", "seed", "width", "PFLOP", "minutes", "last", "memorised"]
    names += ["recovered", "wanted at least"]
    names += [f"published: {other.label} ({other.pflop:.0f} PFLOP)" for other in OTHERS]
    rows = [names]
    for each in trainings:
        if each["change"] or float(each["budget"]) < float(FINAL_BUDGET):
            continue
        noise, summary = each["noise"], each["summary"]
        shares = [summary["last"][k] for k in ("test_accuracy", "wrong_as_given", "wrong_as_true")]
        others = [other.percent(noise) for other in OTHERS]
        rows.append(
            [
                *(noise, each["method"], str(each["seed"]), str(LADDER[each["budget"]])),
                *(f"{summary['flops'] / 1e15:.3f}", f"{summary['seconds'] / 60:.0f}"),
                *(f"{100 * share:.2f}" for share in shares),
                f"{WANTED[noise]:.0f}",
                *("–" if number is None else f"{number:.2f}" for number in others),
            ]
        )
    return rows


def _ladder(trainings: Sequence[Training]) -> list[list[str]]:
    rows = [["noise", "PFLOP, width", "CE", "GCE", "CTRR", "CTRR + GCE"]]
    for noise in ("sym40", "sym80"):
        for budget, width in LADDER.items():
            means = [_mean(trainings, noise, method, budget) for method in METHODS]
            if set(means) != {"–"}:
                rows.append([noise, f"{budget}, {width}", *means])
    return rows


def _changes(trainings: Sequence[Training]) -> list[list[str]]:
    """Return the mean with each change, and how far it is from none, seed by seed."""
    changed = {each["noise"] for each in trainings if each["change"]}
    noises = [noise for noise in ("sym40", "sym80") if noise in changed]
    rows = [["change", *chain.from_iterable((noise, "difference") for noise in noises)]]
    for row in Grid.load(grid_file("cifar-ablation"), seeds=1).rows:
        change = "" if row.key == "none" else row.key
        cells = []
        for noise in noises:
            found, plain = (_by_seed(trainings, noise, BASE, SMALL, each) for each in (change, ""))
            differences = [100 * (found[s] - plain[s]) for s in sorted(found.keys() & plain.keys())]
            cells.append(_mean(trainings, noise, BASE, SMALL, change))
            cells.append(", ".join(f"{each:+.1f}" for each in differences) if change else "")
        rows.append([row.key, *cells])
    return rows


def _at(trainings: Sequence[Training], *wanted: str) -> list[Training]:
    """Return the trainings of a place (noise, method, budget, change), one for each seed."""
    names = ("noise", "method", "budget", "change")
    return [each for each in trainings if [each[name] for name in names] == list(wanted)]


def _by_seed(
    trainings: Sequence[Training], noise: str, method: str, budget: str, change: str = ""
) -> dict[int, float]:
    """Return the last test accuracies of a place, by seed."""
    found = _at(trainings, noise, method, budget, change)
    return {each["seed"]: each["summary"]["last"]["test_accuracy"] for each in found}


def _mean(
    trainings: Sequence[Training], noise: str, method: str, budget: str, change: str = ""
) -> str:
    """Return mean, deviation and count of the last test accuracies of a place."""
    found = list(_by_seed(trainings, noise, method, budget, change).values())
    return f"{Spread.of(found).percent()} ({len(found)})" if found else "–"


def draw(trainings: Sequence[Training], path: Path) -> None:
    """Plot accuracy against computation: a point for each training, lines through the means.

    Published numbers are lines across: they took a thousand times as much.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(11, 3.8), sharex=True, layout="constrained")
    for panel, noise in zip(panels, ("sym40", "sym80"), strict=True):
        for method in METHODS:
            steps = [
                [
                    (
                        each["summary"]["flops"] / 1e15,
                        100 * each["summary"]["last"]["test_accuracy"],
                    )
                    for each in _at(trainings, noise, method, budget, "")
                ]
                for budget in LADDER
            ]
            means = [[fmean(each) for each in zip(*some, strict=True)] for some in steps if some]
            if means:
                label = method.replace("_", "+").upper()
                colour = colours_of([label])[label]
                panel.plot(*zip(*means, strict=True), "-", label=label, color=colour)
                points = list(chain.from_iterable(steps))
                panel.plot(*zip(*points, strict=True), "o", color=colour, markersize=5)
        for other in OTHERS:
            percent = other.percent(noise)
            if percent is not None:
                label = f"published: {other.label} ({other.pflop:.0f} PFLOP)"
                panel.axhline(percent, color="0.35", linestyle=other.style, lw=1, label=label)
        panel.set(xscale="log", xlabel="training computation / PFLOP", title=TITLES[noise])
        panel.set_xticks([float(budget) for budget in LADDER], LADDER, minor=False)
        panel.set_xticks([], minor=True)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("test accuracy, last epoch / %")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def load(file: Path) -> dict[str, Any]:
    """Return what was saved before; nothing if there is no file."""
    if not file.is_file():
        return {"runs": []}
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def write(args: argparse.Namespace) -> int:
    """Write all trainings that are known, the tables and the plot."""
    folder: Path = args.save
    folder.mkdir(parents=True, exist_ok=True)
    saved = load(folder / "cifar.json")
    known = {each["name"]: each for each in saved["runs"]}
    new = {each["name"]: each for each in collect(args.runs, args.overrides)}
    trainings = [each for _, each in sorted({**known, **new}.items())]
    if new:
        about = {"command": "python -m reproduction.cifar", "platform": platform.platform()}
        write_json(folder / "cifar.json", {**about, "runs": trainings}, indent=2)
    write_text(folder / "cifar.md", page(trainings))
    draw(trainings, folder / "cifar-frontier.png")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Write the study and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduction.cifar",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="as given to the grids")
    parser.add_argument("--runs", type=Path, default=Path("runs"), metavar="DIR")
    parser.add_argument("--save", type=Path, default=Path("results"), metavar="DIR")
    return run_safely(lambda: write(parse_with_overrides(parser, argv)))


if __name__ == "__main__":
    sys.exit(main())
