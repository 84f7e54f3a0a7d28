"""scikit-learn's 1,797 handwritten digits: real images that are already on the machine."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from unswayed.data import Dataset, Splits, register, stratified_split
from unswayed.data.cache import check_memory
from unswayed.types import PositiveFraction, Side


@register("digits", paper="Alpaydin & Kaynak, UCI Machine Learning Repository, 1998")
def digits(size: Side = 16, test_fraction: PositiveFraction = 0.3) -> Splits:
    """1,797 handwritten digits of 8×8 pixels, enlarged, in ten classes.

    The split does not depend on the seed of a run: every run is tested on the same images.

    Args:
        size: side in pixels after bilinear enlargement.
        test_fraction: share of each class kept for testing, with its true labels.
    """
    from sklearn.datasets import load_digits  # half a second, and only this data set needs it

    raw = load_digits()
    check_memory(4 * len(raw.target) * size**2)  # they are enlarged as floating-point numbers
    pixels = torch.from_numpy(raw.images).float()[:, None] * (255 / 16)  # (N, 1, 8, 8)
    if size != 8:
        pixels = F.interpolate(pixels, size=(size, size), mode="bilinear", antialias=True)
    whole = Dataset(
        images=pixels.round().clamp(0, 255).to(torch.uint8),
        given=raw.target.astype(np.int64),
        classes=tuple("0123456789"),
        ids=tuple(f"digits/{i:04d}" for i in range(len(raw.target))),
    )
    train, test = stratified_split(whole.given, whole.keys, test_fraction, 0, "digits/test")
    return Splits(_rows(whole, train), _rows(whole, test))


def _rows(data: Dataset, rows: np.ndarray) -> Dataset:
    return Dataset(
        images=data.images[torch.from_numpy(rows)],
        given=data.given[rows],
        classes=data.classes,
        ids=tuple(data.ids[i] for i in rows),
        true=data.given[rows],
    )
