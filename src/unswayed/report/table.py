"""Compare runs: one row per method, over its seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from unswayed.data import CORRECTED
from unswayed.report.text import shortened
from unswayed.runs import Run, Summary

LEVEL = 0.95
"""The confidence level of all intervals."""


def t_quantile(freedom: float, level: float = LEVEL) -> float:
    """Return the half-width of an interval in standard errors."""
    from scipy.special import stdtrit  # slow to import, and most tables need none of it

    return float(stdtrit(freedom, (1 + level) / 2))  # scipy.stats is slower still


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of a number over `n` runs."""

    mean: float
    deviation: float  # sample standard deviation; 0 for one run
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of at least one value."""
        deviation = statistics.stdev(values) if len(values) > 1 else 0.0
        return cls(statistics.fmean(values), deviation, len(values))

    def percent(self, digits: int = 1) -> str:
        """Return `97.3 ± 0.4 %`, or `97.3 %` for a single run."""
        spread = f" ± {100 * self.deviation:.{digits}f}" if self.n > 1 else ""
        return f"{100 * self.mean:.{digits}f}{spread} %"

    def against(self, other: Spread) -> Literal["above", "below", "near", "unknown"]:
        """Compare with another mean by Welch's interval; with one run the result is unknown."""
        if min(self.n, other.n) < 2:
            return "unknown"
        parts = [each.deviation**2 / each.n for each in (self, other)]
        far, half = self.mean - other.mean, 0.0
        if any(parts):
            loss = sum(p**2 / (each.n - 1) for p, each in zip(parts, (self, other), strict=True))
            freedom = sum(parts) ** 2 / loss
            half = t_quantile(freedom) * math.sqrt(sum(parts))
        if abs(far) <= half:
            return "near"
        return "above" if far > 0 else "below"

    def seconds(self) -> str:
        """Return a whole number of seconds."""
        return f"{self.mean:.0f}"


TOLD_APART = {CORRECTED: "labels", "path": "data"}
"""Options of the data by which runs of one method are told apart, and what they are called."""

LONGEST = 30


@dataclass(frozen=True)
class Compared:
    """A method, what its data are if they differ, and its numbers; None if no run has them."""

    method: str
    seeds: tuple[int, ...]
    last: Spread | None
    selected: Spread | None
    oracle_best: Spread | None
    memorised: Spread | None
    seconds: Spread | None
    holdout: Spread | None = None


def comparison(runs: Sequence[Run]) -> list[Compared]:
    """Group runs that differ only in the seed, in the order in which they appear."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        key = run.recipe.key(ignoring=("train.seed", "train.threads"))
        groups.setdefault(key, []).append(run)
    members = list(groups.values())
    remarks = [_remarks([group[0] for group in members], *each) for each in TOLD_APART.items()]
    return [
        _compared(group, "".join(words)) for group, *words in zip(members, *remarks, strict=True)
    ]


def _remarks(runs: Sequence[Run], option: str, word: str) -> list[str]:
    """Return for each run what its data are called, if they differ in this option."""
    paths = [run.recipe.sections["data"].get(option) for run in runs]
    if len(set(paths)) < 2:
        return [""] * len(runs)
    names = {path: Path(path).name for path in paths if path}
    if len(set(names.values())) < len(names):  # all exports are called alike
        names = {path: f"{Path(path).parent.name}/{name}" for path, name in names.items()}
    shown = {path: shortened(name, LONGEST, keep_end=True) for path, name in names.items()}
    return [f", {word}: {shown[path]}" if path else "" for path in paths]


def _compared(group: Sequence[Run], remark: str = "") -> Compared:
    def spread(pick: Callable[[Summary], float | None]) -> Spread | None:
        values = [value for run in group if (value := pick(run.summary)) is not None]
        return Spread.of(values) if values else None

    return Compared(
        method=group[0].method + remark,
        seeds=tuple(run.provenance.seed for run in group),
        last=spread(lambda s: s.last.test_accuracy),
        selected=spread(lambda s: s.selected.test_accuracy if s.selected else None),
        oracle_best=spread(lambda s: s.oracle_best.test_accuracy if s.oracle_best else None),
        memorised=spread(lambda s: s.last.wrong_as_given),
        seconds=spread(lambda s: s.seconds),
        holdout=spread(lambda s: s.last.holdout_accuracy),
    )
