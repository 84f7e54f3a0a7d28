"""What the benchmarks measure against must compute the same."""

from __future__ import annotations

import pytest
import torch
from step import PlainStep

from unswayed import Recipe
from unswayed.build import assemble
from unswayed.types import Batch, Views

FAST = ("model.name=fast", "model.width=4")
CASES = [(FAST, 0.0), (FAST, 0.1), (FAST, 0.9), (("model.name=preact_resnet18",), 0.1)]


@pytest.mark.parametrize(("model", "tau"), CASES)
def test_our_step_and_the_plain_one_have_the_same_loss_and_gradients(tiny, model, tau, generator):
    words = ["method=ctrr", *model, "framework.name=simsiam"]
    words += ["framework.projector_widths=[16, 16]", "regularizer.weight=5", "data.size=16"]
    trainer, _ = assemble(Recipe.from_dict(tiny.sections, *words, f"regularizer.tau={tau}"))
    learner = trainer.learner.double()
    plain = PlainStep(learner)
    views = torch.rand(3, 12, 1, 16, 16, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 10, (12,), generator=generator)
    batch = Batch(Views((views[0],), (views[1], views[2])), labels, torch.arange(12), 0, 0.3)
    total = learner(batch).total
    normal = [learner.classifier.normalize(view) for view in views]
    reference = plain(*normal, labels)
    assert total.item() == pytest.approx(reference.item(), rel=1e-12)
    total.backward()
    reference.backward()
    ours = dict(learner.named_parameters())
    pairs = {
        "backbone": learner.classifier.backbone,
        "head": learner.classifier.head,
        "projector": learner.framework.projector,
        "predictor": learner.framework.predictor,
    }
    checked = 0
    for name, part in pairs.items():
        theirs = dict(getattr(plain, name).named_parameters())
        for key, parameter in part.named_parameters():
            if parameter.requires_grad:
                assert torch.allclose(parameter.grad, theirs[key].grad, rtol=1e-9, atol=1e-12), key
                checked += 1
    assert checked == sum(p.requires_grad for p in ours.values())
