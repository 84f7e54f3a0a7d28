"""A table of image files and labels: CSV, JSON lines or Parquet."""

from __future__ import annotations

from pathlib import Path

from unswayed.data import Splits, register
from unswayed.data.cache import Cache
from unswayed.data.decode import Resize
from unswayed.data.listing import MAX_BAD, Listing, class_names, settle_size
from unswayed.data.reading import Mode, Reading, read
from unswayed.data.tables import read_table
from unswayed.errors import UsageError
from unswayed.registry import did_you_mean
from unswayed.types import AbsolutePath, Fraction, SideOrZero


@register("manifest")
def manifest(
    path: AbsolutePath,
    root: AbsolutePath | None = None,
    classes: tuple[str, ...] = (),
    size: SideOrZero = 0,
    mode: Mode = "rgb",
    resize: Resize = "crop",
    cache: Cache = "auto",
    max_bad: Fraction = MAX_BAD,
) -> Splits:
    """A .csv, .jsonl or .parquet file with path and label, and if known true_label, split and id.

    The path may also be called file_name or image. Labels are names; whole numbers are names too.
    Rows whose split is test or val are for testing. Other columns are ignored.

    Args:
        path: the file.
        root: the folder that paths are relative to and may not leave; by default the file's folder.
        classes: the class names in order; by default those found, sorted.
        size: side of the square images to train on; 0 chooses 32, 64 or 96.
        mode: rgb or gray.
        resize: crop keeps proportions and cuts the middle out, squash does not.
        cache: memory, disk, stream, or auto (see docs/data.md).
        max_bad: largest share of unreadable images; with more, the training does not start.
    """
    file = Path(path)
    parts = read_table(file, Path(root) if root else file.parent)
    train, test = parts["train"], parts["test"]
    names = classes or class_names(train.labels, train.true or [])
    if len(names) < 2:
        raise UsageError(f"{file} has one class only, {names[0]!r}: nothing to tell apart")
    for part in parts.values():
        _check_labels(part, names, file)
    how = Reading(settle_size(size, train.paths), mode, resize, cache, max_bad)
    return Splits(read(train, names, how), read(test, names, how) if test else None)


def _check_labels(part: Listing, names: tuple[str, ...], file: Path) -> None:
    known = set(names)
    for what, labels in (("label", part.labels), ("true_label", part.true or [])):
        for name in labels:
            if name not in known:
                raise UsageError(f"{file}: unknown {what} {name!r}; {did_you_mean(name, names)}")
