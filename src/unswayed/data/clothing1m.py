"""Clothing1M: a million photos from online shops, labelled by the surrounding text."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unswayed.data import Dataset, Splits, register
from unswayed.data.cache import Cache
from unswayed.data.dataset import balanced, check_subset
from unswayed.data.listing import MAX_BAD, Listing, relative
from unswayed.data.locate import expect, folders
from unswayed.data.reading import Reading, read
from unswayed.data.texts import Texts
from unswayed.errors import UsageError
from unswayed.randomness import keys_of
from unswayed.types import AbsolutePath, Fraction, Side, Whole

CLASSES = (
    *("T-Shirt", "Shirt", "Knitwear", "Chiffon", "Sweater", "Hoodie", "Windbreaker"),
    *("Jacket", "Downcoat", "Suit", "Shawl", "Dress", "Vest", "Underwear"),
)
OFFICIAL = {"noisy_train": 1_000_000, "clean_val": 14_313, "clean_test": 10_526}
NUMBERS = frozenset(map(str, range(len(CLASSES))))
LISTS = (".", "label", "labels", "annotations")
NEEDS = (
    "images/ (unpacked) and noisy_train_key_list.txt, clean_val_key_list.txt, "
    "clean_test_key_list.txt, noisy_label_kv.txt and clean_label_kv.txt, directly, in label/ or in "
    "annotations/; or annotations/noisy_train.txt, clean_val.txt and clean_test.txt with a path "
    "and a label in each line. A folder clothing1m/ around all this is found too"
)

log = logging.getLogger(__name__)


@register("clothing1m", paper="Xiao et al., CVPR 2015")
def clothing1m(
    root: AbsolutePath | None = None,
    test: Literal["test", "val"] = "test",
    subset: Whole = 0,
    subset_seed: int | None = None,
    size: Side = 256,
    cache: Cache = "auto",
    max_bad: Fraction = MAX_BAD,
) -> Splits:
    """Clothing1M: a million clothes of 14 kinds, about 38 % of the labels wrong.

    Training is on the noisy labels, testing on the clean ones.

    Args:
        root: the folder with images/ and the lists, or images/ itself; by default $UNSWAYED_DATA,
            or clothing1m/ in it.
        test: test on the 10,526 images of the clean test set, or on the 14,313 of the clean
            validation set, for choosing settings.
        subset: train on this many images, equally many of each given label; 0 takes all. The paper
            of CTRR takes 20480.
        subset_seed: chooses them, 0 if not given; the subset does not change between epochs or with
            train.seed.
        size: side in pixels of the square that is cut out of the middle.
        cache: memory, disk, stream, or auto (see docs/data.md).
        max_bad: largest share of unreadable images; with more, the training does not start.
    """
    base, lists = _find(root)
    keys, given = _listed(lists, "noisy_train")
    check_subset(subset, subset_seed)
    if subset:
        seed, purpose = subset_seed or 0, "clothing1m/subset"
        chosen = balanced(given, keys_of(keys), subset, seed, purpose, CLASSES)
        keys, given = [keys[row] for row in chosen], given[chosen]
    clean_keys, clean = _listed(lists, f"clean_{test}")
    how = Reading(size, "rgb", "crop", cache, max_bad)
    return Splits(
        _dataset(base, keys, given, how, trusted=False),
        _dataset(base, clean_keys, clean, how, trusted=True),
    )


def _find(root: str | None) -> tuple[Path, Path]:
    """Return the root of the images and the folder of the lists, and log them."""
    for base, lists in _candidates(folders(root, NEEDS)):
        for name in ("noisy_train_key_list.txt", "noisy_train.txt"):
            if (lists / name).is_file():
                log.info("Clothing1M: images under %s, lists in %s", base, lists)
                return base, lists
    looked = " and ".join(map(str, folders(root, NEEDS)))
    raise UsageError(f"no Clothing1M was found in {looked}, which must hold {NEEDS}")


def _candidates(roots: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    for root in roots:
        bases = [root, root / "clothing1m", root / "Clothing1M"]
        if root.name == "images":  # then the lists may be beside it
            bases.append(root.parent)
        for base in bases:
            for name in LISTS:
                yield base, base / name


def _listed(lists: Path, name: str) -> tuple[list[str], NDArray[np.int64]]:
    """Return the paths of a part as listed, and their labels."""
    path = lists / f"{name}_key_list.txt"
    if path.is_file():
        keys = [line.strip() for line in _lines(path)]
        known = dict(_pairs(lists / f"{name.partition('_')[0]}_label_kv.txt"))
    else:
        path = lists / f"{name}.txt"
        known = dict(_pairs(path))
        keys = list(known)
    if not keys:
        raise UsageError(f"{path} is empty")
    unlabelled = [key for key in keys if key not in known]
    if unlabelled:
        raise UsageError(
            f"{path}: {len(unlabelled):,} images have no label in {lists}, such as {unlabelled[0]}"
        )
    expect(str(path), len(keys), OFFICIAL[name])
    return keys, np.array([known[key] for key in keys], dtype=np.int64)


def _lines(path: Path) -> Iterator[str]:
    """Return the lines that are not empty."""
    try:
        with path.open(encoding="utf-8") as file:
            yield from (line for line in file if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}; expected {NEEDS}") from error


def _pairs(path: Path) -> Iterator[tuple[str, int]]:
    """Return path and label of every line; a path may hold a comma, but no white space."""
    for line in _lines(path):
        words = line.split()
        if len(words) != 2 or words[1] not in NUMBERS:
            raise UsageError(
                f"{path}: {line.strip()!r} is not a path and a label 0..{len(CLASSES) - 1}"
            )
        yield words[0], int(words[1])


def _dataset(
    base: Path, keys: Sequence[str], given: NDArray[np.int64], how: Reading, *, trusted: bool
) -> Dataset:
    labels = [CLASSES[label] for label in given]
    ids = Texts(f"clothing1m/{key.removeprefix('images/')}" for key in keys)
    names = relative(_paths(base, keys), base)
    return read(Listing(base, names, ids, labels, labels if trusted else None), CLASSES, how)


def _paths(base: Path, keys: Sequence[str]) -> list[Path]:
    """Return where the images are: under the root or its images/, with or without that prefix."""
    for key in keys:
        if key.startswith("/") or ".." in key.split("/"):
            raise UsageError(f"a list of Clothing1M names {key!r}, which leaves its folder")
    samples = keys[:: max(1, len(keys) // 100)]
    for folder in (base, base / "images", base.parent):
        for prefix in ("", "images/"):
            if any((folder / key.removeprefix(prefix)).is_file() for key in samples):
                return [folder / key.removeprefix(prefix) for key in keys]
    raise UsageError(
        f"none of the listed images is under {base} or {base / 'images'}, such as {samples[0]}; "
        "unpack the archives images/0.tar to images/9.tar"
    )
