"""Wrong labels that are known are found, with honest probabilities, by any evidence."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import torch

import unswayed
from unswayed import UsageError, find_wrong_labels
from unswayed.audits.evidence import EVIDENCE, Inputs
from unswayed.audits.opinion import opinion_of


def blobs(rng, count=600, classes=4, rate=0.1, spread=1.0, width=8):
    """Return features of separate classes, given and true labels."""
    true = rng.integers(0, classes, count)
    centres = 4 * np.eye(classes, width)
    features = centres[true] + spread * rng.normal(size=(count, width))
    given = true.copy()
    wrong = rng.random(count) < rate
    given[wrong] = (true[wrong] + rng.integers(1, classes, wrong.sum())) % classes
    return features.astype(np.float32), given, true


def logits_of(features, classes):
    """Return what an ideal network says."""
    centres = 4 * np.eye(classes, features.shape[1])
    return -0.5 * ((features[:, None] - centres[None]) ** 2).sum(axis=2)


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.4])
@pytest.mark.parametrize("what", ["features", "logits", "both"])
def test_wrong_labels_come_first_and_the_rate_is_told(rng, rate, what):
    features, given, true = blobs(rng, 1000, rate=rate)
    logits = logits_of(features, 4)
    inputs = {"features": features} if what != "logits" else {}
    inputs |= {"logits": logits} if what != "features" else {}
    found = find_wrong_labels(given, **inputs)
    wrong = given != true
    count = int(wrong.sum())
    assert wrong[found.order[:count]].mean() > 0.9
    assert found.noise.rate == pytest.approx(wrong.mean(), rel=0.15, abs=0.01)
    assert found.noise.low <= wrong.mean() <= found.noise.high
    assert found.expected_wrong(len(found)) == pytest.approx(count, rel=0.15, abs=15)
    right = found.suggested[wrong] == true[wrong]
    assert right.mean() > 0.9


def test_right_labels_are_left_alone(rng):
    features, given, _ = blobs(rng, 800, rate=0.0)
    found = find_wrong_labels(given, features=features)
    assert found.noise.rate < 0.02
    assert found.to_review < 20


@pytest.mark.parametrize("name", EVIDENCE.names())
def test_every_evidence_finds_wrong_labels(rng, name):
    features, given, true = blobs(rng, rate=0.15)
    found = find_wrong_labels(
        given, features=features, logits=logits_of(features, 4), evidence=name
    )
    wrong = given != true
    assert found.evidence == name
    assert wrong[found.order[: int(wrong.sum())]].mean() > 0.9


@pytest.mark.parametrize("name", EVIDENCE.names())
def test_pieces_change_no_bit(rng, name, monkeypatch):
    features, given, _ = blobs(rng, 200)
    inputs = [
        Inputs(given, 4, torch.from_numpy(logits_of(features, 4)), torch.from_numpy(features))
        for _ in range(2)
    ]
    whole = opinion_of(EVIDENCE.build(name), inputs[0])
    monkeypatch.setattr("unswayed.audits.evidence.CHUNK", 1000)
    pieces = opinion_of(EVIDENCE.build(name), inputs[1])
    for a, b in zip(whole, pieces, strict=True):
        assert torch.allclose(a.double(), b.double(), atol=1e-5)


def test_a_permutation_of_the_rows_permutes_the_answer(rng):
    features, given, _ = blobs(rng, 300)
    logits = logits_of(features, 4)
    order = rng.permutation(len(given))
    found = find_wrong_labels(given, logits=logits)
    permuted = find_wrong_labels(given[order], logits=logits[order])
    assert permuted.p_wrong == pytest.approx(found.p_wrong[order], abs=1e-3)
    assert np.array_equal(permuted.suggested, found.suggested[order])


def test_a_label_changed_to_the_suggestion_is_less_suspicious(rng):
    features, given, _ = blobs(rng, 300, rate=0.1)
    found = find_wrong_labels(given, features=features)
    for row in found.order[:3]:
        changed = given.copy()
        changed[row] = found.suggested[row]
        again = find_wrong_labels(changed, features=features)
        assert again.p_wrong[row] < found.p_wrong[row]


def test_a_network_that_has_memorised_is_not_believed(rng):
    """It defends every given label; the neighbours know better."""
    features, given, true = blobs(rng, 800, rate=0.2)
    memorised = 8.0 * np.eye(4)[given] + rng.normal(size=(800, 4))
    found = find_wrong_labels(given, features=features, logits=memorised, in_sample=True)
    wrong = given != true
    assert found.evidence != "network"
    assert wrong[found.order[: int(wrong.sum())]].mean() > 0.9


def test_odd_samples_have_words_of_their_own(rng):
    features, given, _ = blobs(rng, 400, rate=0.0)
    features = np.concatenate([features, features[:2], [[-50.0] * 8]])
    given = np.concatenate([given, [given[0], (given[1] + 1) % 4], [0]])
    found = find_wrong_labels(given, features=features.astype(np.float32))
    assert "duplicate" in found.flags[400]
    assert "conflict" in found.flags[401]
    assert "outlier" in found.flags[402]


def test_names_and_tables(rng, tmp_path):
    features, given, _ = blobs(rng, 400, classes=3)
    names = np.array(["cat", "dog", "=cow"])
    ids = [f"photo {row}.jpg" for row in range(len(given))]
    found = find_wrong_labels(names[given], features=features, ids=ids)
    first = next(iter(found))
    assert first.rank == 1
    assert first.given in names
    assert len(list(found)) == len(found) == 400
    assert f"{100 * found.noise.rate:.1f} %" in str(found)
    found.write(tmp_path / "labels.csv")
    rows = list(csv.DictReader((tmp_path / "labels.csv").read_text("utf-8").splitlines()))
    assert [row["id"] for row in rows] == [finding.id for finding in found]
    found.write(tmp_path / "labels.json")
    text = json.loads((tmp_path / "labels.json").read_text(encoding="utf-8"))
    assert text["labels"][0]["id"] == first.id
    assert text["summary"]["samples"] == 400
    found.write(tmp_path / "labels.parquet")
    with pytest.raises(UsageError, match="none of"):
        found.write(tmp_path / "labels.txt")


@pytest.mark.parametrize(
    ("labels", "more", "message"),
    [
        ([0, 1], {}, "nothing to judge"),
        ([0, 1], {"features": np.zeros((3, 2))}, "a row for each"),
        ([0, 1], {"features": np.full((2, 2), np.nan)}, "not finite"),
        ([0, 1], {"probabilities": np.ones((2, 2))}, "sum to one"),
        ([0, 1], {"probabilities": np.full((2, 3), 1 / 3)}, "2 classes, and 3 columns"),
        ([0, 0.5], {"features": np.zeros((2, 2))}, "integers"),
        ([0, 0], {"features": np.zeros((2, 2))}, "two classes"),
        (["a", "b"], {"features": np.zeros((2, 2)), "classes": ["a"]}, "none of the classes"),
        ([0, 1], {"features": np.zeros((2, 2)), "ids": ["x"]}, "1 ids"),
        ([0, 1] * 9, {"logits": np.zeros((18, 2)), "evidence": "heads"}, "cannot be used here"),
    ],
)
def test_bad_input_is_said_plainly(labels, more, message):
    with pytest.raises(UsageError, match=message):
        find_wrong_labels(labels, **more)


def test_few_samples_and_rare_classes_are_told(rng):
    features, given, _ = blobs(rng, 60, rate=0.0)
    given[0] = 4
    found = find_wrong_labels(given, features=features, classes=["a", "b", "c", "d", "rare"])
    assert any("60 samples are few" in warning for warning in found.warnings)
    assert any("rare" in warning for warning in found.warnings)


def test_a_model_that_guesses_is_told(rng):
    given = rng.integers(0, 5, 500)
    found = find_wrong_labels(given, logits=rng.normal(size=(500, 5)))
    assert any("hardly better than guessing" in warning for warning in found.warnings)


def test_the_labels_of_a_run_are_judged(tmp_path):
    words = ("data.size=8", "model.width=8", "train.epochs=8", "optimizer.lr=0.05")
    run = unswayed.train("digits", *words, "noise.rate=0.2", run=tmp_path / "run")
    found = unswayed.audit(run)
    samples = run.samples()
    wrong = samples.given != samples.true
    assert wrong[found.order[: int(wrong.sum())]].mean() > 0.8
    assert found.noise.rate == pytest.approx(0.2, abs=0.05)
    assert len(found) == len(samples.ids)
