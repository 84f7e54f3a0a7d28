"""Read listed image files into a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unswayed.data.cache import Cache, open_images
from unswayed.data.dataset import Dataset, Files
from unswayed.data.decode import Resize
from unswayed.data.listing import Listing
from unswayed.errors import UsageError

Mode = Literal["rgb", "gray"]


@dataclass(frozen=True)
class Reading:
    """How files are decoded; `size` 0 takes the largest of 32, 64 and 96 that most images fill."""

    size: int
    mode: Mode
    resize: Resize
    cache: Cache
    max_bad: float


def read(listing: Listing, classes: tuple[str, ...], how: Reading) -> Dataset:
    """Decode the files of a listing; files that cannot be read are left out and listed."""
    channels = 1 if how.mode == "gray" else 3
    images, rows, bad = open_images(
        listing.paths, channels, (how.size, how.size), how.resize, how.cache
    )
    skipped = {listing.ids[row]: reason for row, reason in bad.items()}
    if len(bad) > how.max_bad * len(listing):
        raise UsageError(
            f"{len(bad)} of {len(listing)} images cannot be read, more than data.max_bad="
            f"{how.max_bad:g} allows; mend or remove them, or allow more:",
            *list(skipped.values())[:20],
            *([f"and {len(bad) - 20} more"] if len(bad) > 20 else []),
        )
    number = {name: k for k, name in enumerate(classes)}

    def numbers(labels: Sequence[str]) -> np.ndarray:
        return np.fromiter((number[label] for label in labels), np.int64, len(labels))[rows]

    whole = len(rows) == len(listing)
    ids, names = (each if whole else each.take(rows) for each in (listing.ids, listing.names))

    return Dataset(
        images=images,
        given=numbers(listing.labels),
        classes=classes,
        ids=ids,
        true=None if listing.true is None else numbers(listing.true),
        resize=how.resize,
        skipped=skipped,
        files=Files(str(listing.root.absolute()), names),
    )
