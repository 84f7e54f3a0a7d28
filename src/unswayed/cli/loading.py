"""How far the loading of data is."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from unswayed.data.progress import listening

QUIET_SECONDS = 10.0
"""Between two lines on progress where stderr is not a terminal."""


def clock(seconds: float) -> str:
    """Return `2:08`, and from an hour on `1 h 05 min`."""
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min"


@contextmanager
def data_progress() -> Iterator[None]:
    """Show how far the loading of data is, once it takes longer than a moment."""
    terminal = sys.stderr.isatty()
    began = time.monotonic()
    told = began

    def listener(what: str, done: int, total: int) -> None:
        nonlocal told
        now = time.monotonic()
        pause = 0.2 if terminal else QUIET_SECONDS
        if now - began < 2 or now - told < pause:
            return
        told = now
        eta = f", ETA {clock((now - began) * (total - done) / done)}" if done else ""
        text = f"{what}: {done}/{total}{eta}"
        end = "\r" if terminal else "\n"
        print(f"{text:78}" if terminal else text, end=end, file=sys.stderr, flush=True)

    with listening(listener):
        yield
    if told != began and terminal:
        print(" " * 78, end="\r", file=sys.stderr)
