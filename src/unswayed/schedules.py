"""Numbers that change during the training: the learning rate, λ, τ, a momentum.

A schedule is a function of progress, which runs from 0 to 1. Wherever an option is `Scheduled`, a
recipe may give a plain number or a table such as `{name = "ramp", start = 0, end = 50}`. The
section `[schedule]` of a recipe is one more schedule: its value multiplies `optimizer.lr`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Discriminator

from unswayed.errors import UsageError
from unswayed.registry import Registry
from unswayed.types import Fraction, PositiveFraction

REACHED = 1e-6
"""The tolerance of a milestone, so that 2/3 may be written with six digits."""


class Schedule(ABC):
    """A function of progress."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", allow_inf_nan=False)

    @abstractmethod
    def __call__(self, progress: float) -> float:
        """Return the value at this progress."""

    def turns(self) -> tuple[float, ...]:
        """Return the points of progress among which its extremes are."""
        return 0.0, 1.0


SCHEDULES: Registry[Schedule] = Registry("schedule", __name__)
register = SCHEDULES.register


@register("constant")
@dataclass(frozen=True)
class Constant(Schedule):
    """The same number throughout; a plain number means this.

    Args:
        value: the number.
    """

    value: float = 1.0
    name: Literal["constant"] = "constant"

    def __call__(self, progress: float) -> float:
        """Return the number."""
        return self.value


@register("ramp")
@dataclass(frozen=True)
class Ramp(Schedule):
    """A straight line from one number to another, constant before and after it.

    Args:
        start: the first number.
        end: the last number.
        until: progress at which the line ends.
        since: progress at which the line begins.
    """

    start: float
    end: float
    until: PositiveFraction = 1.0
    since: Fraction = 0.0
    name: Literal["ramp"] = "ramp"

    def __post_init__(self) -> None:
        if self.since >= self.until:
            raise UsageError(f"since ({self.since:g}) must be below until ({self.until:g})")

    def __call__(self, progress: float) -> float:
        """Return the height of the line."""
        share = min(max((progress - self.since) / (self.until - self.since), 0.0), 1.0)
        return self.start + (self.end - self.start) * share


@register("cosine", paper="Loshchilov & Hutter, ICLR 2017")
@dataclass(frozen=True)
class Cosine(Schedule):
    """Half a cosine from one number to another, constant after it.

    Args:
        start: the first number.
        end: the last number.
        until: progress at which the last number is reached.
    """

    start: float = 1.0
    end: float = 0.0
    until: PositiveFraction = 1.0
    name: Literal["cosine"] = "cosine"

    def __call__(self, progress: float) -> float:
        """Return the height of the cosine."""
        share = 0.5 * (1 + math.cos(math.pi * min(progress / self.until, 1.0)))
        return self.end + (self.start - self.end) * share


@register("steps")
@dataclass(frozen=True)
class Steps(Schedule):
    """A number that is multiplied by a factor at each milestone.

    Args:
        milestones: points of progress.
        gamma: the factor.
        value: the number before the first milestone.
    """

    milestones: tuple[Fraction, ...] = (1 / 3, 2 / 3)
    gamma: PositiveFraction = 0.1
    value: float = 1.0
    name: Literal["steps"] = "steps"

    def __call__(self, progress: float) -> float:
        """Return the number after the milestones that progress has reached."""
        passed = sum(progress >= milestone - REACHED for milestone in self.milestones)
        return self.value * self.gamma**passed


@register("triangle")
@dataclass(frozen=True)
class Triangle(Schedule):
    """A straight rise and a straight fall.

    Args:
        start: the first number.
        peak: progress at which the number is highest; from 0 on it only falls.
        end: the last number.
        top: the highest number.
    """

    start: float = 0.2
    peak: Fraction = 0.25
    end: float = 0.05
    top: float = 1.0
    name: Literal["triangle"] = "triangle"

    def __call__(self, progress: float) -> float:
        """Return the height of the triangle."""
        if progress < self.peak:
            return self.start + (self.top - self.start) * progress / self.peak
        return self.end + (self.top - self.end) * (1 - progress) / max(1 - self.peak, 1e-9)

    def turns(self) -> tuple[float, ...]:
        """Return both ends and the peak."""
        return 0.0, self.peak, 1.0


AnySchedule = Annotated[Constant | Ramp | Cosine | Steps | Triangle, Discriminator("name")]
Scheduled = float | AnySchedule


def _within(low: float, high: float) -> AfterValidator:
    def check(scheduled: Scheduled) -> Scheduled:
        if not all(low <= value <= high for value in extremes(scheduled)):
            limits = f"at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
            raise ValueError(f"must be {limits} throughout")
        return scheduled

    return AfterValidator(check)


PositiveSchedule = Annotated[Scheduled, _within(1e-6, math.inf)]
PositiveFractionSchedule = Annotated[Scheduled, _within(1e-6, 1)]
NonNegativeSchedule = Annotated[Scheduled, _within(0, math.inf)]
FractionSchedule = Annotated[Scheduled, _within(0, 1)]
ThresholdSchedule = Annotated[Scheduled, _within(0, 2)]
"""A threshold of a share; above 1, nothing reaches it."""


def extremes(scheduled: Scheduled | Schedule) -> tuple[float, float]:
    """Return the smallest and the largest value."""
    if not isinstance(scheduled, Schedule):
        return scheduled, scheduled
    values = [scheduled(progress) for progress in scheduled.turns()]
    return min(values), max(values)


def restart_epoch(share: float, epochs: int) -> int:
    """Return the epoch at which a training restarts; 0 if it never does.

    Both parts have at least one epoch.
    """
    return min(max(1, round(share * epochs)), epochs - 1) if share else 0


def value_at(scheduled: Scheduled, progress: float) -> float:
    """Return the value at this progress."""
    return scheduled(progress) if callable(scheduled) else scheduled
