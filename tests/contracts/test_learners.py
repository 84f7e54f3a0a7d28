"""What every learner promises; a new file in learners/ is tested here without a word."""

from __future__ import annotations

import pytest
import torch

from learners.parts import K, N, build, make_batch, overview
from unswayed.learners import LEARNERS


@pytest.fixture(params=LEARNERS.names())
def learner(request):
    return build(request.param)


@pytest.fixture
def batch(generator):
    return make_batch(generator)


def step(learner, batch):
    learner.before_step(batch.progress)
    return learner(batch)


def test_answers_with_finite_terms_and_a_record_of_every_sample(learner, batch):
    terms = step(learner, batch)
    assert torch.isfinite(terms.total)
    assert terms.total.shape == ()
    assert terms.losses.shape == batch.labels.shape
    assert terms.logits.shape == (len(batch.labels), K)
    assert not terms.losses.requires_grad
    assert not terms.logits.requires_grad
    assert "label" in terms.parts
    assert not any(part.requires_grad for part in terms.parts.values())


def test_every_trainable_parameter_gets_a_gradient(learner, batch):
    step(learner, batch).total.backward()
    for name, parameter in learner.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, name
            assert torch.isfinite(parameter.grad).all()
        else:
            assert parameter.grad is None


def test_the_state_is_all_there_is(learner, batch, generator):
    """After going back to an old state everything repeats to the bit."""
    p = (3 * torch.randn(N, K, generator=generator, dtype=torch.float64)).softmax(1)
    given = torch.randint(0, K, (N,), generator=generator)
    before = {k: v.clone() for k, v in learner.state_dict().items()}

    def go():
        learner.before_epoch(overview(given, p, learner.classifier, holdout=(0, 1, 2)))
        return [step(learner, batch).total.item() for _ in range(2)]

    first = go()
    learner.load_state_dict(before)
    assert go() == first


def test_no_two_names_in_the_state_share_memory(learner):
    places = [tensor.data_ptr() for tensor in learner.state_dict().values() if tensor.numel()]
    assert len(places) == len(set(places))


def test_evaluation_does_not_depend_on_the_batch(learner, batch):
    net = learner.classifier.eval()
    images = batch.views.weak[0]
    assert torch.allclose(net(images)[:2], net(images[:2]))
