"""L = L_label + λ · L_ctr, for any loss, framework and regularizer. Yi et al., CVPR 2022, eq. 8."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from unswayed.frameworks import Framework
from unswayed.learners import Classifier, Learner
from unswayed.losses import Loss
from unswayed.regularizers import Regularizer
from unswayed.regularizers.pairs import single
from unswayed.schedules import value_at
from unswayed.types import Batch, Pairs, Terms


class Regularized(Learner):
    """A label loss on the weak view and a contrastive term on the two strong ones."""

    def __init__(
        self,
        classifier: Classifier,
        loss: Loss,
        framework: Framework | None = None,
        regularizer: Regularizer | None = None,
    ) -> None:
        super().__init__()
        if (framework is None) != (regularizer is None):
            raise ValueError("a framework and a regularizer come together or not at all")
        self.classifier, self.loss = classifier, loss
        self.framework, self.regularizer = framework, regularizer
        self.strong_views = framework is not None

    def before_step(self, progress: float) -> None:
        """Let the framework move its target."""
        if self.framework is not None:
            self.framework.before_step(self.classifier.backbone, progress)

    def forward(self, batch: Batch) -> Terms:
        """Return label, contrast and total."""
        logits = single(self.classifier(batch.views.weak))  # (B, K)
        directions = self._directions(batch)
        with torch.autocast(logits.device.type, enabled=False):  # 1 - 1e-4 is 1 in bfloat16
            return self._terms(batch, logits, directions)

    def _directions(self, batch: Batch) -> list[Pairs]:
        if self.framework is None:
            return []
        x1, x2 = (self.classifier.normalize(x) for x in batch.views.strong)
        backbone = self.classifier.backbone
        with running_statistics(backbone, update=self.framework.bn_stats == "both"):
            found = self.framework(backbone, x1, x2)
        return [Pairs(single(query), single(key)) for query, key in found]

    def _terms(self, batch: Batch, logits: Tensor, directions: list[Pairs]) -> Terms:
        losses = self.loss(logits, batch.labels, batch.index)  # (B,)
        total = label = losses.mean()
        parts = {"label": label.detach()}
        if self.framework is not None and self.regularizer is not None:
            p = logits.detach().softmax(dim=1)
            weights = self.regularizer.pair_weights(p, batch.labels, batch.progress)  # (B, B)
            contrast = self.regularizer(directions, weights)
            contrast = contrast + self.framework.repulsion(directions, weights > 0)
            total = label + value_at(self.regularizer.weight, batch.progress) * contrast
            parts["contrast"] = contrast.detach()
        return Terms(total, parts, losses.detach(), logits.detach())


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
