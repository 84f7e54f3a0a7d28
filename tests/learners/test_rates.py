from __future__ import annotations

import pytest
import torch

from learners.parts import overview
from unswayed.learners.rates import NoiseRate
from unswayed.noise.estimate import clean_probability

GIVEN = torch.tensor([0, 1] * 50)


def believing(right):
    """Probabilities of a network that agrees with the given label of `right` of 100 rows."""
    agrees = torch.arange(100) < right
    label = torch.where(agrees, GIVEN, 1 - GIVEN)
    return 0.1 + 0.8 * torch.nn.functional.one_hot(label, 2)


def test_a_number_stays_what_it_is():
    rate = NoiseRate(0.3, None)
    rate.before_epoch(overview(GIVEN, believing(90), epoch=3, holdout=range(100)))
    assert rate.value.item() == pytest.approx(0.3)
    assert NoiseRate("known", 0.25).value.item() == 0.25


def test_the_estimate_is_the_smallest_that_confident_predictions_gave():
    rate = NoiseRate("estimate", None)
    seen = []
    for epoch, right in enumerate((10, 60, 80, 70)):
        rate.before_epoch(overview(GIVEN, believing(right), epoch=epoch, holdout=range(100)))
        seen.append(rate.value.item())
    assert seen == pytest.approx([0.0, 0.4, 0.2, 0.2], abs=0.1)
    assert seen[3] == seen[2]


def test_mistakes_of_a_weak_network_count_less_than_they_are(generator):
    """It is right in three of five cases, surest of those; a fifth of the labels is wrong."""
    true = torch.randint(0, 5, (2000,), generator=generator)
    given = torch.where(torch.rand(2000, generator=generator) < 0.2, (true + 1) % 5, true)
    right = torch.rand(2000, generator=generator) < 0.6
    p = torch.nn.functional.one_hot(torch.where(right, true, (true + 2) % 5), 5).double()
    sure = torch.where(right, 0.9, 0.4) + 0.1 * torch.rand(2000, generator=generator)
    p = p * sure[:, None] + (1 - sure[:, None]) / 5
    rate = NoiseRate("estimate", None)
    rate.before_epoch(overview(given, p, epoch=1, holdout=range(2000)))
    assert (p.argmax(dim=1) != given).double().mean() > 0.4
    assert rate.value.item() == pytest.approx(0.2, abs=0.05)


def test_without_a_holdout_it_is_the_weight_of_the_large_losses():
    rate = NoiseRate("estimate", None)
    rate.before_epoch(overview(GIVEN, believing(70), epoch=2))
    assert rate.value.item() == pytest.approx(0.3, abs=0.01)


def test_a_mixture_that_collapses_calls_every_label_clean():
    assert (clean_probability(torch.full((20,), 0.7)) == 1).all()
    assert (clean_probability(torch.zeros(1)) == 1).all()
    assert clean_probability(torch.zeros(0)).shape == (0,)


def test_the_small_losses_are_clean(generator):
    low = 0.2 + 0.05 * torch.randn(300, generator=generator).abs()
    high = 3 + 0.3 * torch.randn(100, generator=generator)
    p = clean_probability(torch.cat([high, low]))
    assert (p[:100] < 0.1).all()
    assert (p[100:] > 0.9).all()
