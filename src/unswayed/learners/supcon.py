"""Supervised contrast on given labels: what wrong labels do to it is CTRR's starting point.

Khosla et al., NeurIPS 2020.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.frameworks.heads import projector
from unswayed.frameworks.simsiam import Widths
from unswayed.learners import Classifier, Learner, register
from unswayed.processes import whole
from unswayed.regularizers.pairs import single
from unswayed.types import Batch, Positive, Terms


@register("supcon", paper="Khosla et al., NeurIPS 2020, eq. 2")
class SupCon(Learner):
    """The backbone learns by contrast alone; a linear head reads it and sends nothing back."""

    classifier: Classifier
    views = ("weak", "strong", "strong")

    def __init__(
        self,
        classifier: Classifier,
        projector_widths: Widths = (512, 128),
        temperature: Positive = 0.1,
    ) -> None:
        """Build the projector.

        Args:
            classifier: the network; its head is trained on features without gradient.
            projector_widths: width of each projector layer; the last one is D.
            temperature: t.
        """
        super().__init__()
        self.classifier, self.temperature = classifier, temperature
        self.projector = projector(classifier.backbone.feature_dim, projector_widths, "plain")

    def forward(self, batch: Batch) -> Terms:
        """Return the contrast of 2B strong views and the head's cross entropy on the weak one."""
        net = self.classifier
        u = torch.cat(
            [self.projector(net.backbone(net.normalize(x))) for x in batch.views.strong]
        )  # (2B, D)
        contrast = supcon_loss(whole(u), batch.labels.repeat(2), self.temperature)
        with torch.no_grad():
            features = net.backbone(net.normalize(batch.views.weak[0]))
        logits = net.head_of(features)
        losses = F.cross_entropy(logits, batch.labels, reduction="none")
        parts = {"label": losses.detach().mean(), "contrast": contrast.detach()}
        return Terms(contrast + losses.mean(), parts, losses.detach(), logits.detach())


def supcon_loss(u: Tensor, labels: Tensor, temperature: float = 0.1) -> Tensor:
    """Return the mean over anchors of -1/|P(i)| Σ_{p∈P(i)} log softmax_{a≠i}(u_i·u_a / t)_p.

    Args:
        u: (n, D) embeddings, not normalised; every image in at least two views.
        labels: (n,); P(i) are the other rows with the same label.
        temperature: t.
    """
    u = F.normalize(single(u), dim=1)
    itself = torch.eye(len(u), dtype=torch.bool, device=u.device)
    with torch.autocast(u.device.type, enabled=False):
        s = u @ u.T / temperature
    log_p = F.log_softmax(s.masked_fill(itself, -torch.inf), dim=1)
    positive = (labels[:, None] == labels[None, :]) & ~itself
    picked = torch.where(positive, log_p, 0).sum(dim=1)
    return -(picked / positive.sum(dim=1).clamp_min(1)).mean()
