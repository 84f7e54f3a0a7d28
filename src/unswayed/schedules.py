"""Numbers that may change while training goes on: λ, τ, a momentum, the learning rate.

Wherever an option is `Scheduled`, a recipe may give a plain number or a table such as
`{name = "ramp", start = 0, end = 50, until = 0.2}`. Progress runs from 0 to 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Discriminator

from unswayed.types import Fraction, PositiveFraction


@dataclass(frozen=True)
class Ramp:
    """A straight line from `start` at progress `since` to `end` at `until`, constant outside."""

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    start: float
    end: float
    until: PositiveFraction = 1.0
    since: Fraction = 0.0
    name: Literal["ramp"] = "ramp"

    def __post_init__(self) -> None:
        if self.since >= self.until:
            raise ValueError(f"since ({self.since:g}) must be below until ({self.until:g})")

    def __call__(self, progress: float) -> float:
        """Return the number that holds at this progress."""
        share = min(max((progress - self.since) / (self.until - self.since), 0.0), 1.0)
        return self.start + (self.end - self.start) * share


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from `start` to `end`, reached at progress `until`, constant after it."""

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    start: float
    end: float
    until: PositiveFraction = 1.0
    name: Literal["cosine"] = "cosine"

    def __call__(self, progress: float) -> float:
        """Return the number that holds at this progress."""
        share = 0.5 * (1 + math.cos(math.pi * min(progress / self.until, 1.0)))
        return self.end + (self.start - self.end) * share


@dataclass(frozen=True)
class Constant:
    """The same number throughout; a plain number in a recipe means this."""

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    value: float
    name: Literal["constant"] = "constant"

    def __call__(self, progress: float) -> float:
        """Return the number that holds at this progress."""
        return self.value


Scheduled = float | Annotated[Constant | Ramp | Cosine, Discriminator("name")]


def _within(low: float, high: float) -> AfterValidator:
    def check(scheduled: Scheduled) -> Scheduled:
        for end in (0.0, 1.0):  # a schedule is monotonic: its ends are its extremes
            if not low <= value_at(scheduled, end) <= high:
                limits = f"at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
                raise ValueError(f"must be {limits} throughout")
        return scheduled

    return AfterValidator(check)


PositiveSchedule = Annotated[Scheduled, _within(1e-6, math.inf)]
PositiveFractionSchedule = Annotated[Scheduled, _within(1e-6, 1)]
NonNegativeSchedule = Annotated[Scheduled, _within(0, math.inf)]
FractionSchedule = Annotated[Scheduled, _within(0, 1)]
ThresholdSchedule = Annotated[Scheduled, _within(0, 2)]
"""Of a share; above 1, nothing reaches it."""


def restart_epoch(share: float, epochs: int) -> int:
    """Return the epoch with which a training that restarts begins anew; 0 if it never does.

    Both parts have at least one epoch.
    """
    return min(max(1, round(share * epochs)), epochs - 1) if share else 0


def value_at(scheduled: Scheduled, progress: float) -> float:
    """Return the number that holds at this progress."""
    return scheduled(progress) if callable(scheduled) else scheduled
