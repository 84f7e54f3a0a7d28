"""Make, inspect and compare files of noisy labels.

make     draw the [noise] of a recipe on its [data], and save the labels with their convention
inspect  show what a file of labels holds: convention, share of wrong labels, matrix
compare  show in how many labels two files differ, and in which classes

To train on a saved file, set noise.name=file noise.path=FILE.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.table import Table
from rich.text import Text

from unswayed.cli.loading import data_progress
from unswayed.cli.show import console
from unswayed.errors import UsageError
from unswayed.noise.labels import SUFFIXES, LabelFile, encode, read
from unswayed.report.heatmap import heatmap

if TYPE_CHECKING:
    from unswayed.data import Splits
    from unswayed.noise import Noise
    from unswayed.recipe import Recipe

WIDEST = 20
"""Up to this many classes the whole matrix is printed; of a larger one, this many flips."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    make = actions.add_parser("make", help="draw noise and save the labels")
    make.add_argument("overrides", nargs="*", metavar="RECIPE key=value")
    make.add_argument("--out", metavar="FILE", required=True, help="a .npz or .csv file to write")
    inspect = actions.add_parser("inspect", help="say what a file of labels holds")
    inspect.add_argument("file", metavar="FILE", help="a .npz or .csv file of `make`")
    inspect.add_argument("--svg", metavar="FILE", help="draw the matrix")
    compare = actions.add_parser("compare", help="say where two files of labels differ")
    compare.add_argument("files", metavar="FILE", nargs=2, help="a .npz or .csv file of `make`")


def run(args: argparse.Namespace) -> int:
    """Run an action."""
    if args.action == "make":
        _make(args.overrides, Path(args.out))
    elif args.action == "inspect":
        _inspect(read(args.file), args.svg)
    else:
        _compare(read(args.files[0]), read(args.files[1]))
    return 0


def _make(overrides: list[str], out: Path) -> None:
    if out.suffix not in SUFFIXES:
        raise UsageError(f"--out: {out} does not end in {' or '.join(SUFFIXES)}")
    from unswayed.recipe import Recipe

    named = bool(overrides) and "=" not in overrides[0]
    recipe = Recipe.load(*overrides) if named else Recipe.load("digits", *overrides)
    with data_progress():
        labels = drawn(recipe)
    _write(out, encode(labels, out.suffix), "--out")
    print("\n".join(_facts(labels)))
    print(out)


def drawn(recipe: Recipe) -> LabelFile:
    """Return the given labels of a training of this recipe."""
    from unswayed.build import facts_of

    splits: Splits = recipe.build("data")
    data, seed = splits.train, recipe.settings.seed
    noise: Noise = recipe.build("noise", facts_of(data))
    return LabelFile(
        ids=tuple(data.ids),
        before=data.given,
        given=noise.corrupt(data.given, data.keys, seed),
        classes=data.classes,
        convention=noise.convention,
        seed=seed,
        expected=noise.matrix(),
    )


def _write(path: Path, content: bytes, option: str) -> None:
    from unswayed.files import atomic

    try:
        with atomic(path.resolve()) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise UsageError(f"{option}: {path} cannot be written: {error}") from error


def _facts(labels: LabelFile) -> list[str]:
    wrong, expected = 100 * labels.realised().rate, 100 * labels.expected_rate()
    return [
        f"convention  {labels.convention}",
        f"seed        {labels.seed}",
        f"samples     {len(labels.ids)} of {len(labels.classes)} classes",
        f"wrong       {wrong:.2f} % of the labels ({expected:.2f} % expected)",
    ]


def _inspect(labels: LabelFile, svg: str | None) -> None:
    matrix = labels.realised().matrix
    print("\n".join(_facts(labels)))
    print()
    print("\n".join(matrix_lines(matrix, labels.classes)))
    if svg is not None:
        title = f"{100 * labels.realised().rate:.1f} % of {len(labels.ids)} labels are wrong"
        _write(Path(svg), heatmap(matrix, labels.classes, title).encode(), "--svg")
        print(svg)


def matrix_lines(matrix: NDArray[np.float64], classes: tuple[str, ...]) -> list[str]:
    """Return a small matrix as a whole, in percent, or the most frequent flips of a large one."""
    if len(classes) > WIDEST:
        return _flips(matrix, classes)
    names = [str(k) if name == str(k) else f"{name[:20]} {k}" for k, name in enumerate(classes)]
    room = max(len(name) for name in [*names, "class"])
    lines = [f"{'class':>{room}} | label given, % of the class"]
    lines.append(" " * room + " |" + "".join(f"{k:>6}" for k in range(len(classes))))
    for name, row in zip(names, matrix, strict=True):
        cells = "".join(f"{100 * share:>6.1f}" if share else f"{'·':>6}" for share in row)
        lines.append(f"{name:>{room}} |{cells}")
    return lines


def _flips(matrix: NDArray[np.float64], classes: tuple[str, ...]) -> list[str]:
    wrong = matrix * (1 - np.eye(len(matrix)))
    order = np.argsort(-wrong, axis=None, kind="stable")[:WIDEST]
    pairs = [divmod(int(place), len(matrix)) for place in order]
    listed = [
        f"{100 * wrong[i, j]:6.2f} % of {classes[i]} are given as {classes[j]}"
        for i, j in pairs
        if wrong[i, j]
    ]
    return [f"the {len(listed)} most frequent of {np.count_nonzero(wrong)} flips", *listed]


def _compare(first: LabelFile, second: LabelFile) -> None:
    if first.classes != second.classes:
        raise UsageError("the two files are of different classes")
    where = {name: row for row, name in enumerate(second.ids)}
    pairs = [(row, where[name]) for row, name in enumerate(first.ids) if name in where]
    if not pairs:
        raise UsageError("the two files have no sample in common")
    a, b = np.array(pairs).T
    differ = first.given[a] != second.given[b]
    print(f"{len(pairs)} samples in common of {len(first.ids)} and {len(second.ids)}")
    moved = int((first.before[a] != second.before[b]).sum())
    if moved:
        print(f"{moved} of them were of another class before the noise: the data differ")
    print(f"{100 * (1 - differ.mean()):.2f} % agree; {differ.sum()} labels differ")
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("class")
    for heading in ("samples", "labels differ", "wrong in the first", "wrong in the second"):
        table.add_column(heading, justify="right")
    wrong = first.given[a] != first.before[a], second.given[b] != second.before[b]
    for k, name in enumerate(first.classes):
        rows = first.before[a] == k
        if rows.any():
            counts = [str(int(part[rows].sum())) for part in (differ, *wrong)]
            table.add_row(Text(name), str(int(rows.sum())), *counts)
    console().print(table)
