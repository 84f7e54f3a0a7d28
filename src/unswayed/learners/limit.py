"""LIMIT: labels reach the classifier only as a predicted gradient.

Harutyunyan et al., ICML 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.device import sent
from unswayed.errors import UsageError
from unswayed.learners import Classifier, Learner, register
from unswayed.randomness import normal, uniform
from unswayed.types import Batch, BelowOne, NonNegative, Positive, Terms


@register("limit", paper="Harutyunyan et al., ICML 2020, sec. 4")
class LIMIT(Learner):
    """A second network, which sees no labels at its input, predicts the gradient of the logits."""

    classifier: Classifier

    def __init__(
        self,
        classifier: Classifier,
        new_classifier: Callable[[], Classifier],
        run_seed: int = 0,
        distribution: Literal["gaussian", "laplace", "ce"] = "gaussian",
        decay: NonNegative = 0.0,
        sample: bool = False,
        precision: Positive | None = None,
        warmup: BelowOne = 0.0,
    ) -> None:
        """Build the auxiliary network.

        Args:
            classifier: the classifier; it never meets a label.
            new_classifier: makes the auxiliary network r.
            run_seed: of the run.
            distribution: of the gradient: "gaussian" trains r by ‖ĝ-g‖², "laplace" by ‖ĝ-g‖₁,
                "ce" by the cross entropy of r.
            decay: β, weight of ‖ĝ‖².
            sample: update with a sample around the predicted gradient in place of its mean.
            precision: λ of the sample, 1 if not given: its deviation is √(1/2λ), or √2/λ for
                "laplace".
            warmup: share of the training in which the classifier is left alone.
        """
        super().__init__()
        if precision is not None and not sample:
            raise UsageError("learner.precision is that of a sample; it needs learner.sample=true")
        self.classifier, self.auxiliary = classifier, new_classifier()
        self.run_seed, self.distribution, self.decay = run_seed, distribution, decay
        self.sample, self.precision, self.warmup = sample, precision or 1.0, warmup

    def forward(self, batch: Batch) -> Terms:
        """Return a total whose gradient with respect to the logits is ĝ / B."""
        x, y = batch.views.weak[0], batch.labels
        frozen = batch.progress < self.warmup
        with torch.set_grad_enabled(not frozen):
            a: Tensor = self.classifier(x)  # (B, K)
        r: Tensor = self.auxiliary(x)  # (B, K)
        p, target = a.detach().softmax(dim=1), F.one_hot(y, a.shape[1]).to(a.dtype)
        predicted = p - r.softmax(dim=1)  # ĝ
        total = auxiliary = self._cost(predicted, p - target, r, y).mean()
        if not frozen:
            total = total + ((predicted.detach() + self._noise(batch, a)) * a).sum(dim=1).mean()
        losses = F.cross_entropy(a.detach(), y, reduction="none")
        parts = {"label": losses.mean(), "auxiliary": auxiliary.detach()}
        return Terms(total, parts, losses, a.detach())

    def _cost(self, predicted: Tensor, true: Tensor, r: Tensor, y: Tensor) -> Tensor:
        """Return (B,): how far the predicted gradient is from the true one, and how large."""
        if self.distribution == "gaussian":
            cost = (predicted - true).square().sum(dim=1)
        elif self.distribution == "laplace":
            cost = (predicted - true).abs().sum(dim=1)
        else:
            cost = F.cross_entropy(r, y, reduction="none")
        return cost + self.decay * predicted.square().sum(dim=1)

    def _noise(self, batch: Batch, like: Tensor) -> Tensor | float:
        if not self.sample:
            return 0.0
        where = (batch.epoch, batch.rows_on_cpu()[:, None], np.arange(like.shape[1]))
        if self.distribution == "laplace":
            u = uniform(self.run_seed, "limit", *where) - 0.5
            noise = -np.sign(u) * np.log1p(-2 * np.abs(u)) / self.precision
        else:
            noise = normal(self.run_seed, "limit", *where) * np.sqrt(0.5 / self.precision)
        return sent(torch.from_numpy(noise).to(like.dtype), like.device)
