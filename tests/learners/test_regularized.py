from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from pairing import cost_of, directions_of, repulsion_of, weights_of
from reference import ctrr as literal
from unswayed.errors import UsageError
from unswayed.frameworks import FRAMEWORKS
from unswayed.learners import Classifier
from unswayed.learners.regularized import Regularized, running_statistics
from unswayed.losses import LOSSES
from unswayed.models import MODELS
from unswayed.regularizers import REGULARIZERS
from unswayed.types import Batch, Views


def make(
    framework="simsiam",
    regularizer="ctrr",
    loss="ce",
    framework_options=None,
    learner=None,
    **options,
):
    torch.manual_seed(0)
    backbone = MODELS.build("small", {"in_channels": 1}, width=4)
    classifier = Classifier(backbone, 3, [0.4], [0.2])
    facts = {"backbone": backbone, "feature_dim": backbone.feature_dim, "classifier": classifier}
    facts |= {"num_classes": 3, "num_samples": 10, "run_seed": 0, "known_matrix": None}
    widths = {"projector_widths": (16, 12)} if framework != "none" else {}
    return Regularized(
        classifier,
        LOSSES[loss].build({}, facts),
        FRAMEWORKS[framework].build({**widths, **(framework_options or {})}, facts),
        REGULARIZERS.build(regularizer, **options),
        **(learner or {}),
    ).double()


@pytest.fixture
def batch(generator):
    views = torch.rand(3, 10, 1, 8, 8, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 3, (10,), generator=generator)
    return Batch(Views((views[0],), (views[1], views[2])), labels, torch.arange(10), 0, 0.25)


def test_the_objective_is_the_label_loss_plus_lambda_times_the_contrast(batch):
    terms = make(weight=7.0, tau=0.4)(batch)
    expected = terms.parts["label"] + 7 * terms.parts["contrast"]
    assert terms.total.item() == pytest.approx(expected.item())
    assert terms.losses.mean().item() == pytest.approx(terms.parts["label"].item())


@pytest.mark.parametrize("framework", ["simsiam", "byol", "simclr"])
def test_the_contrast_is_the_papers_on_the_networks_own_embeddings(framework, batch):
    learner = make(framework, weight=1.0, tau=0.34).eval()  # eval: batch norm has no memory
    terms = learner(batch)
    x1, x2 = (learner.classifier.normalize(x) for x in batch.views.strong)
    directions = directions_of(learner.framework, learner.classifier.backbone, x1, x2)
    p = learner.classifier(batch.views.weak[0]).softmax(1)
    expected = np.mean([literal(q.tolist(), z.tolist(), p.tolist(), 0.34) for q, z in directions])
    if framework == "simclr":
        from reference import nt_xent_denominator

        u1, u2 = (part.detach().numpy() for part in directions[0])
        expected += nt_xent_denominator(u1, u2, 0.5)
    assert terms.parts["contrast"].item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES.names())
def test_lambda_zero_is_the_plain_loss_with_its_gradient(loss, batch):
    plain, zero = make("none", "none", loss), make(loss=loss, weight=0.0)
    for learner in (plain, zero):
        learner(batch).total.backward()
    for a, b in zip(plain.classifier.parameters(), zero.classifier.parameters(), strict=True):
        assert torch.equal(a.grad, b.grad)
    for a, b in zip(plain.classifier.buffers(), zero.classifier.buffers(), strict=True):
        assert torch.equal(a, b)  # running statistics, which predictions depend on


def test_lambda_may_be_a_schedule(batch):
    learner = make(weight={"name": "ramp", "start": 0.0, "end": 8.0})
    terms = learner(batch)
    found = (terms.total - terms.parts["label"]) / terms.parts["contrast"]
    assert found.item() == pytest.approx(2.0)  # a quarter of the way


def test_both_terms_train_the_backbone(batch):
    def gradient(**options):
        learner = make(**options)
        learner(batch).total.backward()
        return learner.classifier.backbone.convs[0].weight.grad

    assert not torch.allclose(gradient(weight=5.0), gradient(weight=0.0))


def test_the_pair_weights_send_no_gradient_into_the_classifiers_head(batch):
    with_contrast, without = make(weight=5.0, tau=0.0), make("none", "none")
    for learner in (with_contrast, without):
        learner(batch).total.backward()
    a, b = with_contrast.classifier.head, without.classifier.head
    assert torch.allclose(a.weight.grad, b.weight.grad)


@pytest.mark.parametrize(("bn_stats", "forwards"), [("both", 3), ("weak", 1)])
def test_which_views_feed_the_running_statistics(bn_stats, forwards, batch):
    learner = make(framework_options={"bn_stats": bn_stats})
    norm = learner.classifier.backbone.norms[0]
    seen = []
    norm.register_forward_hook(lambda m, i, o: seen.append(m.running_mean.clone()))
    learner(batch)
    changes = sum(
        not torch.equal(a, b)
        for a, b in zip([torch.zeros_like(seen[0]), *seen[:-1]], seen, strict=True)
    )
    assert len(seen) == 3
    assert changes == forwards
    assert norm.momentum == 0.1


def test_the_momentum_comes_back_after_an_error():
    net = torch.nn.BatchNorm1d(3)
    with pytest.raises(RuntimeError), running_statistics(net, update=False):
        raise RuntimeError
    assert net.momentum == 0.1


def test_a_framework_needs_a_regularizer():
    with pytest.raises(ValueError, match="together"):
        make("simsiam", "none")


def test_terms_carry_no_graph_for_the_record(batch):
    terms = make()(batch)
    kept = [terms.losses, terms.logits, *terms.parts.values()]
    assert not any(tensor.requires_grad for tensor in kept)


def test_the_classifier_takes_bytes_or_floats(generator):
    net = make("none", "none").classifier.float().eval()
    images = torch.randint(0, 256, (4, 1, 8, 8), generator=generator).to(torch.uint8)
    assert torch.allclose(net(images), net(images.float() / 255))
    p = net.predict_proba(images)
    assert torch.allclose(p.sum(1), torch.ones(4))
    assert torch.allclose(p, F.softmax(net(images), dim=1))


def test_under_autocast_the_objective_is_still_computed_in_single_precision(batch):
    learner = make(weight=5.0, tau=0.0).float()
    views = Views(*(tuple(x.float() for x in kind) for kind in batch.views))
    batch = Batch(views, batch.labels, batch.index, 0, 0.0)
    plain = learner(batch)
    with torch.autocast("cpu", torch.bfloat16):
        half = learner(batch)
    assert half.total.dtype == torch.float32
    assert torch.isfinite(half.total)
    assert half.total.item() == pytest.approx(plain.total.item(), abs=0.2)


@pytest.mark.parametrize("framework", ["simsiam", "byol", "simclr"])
def test_joined_views_give_the_same_as_separate_ones_where_batch_norm_is_fixed(framework, batch):
    separate = make(framework, weight=2.0, tau=0.34).eval()
    joined = make(framework, weight=2.0, tau=0.34, learner={"joined": True}).eval()
    joined.load_state_dict(separate.state_dict())
    assert separate.views == joined.views == ("weak", "strong", "strong")
    found = [learner(batch).total for learner in (separate, joined)]
    assert found[0].item() == pytest.approx(found[1].item(), abs=1e-12)
    gradients = [
        torch.autograd.grad(total, learner.classifier.parameters())
        for total, learner in zip(found, (separate, joined), strict=True)
    ]
    for one, other in zip(*gradients, strict=True):
        assert torch.allclose(one, other, atol=1e-10)


@pytest.mark.parametrize("framework", ["simsiam", "byol", "simclr"])
def test_two_views_can_bear_labels_and_contrast(framework, batch):
    learner = make(framework, weight=2.0, tau=0.34, learner={"label_view": "strong"}).eval()
    assert learner.views == ("strong", "strong")
    terms = learner(batch)
    logits = [learner.classifier(view) for view in batch.views.strong]
    label = sum(F.cross_entropy(each, batch.labels) for each in logits) / 2
    assert terms.parts["label"].item() == pytest.approx(label.item())
    p = (logits[0].softmax(1) + logits[1].softmax(1)) / 2
    x1, x2 = (learner.classifier.normalize(x) for x in batch.views.strong)
    directions = directions_of(learner.framework, learner.classifier.backbone, x1, x2)
    weights = weights_of(learner.regularizer, p, batch.labels, 0.25)
    contrast = cost_of(learner.regularizer, directions, weights)
    contrast = contrast + repulsion_of(learner.framework, directions, weights > 0)
    assert terms.parts["contrast"].item() == pytest.approx(contrast.item())
    assert torch.allclose(terms.logits, (logits[0] + logits[1]) / 2)


@pytest.mark.parametrize("options", [{"joined": True}, {"label_view": "strong"}])
def test_strong_views_of_labels_need_a_contrast(options):
    with pytest.raises(UsageError, match=r"learner\.(joined|label_view) needs a contrast"):
        make("none", "none", learner=options)


@pytest.mark.parametrize("options", [{"joined": True}, {"label_view": "strong"}])
def test_running_statistics_of_one_view_need_separate_views(options):
    with pytest.raises(UsageError, match=r"framework\.bn_stats"):
        make(framework_options={"bn_stats": "weak"}, learner=options)
