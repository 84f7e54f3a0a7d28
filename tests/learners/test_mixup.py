from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from learners.parts import B, build, make_batch
from unswayed import UsageError
from unswayed.learners.mixing import draw_mix


@pytest.fixture
def batch(generator):
    return make_batch(generator)


def test_images_and_losses_are_mixed_alike(batch):
    learner = build("mixup", alpha=0.7).eval()
    mix = draw_mix(batch, 0.7, 5, "mixup")
    x = batch.views.weak[0]
    expected = 0.0
    for i in range(B):
        j = int(mix.partner[i])
        image = mix.share * x[i] + (1 - mix.share) * x[j]
        log_p = torch.log_softmax(learner.classifier(image[None])[0], 0)
        expected -= mix.share * log_p[batch.labels[i]] + (1 - mix.share) * log_p[batch.labels[j]]
    assert learner(batch).total.item() == pytest.approx(expected.item() / B)


def test_a_tiny_alpha_is_cross_entropy(batch):
    learner, plain = build("mixup", alpha=1e-6).eval(), build("regularized").eval()
    assert learner(batch).total.item() == pytest.approx(plain(batch).total.item())


def test_shares_follow_the_beta_distribution(batch):
    shares = torch.tensor(
        [draw_mix(replace(batch, epoch=e), 4.0, 0, "test").share for e in range(2000)]
    )
    assert (shares >= 0.5).all()
    centred = shares - 0.5  # Beta(4, 4) has variance 1/36, and is symmetric around a half
    assert centred.square().mean().item() == pytest.approx(1 / 36, rel=0.1)


def test_partners_are_a_permutation_that_changes_with_the_epoch(batch):
    first = draw_mix(batch, 1.0, 0, "test", copies=2).partner
    assert sorted(first.tolist()) == list(range(2 * B))
    other = draw_mix(replace(batch, epoch=9), 1.0, 0, "test", copies=2).partner
    assert not torch.equal(first, other)


def test_a_loss_with_a_memory_is_refused():
    with pytest.raises(UsageError, match="remembers"):
        build("mixup", loss="elr")
