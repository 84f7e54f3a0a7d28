"""Cross entropy and CTRR on digits with wrong labels, epoch by epoch: `unswayed demo --compare`.

Two controls stand between them, which say what CTRR's gain is made of: cross entropy on the crops
that CTRR sees, and CTRR without pairs of different images.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from unswayed.cli.show import check_writable, comparison_table, console
from unswayed.cli.train import watched
from unswayed.errors import UsageError
from unswayed.report.chart import Line, Panel, chart

if TYPE_CHECKING:
    from unswayed.runs import Run


class Row(NamedTuple):
    """What is trained: its name in table, plot and folders, a recipe, and overrides."""

    label: str
    recipe: str
    overrides: tuple[str, ...] = ()


CROPS = ("views.weak.name=resized_crop", "views.weak.area=[0.5, 1.0]", "views.weak.flip=0.0")
"""The crops of the recipe's strong views."""

ROWS = (
    Row("ce", "digits-ce"),
    Row("ce, crops", "digits-ce", CROPS),
    Row("ctrr, own views only", "digits", ("regularizer.tau=1.01",)),
    Row("ctrr", "digits"),
)


def show_effect(folder: Path, overrides: Sequence[str], seeds: int, save: str | None) -> None:
    """Train all for the same number of epochs, then show table, plot and folders.

    Args:
        folder: where the runs go; those that are there already are not trained again.
        overrides: options for all of them.
        seeds: how many seeds, from 0 on.
        save: a folder for demo.json and demo.svg.
    """
    from unswayed.files import write_json, write_text
    from unswayed.report.table import comparison

    if seeds < 1 or any(each.startswith("train.seed=") for each in overrides):
        raise UsageError("--seeds N trains the seeds 0 to N-1 and must be at least 1")
    if save:
        check_writable(Path(save))
    groups = {row.label: _trained(row, folder, overrides, seeds) for row in ROWS}
    rows = [replace(comparison(runs)[0], method=label) for label, runs in groups.items()]
    console().print(comparison_table(rows, oracle=False))
    svg = picture(groups)
    write_text(folder / "demo.svg", svg)
    if save:
        write_text(Path(save) / "demo.svg", svg)
        write_json(Path(save) / "demo.json", results(groups))
    print(f"plot: {folder / 'demo.svg'}")
    for runs in groups.values():
        for made in runs:
            print(f"run:  {made.path}")


def _trained(row: Row, folder: Path, overrides: Sequence[str], seeds: int) -> list[Run]:
    """Return a run for every seed."""
    from unswayed.recipe import Recipe

    contrast = ("framework.", "regularizer.")
    own = [each for each in overrides if row.recipe == "digits" or not each.startswith(contrast)]
    name = "-".join(re.findall("[a-z]+", row.label))
    made = []
    for seed in range(seeds):
        recipe = Recipe.load(row.recipe, *own, *row.overrides, f"train.seed={seed}")
        made.append(watched(recipe, folder / f"{name}-seed{seed}", f"{row.label}, seed {seed}"))
    return made


def picture(groups: Mapping[str, Sequence[Run]]) -> str:
    """Return the chart of test accuracy and memorisation over epochs."""

    def lines(key: str) -> list[Line]:
        return [
            Line(label, [[getattr(row, key) for row in run.metrics] for run in runs])
            for label, runs in groups.items()
        ]

    rate = groups["ce"][0].provenance.noise.realised_rate or 0.0
    title = f"digits, {100 * rate:.0f} % of the training labels wrong"
    return chart(
        [
            Panel("test accuracy", lines("test_accuracy")),
            Panel("wrong labels memorised", lines("wrong_as_given")),
        ],
        title,
    )


def results(groups: Mapping[str, Sequence[Run]]) -> dict[str, object]:
    """Return all numbers of the demo with their origin."""
    return {
        "command": "unswayed demo --compare",
        "runs": [
            {
                "method": label,
                "recipe": made.recipe.sections,
                "provenance": made.provenance.model_dump(),
                "summary": made.summary.model_dump(exclude_none=True),
            }
            for label, runs in groups.items()
            for made in runs
        ],
    }
