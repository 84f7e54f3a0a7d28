"""Which views a batch is seen in, made quickly: in pieces, on all cores, in memory used before."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unswayed.randomness import Bits, uniform32
from unswayed.types import ViewKind, Views
from unswayed.views import View

NUMBERS: dict[ViewKind, tuple[int, ...]] = {"weak": (0, 3), "strong": (1, 2)}
"""What the first and the second view of a kind are keyed by: the same whatever else is wanted."""

CHUNK = 2**20
"""How many numbers are transformed at a time on a CPU: not far from its caches, and enough to be
worth a thread. Smaller pieces make threads wait for the interpreter more than they gain."""

KEPT = 31 * 2**20
"""Bytes. Linux's C library gives freed memory back, and gets it anew for the next operation, unless
a block of about this size was freed before: then it keeps twice as much."""


class Task(NamedTuple):
    """One view of a batch that is to be made."""

    view: View
    u: Tensor  # (B, draws)
    order: Tensor | None  # rows with those of one kind together; None as they are
    room: Tensor  # where its pieces are written, one behind the other


@dataclass(frozen=True)
class Policy:
    """Makes the views that a learner wants."""

    weak: View
    strong: View
    seed: int
    spare: list[Tensor] = field(default_factory=list, repr=False, compare=False)

    def __post_init__(self) -> None:
        _keep_freed_memory()

    def __call__(
        self, images: Tensor, keys: Bits, epoch: int, wanted: Sequence[ViewKind] = ("weak",)
    ) -> Views:
        """Return the views of a uint8 batch whose samples have these 64-bit keys.

        Args:
            images: (B, C, H, W) uint8.
            keys: (B,) of the samples.
            epoch: from 0.
            wanted: the kind of each view, at most two of each.
        """
        parts = _parts(images)
        tasks = []
        for place, kind in enumerate(wanted):
            number = NUMBERS[kind][wanted[:place].count(kind)]
            view = self.weak if kind == "weak" else self.strong
            u = self._draw(view, number, keys, epoch)
            order = _order(view.kinds(u)) if len(parts) > 1 else None
            tasks.append(Task(view, u, order, self._room(images)))
        _make(tasks, images, parts)
        made = [self._in_order(task, images) for task in tasks]
        pairs = list(zip(wanted, made, strict=True))
        weak, strong = (tuple(x for kind, x in pairs if kind == k) for k in ("weak", "strong"))
        return Views(weak, strong)

    def recycle(self, views: Views) -> None:
        """Take back views that nobody will look at again: the next ones are written over them.

        Fresh memory has to be cleared by the system first, which takes a tenth of the time.
        """
        made = [*views.weak, *views.strong]
        self.spare[:] = [old for old in self.spare if old.shape == made[0].shape] + made

    def _in_order(self, task: Task, images: Tensor) -> Tensor:
        """Return a view with its rows in the batch's order."""
        if task.order is None:
            return task.room
        room = self._room(images)
        torch.index_select(task.room, 0, task.order.argsort(), out=room)
        self.spare.append(task.room)
        return room

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


def _make(tasks: Sequence[Task], images: Tensor, parts: Sequence[slice]) -> None:
    """Transform all pieces of all views; more than one on several threads."""

    def make(task: Task, part: slice) -> None:
        if task.order is None:
            x, u = images[part], task.u[part]
        else:
            rows = task.order[part]
            x, u = images.index_select(0, rows), task.u[rows]
        task.room[part].copy_(task.view(x / 255, u))

    pieces = [(task, part) for task in tasks for part in parts]
    if len(parts) == 1:
        for piece in pieces:
            make(*piece)
    else:
        list(_pool(torch.get_num_threads()).map(make, *zip(*pieces, strict=True)))


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
