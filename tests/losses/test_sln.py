from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import reference
from unswayed.losses import LOSSES
from unswayed.randomness import normal

FACTS = {"run_seed": 5}


def test_matches_the_formula(batch):
    logits, labels, index = batch
    loss = LOSSES.build("sln", FACTS, sigma=0.5)
    for step in range(2):
        n = normal(5, "sln", step, index.numpy()[:, None], np.arange(4))
        targets = np.eye(4)[labels.numpy()] + 0.5 * n
        expected = reference.soft_cross_entropy(logits.numpy(), targets)
        assert loss(logits, labels, index).numpy() == pytest.approx(expected, abs=1e-12)


def test_a_sigma_of_zero_is_cross_entropy(batch):
    logits, labels, index = batch
    found = LOSSES.build("sln", FACTS, sigma=0)(logits, labels, index)
    assert torch.allclose(found, F.cross_entropy(logits, labels, reduction="none"))


def test_its_expectation_is_cross_entropy():
    logits = torch.tensor([[1.0, 0, -1, 0.5]], dtype=torch.float64).expand(20_000, 4)
    labels = torch.full((20_000,), 2)
    found = LOSSES.build("sln", FACTS, sigma=1)(logits, labels, torch.arange(20_000))
    error = found.std() / 20_000**0.5
    assert abs(found.mean() - F.cross_entropy(logits, labels)) < 4 * error
    assert found.std() == pytest.approx(logits.log_softmax(1)[0].norm().item(), rel=0.03)


def test_noise_is_new_at_every_step_and_follows_the_sample(batch):
    loss, again = LOSSES.build("sln", FACTS), LOSSES.build("sln", FACTS)
    order = torch.arange(7, -1, -1)
    first = loss(*batch)
    assert not torch.allclose(first, loss(*batch))
    assert torch.allclose(first[order], again(*(part[order] for part in batch)))


def test_the_gradient_is_right_in_training_mode(batch):
    logits, labels, index = batch
    loss = LOSSES.build("sln", FACTS)

    def same_step(x):
        loss.step.zero_()
        return loss(x, labels, index)

    assert torch.autograd.gradcheck(same_step, logits.requires_grad_())


def test_counts_its_steps_in_training_mode_only_and_resumes_there(batch):
    loss = LOSSES.build("sln", FACTS)
    loss(*batch)
    loss.eval()(*batch)
    loss.train()(*batch)
    assert loss.step.item() == 2
    resumed = LOSSES.build("sln", FACTS)
    resumed.load_state_dict(loss.state_dict())
    assert torch.equal(resumed(*batch), loss(*batch))


def test_evaluation_is_not_shaken(batch):
    logits, labels, index = batch
    found = LOSSES.build("sln", FACTS).eval()(logits, labels, index)
    assert torch.equal(found, F.cross_entropy(logits, labels, reduction="none"))


def test_without_an_index_noise_goes_by_place(batch):
    logits, labels, index = batch
    loss, again = LOSSES.build("sln", FACTS), LOSSES.build("sln", FACTS)
    assert torch.equal(loss(logits, labels), again(logits, labels, index))


def test_ceases_at_its_end(batch, overview, network):
    logits, labels, index = batch
    expected = F.cross_entropy(logits, labels, reduction="none")
    loss = LOSSES.build("sln", FACTS, until=0.5)
    loss.before_epoch(overview(4, network))
    assert not torch.allclose(loss(logits, labels, index), expected)
    loss.before_epoch(overview(5, network))
    assert torch.allclose(loss(logits, labels, index), expected)
