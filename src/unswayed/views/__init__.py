"""Views of images, as batched tensor operations with per-sample randomness.

A view draws from numbers that are a pure function of (seed, epoch, sample id, view), so what
happens to an image does not depend on the batch it is in, on workers or on an interruption.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from unswayed.registry import Registry


class View(ABC):
    """A random transformation of a batch; every image has its own draws."""

    draws: int
    """How many uniform numbers one image needs."""

    alternating: bool = False
    """Whether the first of them, which mirrors, is turned round (1 - u) in every other epoch."""

    @abstractmethod
    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        """Return the transformed batch.

        Args:
            x: (B, C, H, W) floats in [0, 1]; left untouched.
            u: (B, draws) in [0, 1), on the CPU: to choose among images, no GPU is waited for.
        """

    def kinds(self, u: Tensor) -> Tensor:
        """Return a whole number for each image, (B,): those of one kind are quicker together."""
        return torch.zeros(len(u), dtype=torch.int64, device=u.device)


VIEWS: Registry[View] = Registry("view", __name__)
register = VIEWS.register
