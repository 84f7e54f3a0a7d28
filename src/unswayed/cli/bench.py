"""Train a grid of methods, settings and seeds, and make its table.

GRID is a TOML file or the name of a shipped grid (see `unswayed list grids`). Overrides such as
data.root=DIR or train.holdout=0.1 apply to all cells. Cells run in parallel, one thread each, or
one per GPU. Called again, it resumes where it stopped. With --save, cells whose numbers are in the
saved file already are not trained again, also if that file comes from another machine.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    track,
)
from rich.table import Table
from rich.text import Text

from unswayed.cli.loading import QUIET_SECONDS, clock
from unswayed.cli.progress import OnTerminal
from unswayed.cli.show import check_writable, console
from unswayed.errors import UsageError

if TYPE_CHECKING:
    from unswayed.bench.cost import Estimate
    from unswayed.bench.grid import Cell, Grid
    from unswayed.bench.runner import Event
    from unswayed.bench.tables import Results

FORMATS = ("csv", "tex", "html")
"""The formats that `unswayed.bench.formats` can write."""

GIVE_UP_AFTER = 4
"""If this many cells of several rows and columns fail first for one reason, the rest is skipped."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("grid", metavar="GRID", help="a grid file, or the name of a shipped grid")
    add("overrides", nargs="*", metavar="key=value", help="overrides for all cells")
    add("--runs", metavar="DIR", help="where the runs go (runs/NAME OF THE GRID)")
    add("--workers", type=int, metavar="N", help="cells at a time (all cores)")
    add("--save", metavar="DIR", help="also write the results as JSON and Markdown")
    add("--scale", default="", help="full, or a smaller one that the grid has: cpu")
    add("--seeds", type=int, metavar="N", help="how many, if not as the grid says")
    names = "train only cells of these methods and columns"
    add("--only", metavar="NAME", nargs="+", default=[], help=names)
    dry_run = "train nothing; list cells and what they would cost"
    add("--dry-run", action="store_true", help=dry_run)
    formats = "with --save, write these tables too"
    add("--formats", choices=FORMATS, nargs="+", default=[], help=formats)
    keep = "keep checkpoints and records of finished cells"
    add("--keep", action="store_true", help=keep)
    table_only = "train nothing; the table of what is finished"
    add("--table-only", action="store_true", help=table_only)


def run(args: argparse.Namespace) -> int:
    """Train the missing cells, then show the results of all cells, and save them if asked."""
    from unswayed.bench import formats, results
    from unswayed.bench.grid import Grid
    from unswayed.bench.runner import default_workers

    grid = Grid.load(args.grid, args.scale, args.seeds, args.overrides)
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
    cells = grid.only(args.only)
    if args.dry_run:
        _estimate(grid, cells, folder, workers)
        return 0
    command = _command(args, grid)
    target = Path(args.save) / f"{grid.name}.json" if args.save else None
    if target is not None:
        _check_target(grid, len(grid.cells), target, command)
        check_writable(target.parent)
    saved = _saved(target)
    failed: dict[str, str] = {}
    if not args.table_only:
        check_writable(folder)
        left = _not_saved(cells, saved)
        if left:
            failed = _train(left, folder, workers, keep=args.keep)
    found = results.collect(grid, folder, command, saved)
    _show(found, cells)
    _print_failures(failed)
    if target is not None:
        chosen = {name: formats.FORMATS[name] for name in args.formats}
        _check_target(grid, len(found["runs"]), target, command)
        for path in results.save(found, target.parent, chosen):
            print(path)
    return 1 if failed else 0


def _print_failures(failed: dict[str, str]) -> None:
    """Print why cells failed; equal reasons are printed once."""
    reasons: dict[str, list[str]] = {}
    for cell, why in failed.items():
        reasons.setdefault(why, []).append(cell)
    for why, those in reasons.items():
        more = f" and {len(those) - 1} more" if len(those) > 1 else ""
        print(f"failed: {those[0]}{more}: {why}", file=sys.stderr)


def _saved(file: Path | None) -> Results:
    """Return the results that a file holds; nothing if there is none."""
    if file is None or not file.is_file():
        return {}
    from unswayed.parsing import read_json

    found: Results = read_json(file)
    runs = found.get("runs")
    if not isinstance(runs, list) or not all(isinstance(each, dict) for each in runs):
        raise UsageError(f"{file} is not the results of a grid; choose another --save")
    return found


def _not_saved(cells: Sequence[Cell], saved: Results) -> list[Cell]:
    """Return the cells whose numbers are not in earlier results, and say how many are."""
    from unswayed.bench.results import in_saved

    known = in_saved(cells, saved)
    if known:
        print(f"{len(known)} of {len(cells)} cells are in the saved results", file=sys.stderr)
    return [cell for cell in cells if cell.folder not in known]


def _check_target(grid: Grid, runs: int, file: Path, command: str) -> None:
    """Refuse to replace results of more runs, of another grid, or with other overrides."""
    if not file.is_file():
        return
    from unswayed.parsing import parse_object

    try:
        known = parse_object(file.read_bytes())
        before, extends = len(known["runs"]), known["extends"]
        overrides = _overrides_in(known["command"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{file} is not the results of a grid; remove it, or choose another --save"
        ) from error
    if extends != grid.extends:
        raise UsageError(
            f"{file} holds results of another grid called {grid.name!r} (it extends {extends!r}, "
            f"not {grid.extends!r}); choose another --save, or rename the grid's file"
        )
    if overrides != _overrides_in(command):
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
    """Return the command that repeats these numbers, also after the grid's seeds change."""
    scale = f" --scale {args.scale}" if args.scale else ""
    overrides = "".join(f" {shlex.quote(each)}" for each in args.overrides)
    return f"unswayed bench {args.grid}{overrides}{scale} --seeds {grid.seeds}"


def _overrides_in(command: str) -> set[str]:
    """Return the overrides in a command, except for the place of the data."""
    found = {part for part in shlex.split(command) if "=" in part}
    return {part for part in found if not part.startswith("data.root=")}


def _estimate(grid: Grid, cells: Sequence[Cell], folder: Path, workers: int) -> None:
    """List the cells and their cost; finished ones cost nothing."""
    from unswayed.bench.runner import elsewhere, finished
    from unswayed.device import pick_device

    done = {cell.folder for cell in finished(cells, folder)}
    done |= elsewhere([cell for cell in cells if cell.folder not in done], folder).keys()
    numbers = ("seeds", "epochs", "PFLOP each", "hours each", "left")
    shown = _table(("cell", "method", "settings", *numbers), text_columns=3)
    flops = seconds = 0.0
    for group, cost in _timed(grid, cells):
        cell, left = group[0], sum(each.folder not in done for each in group)
        flops, seconds = flops + left * cost.flops, seconds + left * cost.seconds
        about = (f"{cell.row.title}, {cell.column}", cell.method, cell.settings)
        epochs = cell.recipe.settings.budget or str(cell.recipe.settings.epochs)
        each = (_short(cost.flops / 1e15), _short(cost.seconds / 3600))
        shown.add_row(*map(Text, about), str(len(group)), epochs, *each, str(left))
    console().print(shown)
    kinds = sorted({pick_device(cell.recipe.settings.device).type for cell in cells})
    one = " and ".join("core" if kind == "cpu" else kind for kind in kinds)
    console().print(
        f"left: {_short(flops / 1e15)} PFLOP, {_short(seconds / 3600)} hours of one {one}, "
        f"{_short(seconds / 3600 / workers)} hours with {workers} at a time. Counted and timed on "
        "this machine in a few small steps with random images; evaluation is not in it.",
        highlight=False,
    )


def _timed(grid: Grid, cells: Sequence[Cell]) -> list[tuple[list[Cell], Estimate]]:
    """Return the cells of each method and column, and what one of them costs."""
    from unswayed.bench.cost import estimates

    groups: dict[tuple[str, str], tuple[list[Cell], Estimate]] = {}
    costs = track(
        estimates(cells, grid.shapes),
        "timing a few steps",
        total=len(cells),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    for cell, cost in costs:
        groups.setdefault((cell.row.key, cell.column), ([], cost))[0].append(cell)
    return list(groups.values())


def _short(number: float) -> str:
    """Return a number with about three digits: 0.0123, 4.56, 1,480."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _train(cells: Sequence[Cell], folder: Path, workers: int, *, keep: bool) -> dict[str, str]:
    """Train the cells that are not finished, and return the reasons of failures by title."""
    from unswayed.bench import results
    from unswayed.bench.runner import copy_equal_runs, finished, run_cells

    done = {cell.folder for cell in finished(cells, folder)}
    missing = [cell for cell in cells if cell.folder not in done]
    if copied := copy_equal_runs(missing, folder, keep=keep):
        where = f"runs in {folder.parent} that have trained the same recipes"
        print(f"{len(copied)} cells are copied from {where}", file=sys.stderr)
        done |= {cell.folder for cell in copied}
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
                if _give_up(ended, missing) and not watcher.under_way:
                    break
    if left := len(missing) - len(ended):
        print(f"{left} cells are not tried: all before failed for one reason", file=sys.stderr)
    return {event.cell.title: event.failure for event in ended if event.failure}


def _give_up(ended: Sequence[Event], missing: Sequence[Cell]) -> bool:
    """Return whether all cells so far failed for one reason, across several methods and columns."""
    tried, reasons = [event.cell for event in ended], {event.failure for event in ended}

    def several(of: Callable[[Cell], str]) -> bool:
        return len(set(map(of, tried))) >= min(2, len(set(map(of, missing))))

    by_all = several(lambda cell: cell.row.key) and several(lambda cell: cell.column)
    return by_all and len(ended) >= GIVE_UP_AFTER and len(reasons) == 1 and "" not in reasons


class Watcher(OnTerminal[Live]):
    """Shows the progress of the cells: a live table and a bar on a terminal, lines elsewhere."""

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
                self._note(cell)
        self.began = self.told = time.monotonic()
        self.progress = Progress(
            TextColumn("{task.fields[state]}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=self.console,
            speed_estimate_period=600,
        )
        self.task = self.progress.add_task("", total=self.total, state=self._state())
        self.bar = Live(console=self.console, get_renderable=self._render, refresh_per_second=2)

    def __call__(self, event: Event) -> None:
        """Show an event."""
        self.shares[event.cell.folder] = event.share
        self.ended += event.share == 1
        self.failed += bool(event.failure)
        if event.share == 1 and not event.failure:
            self._note(event.cell)
        done = sum(
            self.shares[cell.folder] * cell.cost
            for cell in self.cells
            if cell.folder in self.shares
        )
        if self.console.is_terminal:
            self.progress.update(self.task, completed=done, state=self._state())
            return
        now = time.monotonic()
        if now - self.told >= QUIET_SECONDS or self.ended == self.count:
            self.told, spent = now, now - self.began
            line = f"{self._state()}, {100 * done / self.total:.0f} %, {clock(spent)}"
            if 0.01 < done / self.total < 1:  # less says nothing of what is to come
                line += f", ETA {clock(spent * (self.total - done) / done)}"
            print(line, file=sys.stderr, flush=True)

    @property
    def under_way(self) -> bool:
        """Whether a cell is being trained."""
        return any(0 < share < 1 for share in self.shares.values())

    def _note(self, cell: Cell) -> None:
        """Note the last test accuracy of a finished cell, if it has one."""
        from unswayed.bench.results import facts
        from unswayed.runs import Run

        last = facts(Run(self.folder / cell.folder)).numbers["last"]
        if last is not None:
            self.reached[cell.folder] = last

    def _state(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.ended} of {self.count} cells{failed}"

    def _render(self) -> Group:
        """Return the table, with an entry per method and column, and the bar."""
        columns = list(dict.fromkeys(cell.column for cell in self.cells))
        places: dict[tuple[str, str], list[Cell]] = {}
        for cell in self.cells:
            places.setdefault((cell.row.title, cell.column), []).append(cell)
        shown = _table(("method", *columns), "last epoch, %")
        for title in dict.fromkeys(cell.row.title for cell in self.cells):
            cells = [self._place(places.get((title, column), [])) for column in columns]
            shown.add_row(Text(title), *map(Text, cells))
        return Group(shown, self.progress)

    def _place(self, cells: Sequence[Cell]) -> str:
        """Return the mean of finished cells, and the progress of the others."""
        reached = [self.reached[cell.folder] for cell in cells if cell.folder in self.reached]
        running = [self.shares.get(cell.folder, 0.0) for cell in cells]
        parts = [f"{100 * sum(reached) / len(reached):.1f} ({len(reached)})"] if reached else []
        parts += [f"{100 * share:.0f} %" for share in running if 0 < share < 1]
        return " ".join(parts) or "·"


def _show(found: Results, cells: Sequence[Cell]) -> None:
    """Print the tables of these cells, with published numbers."""
    from unswayed.bench import tables

    keys, names = {cell.row.key for cell in cells}, {cell.column for cell in cells}
    found = {
        **found,
        "methods": [method for method in found["methods"] if method["key"] in keys],
        "columns": [column for column in found["columns"] if column["name"] in names],
    }
    if not found["runs"]:
        print("no cell is finished yet", file=sys.stderr)
    for number, what in tables.WHAT.items():
        if tables.values(found, number):
            _print(f"test accuracy, {what}, %", tables.table(found, number, rank=False))
    for number in found.get("published", {}).get("numbers", {}):
        title = f"{tables.WHAT[number]}, %: ours / {found['published']['source']} / difference"
        _print(title, tables.beside(found, number))


def _table(header: Sequence[str], title: str | None = None, text_columns: int = 1) -> Table:
    """Return an empty table; columns after the first ones hold numbers, aligned right."""
    shown = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for place, name in enumerate(header):
        shown.add_column(Text(name), justify="left" if place < text_columns else "right")
    return shown


def _print(title: str, rows: Sequence[Sequence[str]]) -> None:
    shown = _table(rows[0], title)
    for row in rows[1:]:
        shown.add_row(*(Text(cell, style=_colour(cell)) for cell in row))
    console().print(shown)


def _colour(cell: str) -> str:
    return "green" if cell.endswith("▲") else "red" if cell.endswith("▼") else ""
