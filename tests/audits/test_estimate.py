"""The confident joint against a literal transcription of its definition."""

from __future__ import annotations

import numpy as np
import torch

from unswayed.noise.estimate import confident_joint


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
