from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from learners.parts import B, K, build, make_batch
from unswayed.learners.elr_plus import rampup
from unswayed.learners.mixing import draw_mix


def remembered(learner):
    """Return (2 networks, N, K)."""
    return torch.stack([memory.values for memory in learner.memories])


@pytest.fixture
def batch(generator):
    return make_batch(generator)


def softmax(a):
    e = np.exp(a - a.max())
    return e / e.sum()


def literal(learner, batch, k, memory, weight, beta, sharpen=False):
    """One network's loss: targets from the other's average, images, labels and targets mixed."""
    x, y = batch.views.weak[0], batch.labels.tolist()
    peer = learner.average[1 - k](x).detach().numpy()
    t = np.zeros((B, K))
    for i in range(B):
        p = np.clip(softmax(peer[i]), 1e-4, 1 - 1e-4)
        t[i] = beta * memory[i] + (1 - beta) * p / p.sum()
    mix = draw_mix(batch, 1.0, 5, f"elr+ {k}")
    a, partner = mix.share, mix.partner.tolist()
    logits = learner.online[k](a * x + (1 - a) * x[partner]).detach().numpy()
    total = 0.0
    for i in range(B):
        j, p = partner[i], softmax(logits[i])
        target = a * t[i] + (1 - a) * t[j]
        label = a * np.eye(K)[y[i]] + (1 - a) * np.eye(K)[y[j]]
        if sharpen:
            label = label * target / (label * target).sum()
        total -= (label * np.log(p)).sum()
        total += weight * math.log(1 - target @ np.clip(p, 1e-4, 1 - 1e-4))
    return total / B, t


@pytest.mark.parametrize("sharpen", [False, True])
def test_each_network_learns_what_the_others_average_remembers(batch, generator, sharpen):
    learner = build("elr_plus", weight=3.0, beta=0.7, sharpen_labels=sharpen).eval()
    for each in learner.memories:
        each.values.uniform_(0, 1 / K, generator=generator)
    memory = remembered(learner)[:, batch.index].numpy()
    expected = [literal(learner, batch, k, memory[k], 3.0, 0.7, sharpen)[0] for k in (0, 1)]
    assert learner(batch).total.item() == pytest.approx(sum(expected))


def test_the_memory_moves_in_training_only_and_by_sample(batch):
    learner = build("elr_plus")
    before = remembered(learner)
    learner.eval()(batch)
    assert torch.equal(remembered(learner), before)
    learner.train()(batch)
    moved = (remembered(learner) != before).any(dim=2).any(dim=0).nonzero().squeeze(1)
    assert moved.tolist() == sorted(batch.index.tolist())


def test_without_the_regularizer_it_is_mixup_of_two_networks(batch):
    learner = build("elr_plus", weight=0.0).eval()
    expected = 0.0
    for k in (0, 1):
        mix = draw_mix(batch, 1.0, 5, f"elr+ {k}")
        logits = learner.online[k](mix(batch.views.weak[0]))
        y = batch.labels
        expected += mix.share * F.cross_entropy(logits, y)
        expected += (1 - mix.share) * F.cross_entropy(logits, y[mix.partner])
    assert learner(batch).total.item() == pytest.approx(expected.item())


def test_averages_follow_the_networks_and_get_no_gradient(batch):
    learner = build("elr_plus", decay=0.9)
    with torch.no_grad():
        learner.online[1].head.weight.add_(1.0)
    before = learner.average[1].head.weight.clone()
    learner.before_step(0.5)
    expected = 0.9 * before + 0.1 * learner.online[1].head.weight
    assert torch.allclose(learner.average[1].head.weight, expected)
    assert not any(p.requires_grad for net in learner.average for p in net.parameters())


def test_the_ramp_rises_to_one_and_is_off_by_default():
    assert rampup(0.0, 0.0) == 1.0
    assert rampup(0.0, 0.5) == pytest.approx(math.exp(-5))
    assert rampup(0.25, 0.5) == pytest.approx(math.exp(-1.25))
    assert rampup(0.5, 0.5) == 1.0
