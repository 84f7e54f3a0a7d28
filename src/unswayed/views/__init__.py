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


CHUNK = 2**20
"""How many numbers are transformed at a time on a CPU: not far from its caches, and enough to be
worth a thread. Smaller pieces make threads wait for the interpreter more than they gain."""

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

    def __post_init__(self) -> None:
        _keep_freed_memory()

    def recycle(self, views: Views) -> None:
        """Take back views that nobody will look at again: the next ones are written over them.

        Fresh memory has to be cleared by the system first, which takes a tenth of the time.
        """
        alike = [old for old in self.spare if old.shape == views.weak.shape]
        made = [*alike, views.weak, *views.strong, *views.again]
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
        draws = [
            self._draw(view, number, keys, epoch)
            for number, view in zip(numbers, views, strict=True)
        ]
        parts = _parts(images)
        orders = [
            _order(view.kinds(u)) if len(parts) > 1 else None
            for view, u in zip(views, draws, strict=True)
        ]
        seen = [self._room(images) for _ in views]
        # Pieces are written one behind the other, and put back into the batch's order at once.
        written = [
            room if order is None else self._room(images)
            for room, order in zip(seen, orders, strict=True)
        ]

        def make(number: int, part: slice) -> None:
            order, u = orders[number], draws[number]
            if order is None:
                x, u = images[part], u[part]
            else:
                x, u = images.index_select(0, order[part]), u[order[part]]
            written[number][part].copy_(views[number](x / 255, u.to(images.device)))

        tasks = [(number, part) for number in range(len(views)) for part in parts]
        if len(parts) == 1:
            for task in tasks:
                make(*task)
        else:
            list(_pool(torch.get_num_threads()).map(make, *zip(*tasks, strict=True)))
        for room, order, mixed in zip(seen, orders, written, strict=True):
            if order is not None:
                torch.index_select(mixed, 0, order.argsort(), out=room)
                self.spare.append(mixed)
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


def _parts(images: Tensor) -> list[slice]:
    """Return what is worked on at a time: on a CPU, what suits its caches."""
    count = step = len(images)
    if images.device.type == "cpu":
        step = max(1, min(count, CHUNK // images[0].numel()))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def _order(kinds: Tensor) -> Tensor | None:
    """Return the rows with those of one kind together; None if all are of one."""
    return None if (kinds == kinds[0]).all() else kinds.argsort(stable=True)


@functools.cache
def _keep_freed_memory() -> None:
    torch.empty(KEPT, dtype=torch.uint8)


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return workers of one thread each: short operations are not worth sharing among cores."""
    return ThreadPoolExecutor(threads, "views", initializer=torch.set_num_threads, initargs=(1,))
