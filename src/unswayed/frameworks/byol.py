"""BYOL: the keys come from a slowly moving copy of the encoder. Grill et al., NeurIPS 2020."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unswayed.frameworks import BNStats, Framework, register
from unswayed.frameworks.heads import HeadStyle, predictor, projector
from unswayed.frameworks.simsiam import Widths
from unswayed.schedules import FractionSchedule, value_at
from unswayed.types import Count, Pairs


@register("byol", paper="Grill et al., NeurIPS 2020; Yi et al., CVPR 2022, table 5")
class BYOL(Framework):
    """Queries from the online network, keys from its moving average ξ ← m ξ + (1-m) θ."""

    def __init__(
        self,
        backbone: nn.Module,
        feature_dim: int,
        projector_widths: Widths = (2048, 2048, 2048),
        predictor_hidden: Count = 512,
        heads: HeadStyle = "simsiam",
        symmetric: bool = True,
        momentum: FractionSchedule = 0.99,
        bn_stats: BNStats = "both",
    ) -> None:
        """Build the heads and the target.

        Args:
            backbone: the learner's backbone, of which the target is a copy.
            feature_dim: F of the backbone.
            projector_widths: width of each projector layer; the last one is D.
            predictor_hidden: hidden width of the predictor.
            heads: see `frameworks/heads.py`.
            symmetric: average both directions; the published code is one-sided.
            momentum: m, the share of the target that stays each step.
            bn_stats: which views feed the running batch-norm statistics.
        """
        super().__init__(bn_stats)
        self.projector = projector(feature_dim, projector_widths, heads)
        self.predictor = predictor(projector_widths[-1], predictor_hidden, heads)
        self.target_backbone = copy.deepcopy(backbone).requires_grad_(False)
        self.target_projector = copy.deepcopy(self.projector).requires_grad_(False)
        self.symmetric, self.momentum = symmetric, momentum
        self.second = "gradient" if symmetric else "unused"

    @torch.no_grad()
    def before_step(self, backbone: nn.Module, progress: float) -> None:
        """Move the target's parameters; its batch-norm buffers come from its own forwards."""
        m = value_at(self.momentum, progress)
        online = [*backbone.parameters(), *self.projector.parameters()]
        target = [*self.target_backbone.parameters(), *self.target_projector.parameters()]
        for moved, towards in zip(target, online, strict=True):
            moved.lerp_(towards, 1 - m)

    def forward(self, features: Sequence[Tensor], images: Sequence[Tensor]) -> list[Pairs]:
        """Return q1 against the target's z2 and, if symmetric, q2 against its z1."""
        x1, x2 = images
        directions = [Pairs(self._query(features[0]), self._key(x2))]
        if self.symmetric:
            directions.append(Pairs(self._query(features[1]), self._key(x1)))
        return directions

    def _query(self, f: Tensor) -> Tensor:  # (B, D)
        out: Tensor = self.predictor(self.projector(f))
        return out

    @torch.no_grad()
    def _key(self, x: Tensor) -> Tensor:  # (B, D)
        out: Tensor = self.target_projector(self.target_backbone(x))
        return out
