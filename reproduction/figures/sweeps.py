"""Fig. 4: accuracy over λ and τ, from the grids `lambda` and `tau`."""

from __future__ import annotations

import textwrap
from pathlib import Path

from matplotlib.figure import Figure

from reproduction import grid_file
from reproduction.figures import Lab, Measured, drawing
from unswayed.bench import results, tables
from unswayed.bench.grid import Grid
from unswayed.errors import UsageError
from unswayed.recipe import Recipe
from unswayed.report.colours import OF_METHOD

GRIDS = {"λ": grid_file("lambda"), "τ": grid_file("tau")}


def measure(recipe: Recipe, lab: Lab) -> Measured:
    """Return the last test accuracies of both grids, which `unswayed bench` has trained.

    The runs of the grids lie beside the folder of this figure. Draws whichever scale is more
    complete; on a tie, the full one.
    """
    del recipe  # the grids have their own
    runs = lab.folder.parent
    done: dict[str, float] = {}
    scales: dict[str, dict[str, Measured]] = {}
    for scale in ("full", "cpu"):
        found = {letter: _sweep(Grid.load(name, scale), runs) for letter, name in GRIDS.items()}
        if all(any(sweep["values"].values()) for sweep in found.values()):
            scales[scale] = found
            columns = [each for sweep in found.values() for each in sweep["values"].values()]
            done[scale] = sum(map(bool, columns)) / len(columns)
    if scales:
        scale = max(done, key=done.__getitem__)
        return {"recipe": "", "scale": scale, "sweeps": scales[scale]}
    commands = " and ".join(f"unswayed bench {name} --scale cpu" for name in GRIDS.values())
    raise UsageError(f"{runs} has no finished runs of both sweeps; first: {commands}")


def _sweep(grid: Grid, runs: Path) -> Measured:
    measured = results.collect(grid, runs / grid.name, grid.name)
    values = {
        column.partition("=")[2].strip(): tables.values(measured, "last", column=column)
        for column in grid.columns
    }
    return {"description": grid.description, "values": values}


def draw(measured: Measured) -> Figure:
    """Draw a panel for each option; single seeds are dots."""
    drawn, axes = drawing.panels(len(measured["sweeps"]))
    for panel, (letter, found) in zip(axes, measured["sweeps"].items(), strict=True):
        values = {name: seeds for name, seeds in found["values"].items() if seeds}
        means = [100 * sum(seeds) / len(seeds) for seeds in values.values()]
        panel.plot(range(len(means)), means, "o-", color=OF_METHOD["ctrr"])
        for place, seeds in enumerate(values.values()):
            panel.plot(
                [place] * len(seeds), [100 * v for v in seeds], "k.", markersize=4, alpha=0.5
            )
        panel.set_xticks(range(len(means)), list(values))
        title = "\n".join(textwrap.wrap(found["description"], 44))
        drawing.finish(panel, title, "test accuracy, last epoch / %", letter)
    return drawn
