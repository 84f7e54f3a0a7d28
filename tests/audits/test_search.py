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
from unswayed.audits.search import judge
from unswayed.types import Records

EVIDENCES = [name for name in EVIDENCE.names() if name != "dynamics"]  # it needs a training


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


@pytest.mark.parametrize("name", EVIDENCES)
def test_every_evidence_finds_wrong_labels(rng, name):
    features, given, true = blobs(rng, rate=0.15)
    found = find_wrong_labels(
        given, features=features, logits=logits_of(features, 4), evidence=name
    )
    wrong = given != true
    assert found.evidence == name
    assert wrong[found.order[: int(wrong.sum())]].mean() > 0.9


def test_training_dynamics_find_what_the_last_network_has_memorised(rng):
    _, given, true = blobs(rng, 600, rate=0.2)
    wrong = torch.from_numpy(given != true)
    of_given = torch.stack([torch.where(wrong, p, 0.9) for p in (0.05, 0.3, 0.95)])
    highest = torch.maximum(of_given, 1 - of_given)
    predicted = torch.where(of_given > 0.5, torch.from_numpy(given), torch.from_numpy(true)).int()
    records = Records(-of_given.log(), of_given, highest, of_given, predicted)
    memorised = torch.from_numpy(8.0 * np.eye(4)[given])
    inputs = Inputs(given, 4, memorised, None, np.ones(600, bool), records)
    found = judge(inputs, [str(row) for row in range(600)], list("abcd"), "dynamics")
    assert wrong.numpy()[found.order[: int(wrong.sum())]].mean() > 0.95
    assert (found.suggested == true)[wrong.numpy()].mean() > 0.95


@pytest.mark.parametrize("name", EVIDENCES)
def test_pieces_change_no_bit(rng, name, monkeypatch):
    features, given, _ = blobs(rng, 300)
    inputs = {"features": features, "logits": logits_of(features, 4), "evidence": name}
    whole = find_wrong_labels(given, **inputs)
    monkeypatch.setattr("unswayed.audits.evidence.ROWS", 64)
    monkeypatch.setattr("unswayed.audits.evidence.neighbours.BLOCK", 100)
    pieces = find_wrong_labels(given, **inputs)
    assert np.array_equal(whole.p_wrong, pieces.p_wrong)
    assert np.array_equal(whole.suggested, pieces.suggested)


@pytest.mark.parametrize("name", EVIDENCES)
def test_a_permutation_of_the_rows_permutes_the_answer(rng, name):
    features, given, _ = blobs(rng, 300)
    logits = logits_of(features, 4)
    order = rng.permutation(len(given))
    found = find_wrong_labels(given, logits=logits, features=features, evidence=name)
    permuted = find_wrong_labels(
        given[order], logits=logits[order], features=features[order], evidence=name
    )
    # The heads are fitted by an iteration whose sums run over the rows.
    tolerance = 2e-3 if name == "heads" else 1e-6
    assert permuted.p_wrong == pytest.approx(found.p_wrong[order], abs=tolerance)
    assert np.array_equal(permuted.suggested, found.suggested[order])
    assert permuted.noise.rate == pytest.approx(found.noise.rate, abs=1e-9)


@pytest.mark.parametrize("name", EVIDENCES)
def test_a_permutation_of_the_classes_permutes_the_answer(rng, name):
    features, given, _ = blobs(rng, 300)
    logits = logits_of(features, 4)
    new = rng.permutation(4)  # class k is now called new[k]
    found = find_wrong_labels(given, logits=logits, features=features, evidence=name)
    permuted = find_wrong_labels(
        new[given], logits=logits[:, np.argsort(new)], features=features, evidence=name
    )
    assert permuted.p_wrong == pytest.approx(found.p_wrong, abs=1e-3)
    assert np.array_equal(permuted.suggested, new[found.suggested])
    assert permuted.noise.joint[np.ix_(new, new)] == pytest.approx(found.noise.joint, abs=1e-3)


@pytest.mark.parametrize("name", EVIDENCES)
def test_exact_duplicates_change_nothing_else(rng, name):
    features, given, _ = blobs(rng, 300)
    logits = logits_of(features, 4)
    copies = np.concatenate([np.arange(300), np.repeat([0, 7, 8], 30)])
    found = find_wrong_labels(given, logits=logits, features=features, evidence=name)
    more = find_wrong_labels(
        given[copies], logits=logits[copies], features=features[copies], evidence=name
    )
    assert np.array_equal(more.p_wrong, found.p_wrong[copies])
    assert more.noise.rate == found.noise.rate
    assert "duplicate" in more.flags[7]
    assert {word for row in range(9, 300) for word in more.flags.get(row, "").split()} == {
        word for row in range(9, 300) for word in found.flags.get(row, "").split()
    }


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


@pytest.mark.parametrize(
    ("count", "classes", "rate"),
    [(150, 4, 0.2), (800, 2, 0.2), (3000, 100, 0.1), (1200, 4, 0.6), (800, 4, 0.0), (12, 2, 0.0)],
)
def test_honest_answers_at_the_edges(rng, count, classes, rate):
    """Few samples, two classes, a hundred, no wrong label, most of them wrong."""
    spread = 0.5 if classes == 100 else 1.0
    features, given, true = blobs(rng, count, classes, rate, spread, max(8, classes))
    found = find_wrong_labels(given, features=features, classes=[str(k) for k in range(classes)])
    wrong = given != true
    assert found.noise.low <= wrong.mean() <= found.noise.high
    assert found.noise.rate == pytest.approx(wrong.mean(), abs=0.08)
    assert found.p_wrong.mean() == pytest.approx(found.noise.rate, abs=0.02)
    assert any("are few" in warning for warning in found.warnings) == (count < 1000)
    if rate:
        assert wrong[found.order[: int(wrong.sum())]].mean() > 0.85


def test_a_class_of_two_is_neither_all_flagged_nor_never(rng):
    features, given, _ = blobs(rng, 600, classes=4, rate=0.1)
    centre = np.zeros((2, 8), np.float32)
    centre[:, 6] = 8
    features = np.concatenate([features, centre + rng.normal(size=(2, 8)).astype(np.float32) / 4])
    rare = np.concatenate([given, [4, 4]])
    right = find_wrong_labels(rare, features=features, classes=list("abcde"))
    rare[-1] = 0  # one of the two has a wrong label now
    one = find_wrong_labels(rare, features=features, classes=list("abcde"))
    assert any("fewer than 5 samples: e" in warning for warning in right.warnings)
    assert right.p_wrong[-2:].max() < 0.9
    assert one.p_wrong[-1] > np.median(one.p_wrong)


def test_class_dependent_noise_is_found_by_its_pairs(rng):
    """A third of class 0 is labelled 1; nothing else is ever wrong."""
    features, given, true = blobs(rng, 1500, rate=0.0)
    wrong = (true == 0) & (rng.random(1500) < 0.3)
    given = np.where(wrong, 1, true)
    found = find_wrong_labels(given, features=features, logits=logits_of(features, 4))
    assert found.noise.matrix[0, 1] == pytest.approx(wrong.sum() / (true == 0).sum(), abs=0.1)
    assert found.noise.matrix[2, 3] < 0.03
    assert found.worst_pairs(1)[0][:2] == ("1", "0")
    assert (found.noise.joint_low <= found.noise.joint).all()
    assert (found.noise.joint <= found.noise.joint_high).all()
    real = np.zeros((4, 4))
    np.add.at(real, (given, true), 1 / 1500)
    inside = (found.noise.joint_low <= real) & (real <= found.noise.joint_high)
    assert inside.mean() > 0.8


def test_few_samples_and_rare_classes_are_told(rng):
    features, given, _ = blobs(rng, 60, rate=0.0)
    given[0] = 4
    found = find_wrong_labels(given, features=features, classes=["a", "b", "c", "d", "rare"])
    assert any("60 samples are few" in warning for warning in found.warnings)
    assert any("rare" in warning for warning in found.warnings)


def test_a_weak_model_says_that_its_own_mistakes_look_like_wrong_labels(rng):
    features, given, true = blobs(rng, 2000, rate=0.1, spread=3.0)
    found = find_wrong_labels(given, features=features)
    assert found.noise.low <= (given != true).mean() <= found.noise.high
    assert any("the model is weak" in warning for warning in found.warnings)


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
    assert found.noise.rate == pytest.approx(0.2, abs=0.08)
    assert len(found) == len(samples.ids)
