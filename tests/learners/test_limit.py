from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from learners.parts import B, K, build, make_batch
from unswayed.randomness import normal


@pytest.fixture
def batch(generator):
    return make_batch(generator)


def outputs(learner, batch):
    return learner.classifier(batch.views.weak[0]), learner.auxiliary(batch.views.weak[0])


def gradient_of_logits(learner, batch):
    """Return d total / d logits by reading what reaches the bias of the last layer, and more."""
    caught = {}
    handle = learner.classifier.head.register_full_backward_hook(
        lambda module, into, out: caught.update(logits=out[0])
    )
    learner(batch).total.backward()
    handle.remove()
    return caught["logits"]


def test_the_classifiers_gradient_is_the_predicted_one(batch):
    learner = build("limit").eval()
    a, r = outputs(learner, batch)
    expected = (a.softmax(1) - r.softmax(1)).detach() / B
    assert torch.allclose(gradient_of_logits(learner, batch), expected)


def test_a_perfect_prediction_would_be_cross_entropy(batch):
    learner = build("limit").eval()

    class Oracle(torch.nn.Module):
        def forward(self, x):
            return 1e4 * F.one_hot(batch.labels, K).double().requires_grad_()

    learner.auxiliary = Oracle()
    a = learner.classifier(batch.views.weak[0])
    expected = (a.softmax(1) - F.one_hot(batch.labels, K)).detach() / B
    assert torch.allclose(gradient_of_logits(learner, batch), expected)


@pytest.mark.parametrize("distribution", ["gaussian", "laplace", "ce"])
def test_the_auxiliary_network_is_trained_to_predict_the_gradient(batch, distribution):
    learner = build("limit", distribution=distribution, decay=0.3).eval()
    a, r = (x.detach().numpy() for x in outputs(learner, batch))
    costs = []
    for i in range(B):
        p, s = (np.exp(x[i]) / np.exp(x[i]).sum() for x in (a, r))
        true = p.copy()
        true[batch.labels[i]] -= 1
        predicted = p - s
        cost = {
            "gaussian": ((predicted - true) ** 2).sum(),
            "laplace": np.abs(predicted - true).sum(),
            "ce": -np.log(s[batch.labels[i]]),
        }[distribution]
        costs.append(cost + 0.3 * (predicted**2).sum())
    assert learner(batch).parts["auxiliary"].item() == pytest.approx(np.mean(costs))


def test_labels_reach_the_classifier_only_through_the_auxiliary_network(batch):
    learner = build("limit").eval()
    other = replace(batch, labels=(batch.labels + 1) % K)
    first = gradient_of_logits(learner, batch).clone()
    assert torch.equal(first, gradient_of_logits(learner, other))


def test_a_sample_is_the_mean_and_noise_of_the_stated_width(batch):
    learner = build("limit", sample=True, precision=2.0).eval()
    a, r = outputs(learner, batch)
    where = (batch.epoch, batch.index.numpy()[:, None], np.arange(K))
    noise = torch.from_numpy(normal(5, "limit", *where)) * (1 / 4) ** 0.5
    expected = (a.softmax(1) - r.softmax(1)).detach() + noise
    assert torch.allclose(gradient_of_logits(learner, batch), expected / B)


@pytest.mark.parametrize(
    ("distribution", "deviation"), [("gaussian", 0.5), ("laplace", 0.5 * 2**0.5)]
)
def test_the_noise_has_the_deviation_of_its_distribution(batch, distribution, deviation):
    learner = build("limit", sample=True, precision=2.0, distribution=distribution)
    drawn = torch.cat(
        [learner._noise(replace(batch, epoch=e), torch.zeros(B, K)) for e in range(400)]
    )
    assert drawn.std().item() == pytest.approx(deviation, rel=0.05)
    assert drawn.mean().item() == pytest.approx(0, abs=0.03)


def test_the_classifier_rests_while_the_auxiliary_network_warms_up(batch):
    learner = build("limit", warmup=0.5)
    learner(batch).total.backward()
    assert all(p.grad is None for p in learner.classifier.parameters())
    assert all(p.grad is not None for p in learner.auxiliary.parameters())
