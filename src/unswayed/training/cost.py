"""Measure what a training costs, and how many epochs fit a budget."""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode

from unswayed.errors import UsageError
from unswayed.processes import from_first, total

if TYPE_CHECKING:
    from unswayed.training.trainer import Trainer

UNITS: dict[str, tuple[Literal["flops", "seconds"], float]] = {
    "tflop": ("flops", 1e12),
    "pflop": ("flops", 1e15),
    "eflop": ("flops", 1e18),
    "s": ("seconds", 1.0),
    "min": ("seconds", 60.0),
    "h": ("seconds", 3600.0),
}

COUNTED = (0, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1)
"""Points of progress at which the operations of an epoch are counted."""

LONGEST = 100_000
"""The most epochs of a training; more is probably a typing mistake."""

PROBED = 100
"""Epochs of the training that is measured; enough for every point to be another epoch."""


WARM_UP, TIMED = 2, 5
"""Steps before the timing starts, and steps that are timed."""


class Flops:
    """Counts the floating-point operations of a training.

    The first step of an epoch is counted and stands for all its steps.
    """

    def __init__(self, *, compiled: bool = False) -> None:
        self.total = self.step = 0
        self.compiled = compiled

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Add the operations inside the block to the total, those of all processes."""
        with self._counter() as counter:
            yield
        self.total += total(counter.get_total_flops())

    @contextmanager
    def counted_in_step(self, number: int, *, shared: bool = False) -> Iterator[None]:
        """Count the operations inside the block, if this is the first step of an epoch.

        Args:
            number: of the step, from 0.
            shared: whether every process computes a part of it, or all the same.
        """
        if number > 0:
            yield
            return
        with self._counter() as counter:
            yield
        flops = counter.get_total_flops()
        self.step += total(flops) if shared else flops

    @contextmanager
    def _counter(self) -> Iterator[FlopCounterMode]:
        """Count operations; compiled networks run uncompiled for it."""
        stance = torch.compiler.set_stance("force_eager") if self.compiled else nullcontext()
        with FlopCounterMode(display=False) as counter, stance:
            yield counter


class Cost(NamedTuple):
    """Operations and seconds."""

    flops: int
    seconds: float


def epoch_cost(probe: Trainer, epoch: int, *, timed: bool) -> Cost:
    """Return what an epoch costs, from a few real steps.

    Args:
        probe: a trainer that is not used afterwards.
        epoch: from 0.
        timed: whether to measure seconds, which takes more steps and an evaluation.
    """
    probe.epoch, probe.flops.total = epoch, 0
    started = time.perf_counter()
    probe.before_epoch()
    before, seconds = probe.flops.total, time.perf_counter() - started
    steps, warm_up = (TIMED, WARM_UP) if timed else (1, 0)
    for number in range(min(steps + warm_up, probe.steps)):
        if number == min(warm_up, probe.steps - 1):
            started = time.perf_counter()
        probe.make_step()
    each = (time.perf_counter() - started) / max(1, min(steps, probe.steps - warm_up))
    flops = before + probe.flops.step * probe.steps
    started = time.perf_counter()
    if timed:
        if probe.flops.compiled:  # the first one compiles, and is none of an epoch
            probe.measure()
            started = time.perf_counter()
        probe.measure()
    evaluation = (time.perf_counter() - started) / probe.settings.evaluate_every
    probe.step = 0
    return Cost(flops, seconds + each * probe.steps + evaluation)


@dataclass(frozen=True)
class Budget:
    """A number of floating-point operations or of seconds."""

    kind: Literal["flops", "seconds"]
    amount: float

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read "0.5 PFLOP", "90 min" and the like."""
        words = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]+)\s*", text)
        number, unit = words.groups() if words else ("", "")
        known = UNITS.get(unit.lower())
        if known is None or number.count(".") > 1 or not float(number.strip(".") or 0):
            raise UsageError(
                f"train.budget is {text!r}; write for example '0.5 PFLOP', '20 TFLOP', '60 min' or "
                "'2 h'"
            )
        return cls(known[0], float(number) * known[1])

    def __str__(self) -> str:
        """Return it in a suitable unit."""
        units = [(name, size) for name, (kind, size) in UNITS.items() if kind == self.kind]
        name, size = next((u for u in reversed(units) if self.amount >= u[1]), units[0])
        return f"{self.amount / size:.3g} {name.upper() if self.kind == 'flops' else name}"


def epochs_within(budget: Budget, probe: Trainer) -> int:
    """Return how many epochs fit.

    Epochs may differ in cost: images grow, labels are corrected. The cost is measured at a few
    points of the training. Between two points the higher cost counts.

    Args:
        budget: what may be spent.
        probe: a trainer of `PROBED` epochs that is not used afterwards; it makes a few real steps.
    """
    total = course(probe, timed=budget.kind == "seconds")
    epochs = int(budget.amount / total(1))
    while 0 < epochs < LONGEST and total(epochs + 1) <= budget.amount:
        epochs += 1
    if epochs < 1:
        raise UsageError(
            f"train.budget: one epoch takes {Budget(budget.kind, total(1))}, more than the whole "
            f"budget of {budget}; allow more, or choose a smaller model"
        )
    return int(from_first(min(epochs, LONGEST)))  # each process measures other seconds


def course(probe: Trainer, *, timed: bool = False) -> Callable[[int], float]:
    """Return a function from the number of epochs to the cost of the training."""
    last = probe.settings.epochs - 1
    points = sorted({round(share * last) for share in ((0, 1) if timed else COUNTED)})
    costs = [epoch_cost(probe, epoch, timed=timed)[int(timed)] for epoch in points]
    progress = [epoch / (last + 1) for epoch in points]

    def total(epochs: int) -> float:
        if epochs == 1:
            return max(costs)
        places = (bisect_right(progress, epoch / epochs) for epoch in range(epochs))
        return sum(max(costs[place - 1 : place + 1]) for place in places)

    return total
