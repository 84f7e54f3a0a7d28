"""L = L_label + λ · L_ctr, for any loss, framework and regularizer. Yi et al., CVPR 2022, eq. 8."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from unswayed.errors import UsageError
from unswayed.frameworks import Framework
from unswayed.learners import Classifier, Learner, register
from unswayed.learners.correction import Correction, Targets, expected
from unswayed.losses import Loss
from unswayed.processes import keys, mean_over_rows, own
from unswayed.regularizers import Regularizer
from unswayed.regularizers.pairs import positives, single
from unswayed.schedules import value_at
from unswayed.types import Batch, Beliefs, Overview, Pairs, Terms, ViewKind


@register("regularized", paper="Yi et al., CVPR 2022, eq. 8")
class Regularized(Learner):
    """A label loss on the weak view and a contrastive term on the two strong ones.

    With `label_view` "strong", the two views that are contrasted bear the label loss as well: two
    passes through the network in place of three.
    """

    classifier: Classifier

    def __init__(
        self,
        classifier: Classifier,
        loss: Loss,
        framework: Framework | None = None,
        regularizer: Regularizer | None = None,
        num_samples: int = 0,
        correction: Correction | None = None,
        label_view: Literal["weak", "strong"] = "weak",
        joined: bool = False,
    ) -> None:
        """Put the parts together.

        Args:
            classifier: the network.
            loss: of the given labels.
            framework: how embeddings arise, or None.
            regularizer: which pairs attract, or None.
            num_samples: N, if labels are corrected.
            correction: how labels are corrected late in training; none without it.
            label_view: a weak view of its own, as published, or the two that are contrasted.
            joined: pass all views through the network at once. Batch norm then sees them as one
                batch; with `label_view` "strong" it always does.
        """
        super().__init__()
        if (framework is None) != (regularizer is None):
            raise ValueError("a framework and a regularizer come together or not at all")
        if regularizer is not None and regularizer.weight == 0 and label_view == "weak":
            # What has no weight leaves no trace: strong views would go into running statistics.
            framework = regularizer = None
        elif framework is None and (joined or label_view == "strong"):
            option = "joined" if joined else "label_view"
            raise UsageError(f"learner.{option} needs a contrast; leave it out, or add one")
        if correction is not None and loss.has_memory:
            raise UsageError(
                "learner.correction needs a loss that can be asked about any label; this loss "
                "remembers samples. Leave out learner.correction, or choose another loss"
            )
        self.classifier, self.loss, self.restart = classifier, loss, loss.restart
        self.framework, self.regularizer = framework, regularizer
        self.views = _views(framework, label_view)
        self.joined = framework is not None and (joined or label_view == "strong")
        if self.joined and framework is not None and framework.bn_stats == "weak":
            raise UsageError(
                "framework.bn_stats=weak needs views that pass through the network one by one; "
                "leave out learner.joined and learner.label_view"
            )
        self.targets = (
            None
            if correction is None
            else Targets(correction, num_samples, classifier.head.out_features)
        )

    def before_epoch(self, overview: Overview) -> None:
        """Let the loss and the correction of labels look at the training set."""
        self.loss.before_epoch(overview)
        if self.targets is not None:
            self.targets.before_epoch(overview)

    def findings(self) -> dict[str, Any]:
        """Return what the loss has estimated."""
        return self.loss.findings()

    def before_step(self, progress: float) -> None:
        """Let the framework move its target."""
        if self.framework is not None:
            self.framework.before_step(self.classifier.backbone, progress)

    def forward(self, batch: Batch) -> Terms:
        """Return label, contrast and total."""
        logits, directions = self.passes(batch)
        with torch.autocast(logits[0].device.type, enabled=False):  # 1 - 1e-4 is 1 in bfloat16
            return self._terms(batch, logits, directions)

    def passes(self, batch: Batch) -> tuple[list[Tensor], list[Pairs]]:
        """Return the logits of every view with a label, and what is contrasted with what."""
        if self.joined:
            return self._together(batch)
        logits: Tensor = self.classifier(batch.views.weak[0])
        if self.framework is None:
            return [logits], []
        images = [self.classifier.normalize(x) for x in batch.views.strong]
        return [logits], self._pairs(self._encode(images, self.framework), images)

    def _encode(self, images: Sequence[Tensor], framework: Framework) -> list[Tensor]:
        """Return the features (B, F) of the strong views that the framework has a use for."""
        backbone = self.classifier.backbone
        with running_statistics(backbone, update=framework.bn_stats == "both"):
            features = [backbone(images[0])]
            if framework.second != "unused":
                flows = framework.second == "gradient" and torch.is_grad_enabled()
                with torch.set_grad_enabled(flows):
                    features.append(backbone(images[1]))
        return features

    def _together(self, batch: Batch) -> tuple[list[Tensor], list[Pairs]]:
        """Return the logits of the view or views with labels, and all pairs, from one pass."""
        weak = batch.views.weak if "weak" in self.views else ()
        images = [self.classifier.normalize(x) for x in (*weak, *batch.views.strong)]
        features = self.classifier.backbone(torch.cat(images)).chunk(len(images))
        labelled = features[:1] if weak else features
        logits = [self.classifier.head_of(each) for each in labelled]
        return logits, self._pairs(features[-2:], images[-2:])

    def _pairs(self, features: Sequence[Tensor], images: Sequence[Tensor]) -> list[Pairs]:
        assert self.framework is not None
        return [Pairs(single(q), keys(single(z))) for q, z in self.framework(features, images)]

    def _terms(self, batch: Batch, logits: list[Tensor], directions: list[Pairs]) -> Terms:
        each = [self._label_losses(batch, of_view) for of_view in logits]
        trained, losses = (torch.stack(kind).mean(dim=0) for kind in zip(*each, strict=True))
        total = label = trained.mean()
        parts = {"label": label.detach()}
        if self.framework is not None and self.regularizer is not None:
            p = torch.stack([of_view.detach().softmax(dim=1) for of_view in logits]).mean(dim=0)
            every = Beliefs(p, batch.labels)
            rows, positive = Beliefs(*map(own, every)), own(positives(p))
            weights = self.regularizer.pair_weights(rows, every, positive, batch.progress)
            contrast = self.regularizer(directions, weights, positive)
            contrast = contrast + self.framework.repulsion(directions, weights > 0, positive)
            contrast = mean_over_rows(contrast)
            total = label + value_at(self.regularizer.weight, batch.progress) * contrast
            parts["contrast"] = contrast.detach()
        return Terms(total, parts, losses.detach(), torch.stack(logits).mean(dim=0).detach())

    def _label_losses(self, batch: Batch, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return what is trained on and what is kept on record, (B,) each."""
        targets = None if self.targets is None else self.targets.current(batch.index)
        if targets is None:
            losses: Tensor = self.loss(logits, batch.labels, batch.index)
            return losses, losses
        against_given = F.cross_entropy(logits, batch.labels, reduction="none")
        return expected(self.loss, logits, targets), against_given


def _views(framework: Framework | None, label_view: str) -> tuple[ViewKind, ...]:
    if framework is None:
        return ("weak",)
    return ("weak", "strong", "strong") if label_view == "weak" else ("strong", "strong")


@contextmanager
def running_statistics(net: nn.Module, *, update: bool) -> Iterator[None]:
    """Run train-mode forwards inside; without `update` they leave running statistics alone."""
    norms = [] if update else [m for m in net.modules() if isinstance(m, _BatchNorm)]
    momenta = [m.momentum for m in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
