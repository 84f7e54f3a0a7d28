"""ANIMAL-10N: photos of five pairs of look-alike animals, labelled quickly by people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from unswayed.data import Dataset, Splits, register
from unswayed.data.cache import Cache, check_memory
from unswayed.data.listing import MAX_BAD, Listing, relative
from unswayed.data.locate import expect, find
from unswayed.data.reading import Reading, read
from unswayed.data.texts import Texts
from unswayed.errors import UsageError
from unswayed.types import AbsolutePath, Fraction, Side

CLASSES = (
    *("cat", "lynx", "wolf", "coyote", "cheetah"),
    *("jaguar", "chimpanzee", "orangutan", "hamster", "guinea pig"),
)
SIDE = 64
RECORD = 8 + 3 * SIDE * SIDE
OFFICIAL = {"train": 50_000, "test": 5_000}
FOLDERS = {"train": "training", "test": "testing"}
NEEDS = (
    "the folders training/ and testing/ of files <label>_<name>.jpg, or data_batch_1.bin … and "
    "test_batch.bin, directly or in a folder animal10n/; ask https://dm.kaist.ac.kr/datasets for "
    "them"
)


@register("animal10n", paper="Song et al., ICML 2019")
def animal10n(
    root: AbsolutePath | None = None,
    size: Side = SIDE,
    cache: Cache = "auto",
    max_bad: Fraction = MAX_BAD,
) -> Splits:
    """ANIMAL-10N: 50,000 and 5,000 animals of ten kinds, about 8 % of the training labels wrong.

    It is not known which training labels are wrong.

    Args:
        root: the folder with training/ and testing/, or with data_batch_1.bin … and
            test_batch.bin; by default $UNSWAYED_DATA, or animal10n/ in it.
        size: side in pixels; the images come with 64.
        cache: memory, disk, stream, or auto (see docs/data.md); the binary form is held in memory.
        max_bad: largest share of unreadable images; with more, the training does not start.
    """
    place = _find(root)
    how = Reading(size, "rgb", "crop", cache, max_bad)
    load = _from_files if (place / FOLDERS["train"]).is_dir() else _from_records
    train, test = load(place, "train", how), load(place, "test", how)
    for split, data in (("train", train), ("test", test)):
        expect(f"{place}: the {split} set", len(data) + len(data.skipped), OFFICIAL[split])
    return Splits(train, test)


def _find(root: str | None) -> Path:
    """Return the folder that holds one of the two forms."""
    marks = [FOLDERS["train"], "data_batch_1.bin"]
    inside = [f"{folder}/{mark}" for folder in ("animal10n", "ANIMAL-10N") for mark in marks]
    # CIFAR-10 has a data_batch_1.bin too, but in a folder of its own.
    return find(root, [*inside, *marks], NEEDS).parent


def _from_files(place: Path, split: str, how: Reading) -> Dataset:
    """Read flat folders of JPEG files, sorted by name."""
    folder = place / FOLDERS[split]
    if not folder.is_dir():
        raise UsageError(f"{folder} is missing; {place} must hold {NEEDS}")
    paths = sorted(
        path for path in folder.iterdir() if path.suffix.lower() in (".jpg", ".jpeg", ".png")
    )
    if not paths:
        raise UsageError(f"{folder} holds no .jpg files; unpack the archive again")
    labels = [CLASSES[_label(path)] for path in paths]
    ids = Texts(f"animal10n/{split}/{path.stem}" for path in paths)
    trusted = labels if split == "test" else None
    return read(Listing(place, relative(paths, place), ids, labels, trusted), CLASSES, how)


def _label(path: Path) -> int:
    number = path.name.partition("_")[0]
    if not number.isdecimal() or int(number) >= len(CLASSES):
        raise UsageError(f"{path}: the name does not begin with a label 0..9 and an underscore")
    return int(number)


def _from_records(place: Path, split: str, how: Reading) -> Dataset:
    """Read records of a 4-byte id, a 4-byte label and 64×64 planes of red, green and blue."""
    names = sorted(place.glob("data_batch_*.bin"), key=_number)
    paths = names if split == "train" else [place / "test_batch.bin"]
    parts = [_records(path) for path in paths]
    pixels = np.concatenate([records[:, 8:] for records in parts]).reshape(-1, 3, SIDE, SIDE)
    heads = np.concatenate([records[:, 4:8] for records in parts])
    labels = _whole_numbers(heads, place)
    return Dataset(
        images=torch.from_numpy(pixels if how.size == SIDE else _resize(pixels, how.size)),
        given=labels,
        classes=CLASSES,
        ids=tuple(f"animal10n/{split}/{row:05d}" for row in range(len(labels))),
        true=labels if split == "test" else None,
    )


def _number(path: Path) -> tuple[int, str]:
    """Return a sort key that puts data_batch_10.bin after data_batch_2.bin."""
    number = path.stem.rpartition("_")[2]
    return (int(number) if number.isdecimal() else 0, path.name)


def _records(path: Path) -> NDArray[np.uint8]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}; expected {NEEDS}") from error
    if not data or len(data) % RECORD:
        raise UsageError(f"{path}: {len(data):,} bytes are not records of {RECORD:,}")
    return np.frombuffer(data, np.uint8).reshape(-1, RECORD)


def _whole_numbers(heads: NDArray[np.uint8], place: Path) -> NDArray[np.int64]:
    """Return labels in the byte order in which all are valid; the order is not documented."""
    for order in ("<u4", ">u4"):
        labels = heads.copy().view(order)[:, 0].astype(np.int64)
        if labels.max() < len(CLASSES):
            return labels
    raise UsageError(f"{place}: the .bin files have labels outside 0..9 in either byte order")


def _resize(pixels: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Resize images as decoded files are resized."""
    check_memory(3 * len(pixels) * size**2)
    resized = np.empty((len(pixels), 3, size, size), np.uint8)
    for row, image in enumerate(pixels):
        whole = Image.fromarray(np.ascontiguousarray(image.transpose(1, 2, 0)))
        small = whole.resize((size, size), Image.Resampling.BILINEAR)
        resized[row] = np.asarray(small).transpose(2, 0, 1)
    return resized
