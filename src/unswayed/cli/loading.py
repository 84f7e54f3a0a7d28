"""Show the progress of loading data."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from unswayed.data.progress import listening

QUIET_SECONDS = 10.0
"""The time between two lines if stderr is not a terminal."""


def clock(seconds: float) -> str:
    """Return `2:08`, or `1 h 05 min` from an hour on."""
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min"


@contextmanager
def data_progress() -> Iterator[Callable[[], None]]:
    """Show the progress of loading data, once it takes longer than a moment.

    Yields a function that clears the line of a terminal, for other output.
    """
    terminal = sys.stderr.isatty()
    began = time.monotonic()
    told = began
    shown = False

    def listener(what: str, done: int, total: int) -> None:
        nonlocal told, shown
        now = time.monotonic()
        pause = 0.2 if terminal else QUIET_SECONDS
        if now - began < 2 or now - told < pause:
            return
        told, shown = now, terminal
        eta = f", ETA {clock((now - began) * (total - done) / done)}" if done else ""
        text = f"{what}: {done}/{total}{eta}"
        end = "\r" if terminal else "\n"
        print(f"{text:78}" if terminal else text, end=end, file=sys.stderr, flush=True)

    def clear() -> None:
        nonlocal shown
        if shown:
            shown = False
            print(" " * 78, end="\r", file=sys.stderr, flush=True)

    with listening(listener):
        yield clear
    clear()
