from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from unswayed import UsageError
from unswayed.functional import forward_correction, label_posterior, unmixed
from unswayed.losses.posterior import LEAST, Posterior, confusable
from unswayed.noise.estimate import confident_matrix
from unswayed.types import Overview

K, N = 3, 90


def literal(q, labels, matrix):
    """Bayes' rule, one number after the other."""
    found = np.zeros_like(q)
    for i in range(len(q)):
        for k in range(q.shape[1]):
            found[i, k] = q[i, k] * matrix[k, labels[i]]
        found[i] /= found[i].sum()
    return found


def drawn(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64).softmax(dim=1)


def test_is_bayes_rule(generator):
    q, matrix = drawn(generator, 20, K), drawn(generator, K, K)
    labels = torch.randint(0, K, (20,), generator=generator)
    found = label_posterior(q, labels, matrix)
    expected = literal(q.numpy(), labels.numpy(), matrix.numpy())
    assert np.allclose(found.numpy(), expected, atol=1e-12)


def test_undoing_finds_the_classes_from_which_the_labels_came(generator):
    q = drawn(generator, 20, K)
    matrix = 0.6 * torch.eye(K, dtype=torch.float64) + 0.4 * drawn(generator, K, K)
    assert torch.allclose(unmixed(q @ matrix, matrix, rounds=3000), q, atol=1e-4)
    assert torch.allclose(unmixed(q, torch.eye(K)), q, atol=2 * LEAST)


def test_undoing_makes_what_was_predicted_more_likely_in_every_round(generator):
    p, matrix = drawn(generator, 20, K), drawn(generator, K, K)

    def likelihood(rounds):
        q = unmixed(p, matrix, rounds)
        assert torch.allclose(q.sum(dim=1), torch.ones(20, dtype=torch.float64))
        assert (q >= 0).all()
        return (p * (q @ matrix).log()).sum(dim=1)

    courses = torch.stack([likelihood(rounds) for rounds in range(30)])
    assert (courses.diff(dim=0) >= -1e-12).all()
    assert (courses[-1] > courses[0]).all()


def test_the_posterior_of_mixed_probabilities_needs_them_undone():
    """Cats of which 40 % are called dogs: labels alone cannot decide, and images can."""
    matrix = torch.tensor([[0.6, 0.4], [0.0, 1.0]])
    p = torch.tensor([[0.6, 0.4], [0.01, 0.99]])  # a cat and a dog, as a network would say
    called = torch.tensor([1, 1])
    assert label_posterior(p, called, matrix)[0].argmax() == 1
    assert label_posterior(unmixed(p, matrix), called, matrix).argmax(dim=1).tolist() == [0, 1]


def test_labels_that_say_nothing_leave_the_prediction_and_those_that_say_all_replace_it():
    p = torch.tensor([[0.7, 0.2, 0.1]], dtype=torch.float64)
    even = torch.full((K, K), 1 / K)
    assert torch.allclose(label_posterior(p, torch.tensor([2]), even), p)
    sure = label_posterior(p, torch.tensor([2]), torch.eye(K))
    assert sure.argmax() == 2
    assert sure.max() > 0.99


def overview(epoch, p, given, held=0, epochs=4):
    rows = torch.arange(len(given))
    trained, kept = rows[: len(rows) - held], rows[len(rows) - held :]
    net = torch.nn.Identity()
    return Overview(epoch, epochs, given, trained, kept, net, lambda _, r: p[r].split(7))


@pytest.fixture
def world(generator):
    """Predictions that are right, and labels of which a third of class 0 is called 1."""
    true = torch.arange(N) % K
    p = 0.85 * F.one_hot(true, K) + 0.05 + 0.01 * torch.rand(N, K, generator=generator)
    p = p / p.sum(dim=1, keepdim=True)
    given = true.clone()
    given[(true == 0) & (torch.arange(N) % 9 == 0)] = 1
    return p, given, true


def test_it_is_cross_entropy_until_the_teacher_is_done_and_then_looks_once(world, generator):
    p, given, _ = world
    loss = Posterior(N, K, teacher=0.5, beliefs="teacher")
    logits, index = torch.randn(8, K, generator=generator), torch.arange(8)
    for epoch in (0, 1):
        loss.before_epoch(overview(epoch, p, given))
        expected = F.cross_entropy(logits, given[:8], reduction="none")
        assert torch.equal(loss(logits, given[:8], index), expected)
        assert loss.findings() == {}
    loss.before_epoch(overview(2, p, given))
    targets = label_posterior(loss.beliefs[index], given[:8], loss.matrix)
    after = loss(logits, given[:8], index)
    assert torch.allclose(after, F.cross_entropy(logits, targets, reduction="none"))
    loss.before_epoch(overview(3, p.flip(1), given))  # what the student believes is not kept
    assert torch.equal(loss(logits, given[:8], index), after)


def test_by_its_own_beliefs_its_gradient_is_that_of_forward_correction(world, generator):
    p, given, _ = world
    loss = Posterior(N, K, teacher=0.5, beliefs="student")
    loss.before_epoch(overview(2, p, given))
    logits = torch.randn(8, K, generator=generator, requires_grad=True)
    (own,) = torch.autograd.grad(loss(logits, given[:8], torch.arange(8)).sum(), logits)
    matrix = loss.matrix.clamp_min(LEAST)
    matrix = matrix / matrix.sum(dim=1, keepdim=True)
    expected = forward_correction(logits, given[:8], matrix, reduction="sum")
    (forward,) = torch.autograd.grad(expected, logits)
    assert torch.allclose(own, forward, atol=1e-4)  # no class is less likely than 1e-4


def test_the_teacher_is_asked_where_labels_do_not_tell_classes_apart(generator):
    """Classes 0 and 1 have each other's labels; 2 and 3 are labelled rightly."""
    true = torch.arange(4000) % 4
    swap = (torch.rand(4000, generator=generator) < 0.4) & (true < 2)
    given = torch.where(swap, 1 - true, true)
    called = torch.tensor([[0.6, 0.4, 0, 0], [0.4, 0.6, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    p = called[true] + 0.001 * torch.rand(4000, 4, generator=generator)
    loss = Posterior(4000, 4, teacher=0.5)
    loss.before_epoch(overview(2, p / p.sum(dim=1, keepdim=True), given))
    index = torch.arange(400)
    assert torch.equal(loss.trusted[index], true[:400] < 2)
    unsure = torch.zeros(400, 4)  # a student that knows nothing yet
    found = loss.targets(unsure, given[:400], index).argmax(dim=1)
    assert torch.equal(found, true[:400])


def test_labels_drawn_from_all_classes_tell_all_pairs_apart():
    for rate in (0.2, 0.8, 0.9):
        even = (1 - rate) * torch.eye(K) + rate / K
        assert not confusable(even).any()
    assert not confusable(torch.eye(2)).any()


def test_wrong_labels_are_corrected_and_right_ones_are_kept(world):
    p, given, true = world
    loss = Posterior(N, K, beliefs="teacher")
    loss.before_epoch(overview(2, p, given))
    targets = loss.targets(torch.zeros(N, K), given, torch.arange(N))
    assert torch.equal(targets.argmax(dim=1), true)
    assert targets.sum(dim=1).numpy() == pytest.approx(np.ones(N), abs=1e-5)


def test_how_classes_are_mislabelled_is_told_by_held_out_labels(world):
    p, given, _ = world
    loss = Posterior(N, K)
    loss.before_epoch(overview(2, p, given, held=45))
    expected = confident_matrix(p[45:], given[45:])
    assert np.allclose(loss.findings()["matrix"], expected)
    assert (loss.beliefs.values[45:] == 0).all()


def test_training_needs_to_know_which_sample_it_is():
    loss = Posterior(N, K)
    with pytest.raises(UsageError, match="index"):
        loss(torch.zeros(2, K), torch.zeros(2, dtype=torch.long))
    assert loss.eval()(torch.zeros(2, K), torch.zeros(2, dtype=torch.long)).shape == (2,)
