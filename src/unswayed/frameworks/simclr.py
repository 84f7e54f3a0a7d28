"""SimCLR: attraction as elsewhere, and every other view repels. Chen et al., ICML 2020."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.frameworks import BNStats, Encoder, Framework, register
from unswayed.frameworks.heads import HeadStyle, projector
from unswayed.frameworks.simsiam import Widths
from unswayed.types import Pairs, Positive


@register("simclr", paper="Chen et al., ICML 2020; Yi et al., CVPR 2022, table 5")
class SimCLR(Framework):
    """No predictor, no stopped gradient; NT-Xent's denominator keeps the views apart."""

    def __init__(
        self,
        feature_dim: int,
        projector_widths: Widths = (2048, 128),
        heads: HeadStyle = "plain",
        temperature: Positive = 0.5,
        drop_selected_negatives: bool = False,
        bn_stats: BNStats = "both",
    ) -> None:
        """Build the projector.

        Args:
            feature_dim: F of the backbone.
            projector_widths: width of each projector layer; the last one is D.
            heads: see `frameworks/heads.py`.
            temperature: t of the denominator; it does not divide the attraction.
            drop_selected_negatives: leave attracted pairs of different images out of the
                denominator; the paper keeps "the same" objective for negatives.
            bn_stats: which views feed the running batch-norm statistics.
        """
        super().__init__(bn_stats)
        self.projector = projector(feature_dim, projector_widths, heads)
        self.temperature = temperature
        self.drop_selected_negatives = drop_selected_negatives

    def forward(self, backbone: Encoder, x1: Tensor, x2: Tensor) -> list[Pairs]:
        """Return both directions; gradients flow through either side."""
        u1, u2 = self.projector(backbone(x1)), self.projector(backbone(x2))
        return [Pairs(u1, u2), Pairs(u2, u1)]

    def repulsion(self, directions: Sequence[Pairs], selected: Tensor) -> Tensor:
        """Return (1/2B) Σ_a log Σ_{b≠a} exp(s_ab / t) over the 2B views."""
        u = F.normalize(torch.cat(directions[0]), dim=1)  # (2B, D)
        leave_out = torch.eye(len(u), dtype=torch.bool, device=u.device)
        if self.drop_selected_negatives:
            others = selected & ~torch.eye(len(selected), dtype=torch.bool, device=u.device)
            leave_out = leave_out | others.repeat(2, 2)
        logits = (u @ u.T / self.temperature).masked_fill(leave_out, -torch.inf)
        return logits.logsumexp(dim=1).mean()
