"""Train a grid of methods, settings and seeds, and make its table.

GRID is a TOML file or the name of a shipped grid (see `unswayed list grids`). Words such as
data.root=DIR or train.holdout=0.1 are for all its cells. Cells run side by side, one thread each,
or one per GPU. Called again, it goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from unswayed.cli.loading import QUIET_SECONDS, clock
from unswayed.cli.progress import OnTerminal
from unswayed.cli.show import check_writable, console
from unswayed.errors import UsageError

if TYPE_CHECKING:
    from unswayed.bench.cost import Estimate
    from unswayed.bench.grid import Cell, Grid
    from unswayed.bench.results import Results
    from unswayed.bench.runner import Event

FORMATS = ("csv", "tex", "html")
"""Names of the tables that `unswayed.bench.formats` can write."""

HOPELESS = 4
"""If so many fail first, of two methods and columns and for one reason, others are not tried."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("grid", metavar="GRID", help="a grid file, or the name of a shipped grid")
    parser.add_argument("words", nargs="*", metavar="key=value", help="overrides for all cells")
    parser.add_argument("--runs", metavar="DIR", help="where the runs go (runs/NAME OF THE GRID)")
    parser.add_argument("--workers", type=int, metavar="N", help="cells at a time (all cores)")
    parser.add_argument("--save", metavar="DIR", help="also write the results as JSON and Markdown")
    parser.add_argument("--scale", default="", help="full, or a smaller one that the grid has: cpu")
    parser.add_argument("--seeds", type=int, metavar="N", help="how many, if not as the grid says")
    parser.add_argument(
        "--only",
        metavar="NAME",
        nargs="+",
        default=[],
        help="train only cells of these methods and columns",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="train nothing; list cells and what they would cost"
    )
    parser.add_argument(
        "--formats",
        choices=FORMATS,
        nargs="+",
        default=[],
        help="with --save, write these tables too",
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep checkpoints and records of finished cells"
    )
    parser.add_argument(
        "--table-only", action="store_true", help="train nothing; the table of what is finished"
    )


def run(args: argparse.Namespace) -> int:
    """Train what is missing, then show, and save if asked to, what all finished cells say."""
    from unswayed.bench import formats, results
    from unswayed.bench.grid import Grid
    from unswayed.bench.runner import default_workers

    grid = Grid.load(args.grid, args.scale, args.seeds, args.words)
    if any(cell.recipe.settings.device.startswith("cuda:") for cell in grid.cells):
        raise UsageError(
            "train.device: a grid gives every cell a GPU of its own; say train.device=cuda, and "
            "choose among them with the environment variable CUDA_VISIBLE_DEVICES"
        )
    workers = default_workers(grid.cells) if args.workers is None else args.workers
    if workers < 1:
        raise UsageError("--workers must be at least 1")
    folder = Path(args.runs or Path("runs") / grid.name)
    if args.formats and not args.save:
        raise UsageError("--formats says how to save; add --save DIR")
    if args.dry_run:
        _estimate(grid, grid.only(args.only), folder, workers)
        return 0
    cells = grid.only(args.only)
    command = _command(args, grid)
    target = Path(args.save) / f"{grid.name}.json" if args.save else None
    if target is not None:
        _check_room(grid, len(grid.cells), target, command)
        check_writable(target.parent)
    failed: dict[str, str] = {}
    if not args.table_only:
        check_writable(folder)
        failed = _train(cells, folder, workers, keep=args.keep)
    found = results.collect(grid, folder, command)
    _show(found, cells)
    _tell(failed)
    if target is not None:
        chosen = {name: formats.FORMATS[name] for name in args.formats}
        _check_room(grid, len(found["runs"]), target, command)
        for path in results.save(found, target.parent, chosen):
            print(path)
    return 1 if failed else 0


def _tell(failed: dict[str, str]) -> None:
    """Say why cells failed; equal reasons are told once."""
    reasons: dict[str, list[str]] = {}
    for cell, why in failed.items():
        reasons.setdefault(why, []).append(cell)
    for why, those in reasons.items():
        more = f" and {len(those) - 1} more" if len(those) > 1 else ""
        print(f"failed: {those[0]}{more}: {why}", file=sys.stderr)


def _check_room(grid: Grid, runs: int, file: Path, command: str) -> None:
    """Refuse to replace results by such of fewer runs, of another grid or with other words."""
    if not file.is_file():
        return
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
        before, extends = len(known["runs"]), known["extends"]
        words = _words(known["command"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{file} is not the results of a grid; remove it, or choose another --save"
        ) from error
    if extends != grid.extends:
        raise UsageError(
            f"{file} holds results of another grid called {grid.name!r} (it extends {extends!r}, "
            f"not {grid.extends!r}); choose another --save, or rename the grid's file"
        )
    if words != _words(command):
        raise UsageError(
            f"{file} was made by `{known['command']}`, and this is `{command}`: it is left as it "
            "is. Choose another --save, or remove it"
        )
    if before > runs:
        raise UsageError(
            f"{file} has {before} runs, and these are {runs}: it is left as it is. "
            "Choose another --save, more --seeds, or remove it"
        )


def _command(args: argparse.Namespace, grid: Grid) -> str:
    """Return the command that makes these numbers again, also when the grid has other seeds."""
    scale = f" --scale {args.scale}" if args.scale else ""
    words = "".join(f" {shlex.quote(word)}" for word in args.words)
    return f"unswayed bench {args.grid}{words}{scale} --seeds {grid.seeds}"


def _words(command: str) -> set[str]:
    """Return the overrides in a command, but for where the data lie."""
    words = {word for word in shlex.split(command) if "=" in word}
    return {word for word in words if not word.startswith("data.root=")}


def _estimate(grid: Grid, cells: Sequence[Cell], folder: Path, workers: int) -> None:
    """List the cells with what they cost; those that are finished cost nothing any more."""
    from unswayed.bench.cost import estimates
    from unswayed.bench.runner import elsewhere, finished
    from unswayed.build import pick_device

    done = {cell.folder for cell in finished(cells, folder)}
    done |= elsewhere([cell for cell in cells if cell.folder not in done], folder).keys()
    shown = Table(box=box.SIMPLE_HEAD)
    words = ("cell", "method", "settings")
    for name in (*words, "seeds", "epochs", "PFLOP each", "hours each", "left"):
        shown.add_column(name, justify="left" if name in words else "right")
    groups: dict[tuple[str, str], list[tuple[Cell, Estimate]]] = {}
    for cell, cost in Waiting(estimates(cells, grid.shapes), len(cells)):
        groups.setdefault((cell.row.key, cell.column), []).append((cell, cost))
    flops = seconds = 0.0
    for group in groups.values():
        (cell, cost), left = group[0], [c for c, _ in group if c.folder not in done]
        flops, seconds = flops + len(left) * cost.flops, seconds + len(left) * cost.seconds
        shown.add_row(
            Text(f"{cell.row.label}, {cell.column}"),
            Text(cell.method),
            Text(cell.settings),
            str(len(group)),
            cell.recipe.settings.budget or str(cell.recipe.settings.epochs),
            _short(cost.flops / 1e15),
            _short(cost.seconds / 3600),
            str(len(left)),
        )
    console().print(shown)
    kinds = sorted({pick_device(cell.recipe.settings.device).type for cell in cells})
    one = " and ".join("core" if kind == "cpu" else kind for kind in kinds)
    console().print(
        f"left: {_short(flops / 1e15)} PFLOP, {_short(seconds / 3600)} hours of one {one}, "
        f"{_short(seconds / 3600 / workers)} hours with {workers} at a time. Counted and timed on "
        "this machine in a few small steps with random images; evaluation is not in it.",
        highlight=False,
    )


def _short(number: float) -> str:
    """Return a number with about three digits: 0.0123, 4.56, 1,480."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


class Waiting(OnTerminal[Progress]):
    """Goes through something slow, and shows on a terminal how far it is."""

    def __init__(self, items: Iterator[tuple[Cell, Estimate]], total: int) -> None:
        super().__init__()
        self.items, self.total = items, total
        self.bar = Progress(
            TextColumn("timing a few steps"),
            BarColumn(bar_width=None),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
        )

    def __iter__(self) -> Iterator[tuple[Cell, Estimate]]:
        """Yield what there is."""
        task = self.bar.add_task("", total=self.total)
        with self:
            for item in self.items:
                self.bar.advance(task)
                yield item


def _train(cells: Sequence[Cell], folder: Path, workers: int, *, keep: bool) -> dict[str, str]:
    """Train the cells that are not finished, and return why some failed, by their titles."""
    from unswayed.bench import results
    from unswayed.bench.runner import borrow, finished, run_cells

    done = {cell.folder for cell in finished(cells, folder)}
    missing = [cell for cell in cells if cell.folder not in done]
    if borrowed := borrow(missing, folder, keep=keep):
        print(
            f"{len(borrowed)} cells are copied from other grids in {folder.parent}, which have "
            "trained the same recipes",
            file=sys.stderr,
        )
        done |= {cell.folder for cell in borrowed}
    missing = [cell for cell in missing if cell.folder not in done]
    if not missing:
        print(f"all {len(cells)} cells are finished; nothing was trained", file=sys.stderr)
        return {}
    if done:
        print(f"{len(done)} of {len(cells)} cells are finished already", file=sys.stderr)
    ended: list[Event] = []
    with Watcher(cells, missing, folder) as watcher:
        for event in run_cells(missing, folder, workers=workers, keep=keep):
            watcher(event)
            if event.share == 1:
                results.note_failure(folder, event.cell, event.failure)
                ended.append(event)
                if _hopeless(ended, missing) and not watcher.under_way:
                    break
    if left := len(missing) - len(ended):
        print(f"{left} cells are not tried: all before failed for one reason", file=sys.stderr)
    return {event.cell.title: event.failure for event in ended if event.failure}


def _hopeless(ended: Sequence[Event], missing: Sequence[Cell]) -> bool:
    """Return whether all cells so far failed for one reason, not one method's or column's own."""
    tried, reasons = [event.cell for event in ended], {event.failure for event in ended}

    def several(of: Callable[[Cell], str]) -> bool:
        return len(set(map(of, tried))) >= min(2, len(set(map(of, missing))))

    by_all = several(lambda cell: cell.row.key) and several(lambda cell: cell.column)
    return by_all and len(ended) >= HOPELESS and len(reasons) == 1 and "" not in reasons


class Watcher(OnTerminal[Live]):
    """Shows how far the cells are: a live table and a bar on a terminal, lines elsewhere."""

    def __init__(self, cells: Sequence[Cell], missing: Sequence[Cell], folder: Path) -> None:
        super().__init__()
        self.cells, self.folder = cells, folder
        self.count, self.ended, self.failed = len(missing), 0, 0
        self.total = sum(cell.cost for cell in missing)
        self.shares: dict[str, float] = {}  # what is done of each cell
        self.reached: dict[str, float] = {}  # the last test accuracy of finished ones
        waiting = {cell.folder for cell in missing}
        for cell in cells:
            if cell.folder not in waiting:
                self._look_at(cell)
        self.began = self.told = time.monotonic()
        self.progress = Progress(
            TextColumn("{task.fields[words]}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=self.console,
            speed_estimate_period=600,
        )
        self.task = self.progress.add_task("", total=self.total, words=self._words())
        self.bar = Live(console=self.console, get_renderable=self._render, refresh_per_second=2)

    def __call__(self, event: Event) -> None:
        """Show an event."""
        self.shares[event.cell.folder] = event.share
        self.ended += event.share == 1
        self.failed += bool(event.failure)
        if event.share == 1 and not event.failure:
            self._look_at(event.cell)
        done = sum(
            self.shares[cell.folder] * cell.cost
            for cell in self.cells
            if cell.folder in self.shares
        )
        if self.console.is_terminal:
            self.progress.update(self.task, completed=done, words=self._words())
            return
        now = time.monotonic()
        if now - self.told >= QUIET_SECONDS or self.ended == self.count:
            self.told, spent = now, now - self.began
            line = f"{self._words()}, {100 * done / self.total:.0f} %, {clock(spent)}"
            if 0.01 < done / self.total < 1:  # less says nothing of what is to come
                line += f", ETA {clock(spent * (self.total - done) / done)}"
            print(line, file=sys.stderr, flush=True)

    @property
    def under_way(self) -> bool:
        """Whether a cell is being trained."""
        return any(0 < share < 1 for share in self.shares.values())

    def _look_at(self, cell: Cell) -> None:
        from unswayed.training.run import Run

        last = Run(self.folder / cell.folder).summary["last"]
        if "test_accuracy" in last:
            self.reached[cell.folder] = last["test_accuracy"]

    def _words(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.ended} of {self.count} cells{failed}"

    def _render(self) -> Group:
        """Return the table, a place for each method and column, and the bar."""
        columns = list(dict.fromkeys(cell.column for cell in self.cells))
        places: dict[tuple[str, str], list[Cell]] = {}
        for cell in self.cells:
            places.setdefault((cell.row.label, cell.column), []).append(cell)
        shown = Table(box=box.SIMPLE_HEAD, title="last epoch, %", title_justify="left")
        for place, name in enumerate(("method", *columns)):
            shown.add_column(Text(name), justify="right" if place else "left")
        for label in dict.fromkeys(cell.row.label for cell in self.cells):
            cells = [self._place(places.get((label, column), [])) for column in columns]
            shown.add_row(Text(label), *map(Text, cells))
        return Group(shown, self.progress)

    def _place(self, cells: Sequence[Cell]) -> str:
        """Return the mean of what is finished, and how far the others are."""
        reached = [self.reached[cell.folder] for cell in cells if cell.folder in self.reached]
        running = [self.shares.get(cell.folder, 0.0) for cell in cells]
        running = [share for share in running if 0 < share < 1]
        words = [f"{100 * sum(reached) / len(reached):.1f} ({len(reached)})"] if reached else []
        words += [f"{100 * share:.0f} %" for share in running]
        return " ".join(words) or "·"


def _show(found: Results, cells: Sequence[Cell]) -> None:
    """Print the tables of these cells, and what others published of them."""
    from unswayed.bench import results

    keys, names = {cell.row.key for cell in cells}, {cell.column for cell in cells}
    found = {
        **found,
        "methods": [method for method in found["methods"] if method["key"] in keys],
        "columns": [column for column in found["columns"] if column["name"] in names],
    }
    if not found["runs"]:
        print("no cell is finished yet", file=sys.stderr)
    for number, what in results.WHAT.items():
        if results.values(found, number):
            _print(f"test accuracy, {what}, %", results.table(found, number, rank=False))
    for number in found.get("published", {}).get("numbers", {}):
        title = f"{results.WHAT[number]}, %: ours / {found['published']['source']} / difference"
        _print(title, results.beside(found, number))


def _print(title: str, table: Sequence[Sequence[str]]) -> None:
    header, *rows = table
    shown = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for place, name in enumerate(header):
        shown.add_column(Text(name), justify="right" if place else "left")
    for row in rows:
        shown.add_row(*(Text(cell, style=_colour(cell)) for cell in row))
    console().print(shown)


def _colour(cell: str) -> str:
    return "green" if cell.endswith("▲") else "red" if cell.endswith("▼") else ""
