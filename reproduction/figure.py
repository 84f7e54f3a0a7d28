"""Measure and draw a figure of the paper, or one that it lacks.

    python -m reproduction.figure NAME [RECIPE] [key=value ...]

NAME is one of

{names}

What it needs is trained first, as runs below --runs, unless the same recipe has been trained there.
`sweeps` shows the grids `lambda` and `tau` and trains nothing. RECIPE is what is trained on: noisy
digits unless you name another, such as
paper-simsiam data.name=cifar10 noise.name=symmetric noise.rate=0.4
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from reproduction import figures, recipe_file
from unswayed import files
from unswayed.cli import parse_with_overrides, run_safely
from unswayed.cli.progress import Watcher
from unswayed.cli.show import check_writable
from unswayed.cli.train import watched
from unswayed.errors import UsageError
from unswayed.recipe import Recipe
from unswayed.runs import Run

__doc__ = __doc__.format(
    names="\n".join(f"  {name:16} {about}" for name, about in figures.NAMES.items())
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    made = argparse.ArgumentParser(
        prog="python -m reproduction.figure",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("name", metavar="NAME")
    made.add_argument("overrides", nargs="*", metavar="RECIPE key=value")
    made.add_argument("--seeds", type=int, metavar="N", help="trainings of each kind (3)")
    made.add_argument(
        "--runs", default="runs", metavar="DIR", help="runs go to DIR/figure-NAME (runs)"
    )
    made.add_argument(
        "--save", default=".", metavar="DIR", help="where NAME.json and NAME.png go (here)"
    )
    made.add_argument(
        "--redraw", action="store_true", help="train nothing; draw the numbers of NAME.json again"
    )
    return made


def run(args: argparse.Namespace) -> int:
    """Train what is missing, measure, draw, and say where the files are."""
    module = figures.figure(args.name)
    if args.seeds is not None and args.name in (*figures.FROM_GRIDS, *figures.ONE_SEED):
        raise UsageError(f"--seeds is not for {args.name}, which has seeds of its own")
    seeds = 3 if args.seeds is None else args.seeds
    if seeds < 1:
        raise UsageError("--seeds must be at least 1")
    if args.overrides and args.name in figures.FROM_GRIDS:
        raise UsageError(f"{args.name} shows what its grids have trained, and takes no recipe")
    named = bool(args.overrides) and "=" not in args.overrides[0]
    source = args.overrides.pop(0) if named else recipe_file("digits")
    recipe = Recipe.load(source, *args.overrides)
    place = Path(args.save)
    check_writable(place)
    data, picture = (place / f"{args.name}.{ending}" for ending in ("json", "png"))
    if args.redraw:
        if not data.is_file():
            raise UsageError(f"there is no {data} to draw; leave out --redraw to measure it")
        whole = json.loads(data.read_text(encoding="utf-8"))
    else:
        lab = figures.Lab(Path(args.runs) / f"figure-{args.name}", seeds, _train, Watcher)
        whole = {"figure": args.name, "recipe": recipe.to_toml(), **module.measure(recipe, lab)}
        files.write_json(data, whole, indent=None)  # thousands of numbers
    with files.atomic(picture) as temporary:
        module.draw(whole).savefig(temporary, dpi=130, format="png")
    sys.stdout.write(f"{data}\n{picture}\n")
    return 0


def _train(recipe: Recipe, folder: Path) -> Run:
    return watched(recipe, folder, folder.name)


def main(argv: Sequence[str] | None = None) -> int:
    """Make a figure and return the exit code: 0 well, 1 failed, 2 the user can mend it."""
    return run_safely(lambda: run(parse_with_overrides(parser(), argv)))


if __name__ == "__main__":
    sys.exit(main())
