from __future__ import annotations

import numpy as np
import pytest
import torch

from learners.parts import overview
from unswayed.learners.rates import NoiseRate
from unswayed.noise.estimate import clean_probability, mixture_rate

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


def two_groups(rng, share=0.2):
    """Losses as networks have them: most are small, those of wrong labels large, a few huge."""
    wrong = rng.random(2000) < share
    losses = np.where(wrong, rng.normal(3.0, 0.6, 2000), rng.normal(1.2, 0.5, 2000))
    losses[:5] = (9, 10, 11, 12, 15)
    return torch.from_numpy(losses.clip(0)), wrong


def literal_mixture(losses):
    """Ten rounds of EM in plain numpy, from the best division of the line into two clusters."""
    x = (losses - losses.min()) / (losses.max() - losses.min())
    ordered = np.sort(x)
    parts = [(ordered[:n], ordered[n:]) for n in range(1, len(x))]
    costs = [low.var() * len(low) + high.var() * len(high) for low, high in parts]
    cut = ordered[int(np.argmin(costs)) + 1]
    weight = np.stack([x < cut, x >= cut], axis=1).astype(float)
    before = -np.inf
    for number in range(11):
        size = weight.sum(axis=0)
        mean = (weight * x[:, None]).sum(axis=0) / size
        variance = (weight * (x[:, None] - mean) ** 2).sum(axis=0) / size + 5e-4
        density = size / len(x) * np.exp(-((x[:, None] - mean) ** 2) / 2 / variance)
        density /= np.sqrt(2 * np.pi * variance)
        weight = density / density.sum(axis=1, keepdims=True)
        now = np.log(density.sum(axis=1)).mean()
        if number and abs(now - before) < 1e-2:
            break
        before = now
    return weight[:, mean.argmin()]


def test_the_mixture_starts_from_clusters_as_the_published_one_does(rng):
    losses, _ = two_groups(rng)
    found = clean_probability(losses).numpy()
    expected = literal_mixture(losses.numpy())
    assert np.abs(found - expected).mean() < 0.02  # the last round may be one more or less
    assert ((found > 0.5) == (expected > 0.5)).mean() > 0.98


@pytest.mark.parametrize("share", [0.1, 0.2, 0.4])
def test_the_rate_of_a_mixture_is_near_the_truth(rng, share):
    losses, wrong = two_groups(rng, share)
    assert abs(float(mixture_rate(losses)) - wrong.mean()) < 0.08
