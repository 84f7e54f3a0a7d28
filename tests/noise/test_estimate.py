"""Estimates of the noise against literal transcriptions of their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unswayed.noise.estimate import (
    EASY,
    STEPS,
    SURE,
    compare_confident,
    confident_joint,
    confident_matrix,
    likely_strength,
    smoothed,
)


def literal(p, labels, classes):
    thresholds = []
    for j in range(classes):
        own = [p[i][j] for i in range(len(p)) if labels[i] == j]
        thresholds.append(sum(own) / len(own))
    counts = np.zeros((classes, classes))
    for i, row in enumerate(p):
        passing = [j for j in range(classes) if row[j] >= thresholds[j]]
        if passing:
            counts[labels[i], max(passing, key=lambda j: row[j])] += 1
    for j in range(classes):
        counts[j, j] = max(counts[j, j], 1)
    joint = np.zeros((classes, classes))
    for i in range(classes):
        joint[i] = counts[i] / counts[i].sum() * sum(label == i for label in labels)
    return counts, joint / joint.sum()


def test_the_joint_is_the_papers(generator):
    p = (2 * torch.randn(300, 4, generator=generator)).softmax(dim=1)
    labels = torch.randint(0, 4, (300,), generator=generator)
    expected = literal(p.tolist(), labels.tolist(), 4)
    for size in (300, 7):
        found = confident_joint(lambda size=size: iter(p.log().split(size)), labels, 4)
        assert np.allclose(found[0], expected[0])
        assert np.allclose(found[1], expected[1])


def test_a_class_without_samples_has_no_share(generator):
    p = torch.rand(50, 3, generator=generator).softmax(dim=1)
    labels = torch.randint(0, 2, (50,), generator=generator)
    _, joint = confident_joint(lambda: iter([p.log()]), labels, 3)
    assert joint[2].sum() == 0
    assert np.isclose(joint.sum(), 1)


def compared_literally(predicted, confidence, given, classes):
    """Rank the samples of each predicted class; count who differs, and fit a line."""
    differing, seen, counts = np.zeros(STEPS), np.zeros(STEPS), np.zeros((classes, classes))
    for label in range(classes):
        rows = sorted(
            (row for row in range(len(given)) if predicted[row] == label),
            key=lambda row: -confidence[row],
        )
        for place, row in enumerate(rows):
            rank = (place + 0.5) / len(rows)
            if rank < EASY:
                step = int(rank / EASY * STEPS)
                seen[step] += 1
                differing[step] += given[row] != label
            if rank < SURE:
                counts[given[row], label] += 1
    return differing, seen, counts


def test_confident_predictions_are_compared_class_by_class(rng):
    predicted, given = rng.integers(0, 3, 500), rng.integers(0, 3, 500)
    confidence = rng.random(500)
    found = compare_confident(predicted, confidence, given, 3)
    for mine, expected in zip(
        found, compared_literally(predicted, confidence, given, 3), strict=False
    ):
        assert np.allclose(mine, expected)
    x = EASY * (np.arange(STEPS) + 0.5) / STEPS
    slope, start = np.polyfit(x, found.differing / found.seen, 1, w=np.sqrt(found.seen))
    assert np.isclose(found.rate, min(start + max(slope, 0) * 0.5, found.differ), atol=2e-2)


def test_noise_that_knows_no_difficulty_is_told_exactly(rng):
    true = rng.integers(0, 4, 20_000)
    given = np.where(rng.random(20_000) < 0.3, (true + 1) % 4, true)
    confidence = rng.random(20_000)
    mistaken = confidence < 0.25  # the least confident quarter is guessed
    predicted = np.where(mistaken, rng.integers(0, 4, 20_000), true)
    found = compare_confident(predicted, confidence, given, 4)
    assert abs(found.rate - (given != true).mean()) < 0.02
    draws = [found.resampled(np.random.default_rng(seed)).rate for seed in range(50)]
    assert 0.002 < np.std(draws) < 0.02


def mislabelled(rng, matrix, each=300):
    """Return counts by given label and true class, of so many samples of each class."""
    return np.stack([rng.multinomial(each, row) for row in matrix], axis=1).astype(float)


def test_classes_that_differ_by_chance_alone_are_labelled_alike(rng):
    even = np.full((10, 10), 0.08) + 0.2 * np.eye(10)
    counts = mislabelled(rng, even)
    strength = likely_strength(counts)
    assert strength >= 500

    def error(strength):
        return np.sqrt(np.mean((smoothed(counts, strength).T - even) ** 2))

    assert error(strength) < error(1.0) / 2  # what counts alone would say


def test_classes_that_differ_are_labelled_in_their_own_way(rng):
    pairs = 0.6 * np.eye(10) + 0.4 * np.roll(np.eye(10), 1, axis=1)
    pairs[:5] = np.eye(10)[:5]
    counts = mislabelled(rng, pairs)
    strength = likely_strength(counts)
    assert strength < 5
    assert np.abs(smoothed(counts, strength).T - pairs).max() < 0.1


@pytest.mark.parametrize("counts", [np.zeros((3, 3)), np.diag([5.0, 0.0, 2.0])])
def test_without_wrong_labels_there_is_nothing_to_differ(counts):
    assert np.isfinite(likely_strength(counts))
    assert np.allclose(smoothed(counts, likely_strength(counts)), np.eye(3), atol=1e-6)


def test_the_matrix_of_confident_predictions(generator):
    true = torch.randint(0, 3, (6000,), generator=generator)
    flips = torch.rand(6000, generator=generator) < 0.25
    given = torch.where(flips & (true == 0), 1, true)
    p = torch.nn.functional.one_hot(true, 3).double() * 0.8 + 0.2 / 3
    matrix = confident_matrix(p, given)
    assert np.allclose(matrix.sum(axis=1), 1)
    assert np.allclose(matrix, [[0.75, 0.25, 0], [0, 1, 0], [0, 0, 1]], atol=0.03)
