"""List image files with their ids and labels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path

import numpy as np

from unswayed.data.decode import opened
from unswayed.data.texts import Paths, Texts
from unswayed.errors import UsageError

SUFFIXES = frozenset(
    f".{name}"
    for name in (
        *("jpg", "jpeg", "jpe", "jfif", "png", "bmp", "gif", "webp"),
        *("tif", "tiff", "ppm", "pgm", "pbm", "pnm"),
    )
)
MAX_BAD = 0.01
"""The largest share of unreadable images that a training accepts unless `data.max_bad` is set."""

JUNK = frozenset({"__macosx"})
"""Folders that programs leave behind, in lower case; hidden ones are ignored anyway."""

MOST_LINKS = 10_000
"""Links to folders; a few folders of links to each other make billions of paths."""

DEEPEST = 100
"""Folders inside each other; an archive can hold thousands."""

SIDES = (96, 64, 32)
SAMPLE = 200
SHOWN = 5


@dataclass
class Listing:
    """Files in order, with their ids and labels; equal labels are one string."""

    root: Path = Path()  # that the files lie below
    names: Texts = field(default_factory=Texts)  # paths relative to the root
    ids: Texts = field(default_factory=Texts)
    labels: list[str] = field(default_factory=list)
    true: list[str] | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def paths(self) -> Paths:
        """The files."""
        return Paths(self.root, self.names)


def relative(paths: Iterable[Path], root: Path) -> Texts:
    """Return paths relative to a folder, which they may lie beside."""
    return Texts(os.path.relpath(path, root) for path in paths)


def class_names(*labels: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct labels, sorted; by value if all are whole numbers."""
    names = {name for part in labels for name in part}
    if all(name.isdigit() for name in names):
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))


def only_in_test(train: Listing, test: Listing) -> str:
    """Say which classes only the test images have; empty if there are none."""
    known = {*train.labels, *(train.true or ())}
    unknown = sorted({*test.labels, *(test.true or ())} - known)
    if not unknown:
        return ""
    what = some([repr(name) for name in unknown])
    return f"test has classes that are not trained on: {what}; rename or remove them"


def some(names: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


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
        with opened(path) as image:
            return min(image.size)
    except Exception:  # it will be named when it is decoded
        return 0


@dataclass(frozen=True, eq=False)
class Folder:
    """The images of a folder, and of the folders in it."""

    path: Path
    files: Texts = field(default_factory=Texts)  # names of images that lie directly in it
    folders: tuple[Folder, ...] = ()  # by name; some may hold no images

    @property
    def name(self) -> str:
        """The name as text."""
        return readable(self.path.name)

    @cached_property
    def count(self) -> int:
        """The number of images in it, at any depth."""
        return len(self.files) + sum(folder.count for folder in self.folders)

    @cached_property
    def filled(self) -> tuple[Folder, ...]:
        """The folders in it that hold images."""
        return tuple(folder for folder in self.folders if folder.count)

    def images(self) -> Iterator[str]:
        """Yield the paths of the images in it, at any depth, relative to it."""
        yield from self.files
        for folder in self.folders:
            for name in folder.images():
                yield f"{folder.path.name}/{name}"


class OutsideLinkError(UsageError):
    """A link leads out of the data folder."""


def scan(root: Path, *, links: bool) -> Folder:
    """Find all images below a folder; a link may leave it only if `links` says so."""
    return _scan(root, root, links, count(1))


def _scan(place: Path, root: Path, links: bool, followed: Iterator[int]) -> Folder:
    """Find all images below a place; `followed` counts the links to folders."""
    files, folders = Texts(), []
    try:
        with os.scandir(place) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except OSError as error:
        raise UsageError(f"the folder {place} cannot be read: {error.strerror}") from error
    if len(place.parts) - len(root.parts) > DEEPEST:
        raise UsageError(f"{root} holds folders in folders, more than {DEEPEST} deep: {place}")
    for entry in entries:
        image = Path(entry.name).suffix.lower() in SUFFIXES
        inside = _is_folder(entry)
        if entry.name.startswith(".") or entry.name.lower() in JUNK or not (image or inside):
            continue
        if entry.is_symlink():
            _check_link(Path(entry.path), root, links=links)
        if inside:
            if entry.is_symlink() and next(followed) > MOST_LINKS:
                raise UsageError(f"{root} has more than {MOST_LINKS:,} links to folders")
            folders.append(_scan(Path(entry.path), root, links, followed))
        else:
            files.append(entry.name)
    return Folder(place, files, tuple(folders))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def list_classes(folders: Sequence[Folder], root: Path) -> Listing:
    """List the images of the class folders in some folders, sorted by id within a class."""
    listing = Listing(root)
    for label in (label for folder in folders for label in folder.filled):
        place, name = label.path.relative_to(root).as_posix(), label.name
        for image in sorted(label.images(), key=lambda path: path.split("/")):
            listing.names.append(f"{place}/{image}")
            listing.ids.append(readable(f"{place}/{image}"))
            listing.labels.append(name)
    return listing


def readable(name: str) -> str:
    """Return a file name as text, with backslash codes for bytes that are not UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _check_link(link: Path, root: Path, *, links: bool) -> None:
    try:
        target = link.resolve()
    except (OSError, RuntimeError):  # RuntimeError before Python 3.13
        raise UsageError(f"the link {link} points to itself; remove it") from None
    if link.is_dir() and link.absolute().is_relative_to(target):
        raise UsageError(f"the link {link} points to a folder that holds it")
    if not links and not target.is_relative_to(root.resolve()):
        raise OutsideLinkError(
            f"the link {link} leaves the data folder (it points to {target}); set data.links=true "
            "to follow such links"
        )
