from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from learners.parts import B, K, N, build, make_batch, overview
from unswayed.learners.dividemix import sharpened
from unswayed.learners.mixing import draw_mix


@pytest.fixture
def batch(generator):
    return make_batch(generator, progress=0.6)


def divided(**options):
    learner = build("dividemix", **options).eval()
    learner.divided.fill_(True)
    return learner


def softmax(a):
    e = np.exp(a - a.max())
    return e / e.sum()


def literal(learner, batch, k, w, *, temperature, threshold, weight):
    """L_x + λ_u L_u + L_reg of one network, sample by sample."""
    first, second = batch.views.weak[0], batch.views.weak[1]
    nets = learner.classifier.members
    p = [
        [np.stack([softmax(a) for a in net(x).detach().numpy()]) for x in (first, second)]
        for net in nets
    ]
    targets = []
    for i in range(B):
        own = (p[k][0][i] + p[k][1][i]) / 2
        if w[i] > threshold:
            onehot = np.eye(K)[batch.labels[i]]
            guess = w[i] * onehot + (1 - w[i]) * own
        else:
            guess = sum(p[n][v][i] for n in (0, 1) for v in (0, 1)) / 4
        sharp = guess ** (1 / temperature)
        targets.append(sharp / sharp.sum())
    targets = np.array(targets + targets)
    mix = draw_mix(batch, 4.0, 5, f"dividemix {k}", copies=2)
    a, partner = mix.share, mix.partner.tolist()
    x = torch.cat([first, second])
    q = np.stack([softmax(z) for z in nets[k](a * x + (1 - a) * x[partner]).detach().numpy()])
    t = a * targets + (1 - a) * targets[partner]
    labelled = [i for i in range(2 * B) if w[i % B] > threshold]
    others = [i for i in range(2 * B) if w[i % B] <= threshold]
    lx = -sum((t[i] * np.log(q[i])).sum() for i in labelled) / max(len(labelled), 1)
    lu = sum(((q[i] - t[i]) ** 2).mean() for i in others) / max(len(others), 1)
    mean = q.mean(axis=0)
    reg = sum(1 / K * math.log(1 / K / mean[c]) for c in range(K))
    return lx + weight * lu + reg


@pytest.mark.parametrize("threshold", [0.5, 0.0, 1.0])
def test_is_the_papers_objective_on_the_peers_division(batch, generator, threshold):
    learner = divided(unlabelled_weight=7.0, threshold=threshold, ramp=0.0, temperature=0.4)
    learner.clean.values.uniform_(0.01, 0.99, generator=generator)
    w = learner.clean[batch.index].T.numpy()
    options = {"temperature": 0.4, "threshold": threshold, "weight": 7.0}
    expected = sum(literal(learner, batch, k, w[1 - k], **options) for k in (0, 1))
    assert learner(batch).total.item() == pytest.approx(expected)


def test_with_every_label_clean_it_is_mixup_on_given_labels_and_the_penalty(batch):
    learner = divided()  # the posterior starts as all ones
    expected = 0.0
    for k, net in enumerate(learner.classifier.members):
        mix = draw_mix(batch, 4.0, 5, f"dividemix {k}", copies=2)
        logits = net(mix(torch.cat(batch.views.weak)))
        y = batch.labels.repeat(2)
        expected += mix.share * F.cross_entropy(logits, y)
        expected += (1 - mix.share) * F.cross_entropy(logits, y[mix.partner])
        mean = logits.softmax(1).mean(0)
        expected += (1 / K * (1 / K / mean).log()).sum()
    terms = learner(batch)
    assert terms.total.item() == pytest.approx(expected.item())
    assert terms.parts["unlabelled"].item() == 0
    assert terms.parts["kept"].item() == 1


@pytest.mark.parametrize("penalty", [False, True])
def test_the_warm_up_is_cross_entropy_with_the_penalty_on_confidence(batch, penalty):
    learner = build("dividemix", penalty=penalty).eval()
    expected = 0.0
    for net in learner.classifier.members:
        logits = net(batch.views.weak[0])
        expected += F.cross_entropy(logits, batch.labels)
        if penalty:
            p = logits.softmax(1)
            expected += (p * p.log()).sum(1).mean()
    assert learner(batch).total.item() == pytest.approx(expected.item())


def test_losses_divide_the_rows_that_are_trained_on_and_are_remembered(generator):
    learner = build("dividemix", warmup=0.2, history=2)
    given = torch.randint(0, K, (N,), generator=generator)
    wrong = torch.arange(N) % 3 == 0
    label = torch.where(wrong, (given + 1) % K, given)
    p = 0.05 + 0.85 * F.one_hot(label, K).double()
    learner.before_epoch(overview(given, p, epoch=1))
    assert not learner.divided
    learner.before_epoch(overview(given, p, epoch=2, holdout=(0, 1)))
    assert learner.divided
    assert (learner.clean.values[2:][wrong[2:]] < 0.1).all()
    assert (learner.clean.values[2:][~wrong[2:]] > 0.9).all()
    assert learner.history.values[2:, :, 0].isfinite().all()
    assert learner.history.values[:, :, 1].isnan().all()
    learner.before_epoch(overview(given, p.flip(1), epoch=3, holdout=(0, 1)))
    assert learner.history.values[2:, :, 1].isfinite().all()


def test_the_weight_of_the_unlabelled_rises_after_the_warm_up(batch):
    from dataclasses import replace

    learner = build("dividemix", warmup=0.2, ramp=0.4, unlabelled_weight=10.0)
    found = [learner._unlabelled_weight(replace(batch, progress=p)) for p in (0.2, 0.4, 0.6, 0.9)]
    assert found == pytest.approx([0, 5, 10, 10])


def test_a_short_training_still_warms_up_for_an_epoch():
    learner = build("dividemix", warmup=1 / 30)
    given, p = torch.zeros(N, dtype=torch.long), torch.full((N, K), 1 / K).double()
    learner.before_epoch(overview(given, p, epoch=0))
    assert not learner.divided
    learner.before_epoch(overview(given, p, epoch=1))
    assert learner.divided


def test_sharpening_is_a_power_and_survives_a_low_temperature(generator):
    p = torch.rand(5, 100, generator=generator).softmax(1)
    powered = p.double() ** 2
    expected = powered / powered.sum(1, keepdim=True)
    assert torch.allclose(sharpened(p.double(), 0.5), expected)
    assert torch.isfinite(sharpened(p, 0.01)).all()
