"""What an audit found: a table with a row for every sample, the worst first, and its summary."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unswayed.errors import UsageError
from unswayed.files import write_text

STOP = 0.2
"""Below this P(wrong), fewer than one label in five is expected to be wrong."""

FLAGS = {
    "ambiguous": "two classes are plausible",
    "outlier": "unlike all other samples: perhaps none of the classes",
    "duplicate": "nearly the same as another sample with the same label",
    "conflict": "nearly the same as another sample with another label",
    "leak": "nearly the same as a test sample",
}
"""What else may be odd about a sample."""

COLUMNS = ("rank", "id", "given", "suggested", "p_wrong", "p_suggested", "flags")
Vector = NDArray[np.float64]


class NoiseEstimate(NamedTuple):
    """How many labels are wrong, and which way; intervals should hold the truth 9 times in 10."""

    rate: float
    low: float
    high: float
    joint: Vector  # (K, K) share of samples by given label (rows) and true one (columns)
    joint_low: Vector  # (K, K)
    joint_high: Vector  # (K, K)

    @property
    def matrix(self) -> Vector:
        """T, (K, K): the share of each true class (rows) that is labelled as each class."""
        true = self.joint.sum(axis=0)
        found: Vector = np.divide(
            self.joint, true, out=np.eye(len(true)), where=true > 0
        ).T  # a class that nothing belongs to is left alone
        return found


class Bin(NamedTuple):
    """Labels that were judged alike, for a plot of reliability."""

    expected: float  # mean probability that a label is this one, by the evidence and the noise
    observed: float  # how often it is, among labels that the evidence has not seen
    count: int  # type: ignore[assignment]  # in place of the method of tuples


class Finding(NamedTuple):
    """One row of the table."""

    rank: int  # from 1
    id: str
    given: str
    suggested: str
    p_wrong: float
    p_suggested: float  # that the suggested label is right
    flags: str  # words of `FLAGS`, separated by spaces


@dataclass(frozen=True)
class Audit:
    """The judgement of N labels."""

    ids: Sequence[str]
    classes: Sequence[str]
    given: NDArray[np.int64]  # (N,)
    suggested: NDArray[np.int64]  # (N,) the most probable class other than the given one
    p_wrong: Vector  # (N,)
    p_suggested: Vector  # (N,)
    noise: NoiseEstimate
    evidence: str  # the ones that were used, joined by ' + '
    qualities: Mapping[str, float] = field(default_factory=dict)  # agreement of each with the rest
    p_wrong_by: Mapping[str, Vector] = field(default_factory=dict, repr=False)  # evidence -> (N,)
    flags: Mapping[int, str] = field(default_factory=dict)  # row -> words of `FLAGS`
    top: NDArray[np.int64] | None = None  # (N, 3) the most probable classes, the given label known
    p_top: Vector | None = None  # (N, 3) their probabilities
    nearest: NDArray[np.int32] | None = None  # (N, 5) the most similar samples
    groups: Sequence[Sequence[int]] = ()  # rows that show nearly the same
    reliability: Sequence[Bin] = ()
    warnings: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.given)

    @property
    def order(self) -> NDArray[np.int64]:
        """Rows, the most suspicious first."""
        return np.argsort(-self.p_wrong, kind="stable")

    def __iter__(self) -> Iterator[Finding]:
        """Yield the table, the most suspicious first."""
        for rank, row in enumerate(self.order.tolist(), start=1):
            yield Finding(
                rank,
                str(self.ids[row]),
                self.classes[self.given[row]],
                self.classes[self.suggested[row]],
                float(self.p_wrong[row]),
                float(self.p_suggested[row]),
                self.flags.get(row, ""),
            )

    @property
    def to_review(self) -> int:
        """How many labels are worth a look: those above the stop line."""
        return int((self.p_wrong >= STOP).sum())

    def expected_wrong(self, count: int) -> float:
        """Return how many of the first so many labels are expected to be wrong."""
        return float(self.p_wrong[self.order[:count]].sum())

    def expected_precision(self) -> Vector:
        """Return which share of the first 1, 2, ..., N labels is expected to be wrong, (N,)."""
        found: Vector = np.cumsum(np.sort(self.p_wrong)[::-1]) / np.arange(1, len(self) + 1)
        return found

    def flagged(self, word: str) -> NDArray[np.int64]:
        """Return the rows with a word of `FLAGS`, the most suspicious first."""
        rows = [row for row, words in self.flags.items() if word in words.split()]
        found: NDArray[np.int64] = np.array(sorted(rows), dtype=np.int64)
        return found[np.argsort(-self.p_wrong[found], kind="stable")]

    def worst_pairs(self, count: int = 3) -> list[tuple[str, str, float]]:
        """Return the pairs (given, probably true) with the most wrong labels, and how many."""
        joint = self.noise.joint * len(self)
        np.fill_diagonal(joint, 0)
        places = np.argsort(-joint, axis=None)[:count]
        rows, columns = np.unravel_index(places, joint.shape)
        names = self.classes
        return [
            (names[i], names[j], float(joint[i, j]))
            for i, j in zip(rows, columns, strict=True)
            if joint[i, j] >= 0.5
        ]

    def summary(self) -> dict[str, Any]:
        """Return the findings as plain values."""
        return {
            "samples": len(self),
            "noise_rate": round(self.noise.rate, 6),
            "noise_rate_interval": [round(self.noise.low, 6), round(self.noise.high, 6)],
            "to_review": self.to_review,
            "expected_wrong_among_them": round(self.expected_wrong(self.to_review), 2),
            "worst_pairs": [list(pair) for pair in self.worst_pairs(10)],
            "evidence": self.evidence,
            "agreement": {name: round(value, 4) for name, value in self.qualities.items()},
            "warnings": list(self.warnings),
            "classes": list(self.classes),
            "joint": np.round(self.noise.joint, 8).tolist(),
        }

    def __str__(self) -> str:
        """Return what people want to know, in a few lines."""
        noise, review = self.noise, self.to_review
        lines = [
            f"{100 * noise.rate:.1f} % of {len(self):,} labels are probably wrong "
            f"(between {100 * noise.low:.1f} and {100 * noise.high:.1f} %)",
            f"worth a look: {review:,}, of which {self.expected_wrong(review):,.0f} are expected "
            "to be wrong",
        ]
        lines += [
            f"labelled {given}, probably {true}: about {count:,.0f}"
            for given, true, count in self.worst_pairs()
        ]
        lines += [f"note: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def to_pandas(self) -> Any:
        """Return the table as a pandas frame, if pandas is installed."""
        try:
            import pandas
        except ImportError:
            raise UsageError("to_pandas needs pandas: pip install pandas") from None
        return pandas.DataFrame(list(self), columns=list(COLUMNS))

    def write(self, path: str | Path) -> None:
        """Write the table as .csv, .json or .parquet, by the ending of the path."""
        path = Path(path)
        if path.suffix == ".csv":
            write_text(path, self._csv())
        elif path.suffix == ".json":
            table = [finding._asdict() for finding in self]
            text = json.dumps({"summary": self.summary(), "labels": table}, ensure_ascii=False)
            write_text(path, text + "\n")
        elif path.suffix == ".parquet":
            self._write_parquet(path)
        else:
            raise UsageError(f"{path} ends in none of .csv, .json, .parquet")

    def _csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for finding in self:
            shares = (f"{finding.p_wrong:.6f}", f"{finding.p_suggested:.6f}")
            writer.writerow((*finding[:4], *shares, finding.flags))
        return text.getvalue()

    def _write_parquet(self, path: Path) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise UsageError("Parquet needs pyarrow: pip install 'unswayed[parquet]'") from None
        columns = zip(*self, strict=True)
        table = pyarrow.table(dict(zip(COLUMNS, map(list, columns), strict=True)))
        pyarrow.parquet.write_table(table, path)
