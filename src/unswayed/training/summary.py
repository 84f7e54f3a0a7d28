"""The numbers of a run, never mixed: *last*, *selected on the noisy hold-out*, *oracle best*."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def best_row(rows: Sequence[Row], key: str) -> Row | None:
    """Return the row with the highest value of `key`; of equals, the first."""
    return max((row for row in rows if key in row), key=lambda row: row[key], default=None)


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the summary of all epochs; `oracle_best` looked at the test labels, so beware."""
    chosen = {
        "last": rows[-1],
        "selected": best_row(rows, "holdout_accuracy"),
        "oracle_best": best_row(rows, "test_accuracy"),
    }
    skipped = ("terms", "lr", "seconds", "flops")
    return {
        "epochs": len(rows),
        "seconds": rows[-1]["seconds"],
        "flops": rows[-1].get("flops"),  # None in runs of older versions
        **{
            name: row and {k: v for k, v in row.items() if k not in skipped}
            for name, row in chosen.items()
        },
    }
