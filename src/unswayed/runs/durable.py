"""Write a training to disk while it runs, so that it can be interrupted at any moment.

An epoch's records, selected weights and metrics are written first, the checkpoint that counts them
last. On resume, everything newer than the checkpoint is removed and trained
again, to the same bits.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from unswayed.errors import InterruptedRunError, LostProcessError
from unswayed.processes import copied_from_first, count, first_does, from_first, is_first, largest
from unswayed.runs.run import Run
from unswayed.runs.summary import best
from unswayed.training.trainer import Trainer
from unswayed.types import Epoch, Metrics, Step

STOPPING = b"unswayed: stopping after this step and saving; press Ctrl-C again to stop now\n"


ECHO_SECONDS = 2.0
"""Ctrl-C reaches a process from the terminal and, a moment later, from torchrun."""


class StopRequest:
    """Remembers the first SIGINT or SIGTERM. A second SIGINT interrupts at once."""

    signal_number = 0
    at = 0.0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.signal_number and number == signal.SIGINT:
            if count() > 1 and time.monotonic() - self.at < ECHO_SECONDS:
                return
            raise KeyboardInterrupt
        self.signal_number, self.at = number, time.monotonic()
        # Of a grid, the process that watches the workers says it for all.
        alone = multiprocessing.parent_process() is None and is_first()
        if number == signal.SIGINT and alone:
            with suppress(OSError):  # print is not safe here: it may be what was interrupted
                os.write(2, b"\n" * os.isatty(2) + STOPPING)


@contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """Catch SIGINT and SIGTERM inside the block; in other threads than the main one, do nothing."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, request) for number in numbers}
    try:
        yield request
    except LostProcessError:
        # torchrun ends the other processes at once, and one of them has yet to say why.
        before[signal.SIGTERM] = signal.SIG_IGN
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def durable(trainer: Trainer, run: Run, stop: StopRequest) -> Iterator[Step | Epoch]:
    """Train to the end, and yield each event after its changes are on disk.

    Args:
        trainer: starts from the run's newest state.
        run: the folder to write to.
        stop: if it holds a signal, the state is saved and the training stops.
    """
    rows = _restore(trainer, run)
    writes = is_first()

    def save() -> None:
        if not writes:
            return
        tensors, plain = trainer.state()
        known = [row.model_dump(exclude_none=True) for row in rows]
        run.write_checkpoint(tensors, {**plain, "metrics": known})

    saved = time.monotonic()
    for event in trainer.events():
        if isinstance(event, Epoch):
            rows.append(event.metrics)
            if writes:
                _keep_epoch(trainer, run, event, rows)
        minutes = (time.monotonic() - saved) / 60
        # A clock that was set back would otherwise put the next checkpoint off.
        due = not 0 <= minutes < trainer.settings.checkpoint_minutes
        if isinstance(event, Epoch) or due:
            save()
            saved = time.monotonic()
        yield event
        if trainer.epoch == trainer.settings.epochs:
            continue
        if number := largest(stop.signal_number):
            save()
            where = f"epoch {trainer.epoch + 1}, step {trainer.step}"
            raise InterruptedRunError(
                f"stopped at {where}; nothing is lost. Go on with: unswayed resume {run.path}",
                number,
            )


def _restore(trainer: Trainer, run: Run) -> list[Metrics]:
    """Load the newest good state, and return the metrics up to it."""
    tensors, plain, damaged = first_does(run.newest_state) or ({}, {}, [])
    tensors, plain = copied_from_first(tensors), from_first(plain)
    for name in damaged:
        where = "from an older state" if tensors else "from the start"
        warnings.warn(
            f"the checkpoint {name} is damaged and was set aside; going on {where}", stacklevel=2
        )
    if tensors:
        trainer.load_state(tensors, plain)
    rows = [Metrics(**row) for row in plain.get("metrics", [])]
    first_does(lambda: run.rewind(trainer.epoch, rows, keep=bool(damaged)))
    return rows


def _keep_epoch(trainer: Trainer, run: Run, event: Epoch, rows: Sequence[Metrics]) -> None:
    run.write_records(event.epoch, event.records)
    if best(rows, "holdout_accuracy") is event.metrics:
        run.write_selected(event.epoch, trainer.classifier)
    run.append_metrics(event.metrics)
