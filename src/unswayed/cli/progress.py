"""Progress with an ETA: a live bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Generic, Self, TypeVar

from rich.console import Console
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from unswayed.cli.loading import QUIET_SECONDS
from unswayed.types import Epoch, Numbers, Step

Shown = TypeVar("Shown", Progress, Live)


class OnTerminal(Generic[Shown]):
    """A bar, or more, that lives inside a `with` where stderr is a terminal."""

    bar: Shown

    def __init__(self) -> None:
        self.console = Console(stderr=True)

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.console.is_terminal:
            self.bar.stop()


class Watcher(OnTerminal[Progress]):
    """Shows the events of one training; a context manager that is called with each of them."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = title
        self.first: int | None = None  # steps that were already done when we began to watch
        self.began = self.told = time.monotonic()
        self.latest = ""
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("epoch"),
            MofNCompleteColumn(),
            TextColumn("{task.fields[latest]}"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=self.console,
        )
        self.task = self.bar.add_task(title, total=None, latest="", start=False)

    def __call__(self, event: Step | Epoch) -> None:
        """Show an event."""
        if isinstance(event, Epoch):
            self.latest = brief(event.metrics)
            done, share = event.epoch + 1, float(event.epoch + 1)
        else:
            done, share = event.epoch, event.epoch + event.step / event.steps
        if self.console.is_terminal:
            if self.first is None:
                self.first = done
                self.bar.start_task(self.task)
            self.bar.update(self.task, total=event.epochs, completed=done, latest=self.latest)
        else:
            self._tell(share, event.epochs, finished=done == event.epochs)

    def _tell(self, share: float, epochs: int, *, finished: bool) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first = int(share)
        if now - self.told < QUIET_SECONDS and not finished:
            return
        self.told = now
        pace = (now - self.began) / max(share - self.first, 1e-9)
        eta = (
            f"ETA {pace * (epochs - share):.0f} s" if not finished else f"{now - self.began:.0f} s"
        )
        line = f"{self.title}: epoch {int(share)}/{epochs} {self.latest} {eta}"
        print(" ".join(line.split()), file=sys.stderr, flush=True)


def brief(metrics: Numbers) -> str:
    """Return the numbers one looks at while waiting."""
    names = {
        "test_accuracy": "test",
        "holdout_accuracy": "hold-out",
        "wrong_as_given": "memorised",
    }
    return " ".join(
        f"{words} {100 * share:.1f}%"
        for name, words in names.items()
        if (share := getattr(metrics, name)) is not None
    )
