"""Cross entropy and CTRR on digits with wrong labels, epoch by epoch: `unswayed demo --compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unswayed.cli.show import check_writable, comparison_table, console
from unswayed.cli.train import watched
from unswayed.errors import UsageError
from unswayed.report.chart import Line, Panel, chart

if TYPE_CHECKING:
    from unswayed.runs import Run

RECIPES = ("digits-ce", "digits")


def show_effect(folder: Path, overrides: Sequence[str], seeds: int, save: str | None) -> None:
    """Train both for the same number of epochs, then show table, plot and folders.

    Args:
        folder: where the runs go; those that are there already are not trained again.
        overrides: options for both methods.
        seeds: how many seeds, from 0 on.
        save: a folder for demo.json and demo.svg.
    """
    from unswayed.files import write_json, write_text
    from unswayed.report.table import comparison

    if seeds < 1 or any(each.startswith("train.seed=") for each in overrides):
        raise UsageError("--seeds N trains the seeds 0 to N-1 and must be at least 1")
    if save:
        check_writable(Path(save))
    groups = [_trained(name, folder, overrides, seeds) for name in RECIPES]
    rows = comparison([made for group in groups for made in group])
    console().print(comparison_table(rows, oracle=False))
    svg = picture(groups)
    write_text(folder / "demo.svg", svg)
    if save:
        write_text(Path(save) / "demo.svg", svg)
        write_json(Path(save) / "demo.json", results(groups))
    print(f"plot: {folder / 'demo.svg'}")
    for group in groups:
        for made in group:
            print(f"run:  {made.path}")


def _trained(name: str, folder: Path, overrides: Sequence[str], seeds: int) -> list[Run]:
    """Return a run of this recipe for every seed."""
    from unswayed.recipe import Recipe

    contrast = ("framework.", "regularizer.")
    own = [each for each in overrides if name != "digits-ce" or not each.startswith(contrast)]
    made = []
    for seed in range(seeds):
        recipe = Recipe.load(name, *own, f"train.seed={seed}")
        made.append(watched(recipe, folder / f"{name}-seed{seed}", f"{recipe.label}, seed {seed}"))
    return made


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
        "command": "unswayed demo --compare",
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
