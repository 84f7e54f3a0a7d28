"""One weak view and two strong ones, as batched tensor operations with per-sample randomness.

A view draws from numbers that are a pure function of (seed, epoch, sample id, view), so what
happens to an image does not depend on the batch it is in, on workers or on an interruption.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unswayed.randomness import Bits, uniform32
from unswayed.registry import Registry
from unswayed.types import Views


class View(ABC):
    """A random transformation of a batch; every image has its own draws."""

    draws: int
    """How many uniform numbers one image needs."""

    @abstractmethod
    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        """Return the transformed batch.

        Args:
            x: (B, C, H, W) floats in [0, 1]; left untouched.
            u: (B, draws) in [0, 1).
        """


VIEWS: Registry[View] = Registry("view", __name__)
register = VIEWS.register


@dataclass(frozen=True)
class Policy:
    """Which views a batch is seen in."""

    weak: View
    strong: View
    seed: int

    def __call__(self, images: Tensor, keys: Bits, epoch: int, *, strong: bool) -> Views:
        """Return the views of a uint8 batch whose samples have these 64-bit keys."""
        x = images.to(torch.float32) / 255
        seen = [self._see(self.weak, x, keys, epoch, 0)]
        if strong:
            seen += [self._see(self.strong, x, keys, epoch, number) for number in (1, 2)]
        return Views(seen[0], tuple(seen[1:]))

    def _see(self, view: View, x: Tensor, keys: Bits, epoch: int, number: int) -> Tensor:
        u = uniform32(self.seed, "view", epoch, number, keys[:, None], np.arange(view.draws))
        return view(x, torch.from_numpy(u).to(x.device)).contiguous(
            memory_format=torch.channels_last
        )
