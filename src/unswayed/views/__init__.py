"""One weak view and two strong ones, as batched tensor operations with per-sample randomness.

A view draws from numbers that are a pure function of (seed, epoch, sample id, view), so what
happens to an image does not depend on the batch it is in, on workers or on an interruption.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

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

    alternating: bool = False
    """Whether the first of them, which mirrors, is turned round (1 - u) in every other epoch."""

    @abstractmethod
    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        """Return the transformed batch.

        Args:
            x: (B, C, H, W) floats in [0, 1]; left untouched.
            u: (B, draws) in [0, 1).
        """

    def kinds(self, u: Tensor) -> Tensor:
        """Return a whole number for each image, (B,): those of one kind are quicker together."""
        return torch.zeros(len(u), dtype=torch.int64, device=u.device)


SMALL, CHUNK = 2**19, 2**20
"""Least and most numbers transformed at a time on a CPU: worth a thread, and not far from its
caches. Smaller pieces make threads wait for the interpreter more than they gain."""

KEPT = 31 * 2**20
"""Bytes. Linux's C library gives freed memory back, and gets it anew for the next operation, unless
a block of about this size was freed before: then it keeps twice as much."""

VIEWS: Registry[View] = Registry("view", __name__)
register = VIEWS.register


@dataclass(frozen=True)
class Policy:
    """Which views a batch is seen in."""

    weak: View
    strong: View
    seed: int
    spare: list[Tensor] = field(default_factory=list, repr=False, compare=False)

    def recycle(self, views: Views) -> None:
        """Take back views that nobody will look at again: the next ones are written over them.

        Fresh memory has to be cleared by the system first, which takes a tenth of the time.
        """
        made = [views.weak, *views.strong, *views.again]
        self.spare[:] = {id(view): view for view in made}.values()  # one may stand in for another

    def __call__(
        self,
        images: Tensor,
        keys: Bits,
        epoch: int,
        *,
        weak: bool = True,
        strong: bool = False,
        again: bool = False,
    ) -> Views:
        """Return the views of a uint8 batch whose samples have these 64-bit keys.

        Args:
            images: (B, C, H, W) uint8.
            keys: (B,) of the samples.
            epoch: from 0.
            weak: whether to make a weak view; without one, the first strong view stands in.
            strong: whether to make two strong views.
            again: whether to make a second weak view.
        """
        # A view's draws depend on its number, which is the same whatever else is asked for.
        wanted = [(0, self.weak)] * weak + [(1, self.strong), (2, self.strong)] * strong
        wanted += [(3, self.weak)] * again
        numbers, views = zip(*wanted, strict=True)
        seen = [self._room(images) for _ in views]
        draws = [
            self._draw(view, number, keys, epoch)
            for number, view in zip(numbers, views, strict=True)
        ]

        def make(number: int, rows: Tensor) -> None:
            first, count = int(rows[0]), len(rows)
            if torch.equal(rows, torch.arange(first, first + count)):  # neighbours stay together
                part = slice(first, first + count)
                u = draws[number][part].to(images.device)
                seen[number][part].copy_(views[number](images[part] / 255, u))
                return
            x = images.index_select(0, rows.to(images.device)) / 255
            made = views[number](x, draws[number][rows].to(x.device))
            for row, image in zip(rows.tolist(), made, strict=True):
                seen[number][row] = image  # several times as fast as an indexed assignment

        tasks = [
            (number, rows)
            for number, view in enumerate(views)
            for rows in _pieces(images, view.kinds(draws[number]))
        ]
        if len(tasks) == len(views):
            for task in tasks:
                make(*task)
        else:
            list(_pool(torch.get_num_threads()).map(make, *zip(*tasks, strict=True)))
        made = dict(zip(numbers, seen, strict=True))
        pair = tuple(made[number] for number in (1, 2) if number in made)
        return Views(seen[0], pair, tuple(seen[-1:] if again else ()))

    def _room(self, images: Tensor) -> Tensor:
        """Return memory for a view of these images, used before if there is any."""
        for number, old in enumerate(self.spare):
            if old.shape == images.shape and old.device == images.device:
                return self.spare.pop(number)
        return _empty(images)

    def _draw(self, view: View, number: int, keys: Bits, epoch: int) -> Tensor:
        draws = np.arange(view.draws)
        u = uniform32(self.seed, "view", epoch, number, keys[:, None], draws)
        if view.alternating:
            first = uniform32(self.seed, "view", 0, number, keys, 0)
            u[:, 0] = 1 - first if epoch % 2 else first
        return torch.from_numpy(u)


def _empty(images: Tensor) -> Tensor:
    """Return room for a view; NumPy asks the system for few but huge pages."""
    if images.device.type != "cpu":
        return torch.empty(images.shape, device=images.device)
    return torch.from_numpy(np.empty(images.shape, dtype=np.float32))


def _pieces(images: Tensor, kinds: Tensor) -> list[Tensor]:
    """Return rows that are worked on at a time: on a CPU, what suits its caches and its cores."""
    count = step = len(images)
    if images.device.type == "cpu":
        share = max(-(-count // torch.get_num_threads()), SMALL // images[0].numel())
        step = max(1, min(share, CHUNK // images[0].numel()))
    order = kinds.argsort(stable=True) if step < count else torch.arange(count)
    return [order[start : start + step] for start in range(0, count, step)]


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return workers of one thread each: short operations are not worth sharing among cores."""
    torch.empty(KEPT, dtype=torch.uint8)
    return ThreadPoolExecutor(threads, "views", initializer=torch.set_num_threads, initargs=(1,))
