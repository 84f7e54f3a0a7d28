"""A new tree of class folders: links or copies of the images, or a plan of moves."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

from unswayed.data.layout import Layout
from unswayed.data.listing import JUNK, SUFFIXES, readable
from unswayed.data.progress import tell
from unswayed.errors import UsageError
from unswayed.exports.corrections import Corrections
from unswayed.exports.labels import write_changes, write_table
from unswayed.exports.source import Image, images, layout_of, top_of

CHANGES = "changes.csv"


class Placing(NamedTuple):
    """An image file and its place in the new tree."""

    source: Path
    target: PurePath | None  # None: it is left out


def write_tree(new: Path, corrections: Corrections, how: Literal["links", "copies"]) -> None:
    """Make a folder of links or copies, and the table of changes in it."""
    found = placings(corrections)
    planned = [each for each in found if each.target is not None and each.source.exists()]
    new.mkdir()
    for number, (source, target) in enumerate(planned):
        assert target is not None
        place = new / target
        if not Path(os.path.normpath(place)).is_relative_to(os.path.normpath(new)):
            raise UsageError(f"{target} leaves the folder; use --as manifest")
        place.parent.mkdir(parents=True, exist_ok=True)
        if how == "links":
            place.symlink_to(source.absolute())
        else:
            shutil.copy2(source, place)
        if number % 100 == 0:
            tell("linking images" if how == "links" else "copying images", number, len(planned))
    taken = {PurePath(each.name) for each in new.iterdir()}
    write_changes(new / _free(PurePath(CHANGES), taken), corrections.changes)


def write_moves(new: Path, corrections: Corrections) -> None:
    """Write which files would have to move; an empty `to` means that the file is left out."""
    top, rows = top_of(corrections.run), []
    for source, target in placings(corrections):
        now = source.relative_to(top)
        if target != now:
            rows.append((readable(str(now)), "" if target is None else readable(str(target))))
    write_table(new, ("from", "to"), rows)


def placings(corrections: Corrections) -> list[Placing]:
    """Return where each image goes. No two go to one place, and none to where another one was."""
    found = images(corrections)
    if corrections.run.recipe.sections["data"]["name"] == "manifest":
        return _by_class(found)
    return _at_its_level(found, layout_of(corrections.run))


def _at_its_level(found: Sequence[Image], layout: Layout) -> list[Placing]:
    """Put a relabelled image into the folder of its new class, at the level of the old one."""
    levels = [level.path for level in layout.train]
    names = {
        label.name: label.path.name for level in reversed(layout.train) for label in level.folders
    }
    taken = {PurePath(image.path.relative_to(layout.root)) for image in found}
    placed = []
    for image in found:
        target: PurePath | None = image.path.relative_to(layout.root)
        if image.label is None:
            target = None
        elif image.label != image.old_label:
            level = next(each for each in levels if image.path.is_relative_to(each))
            _, *rest = image.path.relative_to(level).parts
            above = level.relative_to(layout.root)
            target = _free(PurePath(above, names[image.label], *rest), taken)
        placed.append(Placing(image.path, target))
    return placed


def _by_class(found: Sequence[Image]) -> list[Placing]:
    """Put the images of a table into one folder for each class, and each split if there are two."""
    tested = any(image.split == "test" for image in found)
    taken: set[PurePath] = set()
    placed = []
    for image in found:
        if image.label is None:
            placed.append(Placing(image.path, None))
            continue
        above = (image.split,) if tested else ()
        folder = PurePath(*above, _folder_name(image.label))
        placed.append(Placing(image.path, _free(folder / _file_name(image), taken)))
    return placed


def _folder_name(label: str) -> str:
    """Return a class as the name of a folder; one that cannot be such a name is refused."""
    bad = not label or "/" in label or "\\" in label or "\0" in label or len(label.encode()) > 255
    if bad or label.startswith(".") or label.lower() in JUNK:
        raise UsageError(f"the class {label[:100]!r} cannot be a folder's name; use --as manifest")
    return label


def _file_name(image: Image) -> str:
    name = image.path.name
    if name.startswith(".") or image.path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{image.path} has no image extension, or is hidden; use --as manifest")
    return name


def _free(wanted: PurePath, taken: set[PurePath]) -> PurePath:
    """Return a path that is not taken, with a number if needed, and take it."""
    path, number = wanted, 1
    while path in taken:
        number += 1
        path = wanted.with_name(f"{wanted.stem}-{number}{wanted.suffix}")
    taken.add(path)
    return path
