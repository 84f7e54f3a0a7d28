"""List image files with their ids and labels."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from unswayed.errors import UsageError

SUFFIXES = frozenset(
    f".{name}"
    for name in (
        *("jpg", "jpeg", "jpe", "jfif", "png", "bmp", "gif", "webp"),
        *("tif", "tiff", "ppm", "pgm", "pbm", "pnm"),
    )
)
MAX_PIXELS = 100_000_000
"""Larger images are refused before they are decoded: a small file can unpack to gigabytes."""

TRAIN = ("train", "training")
TEST = ("test", "testing", "val", "valid", "validation")

SIDES = (96, 64, 32)
SAMPLE = 200


@dataclass
class Listing:
    """Files in order, with their ids and labels."""

    paths: list[Path] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    true: list[str] | None = None
    root: Path = Path()  # that the files lie below

    def __len__(self) -> int:
        return len(self.paths)


def class_names(*labels: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct labels, sorted; by value if all are whole numbers."""
    names = {name for part in labels for name in part}
    if all(name.isdigit() for name in names):
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))


def settle_size(size: int, paths: Sequence[Path]) -> int:
    """Return the given side, or the largest standard one that most images fill."""
    if size:
        return size
    step = max(1, len(paths) // SAMPLE)
    sides = [side for path in paths[::step] if (side := _short_side(path))]
    middle = float(np.median(sides)) if sides else 0.0
    return next((side for side in SIDES if side <= middle), SIDES[-1])


def _short_side(path: Path) -> int:
    try:
        with Image.open(path) as image:
            return min(image.size)
    except Exception:  # it will be named when it is decoded
        return 0


def find_splits(root: Path) -> tuple[Path, Path | None]:
    """Return the folders of training and test classes; without a train folder, all is training."""
    inside = {entry.name.lower(): Path(entry.path) for entry in _entries(root) if entry.is_dir()}
    train = next((inside[name] for name in TRAIN if name in inside), None)
    if train is None or not any(entry.is_dir() for entry in _entries(train)):
        return root, None
    return train, next((inside[name] for name in TEST if name in inside), None)


def list_classes(where: Path, root: Path, *, links: bool) -> Listing:
    """List the images of every class folder, sorted by id."""
    listing = Listing(root=root)
    for entry in _entries(where):
        if not entry.is_dir() or entry.name.startswith("."):
            continue
        if entry.is_symlink():
            _check_link(Path(entry.path), root, links=links)
        before = len(listing)
        for path in sorted(_images(Path(entry.path), root, links=links)):
            listing.paths.append(path)
            listing.ids.append(readable(path.relative_to(root).as_posix()))
            listing.labels.append(readable(entry.name))
        if len(listing) == before:
            warnings.warn(f"the class folder {entry.path} holds no images", stacklevel=3)
    return listing


def _entries(place: Path) -> list[os.DirEntry[str]]:
    with os.scandir(place) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def readable(name: str) -> str:
    """Return a file name as text, with backslash codes for bytes that are not UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _images(place: Path, root: Path, *, links: bool) -> Iterator[Path]:
    for entry in _entries(place):
        if entry.name.startswith("."):
            continue
        if entry.is_symlink():
            _check_link(Path(entry.path), root, links=links)
        if entry.is_dir():
            yield from _images(Path(entry.path), root, links=links)
        elif Path(entry.name).suffix.lower() in SUFFIXES:
            yield Path(entry.path)


def _check_link(link: Path, root: Path, *, links: bool) -> None:
    target = link.resolve()
    if link.is_dir() and link.absolute().is_relative_to(target):
        raise UsageError(f"the link {link} points to a folder that holds it")
    if not links and not target.is_relative_to(root.resolve()):
        raise UsageError(
            f"the link {link} leaves the data folder (it points to {target}); set data.links=true "
            "to follow such links"
        )
