from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from learners.parts import K, N, build, make_batch, overview
from unswayed import UsageError
from unswayed.learners.correction import Correction, corrected, expected
from unswayed.losses import LOSSES


@pytest.fixture
def believed(generator):
    p = (2 * torch.randn(N, K, generator=generator, dtype=torch.float64)).softmax(1)
    return p, torch.randint(0, K, (N,), generator=generator)


def literal(p, given, current, options):
    onehot = np.eye(K)[given]
    against = current if options.loss == "current" and current is not None else onehot
    losses = [-(a * np.log(q)).sum() for a, q in zip(against, p, strict=True)]
    low, high = min(losses), max(losses)
    out = []
    for q, y, loss in zip(p, given, losses, strict=True):
        share = (loss - low) / (high - low)
        w = {"sln": share, "inverse": 1 - share, "confidence": q[y]}[options.weight]
        guess = np.eye(K)[q.argmax()] if options.prediction == "hard" else q
        out.append(w * np.eye(K)[y] + (1 - w) * guess)
    return np.array(out)


@pytest.mark.parametrize("weight", ["sln", "inverse", "confidence"])
@pytest.mark.parametrize("prediction", ["hard", "soft"])
@pytest.mark.parametrize("loss", ["given", "current"])
def test_targets_are_those_of_the_definition(believed, weight, prediction, loss):
    if (weight, loss) == ("confidence", "current"):
        with pytest.raises(UsageError, match="looks at no loss"):
            Correction(weight=weight, prediction=prediction, loss=loss)
        return
    p, given = believed
    options = Correction(weight=weight, prediction=prediction, loss=loss)
    first = corrected(p, given, None, options)
    np.testing.assert_allclose(first, literal(p.numpy(), given.numpy(), None, options))
    again = corrected(p, given, first, options)
    np.testing.assert_allclose(again, literal(p.numpy(), given.numpy(), first.numpy(), options))
    assert torch.allclose(again.sum(1), torch.ones(N, dtype=torch.float64))


def test_equal_losses_trust_the_prediction(believed):
    _, given = believed
    other = (given + 1) % K
    p = torch.full((N, K), 0.2, dtype=torch.float64).scatter(1, other[:, None], 0.6)
    found = corrected(p, given, None, Correction())
    assert torch.equal(found, F.one_hot(other, K).double())


def test_the_expected_cross_entropy_is_that_of_soft_targets(believed, generator):
    targets, _ = believed
    logits = torch.randn(N, K, generator=generator, dtype=torch.float64)
    found = expected(LOSSES.build("ce"), logits, targets)
    assert torch.allclose(found, F.cross_entropy(logits, targets, reduction="none"))


def test_a_certain_target_is_the_loss_itself(believed, generator):
    _, labels = believed
    logits = torch.randn(N, K, generator=generator, dtype=torch.float64)
    loss = LOSSES.build("gce")
    onehot = F.one_hot(labels, K).double()
    assert torch.allclose(expected(loss, logits, onehot), loss(logits, labels))


def test_labels_are_given_until_the_start_and_corrected_from_then_on(believed, generator):
    p, given = believed
    learner = build("regularized", correction={"start": 0.5}).eval()
    batch = make_batch(generator)
    plain = learner(batch).total.item()
    learner.before_epoch(overview(given, p, epoch=4))
    assert learner(batch).total.item() == plain
    learner.before_epoch(overview(given, p, epoch=5, holdout=(3,)))
    terms = learner(batch)
    targets = learner.targets.soft[batch.index]
    assert terms.total.item() == pytest.approx(
        F.cross_entropy(learner.classifier(batch.views.weak[0]), targets.double()).item()
    )
    assert learner.targets.soft.values[3].sum() == 0  # held out, never trained on
    # The record stays the loss of the given label.
    logits = learner.classifier(batch.views.weak[0])
    assert torch.allclose(terms.losses, F.cross_entropy(logits, batch.labels, reduction="none"))


def test_a_loss_with_a_memory_is_refused():
    with pytest.raises(UsageError, match="remembers"):
        build("regularized", loss="elr", correction={"start": 0.5})


def test_an_unknown_option_is_named():
    with pytest.raises(UsageError, match="correction"):
        build("regularized", correction={"begin": 0.5})
