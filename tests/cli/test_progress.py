from __future__ import annotations

import io
import re
import time

import pytest
from rich.console import Console

from unswayed.cli import progress
from unswayed.cli.loading import clock
from unswayed.cli.progress import Watcher, fitted
from unswayed.types import Epoch, Metrics, Step

TITLE = "dividemix + ctrr (simsiam), seed 0"
METRICS = Metrics(
    epoch=0,
    test_accuracy=0.973,
    holdout_accuracy=0.881,
    wrong_as_given=0.12,
    lr=0.1,
    terms={},
    flops=0,
    seconds=1.0,
)
BARE = Metrics(epoch=99, lr=0.1, terms={}, flops=0, seconds=1.0)
NUMBERS = progress.brief(METRICS)
PLACE, TIMES = "epoch 99/100 step 1200/3900", "ETA 1 h 05 min"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0:00"),
        (7.6, "0:08"),
        (128, "2:08"),
        (3599.6, "1 h 00 min"),
        (3900, "1 h 05 min"),
        (86400, "24 h 00 min"),
    ],
)
def test_times_are_as_people_write_them(seconds, words):
    assert clock(seconds) == words


@pytest.mark.parametrize("width", [42, 50, 60, 70, 80, 100, 120, 200])
@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_the_line_fits_and_says_where_and_how_long(width, share):
    line = fitted(width, TITLE, PLACE, NUMBERS, TIMES, share)
    assert line.cell_len <= width
    assert PLACE in line.plain
    assert line.plain.endswith(TIMES)


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (42, f"{PLACE} {TIMES}"),
        (53, f"{PLACE} test 97.3% {TIMES}"),
        (65, f"dividemix … {PLACE} test 97.3% {TIMES}"),
        (90, f"{TITLE} {PLACE} test 97.3% {TIMES}"),
        (97, f"dividemix … {PLACE} test 97.3% hold-out 88.1% memorised 12.0% {TIMES}"),
    ],
)
def test_what_there_is_no_room_for_goes_in_order(width, line):
    shown = fitted(width, TITLE, PLACE, NUMBERS, TIMES, 0.5).plain
    assert re.sub("━+ ", "", shown) == line


def test_the_bar_takes_the_rest():
    plain = fitted(80, "ce", "epoch 3/10", ["test 97.3%"], "ETA 0:08", 0.3).plain
    assert plain == f"ce {30 * '━'} epoch 3/10 test 97.3% ETA 0:08"


class Clock:
    """A time that moves when it is told to."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


def terminal(monkeypatch, width=80):
    """Return a watcher that believes in a terminal, and the moving clock."""
    clock, watcher = Clock(monkeypatch), Watcher("ce")
    watcher.console = Console(file=io.StringIO(), force_terminal=True, width=width)
    monkeypatch.setattr(watcher.bar, "start", lambda: None)
    return watcher, clock


def test_the_first_epoch_is_shown_in_steps(monkeypatch):
    watcher, clock = terminal(monkeypatch)
    watcher(Step(epoch=0, step=1, steps=4, epochs=5, loss=1.0))
    assert watcher._line().plain.endswith("epoch 1/5 step 1/4 ETA –")
    clock.now += 0.1
    watcher(Step(epoch=0, step=2, steps=4, epochs=5, loss=1.0))
    assert watcher._line().plain.endswith("epoch 1/5 step 2/4 ETA 0:02")


def test_short_epochs_are_shown_without_steps_and_long_ones_with_them(monkeypatch):
    watcher, clock = terminal(monkeypatch)
    watcher(Step(epoch=0, step=1, steps=4, epochs=5, loss=1.0))
    watcher(Epoch(epoch=0, epochs=5, metrics=METRICS, records=None))
    clock.now += 1
    watcher(Step(epoch=1, step=1, steps=4, epochs=5, loss=1.0))
    assert "epoch 2/5 test 97.3%" in watcher._line().plain
    clock.now += 5
    watcher(Step(epoch=1, step=2, steps=4, epochs=5, loss=1.0))
    assert "epoch 2/5 step 2/4 test 97.3%" in watcher._line().plain


def test_what_is_finished_has_taken_its_time_and_has_no_eta(monkeypatch):
    watcher, clock = terminal(monkeypatch)
    watcher(Step(epoch=0, step=1, steps=1, epochs=1, loss=1.0))
    clock.now += 128
    watcher(Epoch(epoch=0, epochs=1, metrics=METRICS, records=None))
    plain = watcher._line().plain
    assert plain.endswith("took 2:08")
    assert plain.count("2:08") == 1
    assert "ETA" not in plain


def test_without_a_terminal_there_is_a_line_now_and_then(monkeypatch, capsys):
    clock = Clock(monkeypatch)
    with Watcher("ce") as watcher:
        for step in range(1, 9):
            watcher(Step(epoch=0, step=step, steps=8, epochs=100, loss=1.0))
            clock.now += 5
        watcher(Epoch(epoch=99, epochs=100, metrics=BARE, records=None))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "ce: epoch 1/100 step 3/8 ETA 1 h 06 min"
    assert len(lines) == 4
    assert lines[-1] == "ce: epoch 100/100 took 0:40"
