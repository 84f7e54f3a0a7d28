"""Instance-dependent noise: what an image looks like decides how it is mislabelled.

Xia et al., NeurIPS 2020, algorithm 2 (there called part-dependent, elsewhere IDN). Image i of class
y has a flip rate q_i from a normal distribution around the rate, cut to [0, 1]. Its pixels, 0 to
255 as in the published code, are projected on K random directions that belong to y; a softmax over
the other classes shares q_i among them. Pixels are so large that this softmax nearly always puts
all of q_i on one class: similar images of a class get the same wrong label.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.noise import Labels, Noise, register
from unswayed.noise.matrix import pick
from unswayed.randomness import Bits, normal, uniform
from unswayed.types import Fraction

CHUNK = 1000
GRID = 2.0**16
"""Directions are multiples of 1/GRID. Their products with whole pixel values then add up without
rounding, in any order, so the labels do not depend on the machine's linear algebra."""


class Pixels(Protocol):
    """N images of one shape: a tensor in memory, or a store of files."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, C, H, W)."""

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        """Return the images of these rows, uint8 (B, C, H, W)."""


@register("instance", paper="Xia et al., NeurIPS 2020, algorithm 2")
class Instance(Noise):
    """Mislabel images by what they look like, each at a rate of its own."""

    by_image = True

    def __init__(
        self,
        num_classes: int,
        images: Pixels,
        rate: Fraction = 0.4,
        deviation: Fraction = 0.1,
    ) -> None:
        """Keep the images.

        Args:
            num_classes: K.
            images: the images, in the order of the labels.
            rate: centre of the images' flip rates.
            deviation: standard deviation of the flip rates, before they are cut to [0, 1].
        """
        if num_classes < 2:
            raise UsageError("instance-dependent noise needs at least two classes")
        self.num_classes, self.images = num_classes, images
        self.rate, self.deviation = rate, deviation
        self.convention = (
            f"each image is mislabelled at its own rate, normal around {rate:g} ± {deviation:g} "
            f"within [0, 1] ({self.mean_rate():.4g} on average), as the class that a random "
            "projection of its pixels favours; the expected matrix is the mean over seeds, and one "
            "seed's errors gather in few classes"
        )

    def mean_rate(self) -> float:
        """Return the expected share of wrong labels: the mean of the truncated normal."""
        if self.deviation == 0:
            return self.rate
        low, high = -self.rate / self.deviation, (1 - self.rate) / self.deviation
        standard = NormalDist()
        inside = standard.cdf(high) - standard.cdf(low)
        return self.rate + self.deviation * (standard.pdf(low) - standard.pdf(high)) / inside

    def matrix(self) -> NDArray[np.float64]:
        """Return the mean over seeds: no direction is preferred, so all errors are equally likely.

        What one seed does is known once it was drawn, see `unswayed.noise.realised`.
        """
        k, wrong = self.num_classes, self.mean_rate()
        return np.full((k, k), wrong / (k - 1)) + (1 - wrong - wrong / (k - 1)) * np.eye(k)

    def corrupt(self, labels: Labels, keys: Bits, seed: int) -> Labels:
        """Return given labels; row i of `labels` belongs to image i."""
        if len(labels) != self.images.shape[0]:
            raise UsageError(
                f"instance-dependent noise has {self.images.shape[0]} images for "
                f"{len(labels)} labels"
            )
        rates = self._flip_rates(keys, seed)
        draw = uniform(seed, "noise/label", keys)
        given = labels.copy()
        for label in np.unique(labels):
            directions = self._directions(int(label), seed)
            rows = np.flatnonzero(labels == label)
            for start in range(0, len(rows), CHUNK):
                chunk = rows[start : start + CHUNK]
                scores = self._flat(chunk) @ directions / GRID  # (B, K)
                given[chunk] = pick(shares(scores, int(label), rates[chunk]), draw[chunk])
        return given

    def _flip_rates(self, keys: Bits, seed: int) -> NDArray[np.float64]:
        """Return (N,) q_i: drawn anew until inside [0, 1], which is what truncation means."""
        rates = np.full(len(keys), -1.0)
        outside, attempt = np.arange(len(keys)), 0
        while len(outside):
            drawn = normal(seed, "noise/rate", keys[outside], attempt)
            rates[outside] = self.rate + self.deviation * drawn
            outside = outside[(rates[outside] < 0) | (rates[outside] > 1)]
            attempt += 1
        return rates

    def _directions(self, label: int, seed: int) -> NDArray[np.float64]:
        """Return (C·H·W, K) the directions w_y of a class, in units of 1/GRID."""
        pixels = np.arange(math.prod(self.images.shape[1:]))[:, None]
        classes = np.arange(self.num_classes)
        return np.rint(normal(seed, "noise/direction", label, pixels, classes) * GRID)

    def _flat(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return (B, C·H·W) pixels."""
        batch = self.images[torch.from_numpy(rows)]
        return np.asarray(batch.reshape(len(rows), -1).numpy(), dtype=np.float64)


def shares(
    scores: NDArray[np.float64], label: int, rates: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return (B, K) probabilities: 1 - q for `label`, q times a softmax for the others."""
    others = scores.copy()
    others[:, label] = -np.inf
    weights = np.exp(others - others.max(axis=1, keepdims=True))
    found: NDArray[np.float64] = rates[:, None] * weights / weights.sum(axis=1, keepdims=True)
    found[:, label] = 1 - rates
    return found
