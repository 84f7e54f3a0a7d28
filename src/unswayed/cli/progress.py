"""Show progress and an ETA: a live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from rich.console import Console
from rich.live import Live
from rich.progress import Progress
from rich.text import Text

from unswayed.cli.loading import QUIET_SECONDS, clock
from unswayed.types import Epoch, Numbers, Step

if TYPE_CHECKING:
    from unswayed.session import Event

Shown = TypeVar("Shown", Progress, Live)

LONG_SECONDS = 2.0
"""Longer epochs are shown with their steps."""

SHORT_TITLE, WIDEST_BAR = 11, 30
"""Columns of a shortened title, and of the widest bar."""


class OnTerminal(Generic[Shown]):
    """A live display inside a `with` block, if stderr is a terminal."""

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


class Watcher(OnTerminal[Live]):
    """Shows the events of one training; a context manager that is called with each event."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = title
        self.began = self.told = time.monotonic()
        self.event: Step | Epoch | None = None
        self.first = (0.0, 0.0)  # when the first event came, and how many epochs were done by then
        self.epoch_began = self.began
        self.long = False
        self.latest: list[str] = []
        self.times = ""
        self.bar = Live(console=self.console, get_renderable=self._line, refresh_per_second=4)

    def __enter__(self) -> Self:
        """Show nothing before the first event: until then the loading of data uses the line."""
        return self

    def __call__(self, event: Event) -> None:
        """Show an event; `Opened` is not shown."""
        if not isinstance(event, Step | Epoch):
            return
        now = time.monotonic()
        if self.event is None:
            self.first = now, _epochs_done(event)
            self.epoch_began = now
            if self.console.is_terminal:
                self.bar.start()
        self.event, self.times = event, self._times(event, now)
        self.long = self.long or now - self.epoch_began > LONG_SECONDS
        if isinstance(event, Epoch):
            self.latest = brief(event.metrics)
            self.epoch_began = now
        if not self.console.is_terminal and (now - self.told >= QUIET_SECONDS or _finished(event)):
            self.told = now
            words = [f"{self.title}:", _place(event, steps=self.long), *self.latest, self.times]
            print(" ".join(words), file=sys.stderr, flush=True)

    def _times(self, event: Step | Epoch, now: float) -> str:
        """Return how long the rest will take, or how long a finished training took."""
        if _finished(event):
            return f"took {clock(now - self.began)}"
        began, before = self.first
        done = _epochs_done(event)
        if done <= before:
            return "ETA –"
        return f"ETA {clock((now - began) / (done - before) * (event.epochs - done))}"

    def _line(self) -> Text:
        if self.event is None:
            return Text(self.title)
        steps = self.long or self.event.epoch == 0
        place = _place(self.event, steps=steps)
        share = _epochs_done(self.event) / self.event.epochs
        return fitted(self.console.width, self.title, place, self.latest, self.times, share)


def fitted(width: int, title: str, place: str, latest: list[str], times: str, share: float) -> Text:
    """Return one line that fits, always with the epoch and the time.

    If there is no room, parts are left out in this order: the bar, the end of the title, all
    numbers but the first, the title, the first number.
    """
    short = title if len(title) <= SHORT_TITLE else f"{title[: SHORT_TITLE - 1]}…"
    numbers, first = " ".join(latest), latest[0] if latest else ""
    choices = [(title, numbers), (short, numbers), (title, first), (short, first), ("", first)]
    lengths = [sum(len(part) + 1 for part in (*choice, place, times) if part) for choice in choices]
    fitting = (c for c, length in zip(choices, lengths, strict=True) if length - 1 <= width)
    chosen, known = next(fitting, ("", ""))
    words = [part for part in (chosen, place, known, times) if part]
    room = min(width - len(" ".join(words)) - 1, WIDEST_BAR)
    line = Text(" ".join(words), no_wrap=True, overflow="crop")
    if room < 3:
        return line
    filled = int(share * room)
    bar = Text.assemble(("━" * filled, "bar.complete"), ("━" * (room - filled), "bar.back"), " ")
    behind = len(chosen) + 1 if chosen else 0
    return Text.assemble(line[:behind], bar, line[behind:], no_wrap=True, overflow="crop")


def _epochs_done(event: Step | Epoch) -> float:
    """Return how many epochs are done, as a fraction."""
    return event.epoch + (1.0 if isinstance(event, Epoch) else event.step / event.steps)


def _finished(event: Step | Epoch) -> bool:
    return isinstance(event, Epoch) and event.epoch + 1 == event.epochs


def _place(event: Step | Epoch, *, steps: bool) -> str:
    """Return the current epoch, from 1, and its step if asked for."""
    place = f"epoch {event.epoch + 1}/{event.epochs}"
    if steps and isinstance(event, Step):
        place += f" step {event.step}/{event.steps}"
    return place


def brief(metrics: Numbers) -> list[str]:
    """Return the most important numbers of an epoch, in order."""
    names = {
        "test_accuracy": "test",
        "holdout_accuracy": "hold-out",
        "wrong_as_given": "memorised",
    }
    shares = {words: getattr(metrics, name) for name, words in names.items()}
    return [f"{words} {100 * x:.1f}%" for words, x in shares.items() if x is not None]
