from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unswayed
from exports.examples import decide, trained
from unswayed import UsageError
from unswayed.exports.gain import Gain, difference, gain, held_out_by_both

SMALL = ("data.size=8", "data.test_fraction=0.5")


def test_the_interval_is_that_of_agresti_and_min():
    before = np.array([True] * 53 + [True] * 8 + [False] * 16 + [False] * 9)
    after = np.array([True] * 53 + [False] * 8 + [True] * 16 + [False] * 9)
    found = difference(before, after)
    assert (found.images, found.before, found.after) == (86, 61 / 86, 69 / 86)
    # By hand: (16.5 - 8.5) / 88 = 0.0909, and 1.96 √(25 - 8² / 88) / 88 = 0.1097.
    assert (found.low, found.high) == pytest.approx((-0.0188, 0.2006), abs=1e-4)
    assert not found.is_clear
    assert str(found) == (
        "70.9 % -> 80.2 % of 86 images (+9.3 points, 95 % interval -1.9 to +20.1): no difference "
        "can be told"
    )


def test_a_clear_difference_and_one_the_other_way():
    better = difference(np.zeros(50, bool), np.ones(50, bool))
    assert better.is_clear
    assert better.low > 0.8
    assert "no difference" not in str(better)
    assert difference(np.ones(50, bool), np.zeros(50, bool)).high < 0


def test_networks_that_agree_everywhere_are_not_certain():
    same = difference(np.ones(20, bool), np.ones(20, bool))
    assert same.low == -same.high
    assert same.high == pytest.approx(1.96 / 22)


def test_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(2000):
        hard = rng.random(60)
        before, after = (hard + 0.3 * rng.random(60) < level for level in (0.9, 1.0))
        found = difference(before, after)
        hits += found.low <= 0.1 <= found.high
    big = rng.random(10**6)
    before, after = (big + 0.3 * rng.random(10**6) < level for level in (0.9, 1.0))
    assert after.mean() - before.mean() == pytest.approx(0.1, abs=0.003)
    assert 0.93 < hits / 2000 < 0.98


def test_two_runs_are_compared_on_images_that_neither_was_trained_on(tmp_path):
    before = trained(tmp_path / "before", *SMALL, "noise.name=symmetric", "noise.rate=0.4")
    for row in range(8):
        decide(before, row, "relabel", run_true(before, row)) if wrong(before, row) else None
    decide(before, 9, "remove")
    file = unswayed.export(before).path
    words = (f"data.corrected={file}", "noise.name=none")
    after = unswayed.train(before.recipe.with_overrides(*words), run=tmp_path / "after")
    rows = held_out_by_both(before, after)
    ids = before.samples().ids[rows]
    assert len(rows) > 50
    assert set(ids) == held(before) & held(after)
    found = gain(before, after)
    assert found.test.before == before.summary.last.test_accuracy
    assert found.test.after == after.summary.last.test_accuracy
    assert found.holdout.images == len(rows)
    given, guess = before.samples().given[rows], before.predictions().logits.argmax(1).numpy()[rows]
    assert found.holdout.before == pytest.approx((guess == given).mean())
    words = str(found)
    assert "test set, before -> after: " in words
    assert "neither network was trained on, judged by their original labels, of which some" in words
    assert "another seed may differ more" in words


def held(run):
    samples = run.samples()
    return set(samples.ids[samples.holdout].tolist())


def wrong(run, row):
    return run.samples().given[row] != run.samples().true[row]


def run_true(run, row):
    return run.provenance.data.classes[run.samples().true[row]]


def test_nothing_to_compare_on_is_said():
    assert str(Gain(None, None)) == "there are no images on which the networks can be compared"


def test_other_classes_are_refused(tmp_path, monkeypatch):
    run = trained(tmp_path / "run", "data.size=8", "data.test_fraction=0.97")
    other = unswayed.Run(run.path)
    data = run.data()
    classes = tuple(f"c{name}" for name in data.train.classes)
    data = data._replace(
        train=replace(data.train, classes=classes), test=replace(data.test, classes=classes)
    )
    other = unswayed.train(run.recipe, data=data, run=tmp_path / "other")
    with pytest.raises(UsageError, match="different classes"):
        gain(run, other)
