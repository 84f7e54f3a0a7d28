"""The errors of this package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class UsageError(ValueError):
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


class DamagedFileError(ValueError):
    """A file of a run is missing or damaged."""


class UnwritableFileError(OSError):
    """A file cannot be written, because a disk is full for example. What was there is kept."""

    def __init__(self, path: Path, reason: OSError) -> None:
        super().__init__(f"{path} cannot be written: {reason.strerror or reason}")
