"""See the effect: cross entropy and CTRR on digits with wrong labels.

Both are trained for the same number of epochs. The runs are kept. Called again, the demo shows them
without training.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from unswayed.cli.show import check_writable, comparison_table, console
from unswayed.cli.train import watched
from unswayed.errors import UsageError
from unswayed.report.chart import Line, Panel, chart

if TYPE_CHECKING:
    from unswayed.runs import Run

RECIPES = ("digits-ce", "digits")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="for both methods")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from 0 on (1)")
    parser.add_argument("--runs", default="runs/demo", help="where the runs go (runs/demo)")
    parser.add_argument("--save", metavar="DIR", help="also write demo.json and demo.svg there")


def run(args: argparse.Namespace) -> int:
    """Train both, then show table, plot and folders."""
    from unswayed.files import write_json, write_text
    from unswayed.recipe import Recipe
    from unswayed.report.table import comparison

    if args.seeds < 1 or any(each.startswith("train.seed=") for each in args.overrides):
        raise UsageError("--seeds N trains the seeds 0 to N-1 and must be at least 1")
    folder = Path(args.runs)
    if args.save:
        check_writable(Path(args.save))
    groups = []
    for name in RECIPES:
        group = []
        contrast = ("framework.", "regularizer.")
        overrides = [
            each for each in args.overrides if name != "digits-ce" or not each.startswith(contrast)
        ]
        for seed in range(args.seeds):
            recipe = Recipe.load(name, *overrides, f"train.seed={seed}")
            title = f"{recipe.label}, seed {seed}"
            group.append(watched(recipe, folder / f"{name}-seed{seed}", title))
        groups.append(group)
    rows = comparison([made for group in groups for made in group])
    console().print(comparison_table(rows, oracle=False))
    svg = picture(groups)
    write_text(folder / "demo.svg", svg)
    if args.save:
        target = Path(args.save)
        write_text(target / "demo.svg", svg)
        write_json(target / "demo.json", results(groups))
    print(f"plot: {folder / 'demo.svg'}")
    for group in groups:
        for made in group:
            print(f"run:  {made.path}")
    return 0


def picture(groups: list[list[Run]]) -> str:
    """Return the chart of test accuracy and memorisation over epochs."""

    def lines(key: str) -> list[Line]:
        return [
            Line(group[0].method, [[getattr(row, key) for row in r.metrics] for r in group])
            for group in groups
        ]

    rate = groups[0][0].provenance.noise.realised_rate or 0.0
    title = f"digits, {100 * rate:.0f} % of the training labels wrong"
    return chart(
        [
            Panel("test accuracy", lines("test_accuracy")),
            Panel("wrong labels memorised", lines("wrong_as_given")),
        ],
        title,
    )


def results(groups: list[list[Run]]) -> dict[str, object]:
    """Return all numbers of the demo with their origin."""
    return {
        "command": "unswayed demo",
        "runs": [
            {
                "method": made.method,
                "recipe": made.recipe.sections,
                "provenance": made.provenance.model_dump(),
                "summary": made.summary.model_dump(exclude_none=True),
            }
            for group in groups
            for made in group
        ],
    }
