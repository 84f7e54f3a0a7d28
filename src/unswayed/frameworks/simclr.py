"""SimCLR: attraction as elsewhere, and every other view repels. Chen et al., ICML 2020."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.frameworks import BNStats, Framework, register
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

    def forward(self, features: Sequence[Tensor], images: Sequence[Tensor]) -> list[Pairs]:
        """Return both directions; gradients flow through either side."""
        u1, u2 = (self.projector(f) for f in features)
        return [Pairs(u1, u2), Pairs(u2, u1)]

    def repulsion(self, directions: Sequence[Pairs], selected: Tensor, positive: Tensor) -> Tensor:
        """Return (1/2B) Σ_a log Σ_{b≠a} exp(s_ab / t) of 2B views against all 2M."""
        (q1, z2), (q2, z1) = directions
        rows = keys = F.normalize(torch.cat([q1, z2]), dim=1)  # (2B, D)
        if len(z1) > len(q1):  # keys of other processes are among them
            rows, keys = (F.normalize(torch.cat(u), dim=1) for u in ((q1, q2), (z1, z2)))
        itself = torch.zeros_like(selected).scatter_(1, positive[:, None], True)
        nothing = torch.zeros_like(selected)
        leave_out = torch.cat(
            [torch.cat([itself, nothing], dim=1), torch.cat([nothing, itself], dim=1)]
        )  # (2B, 2M)
        if self.drop_selected_negatives:
            leave_out = leave_out | (selected & ~itself).repeat(2, 2)
        logits = (rows @ keys.T / self.temperature).masked_fill(leave_out, -torch.inf)
        return logits.logsumexp(dim=1).mean()
