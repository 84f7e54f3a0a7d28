"""A run cannot be lost: what a trainer does, kept on disk as it happens.

The order of writes makes any moment safe. An epoch's records, selected weights and metrics row
are written before the checkpoint that counts them; on resume, whatever is newer than the
checkpoint is forgotten and trained again, to the same bits.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from unswayed.errors import InterruptedRunError
from unswayed.training import files
from unswayed.training.run import Run
from unswayed.training.summary import best_row
from unswayed.training.trainer import Trainer
from unswayed.types import Epoch, Step

STOPPING = b"unswayed: stopping after this step and saving; press Ctrl-C again to stop now\n"


class StopRequest:
    """Set by the first SIGINT or SIGTERM; a second SIGINT interrupts at once."""

    signal_number = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Note the signal."""
        if self.signal_number and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal_number = number
        # Of a grid, the process that watches the workers says it for all.
        if number == signal.SIGINT and multiprocessing.parent_process() is None:
            with suppress(OSError):  # print is not safe here: it may be what was interrupted
                os.write(2, b"\n" * os.isatty(2) + STOPPING)


@contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """Catch SIGINT and SIGTERM inside the block; outside the main thread nothing is caught."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, request) for number in numbers}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def durable(
    trainer: Trainer, run: Run, rows: Sequence[Mapping[str, Any]], stop: StopRequest
) -> Iterator[Step | Epoch]:
    """Yield the trainer's events after what they changed has been kept.

    Args:
        trainer: trained to its end.
        run: where it is kept.
        rows: metrics of the epochs that are done.
        stop: asks to save and leave.
    """

    def save() -> None:
        tensors, plain = trainer.state()
        run.write_checkpoint(tensors, {**plain, "metrics": rows})

    rows = list(rows)
    saved = time.monotonic()
    for event in trainer.events():
        if isinstance(event, Epoch):
            _keep_epoch(trainer, run, event, rows)
        minutes = (time.monotonic() - saved) / 60
        if isinstance(event, Epoch) or minutes >= trainer.settings.checkpoint_minutes:
            save()
            saved = time.monotonic()
        yield event
        if stop.signal_number and trainer.epoch < trainer.settings.epochs:
            save()
            where = f"epoch {trainer.epoch + 1}, step {trainer.step_in_epoch}"
            raise InterruptedRunError(
                f"stopped at {where}; nothing is lost. Go on with: unswayed resume {run.path}",
                stop.signal_number,
            )


def _keep_epoch(trainer: Trainer, run: Run, event: Epoch, rows: list[Mapping[str, Any]]) -> None:
    row = dict(event.metrics)
    rows.append(row)
    run.write_records(event.epoch, trainer.finished)
    if best_row(rows, "holdout_accuracy") is row:
        run.write_selected(event.epoch, trainer.classifier)
    files.append_json_line(run.path / "metrics.jsonl", row)
