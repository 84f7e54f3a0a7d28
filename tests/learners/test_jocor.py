from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from learners.parts import B, build, make_batch
from unswayed.learners.jocor import disagreement


@pytest.fixture
def batch(generator):
    return make_batch(generator, epoch=4)


def literal(batch, first, second, weight, keep):
    joint = []
    for a, b, y in zip(first.tolist(), second.tolist(), batch.labels.tolist(), strict=True):
        p = [math.exp(x) / sum(map(math.exp, a)) for x in a]
        q = [math.exp(x) / sum(map(math.exp, b)) for x in b]
        kl = sum(u * math.log(u / v) + v * math.log(v / u) for u, v in zip(p, q, strict=True))
        joint.append((1 - weight) * (-math.log(p[y]) - math.log(q[y])) + weight * kl)
    return sum(sorted(joint)[:keep]) / keep


def test_is_the_joint_loss_over_the_samples_where_it_is_small(batch):
    learner = build("jocor", noise_rate=0.5, gradual=8, weight=0.7).eval()
    first, second = (net(batch.views.weak[0]).detach() for net in learner.classifier.members)
    expected = literal(batch, first, second, 0.7, int((1 - 0.25) * B))
    assert learner(batch).total.item() == pytest.approx(expected)


def test_without_agreement_and_forgetting_it_is_two_networks_with_cross_entropy(batch):
    learner = build("jocor", noise_rate=0.0, weight=0.0).eval()
    expected = sum(
        F.cross_entropy(net(batch.views.weak[0]), batch.labels)
        for net in learner.classifier.members
    )
    assert learner(batch).total.item() == pytest.approx(expected.item())


def test_equal_predictions_do_not_disagree(generator):
    logits = torch.randn(5, 4, generator=generator)
    assert disagreement(logits, logits + 3).abs().max() < 1e-6
    assert (disagreement(logits, logits.flip(1)) >= 0).all()
