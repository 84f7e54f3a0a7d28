"""Train a recipe.

RECIPE is a TOML file or the name of a shipped recipe (see `unswayed list recipes`); the default is
digits. Overrides set options, for example noise.rate=0.4 loss.name=gce train.epochs=20. The recipe
cpu/auto plans network, resolution and epochs for your data and --minutes, and says so first:
unswayed train cpu/auto data.path=photos --minutes 30.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from unswayed.cli.loading import data_progress
from unswayed.cli.planning import MINUTES, check_minutes, folder_for, planned
from unswayed.cli.progress import Watcher
from unswayed.cli.show import comparison_table, console
from unswayed.errors import UsageError
from unswayed.recipes import AUTO

if TYPE_CHECKING:
    from unswayed.recipe import Recipe
    from unswayed.runs import Run
    from unswayed.session import Opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("overrides", nargs="*", metavar="RECIPE key=value")
    # torchrun takes --run for one of its own options, also behind `-m unswayed train`.
    parser.add_argument(
        "--run",
        "--run-folder",
        metavar="DIR",
        help="the run folder (default: a new one in runs/); behind torchrun write --run-folder",
    )
    parser.add_argument(
        "--minutes", type=float, help=f"for the plan of the recipe cpu/auto ({MINUTES:g})"
    )


def run(args: argparse.Namespace) -> int:
    """Train, and print the numbers."""
    from unswayed.recipe import Recipe

    named = bool(args.overrides) and "=" not in args.overrides[0]
    name, *overrides = args.overrides if named else ("digits", *args.overrides)
    if name == AUTO:
        recipe, folder = _planned(overrides, args)
    else:
        if args.minutes is not None:
            raise UsageError(f"--minutes is for the recipe {AUTO}; others have train.budget")
        recipe, folder = Recipe.load(name, *overrides), args.run
    show_run(watched(recipe, folder))
    return 0


def _planned(overrides: list[str], args: argparse.Namespace) -> tuple[Recipe, Path]:
    """Return a recipe for the user's data and time, and its folder."""
    given = [each for each in overrides if each.startswith("data.path=")]
    if not given:
        raise UsageError(
            f"{AUTO} plans for your own data; name them: unswayed train {AUTO} data.path=photos. "
            "For CIFAR-10 there is cpu/cifar10"
        )
    minutes = MINUTES if args.minutes is None else args.minutes
    check_minutes(minutes)
    path = Path(given[-1].removeprefix("data.path="))
    if not path.exists():
        raise UsageError(f"there is no folder and no file {path}")
    folder = folder_for(path, args.run)
    # The plan finds out whether it is a folder, a table or arrays.
    kept = [each for each in overrides if not each.startswith(("data.path=", "data.name="))]
    return planned(path, folder, minutes, kept), folder


def watched(recipe: Recipe, folder: str | Path | None, title: str | None = None) -> Run:
    """Train with a progress bar, after a few lines on what is trained."""
    from unswayed.session import Opened, fit

    with Watcher(title or recipe.label) as watcher, data_progress() as clear:
        for event in fit(recipe, run=folder):
            if isinstance(event, Opened):
                opened = event
                clear()
                words = introduction(event)
                watcher.console.print(words, highlight=False, soft_wrap=True, markup=False)
            watcher(event)
    return opened.run


def introduction(opened: Opened) -> str:
    """Return a few lines on the data, the noise and the folder."""
    run = opened.run
    if opened.state == "finished":
        return f"{run.path} is finished already; nothing was trained"
    data, rate = run.provenance.data, run.provenance.noise.realised_rate
    held = f", {data.held_out} held out" if data.held_out else ""
    wrong = f"{100 * rate:.1f} % of the labels are wrong\n" if rate is not None else ""
    skipped = f"unreadable files left out: {data.skipped} (listed in {run.path}/skipped.json)\n"
    return (
        f"{data.samples} training images{held}, {data.test} test images, "
        f"{len(data.classes)} classes\n{wrong}{skipped if data.skipped else ''}"
        f"{'going on with' if opened.state == 'resumed' else 'run folder'}: {run.path}"
    )


def show_run(run: Run) -> None:
    """Print the numbers of a finished run, and what to do next."""
    from unswayed.report.table import comparison

    console().print(comparison_table(comparison([run]), oracle=False))
    if run.summary.last.test_accuracy is None:
        show_holdout(run)
    print(run.path)
    print(f"next: unswayed audit {shlex.quote(str(run.path))}", file=sys.stderr)


def show_holdout(run: Run) -> None:
    """Print the accuracy on the noisy hold-out, if there is one."""
    share = run.summary.last.holdout_accuracy
    if share is not None:
        held = run.provenance.data.held_out
        print(
            f"{100 * share:.1f} % of the {held:,} held-out images are predicted as labelled; some "
            "labels are wrong"
        )
