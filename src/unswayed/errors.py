"""The errors of this package."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

LONGEST = 1000
"""Characters of a message; names and columns of strangers can be longer than any terminal."""

_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that change the direction of the text around them."""


def is_odd(letter: str) -> bool:
    """Return whether a letter is none: a control character, a mark of direction, half a pair."""
    return letter in _TURNS or unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")


def one_line(text: str) -> str:
    """Return a text as one line of a bearable length that no terminal obeys.

    Messages repeat what strangers wrote: names of files and columns, and errors of other packages.
    """
    if len(text) > LONGEST:  # what is wrong stands first, what to do last
        text = f"{text[: 2 * LONGEST // 3]}…{text[-LONGEST // 3 :]}"
    line = re.sub(r"\s*[\r\n]\s*", " ", text.strip())
    return "".join(
        letter.encode("unicode_escape").decode() if is_odd(letter) else letter for letter in line
    )


class _ReadableError(ValueError):
    """An error whose message is one line, perhaps followed by a few details, a line each."""

    def __init__(self, message: str, *details: str) -> None:
        super().__init__("\n  ".join(map(one_line, (message, *details))))


class UsageError(_ReadableError):
    """A user's mistake. The message says what is wrong and what to do. Exit code 2."""


class BusyError(UsageError):
    """Another process is working on the same run."""


class NonFiniteLossError(RuntimeError):
    """A loss or gradient is not finite. The update was not made; the last good state is kept."""

    def __init__(self, what: str, epoch: int, step: int, ids: Sequence[str]) -> None:
        shown = ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
        super().__init__(
            f"the {what} is not finite at epoch {epoch}, step {step}; samples: {shown}. "
            "The last good state is kept, but resuming would end here again: start a new run with "
            "a smaller optimizer.lr, train.clip_norm=1 or a smaller regularizer.weight."
        )
        self.epoch, self.step, self.ids = epoch, step, list(ids)


class InterruptedRunError(RuntimeError):
    """A signal stopped the run after its state was saved."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


class LostProcessError(RuntimeError):
    """Another process of the same training failed, or does not answer."""


class ToldElsewhereError(LostProcessError):
    """The first process failed, and says why."""


class DamagedFileError(_ReadableError):
    """A file of a run is missing or damaged."""


class UnwritableFileError(OSError):
    """A file cannot be written, because a disk is full for example. What was there is kept."""

    def __init__(self, path: Path, reason: OSError) -> None:
        super().__init__(f"{path} cannot be written: {reason.strerror or reason}")
