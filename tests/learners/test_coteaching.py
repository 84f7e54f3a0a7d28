from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from learners.parts import B, build, make_batch
from unswayed import UsageError
from unswayed.learners.two_networks import forget_rate, smallest


@pytest.fixture
def batch(generator):
    return make_batch(generator, epoch=3)


def literal(batch, first, second, keep):
    """Algorithm 1: each network's loss over the samples that the other finds easiest."""

    def easiest(logits):
        losses = [
            -torch.log_softmax(a, 0)[y].item() for a, y in zip(logits, batch.labels, strict=True)
        ]
        return sorted(range(len(losses)), key=lambda i: losses[i])[:keep]

    def mean(logits, rows):
        return sum(-torch.log_softmax(logits[i], 0)[batch.labels[i]].item() for i in rows) / keep

    return mean(first, easiest(second)) + mean(second, easiest(first))


def test_each_network_learns_what_the_other_finds_easy(batch):
    learner = build("coteaching", noise_rate=0.5, gradual=5).eval()
    first, second = (net(batch.views.weak[0]).detach() for net in learner.classifier.members)
    keep = int((1 - 0.5 * 3 / 5) * B)
    assert learner(batch).total.item() == pytest.approx(literal(batch, first, second, keep))


def test_with_nothing_to_forget_it_is_two_networks_with_cross_entropy(batch):
    learner = build("coteaching", noise_rate=0.0).eval()
    expected = sum(
        F.cross_entropy(net(batch.views.weak[0]), batch.labels)
        for net in learner.classifier.members
    )
    assert learner(batch).total.item() == pytest.approx(expected.item())


def test_the_selection_of_one_network_does_not_train_it(batch):
    """The gradient of the first network comes from the second's choice alone."""
    learner = build("coteaching", noise_rate=0.6, gradual=1).eval()
    learner(batch).total.backward()
    first, second = learner.classifier.members
    chosen = smallest(
        F.cross_entropy(second(batch.views.weak[0]), batch.labels, reduction="none"), 0.4
    )
    loss = F.cross_entropy(first(batch.views.weak[0])[chosen], batch.labels[chosen])
    (gradient,) = torch.autograd.grad(loss, [first.head.weight])
    assert torch.allclose(first.head.weight.grad, gradient)


def test_the_networks_start_differently(batch):
    first, second = build("coteaching").classifier.members
    assert not torch.equal(first.head.weight, second.head.weight)


def test_the_share_left_out_rises_and_stays(batch):
    rate = torch.tensor(0.4)
    found = [forget_rate(rate, epoch, 10, 1.0) for epoch in (0, 5, 10, 50)]
    assert found == pytest.approx([0.0, 0.2, 0.4, 0.4])
    assert forget_rate(rate, 10, 10, 2.0) == pytest.approx(0.16)


def test_a_batch_is_never_left_empty(batch):
    learner = build("coteaching", noise_rate=0.99, gradual=1).eval()
    assert torch.isfinite(learner(batch).total)
    assert len(smallest(torch.rand(10), 0.0)) == 1


def test_a_loss_that_restarts_the_training_is_refused():
    with pytest.raises(UsageError, match="restarts"):
        build("coteaching", loss="forward")


@pytest.mark.parametrize("rate", [1.0, -0.1, "guess"])
def test_a_rate_that_cannot_be_is_refused(rate):
    with pytest.raises(UsageError, match="noise_rate"):
        build("coteaching", noise_rate=rate)


def test_an_unknown_known_rate_is_refused():
    with pytest.raises(UsageError, match="noise_rate=estimate"):
        build("coteaching", known_rate=None, noise_rate="known")


def test_a_loss_that_draws_draws_differently_for_each_network(batch):
    first, second = build("coteaching", loss="sln").losses
    logits = torch.zeros(B, 3, dtype=torch.float64)
    logits[:, 0] = 1
    losses = [loss.train()(logits, batch.labels, batch.index) for loss in (first, second)]
    assert not torch.equal(*losses)
