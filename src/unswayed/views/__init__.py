"""One weak view and two strong ones, as batched tensor operations with per-sample randomness.

A view draws from numbers that are a pure function of (seed, epoch, sample id, view), so what
happens to an image does not depend on the batch it is in, on workers or on an interruption.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
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


SMALL, CHUNK = 2**18, 2**21
"""Least and most numbers transformed at a time on a CPU. Larger temporaries would be fetched from
the system and cleared for every operation, which takes ten times as long as the operation."""

VIEWS: Registry[View] = Registry("view", __name__)
register = VIEWS.register


@dataclass(frozen=True)
class Policy:
    """Which views a batch is seen in."""

    weak: View
    strong: View
    seed: int

    def __call__(
        self, images: Tensor, keys: Bits, epoch: int, *, strong: bool = False, again: bool = False
    ) -> Views:
        """Return the views of a uint8 batch whose samples have these 64-bit keys.

        Args:
            images: (B, C, H, W) uint8.
            keys: (B,) of the samples.
            epoch: from 0.
            strong: whether to make two strong views.
            again: whether to make a second weak view.
        """
        strongs, weaks = (self.strong,) * (2 * strong), (self.weak,) * again
        views = (self.weak, *strongs, *weaks)
        # A view's draws depend on its number, which is the same whatever else is asked for.
        numbers = (0, *(1, 2)[: len(strongs)], *(3,)[: len(weaks)])
        seen = [
            torch.empty(images.shape, device=images.device, memory_format=torch.channels_last)
            for _ in views
        ]
        draws = [
            self._draw(view, number, keys, epoch)
            for number, view in zip(numbers, views, strict=True)
        ]

        def make(rows: slice) -> None:
            x = images[rows].to(torch.float32) / 255
            for out, view, u in zip(seen, views, draws, strict=True):
                out[rows] = view(x, u[rows].to(x.device))

        pieces = _pieces(images)
        if len(pieces) == 1:
            make(pieces[0])
        else:
            list(_pool(torch.get_num_threads()).map(make, pieces))
        return Views(seen[0], tuple(seen[1 : 1 + len(strongs)]), tuple(seen[1 + len(strongs) :]))

    def _draw(self, view: View, number: int, keys: Bits, epoch: int) -> Tensor:
        draws = np.arange(view.draws)
        return torch.from_numpy(uniform32(self.seed, "view", epoch, number, keys[:, None], draws))


def _pieces(images: Tensor) -> list[slice]:
    """Return rows that are worked on at a time: on a CPU, what suits its caches and its cores."""
    count = len(images)
    step = count
    if images.device.type == "cpu":
        share = max(-(-count // torch.get_num_threads()), SMALL // images[0].numel())
        step = max(1, min(share, CHUNK // images[0].numel()))
    return [slice(start, start + step) for start in range(0, count, step)]


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return workers of one thread each: short operations are not worth sharing among cores."""
    return ThreadPoolExecutor(threads, "views", initializer=torch.set_num_threads, initargs=(1,))
