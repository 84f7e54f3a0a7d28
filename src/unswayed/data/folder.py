"""A folder with one sub-folder per class, as torchvision's ImageFolder reads it."""

from __future__ import annotations

import warnings
from pathlib import Path

from unswayed.data import Splits, register
from unswayed.data.cache import Cache
from unswayed.data.decode import Resize
from unswayed.data.layout import find_layout
from unswayed.data.listing import MAX_BAD, class_names, only_in_test, settle_size
from unswayed.data.reading import Mode, Reading, read
from unswayed.errors import UsageError
from unswayed.types import AbsolutePath, Fraction, SideOrZero


@register("folder")
def folder(
    path: AbsolutePath,
    size: SideOrZero = 0,
    mode: Mode = "rgb",
    resize: Resize = "crop",
    cache: Cache = "auto",
    max_bad: Fraction = MAX_BAD,
    links: bool = False,
    train_folders: tuple[str, ...] = (),
) -> Splits:
    """Images in one sub-folder per class; folders named train and test (or val) are recognised.

    The classes may lie deeper; a note says what is used and what is not. An id is the path below
    the folder. Hidden files and files without an image extension are ignored. Images that cannot be
    read are left out and listed in the run folder.

    Args:
        path: the folder.
        size: side of the square images to train on; 0 chooses 32, 64 or 96.
        mode: rgb or gray.
        resize: crop keeps proportions and cuts the middle out, squash does not.
        cache: memory, disk, stream, or auto (see docs/data.md).
        max_bad: largest share of unreadable images; with more, the training does not start.
        links: follow symbolic links that leave the folder; otherwise they are an error.
        train_folders: folders to train on, below path, such as ["train", "validation"]; by default
            the one named like a training set, or all.
    """
    layout = find_layout(Path(path), links=links, train_folders=train_folders)
    listed = layout.listings()
    train, test = listed["train"], listed.get("test")
    if test and (words := only_in_test(train, test)):
        raise UsageError(f"{path}: {words}")
    for remark in layout.remarks:
        warnings.warn(remark, stacklevel=2)
    classes = class_names(train.labels)
    how = Reading(settle_size(size, train.paths), mode, resize, cache, max_bad)
    return Splits(read(train, classes, how), read(test, classes, how) if test else None)
