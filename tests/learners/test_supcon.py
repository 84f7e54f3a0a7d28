from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from learners.parts import build, make_batch
from unswayed.learners.supcon import supcon_loss


def literal(u, labels, t):
    u = [x / x.norm() for x in u]
    total = 0.0
    for i in range(len(u)):
        others = [a for a in range(len(u)) if a != i]
        below = sum(math.exp(float(u[i] @ u[a]) / t) for a in others)
        positive = [p for p in others if labels[p] == labels[i]]
        each = [math.log(math.exp(float(u[i] @ u[p]) / t) / below) for p in positive]
        total -= sum(each) / len(positive)
    return total / len(u)


def test_is_the_papers_loss(generator):
    u = torch.randn(12, 5, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 3, (6,), generator=generator).repeat(2)
    found = supcon_loss(u, labels, 0.3).item()
    assert found == pytest.approx(literal(u, labels.tolist(), 0.3))


def test_with_every_image_its_own_class_it_is_nt_xent(generator):
    u1, u2 = torch.randn(2, 6, 4, generator=generator, dtype=torch.float64)
    u = F.normalize(torch.cat([u1, u2]), dim=1)
    logits = (u @ u.T / 0.5).fill_diagonal_(-torch.inf)
    partner = torch.arange(12).roll(6)
    expected = F.cross_entropy(logits, partner)
    assert supcon_loss(torch.cat([u1, u2]), torch.arange(6).repeat(2), 0.5).item() == pytest.approx(
        expected.item()
    )


def test_its_gradient_is_right_numerically(generator):
    u = torch.randn(6, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 1, 0, 0, 1, 0])
    assert torch.autograd.gradcheck(lambda x: supcon_loss(x, labels, 0.2), u)


def test_an_anchor_without_a_partner_costs_nothing():
    assert torch.isfinite(supcon_loss(torch.eye(3), torch.tensor([0, 1, 1])))


def test_the_head_sends_nothing_back_to_the_backbone(generator):
    learner, batch = build("supcon"), make_batch(generator)
    again = build("supcon")
    u = torch.cat(
        [
            again.projector(again.classifier.backbone(again.classifier.normalize(x)))
            for x in batch.views.strong
        ]
    )
    supcon_loss(u, batch.labels.repeat(2), 0.1).backward()
    alone = again.classifier.backbone.convs[0].weight.grad
    learner(batch).total.backward()
    assert torch.allclose(learner.classifier.backbone.convs[0].weight.grad, alone)
