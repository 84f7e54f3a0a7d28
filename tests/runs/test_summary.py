from __future__ import annotations

from unswayed.runs.summary import summarise
from unswayed.types import Metrics


def row(epoch, **numbers):
    return Metrics(epoch=epoch, lr=0.1, terms={}, flops=10, seconds=epoch + 1, **numbers)


def test_last_selected_and_oracle_are_kept_apart():
    rows = [
        row(0, test_accuracy=0.9, holdout_accuracy=0.5),
        row(1, test_accuracy=0.8, holdout_accuracy=0.6),
        row(2, test_accuracy=0.7, holdout_accuracy=0.6),
    ]
    found = summarise("mine", "ctrr", rows)
    picked = (found.last.epoch, found.selected.epoch, found.oracle_best.epoch)
    assert picked == (2, 1, 0)  # of equals, the first
    assert found.seconds == 3
    assert (found.name, found.method) == ("mine", "ctrr")


def test_without_holdout_and_test_set_there_is_only_the_last():
    found = summarise("mine", "ctrr", [row(0)])
    assert found.selected is None
    assert found.oracle_best is None
