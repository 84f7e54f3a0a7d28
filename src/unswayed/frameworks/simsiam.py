"""SimSiam: one encoder, a predictor, and a stopped gradient. Chen & He, CVPR 2021."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch
from annotated_types import MinLen
from torch import Tensor

from unswayed.frameworks import BNStats, Framework, register
from unswayed.frameworks.heads import HeadStyle, predictor, projector
from unswayed.types import Count, Pairs

Widths = Annotated[tuple[Count, ...], MinLen(1)]


@register("simsiam", paper="Chen & He, CVPR 2021; Yi et al., CVPR 2022, sec. 3")
class SimSiam(Framework):
    """Queries from a predictor, keys from the same encoder without gradient."""

    def __init__(
        self,
        feature_dim: int,
        projector_widths: Widths = (2048, 2048, 2048),
        predictor_hidden: Count = 512,
        heads: HeadStyle = "simsiam",
        symmetric: bool = True,
        bn_stats: BNStats = "both",
    ) -> None:
        """Build the heads.

        Args:
            feature_dim: F of the backbone.
            projector_widths: width of each projector layer; the last one is D.
            predictor_hidden: hidden width of the predictor.
            heads: see `frameworks/heads.py`.
            symmetric: average both directions; one-sided saves a backward pass.
            bn_stats: which views feed the running batch-norm statistics.
        """
        super().__init__(bn_stats)
        self.projector = projector(feature_dim, projector_widths, heads)
        self.predictor = predictor(projector_widths[-1], predictor_hidden, heads)
        self.symmetric = symmetric
        self.second = "gradient" if symmetric else "no gradient"

    def forward(self, features: Sequence[Tensor], images: Sequence[Tensor]) -> list[Pairs]:
        """Return q1 against z2 and, if symmetric, q2 against z1."""
        f1, f2 = features
        z1 = self.projector(f1)  # (B, D)
        with torch.set_grad_enabled(self.symmetric and torch.is_grad_enabled()):
            z2 = self.projector(f2)  # (B, D)
        directions = [Pairs(self.predictor(z1), z2.detach())]
        if self.symmetric:
            directions.append(Pairs(self.predictor(z2), z1.detach()))
        return directions
