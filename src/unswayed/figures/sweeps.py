"""Fig. 4: accuracy over λ and τ, from the grids `paper/lambda` and `paper/tau`."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from unswayed.bench import results
from unswayed.bench.grid import Grid
from unswayed.errors import UsageError
from unswayed.figures import Measured, Train, drawing
from unswayed.recipe import Recipe

GRIDS = {"λ": "paper/lambda", "τ": "paper/tau"}


def measure(recipe: Recipe, folder: Path, seeds: int, train: Train) -> Measured:
    """Return the last test accuracies of both grids, which `unswayed bench` has trained.

    The folder lies beside those of the grids. They are of the full scale if those are there, and
    of the two-core scale otherwise.
    """
    del recipe, seeds, train
    found = {}
    for letter, name in GRIDS.items():
        for scale in ("full", "cpu"):
            grid = Grid.load(name, scale)
            measured = results.collect(grid, folder.parent / grid.name, name)
            if measured["runs"]:
                break
        else:
            raise UsageError(
                f"{folder.parent} has no finished run of {name}; first: unswayed bench {name} "
                f"--scale cpu --runs {folder.parent / grid.name}"
            )
        found[letter] = {
            "description": grid.description,
            "values": {
                column.partition("=")[2].strip(): results.values(measured, "last", column=column)
                for column in grid.columns
            },
        }
    return {"sweeps": found}


def draw(measured: Measured) -> Figure:
    """Draw a panel for each option; single seeds are dots."""
    drawn, axes = drawing.panels(len(measured["sweeps"]))
    for panel, (letter, found) in zip(axes, measured["sweeps"].items(), strict=True):
        values = {name: seeds for name, seeds in found["values"].items() if seeds}
        means = [100 * sum(seeds) / len(seeds) for seeds in values.values()]
        panel.plot(range(len(means)), means, "o-", color=drawing.COLOURS[1])
        for place, seeds in enumerate(values.values()):
            panel.plot(
                [place] * len(seeds), [100 * v for v in seeds], "k.", markersize=4, alpha=0.5
            )
        panel.set_xticks(range(len(means)), list(values))
        drawing.finish(panel, "", "test accuracy, last epoch / %", letter)
    return drawn
