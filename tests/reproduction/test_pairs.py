from __future__ import annotations

import json

import pytest
import torch
import torch.nn.functional as F

from pairing import weights_of
from reproduction.figures import Lab
from reproduction.figures.pairs import course, measure, shares
from unswayed import Recipe, UsageError
from unswayed.build import assemble


@pytest.fixture
def trainer(tiny):
    words = ["regularizer.tau=0.0", "framework.name=simsiam", "regularizer.name=ctrr"]
    return assemble(Recipe.from_dict(tiny.sections, *words))[0]


def pulls(trainer, batch, form):
    """Norms of the gradients at q_i, one pair at a time, by autograd."""
    learner = trainer.learner
    logits, directions = learner.passes(batch)
    p = logits[0].detach().softmax(dim=1)
    weights = weights_of(learner.regularizer, p, batch.labels, batch.progress)
    found = torch.zeros(len(p), len(p))
    for query, key in directions:
        q = query.detach().double().requires_grad_()
        for i in range(len(q)):
            for j in range(len(q)):
                if i == j or weights[i, j] == 0:
                    continue
                s = F.normalize(q[i], dim=0) @ F.normalize(key[j].detach().double(), dim=0)
                term = weights[i, j] * (-s if form == "inner" else torch.log(1 - s))
                (gradient,) = torch.autograd.grad(term, q)
                found[i, j] += gradient[i].norm()
    return found


def test_shares_are_those_of_autograd(trainer):
    rows = trainer.rows[:8]
    batch = trainer.batches.of_rows(rows, 0, 0)
    true = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    found = shares(trainer.learner, [batch], [true])
    wrong = true[:, None] != true[None, :]
    for form, share in (("inner", found.wrong_inner), ("log", found.wrong_log)):
        expected = pulls(trainer, batch, form)
        assert share == pytest.approx(float((expected * wrong).sum() / expected.sum()), rel=1e-4)
    assert found.selected == 1  # τ = 0 selects every pair
    assert found.precision == pytest.approx(8 / 56)


def test_looking_changes_nothing(trainer):
    before = {name: value.clone() for name, value in trainer.learner.state_dict().items()}
    trainer.learner.train()
    batch = trainer.batches.of_rows(trainer.rows[:8], 0, 0)
    shares(trainer.learner, [batch], [torch.zeros(8)])
    for name, value in trainer.learner.state_dict().items():
        if "num_batches_tracked" not in name:
            assert torch.equal(value, before[name]), name


def test_no_pair_has_no_share(tiny):
    learner = assemble(Recipe.from_dict(tiny.sections, "regularizer.tau=1.0"))[0]
    found = shares(
        learner.learner, [learner.batches.of_rows(learner.rows[:8], 0, 0)], [torch.zeros(8)]
    )
    assert found == (None, None, None, 0.0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["noise.name=none"], "noise.name=symmetric"),
        (["method=ce"], "method=ctrr"),
        (["regularizer.clamp=coordinate"], "regularizer.clamp=similarity"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_training(tiny, tmp_path, words, message):
    with pytest.raises(UsageError, match=message):
        measure(Recipe.from_dict(tiny.sections, *words), Lab(tmp_path / "figure-x"))
    assert list(tmp_path.iterdir()) == []


def test_a_course_is_measured_once(tiny, tmp_path):
    path = tmp_path / "a" / "course.json"
    first = course(tiny, path)
    assert len(first) == tiny.settings.epochs
    assert course(tiny, path) == first == json.loads(path.read_text())["epochs"]
