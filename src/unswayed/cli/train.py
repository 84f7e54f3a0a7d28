"""Train a recipe.

RECIPE is a TOML file or the name of a shipped recipe (see `unswayed list recipes`); without one,
the digits are trained on. Overrides are words such as noise.rate=0.4 loss.name=gce train.epochs=20.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from unswayed.cli.loading import data_progress
from unswayed.cli.progress import Watcher
from unswayed.cli.show import comparison_table, console

if TYPE_CHECKING:
    from unswayed.recipe import Recipe
    from unswayed.training.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("words", nargs="*", metavar="RECIPE key=value")
    parser.add_argument("--run", metavar="DIR", help="the run folder (default: a new one in runs/)")


def run(args: argparse.Namespace) -> int:
    """Train, and print the numbers."""
    from unswayed.recipe import Recipe

    named = bool(args.words) and "=" not in args.words[0]
    recipe = Recipe.load(*args.words) if named else Recipe.load("digits", *args.words)
    show_run(watched(recipe, args.run))
    return 0


def watched(recipe: Recipe, folder: str | Path | None, title: str | None = None) -> Run:
    """Train with a progress bar, and say first what is trained on what."""
    from unswayed.build import train
    from unswayed.report.table import method_of

    begun: list[Run] = []
    with Watcher(title or method_of(dict(recipe.sections))) as watcher, data_progress() as clear:

        def begin(run: Run) -> None:
            begun.append(run)
            clear()
            watcher.console.print(introduction(run), highlight=False, soft_wrap=True, markup=False)

        made = train(recipe, run=folder, watch=watcher, begin=begin)
    if not begun:
        print(f"{made.path} is finished already; nothing was trained", file=sys.stderr)
    return made


def introduction(run: Run) -> str:
    """Return a few lines on the data, the noise and the folder."""
    resumed = bool(run.metrics)
    data, noise = run.provenance["data"], run.provenance["noise"]
    held = f", {data['held_out']} held out" if data["held_out"] else ""
    realised = noise.get("realised_rate")
    wrong = f"{100 * realised:.1f} % of the labels are wrong\n" if realised is not None else ""
    skipped = f"unreadable files left out: {data['skipped']} (listed in {run.path}/skipped.json)\n"
    return (
        f"{data['samples']} training images{held}, {data['test']} test images, "
        f"{len(data['classes'])} classes\n{wrong}{skipped if data['skipped'] else ''}"
        f"{'going on with' if resumed else 'run folder'}: {run.path}"
    )


def show_run(run: Run) -> None:
    """Print the numbers of a finished run."""
    from unswayed.report.table import comparison

    console().print(comparison_table(comparison([run]), oracle=False))
    print(run.path)
