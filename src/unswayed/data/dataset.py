"""The data set: the one interface to all kinds of data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unswayed.data.decode import Resize
from unswayed.data.stores import SomeImages, Store
from unswayed.data.texts import Texts, are_distinct, texts_of
from unswayed.errors import UsageError
from unswayed.processes import part, summed
from unswayed.randomness import Bits, bits

MAX_CLASSES = 1_000_000
"""Above this, a label is no class number: names, matrices and heads would fill the memory."""

STATISTICS_PIXELS, STATISTICS_IMAGES, STATISTICS_CHUNK = 2**28, 2**16, 2**22
"""Pixels and images that channel statistics count in all, and pixels at a time. Counting takes 8
bytes a pixel."""

IDS = 2**16
"""Ids that are hashed at a time."""


class Files(NamedTuple):
    """Where image files are."""

    root: str
    paths: Texts  # (N,) relative to the root


@dataclass(frozen=True)
class Dataset:
    """Images with stable ids and labels.

    `given` are the labels as they come, possibly wrong. `true` are the right ones, if known; they
    are used for measurement only. A row is a position in this data set. An id is a name that stays
    the same when samples are reordered.
    """

    images: Tensor | Store  # (N, C, H, W) uint8, a tensor or a store
    given: NDArray[np.int64]  # (N,)
    classes: tuple[str, ...]
    ids: Sequence[str]  # kept as `Texts`
    true: NDArray[np.int64] | None = None  # (N,)
    resize: Resize = "crop"  # how files were brought to size, so that new ones can be too
    skipped: Mapping[str, str] = field(default_factory=dict)  # id of an unreadable file -> why
    files: Files | None = None
    keys: Bits = field(init=False, repr=False)  # (N,) 64 bits per id, what randomness is keyed by

    def __post_init__(self) -> None:
        ids = texts_of(self.ids)
        object.__setattr__(self, "ids", ids)
        _check(self, ids)
        object.__setattr__(self, "keys", ids.keys)

    @classmethod
    def from_arrays(
        cls,
        images: NDArray[np.uint8],
        labels: NDArray[np.integer],
        *,
        true: NDArray[np.integer] | None = None,
        classes: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
    ) -> Dataset:
        """Make a data set from uint8 images (N, H, W), (N, H, W, C) or (N, C, H, W).

        A 4-D array whose last axis is 1 or 3 is read as (N, H, W, C).

        >>> import numpy as np
        >>> from unswayed import Dataset
        >>> images = np.zeros((4, 32, 32, 3), np.uint8)
        >>> data = Dataset.from_arrays(images, np.array([0, 1, 0, 1]), classes=["cat", "dog"])
        >>> len(data), data.num_classes, data.image_size
        (4, 2, (32, 32))

        Args:
            images: pixels.
            labels: (N,) the given labels, class numbers from 0.
            true: (N,) the true labels, if they are known.
            classes: class names; the numbers if not given.
            ids: names of the samples; their row numbers if not given.
        """
        pixels = np.asarray(images)
        if pixels.dtype != np.uint8:
            raise UsageError(f"images must be uint8 in 0..255, not {pixels.dtype}")
        if pixels.ndim == 3:
            pixels = pixels[:, None]
        elif pixels.ndim == 4 and pixels.shape[-1] in (1, 3):
            pixels = pixels.transpose(0, 3, 1, 2)
        given = check_labels(labels, "labels")
        top = int(given.max(initial=-1))
        return cls(
            images=torch.from_numpy(np.ascontiguousarray(pixels)),
            given=given,
            true=None if true is None else check_labels(true, "true labels"),
            classes=tuple(classes) if classes is not None else tuple(map(str, range(top + 1))),
            ids=Texts(ids if ids is not None else map(str, range(len(given)))),
        )

    def __len__(self) -> int:
        return len(self.given)

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.classes)

    @property
    def channels(self) -> int:
        """C."""
        return int(self.images.shape[1])

    @property
    def image_size(self) -> tuple[int, int]:
        """(H, W)."""
        return int(self.images.shape[2]), int(self.images.shape[3])

    def with_given(self, given: NDArray[np.int64]) -> Dataset:
        """Return the same images with other given labels; the old ones become the true ones."""
        return replace(self, given=given, true=self.given if self.true is None else self.true)

    def select(self, rows: NDArray[np.int64]) -> Dataset:
        """Return these rows as a data set; images that are not in memory stay where they are."""
        images = self.images
        return replace(
            self,
            images=images[torch.from_numpy(rows)]
            if isinstance(images, Tensor)
            else SomeImages(images, rows),
            given=self.given[rows],
            true=None if self.true is None else self.true[rows],
            ids=Texts(self.ids[row] for row in rows),
            files=self.files and self.files._replace(paths=self.files.paths.take(rows)),
        )

    def channel_statistics(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return mean and standard deviation of each channel, of pixels in [0, 1]."""
        # Histograms are exact, and need no floating-point copy of the images. Of a large set, as
        # many images as fit the budget, evenly spaced, are enough. Processes share them.
        budget = min(STATISTICS_IMAGES, max(1000, STATISTICS_PIXELS // self.images.shape[2] ** 2))
        count = min(len(self), budget)
        rows = (torch.arange(count) * len(self) // count)[part(count)]
        levels = np.zeros((self.channels, 256))
        size = max(1, min(1024, STATISTICS_CHUNK // (self.image_size[0] * self.image_size[1])))
        for start in range(0, len(rows), size):
            batch = self.images[rows[start : start + size]]
            for c in range(self.channels):
                levels[c] += np.bincount(batch[:, c].reshape(-1).numpy(), minlength=256)
        means, stds = [], []
        level = np.arange(256) / 255
        for counts in summed(torch.from_numpy(levels)).numpy():
            share = counts / counts.sum()
            mean = float((share * level).sum())
            means.append(mean)
            stds.append(float(np.sqrt((share * (level - mean) ** 2).sum())))
        return tuple(means), tuple(stds)

    def fingerprint(self) -> str:
        """Return a hash of pixels, labels, ids and class names."""
        digest = hashlib.sha256(repr((tuple(self.images.shape), self.classes)).encode())
        if isinstance(self.images, Tensor):
            digest.update(self.images.contiguous().numpy().data)
        else:
            digest.update(self.images.fingerprint().encode())
        digest.update(np.ascontiguousarray(self.given).data)
        digest.update(b"" if self.true is None else np.ascontiguousarray(self.true).data)
        for start in range(0, len(self), IDS):
            digest.update(b"\n" * bool(start) + "\n".join(self.ids[start : start + IDS]).encode())
        return digest.hexdigest()


class Splits(NamedTuple):
    """Training data, and test data with trusted labels if there are any."""

    train: Dataset
    test: Dataset | None


def check_labels(labels: NDArray[np.integer], what: str) -> NDArray[np.int64]:
    """Return a vector of 64-bit integers, or say what is wrong with it."""
    vector = np.asarray(labels)
    if vector.ndim != 1 or not np.issubdtype(vector.dtype, np.integer):
        raise UsageError(
            f"{what} must be a vector of integers, not {vector.dtype} of shape {vector.shape}"
        )
    if vector.max(initial=0) >= MAX_CLASSES:
        raise UsageError(
            f"{what} must be class numbers from 0, below {MAX_CLASSES:,}; {vector.max()} is among "
            "them"
        )
    return vector.astype(np.int64)


def _check(data: Dataset, ids: Texts) -> None:
    n = len(data.given)
    if n == 0:
        raise UsageError("the data set is empty")
    shape = tuple(data.images.shape)
    kind = data.images.dtype if isinstance(data.images, Tensor) else torch.uint8
    if len(shape) != 4 or 0 in shape or kind != torch.uint8:
        raise UsageError(f"images must be uint8 (N, C, H, W), not {kind} of shape {shape}")
    if data.images.shape[1] not in (1, 3):
        raise UsageError(f"images must have 1 or 3 channels, not {data.images.shape[1]}")
    counts = {"images": len(data.images), "labels": n, "ids": len(ids)}
    if data.true is not None:
        counts["true labels"] = len(data.true)
    if len(set(counts.values())) > 1:
        raise UsageError(f"the counts differ: {counts}")
    if not are_distinct(ids):
        raise UsageError("sample ids must be unique")
    for what, labels in (("label", data.given), ("true label", data.true)):
        if labels is not None and (labels.min() < 0 or labels.max() >= len(data.classes)):
            bad = labels[(labels < 0) | (labels >= len(data.classes))]
            raise UsageError(
                f"{what} {bad[0]} is outside the range 0..{len(data.classes) - 1} of the "
                f"{len(data.classes)} classes ({len(bad)} such labels)"
            )
    if len(data.classes) < 2:
        raise UsageError(f"there is one class only ({data.classes[0]!r}): nothing to tell apart")


def check_subset(subset: int, seed: int | None) -> None:
    """Refuse the seed of a subset if all images are taken."""
    if seed is not None and not subset:
        raise UsageError("data.subset_seed: all images are taken; set data.subset too")


def balanced(
    labels: NDArray[np.int64],
    keys: Bits,
    count: int,
    seed: int,
    purpose: str,
    classes: Sequence[str],
) -> NDArray[np.int64]:
    """Return `count` rows in order, equally many of each label; the first labels get the remainder.

    The draw depends on the seed and the ids alone.
    """
    drawn = _drawn(labels, keys, len(classes), seed, purpose)
    share, rest = divmod(count, len(classes))
    chosen = []
    for label, (name, rows) in enumerate(zip(classes, drawn, strict=True)):
        wanted = share + (label < rest)
        if len(rows) < wanted:
            raise UsageError(
                f"data.subset={count} needs {wanted:,} images labelled {name}; there are "
                f"{len(rows):,}"
            )
        chosen.append(rows[:wanted])
    return np.sort(np.concatenate(chosen))


def stratified_split(
    labels: NDArray[np.int64], keys: Bits, fraction: float, seed: int, purpose: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows that stay and rows that are held out, a `fraction` of each label.

    At least one sample of every label stays. The draw depends on the seed and the ids alone.
    """
    out = np.zeros(len(labels), dtype=bool)
    for rows in _drawn(labels, keys, int(labels.max(initial=0)) + 1, seed, purpose):
        out[rows[: max(0, min(round(fraction * len(rows)), len(rows) - 1))]] = True
    return np.flatnonzero(~out), np.flatnonzero(out)


def _drawn(
    labels: NDArray[np.int64], keys: Bits, classes: int, seed: int, purpose: str
) -> list[NDArray[np.int64]]:
    """Return the rows of each label in a random order; the time does not grow with the classes."""
    rows = np.lexsort((bits(seed, purpose, keys), labels))
    return np.split(rows, np.cumsum(np.bincount(labels, minlength=classes))[:-1])
