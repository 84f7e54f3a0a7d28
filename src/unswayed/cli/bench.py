"""Train a grid of methods, settings and seeds, and make its table.

GRID is a TOML file or the name of a shipped grid (see `unswayed list grids`). Cells run side by
side, one thread each. Called again, it goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from unswayed.bench import results
from unswayed.bench.grid import Cell, Grid
from unswayed.bench.runner import Event, default_workers, finished, run_cells
from unswayed.cli.progress import QUIET_SECONDS, OnTerminal
from unswayed.cli.show import console
from unswayed.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("grid", metavar="GRID", help="a grid file, or the name of a shipped grid")
    parser.add_argument("--runs", metavar="DIR", help="where the runs go (runs/NAME OF THE GRID)")
    parser.add_argument("--workers", type=int, metavar="N", help="cells at a time (all cores)")
    parser.add_argument("--save", metavar="DIR", help="also write the results as JSON and Markdown")
    parser.add_argument("--only", metavar="METHOD", nargs="+", default=[], help="train only these")
    parser.add_argument(
        "--keep", action="store_true", help="keep checkpoints and records of finished cells"
    )
    parser.add_argument(
        "--table-only", action="store_true", help="train nothing; the table of what is finished"
    )


def run(args: argparse.Namespace) -> int:
    """Train what is missing, then show, and save if asked to, what all finished cells say."""
    grid = Grid.load(args.grid)
    workers = default_workers(grid.cells) if args.workers is None else args.workers
    if workers < 1:
        raise UsageError("--workers must be at least 1")
    folder = Path(args.runs or Path("runs") / grid.name)
    failed: dict[str, str] = {}
    if not args.table_only:
        failed = _train(grid.only(args.only), folder, workers, keep=args.keep)
    found = results.collect(grid, folder, f"unswayed bench {args.grid}")
    _show(found)
    if args.save:
        for path in results.save(found, Path(args.save)):
            print(path)
    for cell, why in failed.items():
        print(f"failed: {cell}: {why}", file=sys.stderr)
    return 1 if failed else 0


def _train(cells: Sequence[Cell], folder: Path, workers: int, *, keep: bool) -> dict[str, str]:
    """Train the cells that are not finished, and return why some failed, by their titles."""
    failed: dict[str, str] = {}
    done = {cell.folder for cell in finished(cells, folder)}
    missing = [cell for cell in cells if cell.folder not in done]
    if not missing:
        print(f"all {len(cells)} cells are finished; nothing was trained", file=sys.stderr)
        return failed
    if done:
        print(f"{len(done)} of {len(cells)} cells are finished already", file=sys.stderr)
    with Watcher(missing) as watcher:
        for event in run_cells(missing, folder, workers=workers, keep=keep):
            watcher(event)
            if event.share == 1:
                results.note_failure(folder, event.cell, event.failure)
            if event.failure:
                failed[event.cell.title] = event.failure
    return failed


class Watcher(OnTerminal):
    """Shows how far the cells are, by what they cost: a bar on a terminal, lines elsewhere."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        super().__init__()
        self.count, self.ended, self.failed = len(cells), 0, 0
        self.total = sum(cell.cost for cell in cells)
        self.shares: dict[str, float] = {}  # what is done of each cell, times its cost
        self.began = self.told = time.monotonic()
        self.bar = Progress(
            TextColumn("{task.fields[words]}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=self.console,
            speed_estimate_period=600,
        )
        self.task = self.bar.add_task("", total=self.total, words=self._words())

    def __call__(self, event: Event) -> None:
        """Show an event."""
        self.shares[event.cell.folder] = event.share * event.cell.cost
        self.ended += event.share == 1
        self.failed += bool(event.failure)
        done = sum(self.shares.values())
        if self.console.is_terminal:
            self.bar.update(self.task, completed=done, words=self._words())
            return
        now = time.monotonic()
        if now - self.told >= QUIET_SECONDS or self.ended == self.count:
            self.told, spent = now, now - self.began
            line = f"{self._words()}, {100 * done / self.total:.0f} %, {spent:.0f} s"
            if 0.01 < done / self.total < 1:  # less says nothing of what is to come
                line += f", ETA {spent * (self.total - done) / done:.0f} s"
            print(line, file=sys.stderr, flush=True)

    def _words(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.ended} of {self.count} cells{failed}"


def _show(found: results.Results) -> None:
    titles = {"last": "test accuracy, last epoch, %", "selected": "selected on noisy hold-out, %"}
    for number, title in titles.items():
        header, *rows = results.table(found, number, rank=False)
        shown = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
        for place, name in enumerate(header):
            shown.add_column(Text(name), justify="right" if place else "left")
        for row in rows:
            shown.add_row(*map(Text, row))
        console().print(shown)
