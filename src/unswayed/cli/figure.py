"""Measure and draw a figure of the paper, or one that it lacks.

NAME is one of

{names}

What it needs is trained first, as runs below --runs, unless the same recipe has been trained
there, by a grid or for another figure; `sweeps` shows the grids paper/lambda and paper/tau and
trains nothing. RECIPE is what is trained on: noisy digits unless you name another, such as
paper-simsiam data.name=cifar10 noise.name=symmetric noise.rate=0.4
"""

from __future__ import annotations

import argparse
from pathlib import Path

from unswayed import figures
from unswayed.cli.progress import Watcher
from unswayed.cli.show import check_writable
from unswayed.cli.train import watched
from unswayed.errors import UsageError
from unswayed.recipe import Recipe
from unswayed.training import files
from unswayed.training.run import Run

__doc__ = __doc__.format(
    names="\n".join(f"  {name:16} {about}" for name, about in figures.NAMES.items())
)

RECIPE = "paper/digits"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("words", nargs="*", metavar="RECIPE key=value")
    parser.add_argument("--seeds", type=int, metavar="N", help="trainings of each kind (3)")
    parser.add_argument(
        "--runs", default="runs", metavar="DIR", help="runs go to DIR/figure-NAME (runs)"
    )
    parser.add_argument(
        "--save", default=".", metavar="DIR", help="where NAME.json and NAME.png go (here)"
    )


def run(args: argparse.Namespace) -> int:
    """Train what is missing, measure, draw, and say where the files are."""
    module = figures.figure(args.name)
    if args.seeds is not None and args.name in (*figures.FROM_GRIDS, *figures.ONE_SEED):
        raise UsageError(f"--seeds is not for {args.name}, which has seeds of its own")
    seeds = 3 if args.seeds is None else args.seeds
    if seeds < 1:
        raise UsageError("--seeds must be at least 1")
    if args.words and args.name in figures.FROM_GRIDS:
        raise UsageError(f"{args.name} shows what its grids have trained, and takes no recipe")
    named = bool(args.words) and "=" not in args.words[0]
    recipe = Recipe.load(*args.words) if named else Recipe.load(RECIPE, *args.words)
    folder = Path(args.runs) / f"figure-{args.name}"
    place = Path(args.save)
    check_writable(place)
    lab = figures.Lab(folder, seeds, _train, Watcher)
    whole = {"figure": args.name, "recipe": recipe.to_toml(), **module.measure(recipe, lab)}
    data, picture = (place / f"{args.name}.{ending}" for ending in ("json", "png"))
    files.write_json(data, whole, indent=None)  # thousands of numbers
    with files.atomic(picture) as temporary:
        module.draw(whole).savefig(temporary, dpi=130, format="png")
    print(data, picture, sep="\n")
    return 0


def _train(recipe: Recipe, folder: Path) -> Run:
    return watched(recipe, folder, folder.name)
