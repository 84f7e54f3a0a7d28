"""The numbers of a run at three epochs: *last*, *selected* and *oracle best*."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from unswayed.types import Metrics, Numbers


class Summary(BaseModel):
    """The numbers of a finished run; `oracle_best` was chosen by its test accuracy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    method: str
    epochs: int
    seconds: float
    flops: int
    last: Numbers
    selected: Numbers | None = None
    oracle_best: Numbers | None = None
    estimated: dict[str, Any] = {}  # what the method estimated, such as a noise rate


def best(rows: Sequence[Metrics], name: str) -> Metrics | None:
    """Return the epoch with the highest number of this name; on a tie, the first."""
    known = (row for row in rows if getattr(row, name) is not None)
    return max(known, key=lambda row: float(getattr(row, name)), default=None)


def summarise(
    name: str, method: str, rows: Sequence[Metrics], estimated: dict[str, Any] | None = None
) -> Summary:
    """Return the summary of all epochs."""

    def numbers(row: Metrics | None) -> Numbers | None:
        return row and Numbers(**row.model_dump(include=set(Numbers.model_fields)))

    last = numbers(rows[-1])
    assert last is not None
    return Summary(
        name=name,
        method=method,
        epochs=len(rows),
        seconds=rows[-1].seconds,
        flops=rows[-1].flops,
        last=last,
        selected=numbers(best(rows, "holdout_accuracy")),
        oracle_best=numbers(best(rows, "test_accuracy")),
        estimated=estimated or {},
    )
