"""A folder with one sub-folder per class, as torchvision's ImageFolder reads it."""

from __future__ import annotations

from pathlib import Path

from unswayed.data import Splits, register
from unswayed.data.cache import Cache
from unswayed.data.decode import Resize
from unswayed.data.listing import class_names, find_splits, list_classes, settle_size
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
    max_bad: Fraction = 0.01,
    links: bool = False,
) -> Splits:
    """Images in one sub-folder per class; folders named train and test (or val) are recognised.

    An id is the path below the folder. Hidden files and files without an image extension are
    ignored. Images that cannot be read are left out and listed in the run folder.

    Args:
        path: the folder.
        size: side of the square images to train on; 0 chooses 32, 64 or 96.
        mode: rgb or gray.
        resize: crop keeps proportions and cuts the middle out, squash does not.
        cache: memory, disk, stream, or auto (see docs/data.md).
        max_bad: largest share of unreadable images; with more, the training does not start.
        links: follow symbolic links that leave the folder; otherwise they are an error.
    """
    root = Path(path)
    if not root.is_dir():
        raise UsageError(f"data.path: there is no folder {root}")
    train_root, test_root = find_splits(root)
    train = list_classes(train_root, root, links=links)
    test = list_classes(test_root, root, links=links) if test_root else None
    if not train:
        raise UsageError(
            f"{root} holds no images in class folders; expected {root}/<class>/<image>.jpg, or the "
            f"same under {root}/train and {root}/test"
        )
    classes = class_names(train.labels)
    unknown = set(test.labels) - set(classes) if test else set()
    if unknown:
        raise UsageError(f"{test_root} has classes that {train_root} has not: {sorted(unknown)}")
    how = Reading(settle_size(size, train.paths), mode, resize, cache, max_bad)
    return Splits(read(train, classes, how), read(test, classes, how) if test else None)
