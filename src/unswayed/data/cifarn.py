"""CIFAR-10N and CIFAR-100N: CIFAR with labels given by people on Mechanical Turk.

Share of wrong labels as published, in per cent: CIFAR-10N aggregate 9.01, random1 17.23, random2
18.12, random3 17.64, worst 40.21; CIFAR-100N fine 40.20, coarse 26.40.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from unswayed.data import Splits, register
from unswayed.data.cifar import (
    CIFAR10,
    CIFAR100,
    Checksums,
    Labels,
    Size,
    Source,
    Version,
    load,
    part_of,
)
from unswayed.data.dataset import check_labels
from unswayed.data.locate import find
from unswayed.data.unpickle import ALLOWED, plain, unpickle, vector
from unswayed.errors import UsageError
from unswayed.types import AbsolutePath, Whole

SITE = "https://github.com/UCSC-REAL/cifar-10-100n"
OFFICIAL = 50_000
TOLERANCE = 0.01
"""Points by which a rate may differ from the published one, which is rounded to 0.01."""


@dataclass(frozen=True)
class Column:
    """Where a file keeps its clean and its human labels, and the published rate in per cent.

    The file for TensorFlow has other names for some of them, so there can be several.
    """

    clean: str
    human: Sequence[str]
    rate: float


TEN: Mapping[str, Column] = {
    "aggregate": Column("clean_label", ["aggre_label"], 9.01),
    "random1": Column("clean_label", ["random_label1"], 17.23),
    "random2": Column("clean_label", ["random_label2"], 18.12),
    "random3": Column("clean_label", ["random_label3"], 17.64),
    "worst": Column("clean_label", ["worse_label"], 40.21),
}
HUNDRED: Mapping[str, Column] = {
    "fine": Column("clean_label", ["noisy_label", "noise_label"], 40.20),
    "coarse": Column("clean_coarse_label", ["noisy_coarse_label"], 26.40),
}


@register("cifar10n", paper="Wei et al., ICLR 2022")
def cifar10n(
    root: AbsolutePath | None = None,
    labels: Literal["aggregate", "random1", "random2", "random3", "worst"] = "worst",
    version: Version = "auto",
    checksums: Checksums = "check",
    download: bool = False,
    subset: Whole = 0,
    subset_seed: int | None = None,
    size: Size = 32,
) -> Splits:
    """CIFAR-10 with labels given by people: 9 to 40 % of them are wrong.

    Args:
        root: the folder with CIFAR-10_human.pt and CIFAR-10; by default $UNSWAYED_DATA.
        labels: aggregate is the majority of three people, random1 to random3 are one person each,
            worst is a wrong label if any of them gave one.
        version: of CIFAR-10: binary, python, or auto for what is there.
        checksums: check refuses images whose md5 is not the official one; warn and ignore do not.
        download: fetch the images into the root if they are not there; the labels are not fetched.
        subset: train on this many images, equally many of each given label; 0 takes all. All test
            images are always used.
        subset_seed: chooses them, 0 if not given; the subset does not change with train.seed.
        size: side in pixels; 16 and 8 are means of 2×2 and 4×4 pixels, for quick trials.
    """
    path = find_labels("CIFAR-10", root)
    images = load(CIFAR10, "fine", Source(root, version, checksums, download), size)
    return part_of(relabel(images, path, TEN[labels]), subset, subset_seed)


@register("cifar100n", paper="Wei et al., ICLR 2022")
def cifar100n(
    root: AbsolutePath | None = None,
    labels: Labels = "fine",
    version: Version = "auto",
    checksums: Checksums = "check",
    download: bool = False,
    subset: Whole = 0,
    subset_seed: int | None = None,
    size: Size = 32,
) -> Splits:
    """CIFAR-100 with labels given by people: 40 % of the fine and 26 % of the coarse are wrong.

    Args:
        root: the folder with CIFAR-100_human.pt and CIFAR-100; by default $UNSWAYED_DATA.
        labels: fine for the 100 classes, coarse for the 20 groups.
        version: of CIFAR-100: binary, python, or auto for what is there.
        checksums: check refuses images whose md5 is not the official one; warn and ignore do not.
        download: fetch the images into the root if they are not there; the labels are not fetched.
        subset: train on this many images, equally many of each given label; 0 takes all. All test
            images are always used.
        subset_seed: chooses them, 0 if not given; the subset does not change with train.seed.
        size: side in pixels; 16 and 8 are means of 2×2 and 4×4 pixels, for quick trials.
    """
    path = find_labels("CIFAR-100", root)
    images = load(CIFAR100, labels, Source(root, version, checksums, download), size)
    return part_of(relabel(images, path, HUNDRED[labels]), subset, subset_seed)


def find_labels(name: str, root: str | None) -> Path:
    """Return the label file; the one in the order of the images comes before TensorFlow's."""
    names = [f"{name}_human.pt", f"{name}_human_ordered.npy"]
    names += [f"CIFAR-N/{each}" for each in names]
    return find(root, names, f"{names[0]}, from {SITE} (folder data)")


def relabel(images: Splits, path: Path, column: Column) -> Splits:
    """Give the training images the labels of a file; its clean labels must equal theirs."""
    known = read_labels(path)
    clean = _labels(known, [column.clean], path)
    given = _labels(known, column.human, path)
    train = images.train
    if len(clean) != len(train) or len(given) != len(train):
        raise UsageError(
            f"{path} has {len(clean):,} clean and {len(given):,} human labels for {len(train):,} "
            "images; fetch it again"
        )
    differ = int((clean != train.given).sum())
    if differ:
        raise UsageError(
            f"{path}: {differ:,} of its {len(clean):,} clean labels are not those of the images: "
            "it is in another order, as the *_human_ordered.npy files are, which follow "
            f"TensorFlow's; use {path.stem.removesuffix('_ordered')}.pt"
        )
    if given.min() < 0 or given.max() >= train.num_classes:
        raise UsageError(f"{path} has human labels outside the range 0..{train.num_classes - 1}")
    check_rate(path, given, clean, column)
    return Splits(train.with_given(given), images.test)


def check_rate(
    path: Path, given: NDArray[np.int64], clean: NDArray[np.int64], column: Column
) -> float:
    """Return the share of wrong labels in percent; warn if it differs from the published one."""
    rate = 100 * float((given != clean).mean())
    if len(given) == OFFICIAL and abs(rate - column.rate) > TOLERANCE:
        warnings.warn(
            f"{path}: {rate:.2f} % of {column.human[0]!r} are wrong, where {column.rate:.2f} % are "
            "published; numbers may not be comparable with published ones",
            stacklevel=4,
        )
    return rate


def read_labels(path: Path) -> dict[str, Any]:
    """Return the vectors of a .pt or .npy file; nothing in it can run."""
    found = _read_npy(path) if path.suffix == ".npy" else _read_pt(path)
    if not isinstance(found, dict):
        raise UsageError(f"{path} holds no dictionary of labels; fetch it again from {SITE}")
    return found


def _labels(known: dict[str, Any], names: Sequence[str], path: Path) -> NDArray[np.int64]:
    name = next((each for each in names if each in known), None)
    if name is None:
        has = ", ".join(map(str, known))
        raise UsageError(f"{path} has no {' or '.join(map(repr, names))}; it has: {has}")
    try:
        return check_labels(_whole(known[name]), f"{path}: {name!r}")
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise UsageError(f"{path}: {name!r} is not a vector of labels: {error}") from error


def _whole(values: Any) -> NDArray[Any]:
    """Return labels as an array; refuse what is larger in memory than in the file."""
    if isinstance(values, torch.Tensor) and values.untyped_storage().nbytes() < values.nbytes:
        raise ValueError(f"its {values.numel():,} numbers are not all there")
    return vector(values)


def _read_pt(path: Path) -> Any:
    try:
        with _arrays_allowed():
            return plain(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # torch raises many kinds, with pages of advice we do not share
        reason = str(error).strip().partition("\n")[0]
        raise UsageError(f"{path} is not a readable file of plain arrays: {reason}") from error


@contextmanager
def _arrays_allowed() -> Iterator[None]:
    """Let torch read NumPy's integer arrays, as `unpickle` does."""
    allowed: list[Any] = [
        (stand_in, f"{module}.{name}") for (module, name), stand_in in ALLOWED.items()
    ]
    with torch.serialization.safe_globals(allowed):
        yield


def _read_npy(path: Path) -> Any:
    """Return the dictionary that np.save put into an array of one object."""
    try:
        with path.open("rb") as file:
            if np.lib.format.read_magic(file) != (1, 0):
                raise ValueError("its format is newer than expected")
            _, _, dtype = np.lib.format.read_array_header_1_0(file)
            if dtype != np.dtype(object):
                raise ValueError(f"it is an array of {dtype}, not a dictionary")
            held = unpickle(file.read(), path)
    except UsageError:
        raise
    except Exception as error:  # NumPy reads its header with a parser of Python
        raise UsageError(f"{path} is not a readable .npy file: {error}") from error
    return held[0] if isinstance(held, list) and held else held
