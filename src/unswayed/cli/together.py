"""Run a verb in several processes that torchrun started: one of them speaks."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from unswayed.errors import (
    InterruptedRunError,
    LostProcessError,
    ToldElsewhereError,
    UsageError,
)

VERBS = ("train", "resume")

GRACE = 2.0
"""Seconds that a process waits for another one to say what happened."""


def is_torchrun() -> bool:
    """Return whether torchrun started this process; found out without importing PyTorch."""
    return "TORCHELASTIC_RUN_ID" in os.environ


@contextmanager
def together(verb: str) -> Iterator[None]:
    """Join the other processes inside the block; all but the first are silent there."""
    if not is_torchrun():
        yield
        return
    if verb not in VERBS:
        raise UsageError(
            f"unswayed {verb} runs in one process; torchrun is for {' and '.join(VERBS)}"
        )
    # PyTorch warns of what is meant to be: parameters that may be unused, and odd memory layouts.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
    from unswayed import processes

    processes.start()
    with processes.noticing():
        if processes.is_first():
            yield
        else:
            with (
                Path(os.devnull).open("w") as nowhere,
                redirect_stdout(nowhere),
                redirect_stderr(nowhere),
            ):
                yield
        processes.wait()  # not after an error: the others may never answer


def leave(code: int) -> None:
    """End this process, if torchrun started it."""
    if is_torchrun():
        from unswayed import processes

        processes.leave(code)


def speaks(error: BaseException) -> bool:
    """Return whether this process reports an error: the first one that fails does.

    A mistake in a recipe makes all processes fail, a lost one takes the others with it.
    """
    if not is_torchrun():
        return True
    from unswayed import processes

    if isinstance(error, ToldElsewhereError):
        return False
    if isinstance(error, InterruptedRunError):  # all stop, at the same step
        return processes.is_first()
    # A process that lost another one does not know why; the other one may.
    return processes.fails_first(after=GRACE if isinstance(error, LostProcessError) else 0)


def report(message: str) -> None:
    """Print an error in one line."""
    number = int(os.environ.get("RANK", "0")) if is_torchrun() else 0
    of = f"process {number}: " if number else ""
    print(f"unswayed: {of}{message}", file=sys.stderr)
