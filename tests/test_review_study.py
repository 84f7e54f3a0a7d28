"""The study of what reviewing buys: its reviewer, its orders, its bookkeeping and its tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import review_tables as tables
from audit_settings import Setting, ours
from review_simulation import (
    ERROR,
    Reviewer,
    _statements,
    bookkeeping,
    cleanlab_order,
    corrected,
    even_order,
    random_order,
    walk,
)
from review_trainings import retrained
from sklearn.metrics import average_precision_score

import review as study
from unswayed.audits.result import STOP, Audit, NoiseEstimate
from unswayed.review import Review

ROOT = Path(__file__).parents[1]
N, K = 600, 5


def test_the_reviewer_errs_in_two_percent_of_the_cases_and_anew_at_a_second_look():
    true = np.random.default_rng(0).integers(0, 10, 200_000)
    reviewer = Reviewer(true, 10, seed=1)
    errs, again = reviewer.first != true, reviewer.second != true
    assert errs.mean() == pytest.approx(ERROR, rel=0.05)
    assert again.mean() == pytest.approx(ERROR, rel=0.05)
    assert (errs & again).mean() == pytest.approx(ERROR**2, rel=0.4)
    steps = np.bincount((reviewer.first - true)[errs] % 10, minlength=10)
    assert steps[0] == 0
    assert steps[1:] / errs.sum() == pytest.approx(np.full(9, 1 / 9), abs=0.02)
    same = Reviewer(true, 10, seed=1)
    assert (same.first == reviewer.first).all()
    assert (Reviewer(true, 10, seed=2).first != reviewer.first).any()


@pytest.fixture(scope="module")
def labels():
    rng = np.random.default_rng(3)
    true = rng.integers(0, K, N)
    given = np.where(rng.random(N) < 0.3, rng.integers(0, K, N), true)
    return given, true


def test_label_noise_is_that_of_a_literal_loop(labels):
    given, true = labels
    reviewer = Reviewer(true, K, seed=0, error=0.3)
    order = random_order(N, 0)
    now, fixed, spoilt = given.tolist(), 0, 0
    for row in order[:200].tolist():
        now[row] = int(reviewer.first[row])
        fixed += given[row] != true[row] and now[row] == true[row]
        spoilt += given[row] == true[row] and now[row] != true[row]
    found = bookkeeping(corrected(given, order, reviewer, 200), given, true)
    wrong = sum(a != b for a, b in zip(now, true.tolist(), strict=True))
    assert found == {"noise": wrong / N, "corrected": fixed, "spoilt": spoilt}
    assert spoilt > 0


def test_any_order_shows_every_label_once_and_nothing_twice(labels):
    given, true = labels
    order = random_order(N, 4)
    assert sorted(order.tolist()) == list(range(N))
    assert not np.array_equal(order, random_order(N, 5))
    sure = Reviewer(true, K, 0, error=0)
    assert (corrected(given, order, sure, 0) == given).all()
    assert (corrected(given, order, sure, N) == true).all()
    changed = np.flatnonzero(corrected(given, order, sure, 50) != given)
    assert set(changed.tolist()) <= set(order[:50].tolist())


def test_classes_take_turns_in_an_even_order():
    given = np.array([0, 0, 1, 0, 2, 1])
    assert even_order(np.array([3, 1, 0, 5, 2, 4]), given).tolist() == [3, 5, 4, 1, 2, 0]


def test_the_order_of_cleanlab_is_that_of_its_best_score(labels):
    pytest.importorskip("cleanlab")
    from cleanlab.rank import get_label_quality_scores

    given, true = labels
    rng = np.random.default_rng(5)
    p = rng.random((N, K)).astype(np.float32)
    p[np.arange(N), true] += 1
    p /= p.sum(axis=1, keepdims=True)
    found = cleanlab_order(p, given, true)
    assert {"self_confidence", "normalized_margin", "confidence_weighted_entropy"} <= set(
        found.precision
    )
    method, _, adjusted = found.score.partition(", ")
    quality = get_label_quality_scores(given, p, method=method, adjust_pred_probs=bool(adjusted))
    assert (np.diff(quality[found.order]) >= -1e-6).all()
    best = max(found.precision.values())
    assert found.precision[found.score] == best
    assert best == pytest.approx(average_precision_score(given != true, -quality))


@pytest.fixture(scope="module")
def walked(labels, tmp_path_factory):
    """Review made-up labels whose audit is nearly right."""
    given, true = labels
    rng = np.random.default_rng(6)
    wrong = given != true
    p = np.clip(np.where(wrong, rng.beta(4, 1, N), rng.beta(1, 8, N)), 1e-4, 1 - 1e-4)
    square = np.zeros((K, K))
    found = Audit(
        ids=[f"{row}" for row in range(N)],
        classes=[f"class {label}" for label in range(K)],
        given=given,
        suggested=(given + 1) % K,
        p_wrong=p,
        p_suggested=p / 2,
        noise=NoiseEstimate(float(p.mean()), p.mean() - 0.05, p.mean() + 0.05, *[square] * 3),
        evidence="made up",
    )
    review = Review(found, tmp_path_factory.mktemp("review") / "journal.jsonl")
    reviewer = Reviewer(true, K, seed=0, error=0.1)
    return review, reviewer, walk(review, reviewer, true, (100, 250))


def test_a_review_asks_again_now_and_then_and_that_changes_no_label(walked, labels):
    review, reviewer, found = walked
    given, _ = labels
    now, asked = given.copy(), set()
    for done, event in enumerate(review.journal.events, start=1):
        row = int(event.id)
        answer = int(event.label.split()[-1]) if event.label else given[row]
        if event.how == "repeat":
            assert answer == reviewer.second[row]
            assert row in asked
        else:
            assert row not in asked
            asked.add(row)
            now[row] = answer
            assert answer == reviewer.first[row]
        if done in found.labels:
            assert (found.labels[done] == now).all()
    kinds = [event.how for event in review.journal.events]
    assert kinds.count("repeat") >= 2
    assert kinds.count("recheck") >= 4
    assert set(found.labels) == {0, 100, 250}


def test_promises_are_compared_with_the_truth(walked, labels):
    review, _, found = walked
    given, true = labels
    wrong = given != true
    assert [p["decisions"] for p in found.promises] == [0, 100, 250]
    first = found.promises[0]
    assert first["hidden"]["real"] == wrong.sum()
    assert first["recall"] is None
    above = review.found.p_wrong >= STOP
    last = found.promises[-1]
    assert last["recall"]["real"] == pytest.approx(wrong[above].sum() / wrong.sum())
    seen = {int(event.id) for event in review.journal.events[:250]}
    left = [row for row in range(N) if row not in seen]
    assert last["hidden"]["real"] == wrong[left].sum()
    hidden = last["hidden"]
    assert hidden["holds"] == (hidden["low"] <= hidden["real"] <= hidden["high"])
    assert last["noise"] == (found.labels[250] != true).mean()
    assert found.stop["to_stop"] == 0


def test_comments_do_not_make_a_review_another_one():
    one = '"""Say."""\nx = 1  # why\n\ndef f():\n    """Do."""\n    return x\n'
    assert _statements(one) == _statements("x = 1\n\n\ndef f():\n    return x\n")
    assert _statements(one) != _statements("x = 2\n\n\ndef f():\n    return x\n")


TINY = Setting(
    "tiny",
    "a few digits",
    "digits",
    ("train.epochs=2", "data.size=8", "noise.rate=0.2", "train.holdout=0.1", "train.threads=1"),
)


def test_only_labels_differ_between_the_first_training_and_those_after_a_review(tmp_path):
    base = ours(TINY, 3, tmp_path, None)
    samples = base.samples()
    same = retrained(base, TINY, 3, None, samples.given, tmp_path / "same")
    assert same.summary.last == base.summary.last
    assert same.summary.flops == base.summary.flops
    assert (same.samples().true == samples.true).all()
    right = retrained(base, TINY, 3, None, samples.true, tmp_path / "right")
    assert (right.samples().given == samples.true).all()
    assert right.summary.flops == base.summary.flops
    with pytest.raises(SystemExit, match="other labels"):
        retrained(base, TINY, 3, None, samples.given, tmp_path / "right")


def case_of(seed, accuracy, points):
    start = {"noise": 0.2, "corrected": 0, "spoilt": 0, "accuracy": {"last": accuracy}}
    hidden = {"value": 90.0, "low": 80.0, "high": 95.0, "real": 100.0, "holds": False}
    promise = {"decisions": 0, "hidden": hidden, "recall": None, "mistakes": None}
    promise["next_fifty"] = {"value": 0.9, "real": 1.0}
    return {
        "setting": "tiny",
        "title": "a few",
        "seed": seed,
        "samples": 1000,
        "wrong": 200,
        "start": start,
        "points": points,
        "cleanlab": {"score": "one", "ap_by_score": {"one": 0.5}},
        "promises": [promise],
        "stop": {},
    }


def point(order, decisions, noise, accuracy):
    found = {"order": order, "decisions": decisions, "noise": noise, "corrected": 9, "spoilt": 1}
    return {**found, "accuracy": None if accuracy is None else {"last": accuracy}}


def test_a_table_says_what_is_missing_and_how_many_seeds_a_cell_has():
    first = case_of(0, 0.8, [point("ours", 250, 0.18, 0.82), point("random", 250, 0.2, None)])
    second = case_of(1, 0.7, [point("ours", 250, 0.16, None), point("random", 250, 0.2, None)])
    text = tables.page([first, second])
    assert "| a few | ours | 20.00 ± 0.00 (2) | 17.00 ± 1.41 (2) | – | – |" in text
    assert "| a few | ours | 75.00 ± 7.07 (2) | 82.00 (1) | – | – | – |" in text
    assert "| a few | ours | +2.00 (1) | – | – |" in text  # 82 less 80, of one seed only
    assert "| a few | any order | – | – | – |" in text
    assert "| wrong labels still hidden | 0 of 2 | 0 of 2 |" in text


def test_what_is_not_trained_yet_is_told(tmp_path):
    lines = list(study.todo([TINY], 1, tmp_path, study.ORDERS))
    assert len(lines) == 1 + 11 + 1 + 1  # before, after, on the true labels, and the sum
    assert str(Path("tiny", "seed-0", "review", "ours-250")) in lines[1]


def test_the_committed_page_of_the_study_is_made_of_the_committed_numbers():
    results = ROOT / "results"
    cases = json.loads((results / "review.json").read_text(encoding="utf-8"))["cases"]
    assert (results / "review.md").read_text(encoding="utf-8") == tables.page(cases)


def test_the_page_of_the_study_shows_the_committed_numbers():
    cases = json.loads((ROOT / "results" / "review.json").read_text(encoding="utf-8"))["cases"]
    text = (ROOT / "docs" / "review-study.md").read_text(encoding="utf-8")
    for name in tables.shown(cases):
        assert f"<!-- {name} -->" in text
    assert tables.filled(text, cases) == text
    start = next(c["start"] for c in cases if (c["setting"], c["seed"]) == ("asymmetric-40", 0))
    assert f"the same {100 * start['accuracy']['last']:.2f} % (asymmetric, seed 0)" in text


def test_a_table_is_put_between_its_marks():
    case = case_of(0, 0.8, [point("ours", 250, 0.18, 0.82)])
    text = "one\n<!-- noise -->\nold\n<!-- end of noise -->\ntwo\n"
    found = tables.filled(text, [case])
    assert tables.shown([case])["noise"] in found
    assert "old" not in found
    assert found.startswith("one\n")
    assert found.endswith("\ntwo\n")
    assert tables.filled(found, [case]) == found
