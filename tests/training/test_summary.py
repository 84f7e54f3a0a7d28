from __future__ import annotations

from unswayed.training.summary import summarise


def test_last_selected_and_oracle_are_kept_apart():
    rows = [
        {"epoch": 0, "test_accuracy": 0.9, "holdout_accuracy": 0.5, "seconds": 1},
        {"epoch": 1, "test_accuracy": 0.8, "holdout_accuracy": 0.6, "seconds": 2},
        {"epoch": 2, "test_accuracy": 0.7, "holdout_accuracy": 0.6, "seconds": 3},
    ]
    found = summarise(rows)
    picked = {k: found[k]["epoch"] for k in ("last", "selected", "oracle_best")}
    assert picked == {"last": 2, "selected": 1, "oracle_best": 0}  # of equals, the first
    assert found["seconds"] == 3


def test_without_holdout_and_test_set_there_is_only_the_last():
    found = summarise([{"epoch": 0, "seconds": 1}])
    assert found["selected"] is None
    assert found["oracle_best"] is None
