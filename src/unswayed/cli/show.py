"""Print results, and check that they can be saved."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unswayed.errors import UsageError

if TYPE_CHECKING:
    from unswayed.report.table import Compared, Spread


def console() -> Console:
    """Return stdout, wide enough for a table if it is not a terminal."""
    return Console(width=None if sys.stdout.isatty() else 140, highlight=False)


def comparison_table(rows: Sequence[Compared], *, oracle: bool) -> Table:
    """Return the table of `compare` and `demo`; without a test set, that of the noisy hold-out."""
    if all(row.last is None for row in rows) and any(row.holdout for row in rows):
        return _holdout_table(rows)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("method", overflow="fold")
    table.add_column("seeds", justify="right")
    table.add_column("test, last", justify="right")
    table.add_column("test, selected\non noisy hold-out", justify="right")
    if oracle:
        table.add_column("test, best\n(oracle)", justify="right")
    table.add_column("wrong labels\nmemorised", justify="right")
    table.add_column("seconds", justify="right")
    for row in rows:
        cells = [_percent(row.last), _percent(row.selected)]
        cells += [_percent(row.oracle_best)] if oracle else []
        seconds = row.seconds.seconds() if row.seconds else "–"
        method = Text(row.method)  # it may end in the name of a file, which is no markup
        table.add_row(method, str(len(row.seeds)), *cells, _percent(row.memorised), seconds)
    return table


def _holdout_table(rows: Sequence[Compared]) -> Table:
    """Return what is known of runs without test images."""
    table = Table(
        box=box.SIMPLE_HEAD, caption="no test images; some labels of the hold-out are wrong"
    )
    table.add_column("method", overflow="fold")
    for name in ("seeds", "noisy hold-out, last", "seconds"):
        table.add_column(name, justify="right")
    for row in rows:
        seconds = row.seconds.seconds() if row.seconds else "–"
        table.add_row(Text(row.method), str(len(row.seeds)), _percent(row.holdout), seconds)
    return table


def _percent(spread: Spread | None) -> str:
    return spread.percent() if spread else "–"


def check_writable(folder: Path) -> None:
    """Make a folder before the training whose results it will hold."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}; choose another") from error
    if not os.access(folder, os.W_OK):
        raise UsageError(f"{folder} cannot be written to; choose another")
