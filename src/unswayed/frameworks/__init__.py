"""How embeddings arise: two strong views in, queries and keys out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal

from torch import Tensor, nn

from unswayed.registry import Registry
from unswayed.types import Pairs

BNStats = Literal["both", "weak"]
Encoder = Callable[[Tensor], Tensor]
"""Normalised images (B, C, H, W) in, features (B, F) out: a backbone, or what it said before."""


class Framework(nn.Module, ABC):
    """Projector, predictor and target network around a backbone that belongs to the learner.

    `bn_stats` says which views feed the running batch-norm statistics that testing uses: the weak
    and the strong ones, as in the published code, or the weak ones alone.
    """

    def __init__(self, bn_stats: BNStats) -> None:
        super().__init__()
        self.bn_stats = bn_stats

    @abstractmethod
    def forward(self, backbone: Encoder, x1: Tensor, x2: Tensor) -> Sequence[Pairs]:
        """Return one or two directions; keys carry no gradient where the paper stops it."""

    def before_step(self, backbone: nn.Module, progress: float) -> None:
        """Called once a training step, before the forward. BYOL moves its target here."""

    def repulsion(self, directions: Sequence[Pairs], selected: Tensor) -> Tensor:
        """Return the framework's own term against collapse, beside the attraction of pairs.

        Args:
            directions: what `forward` returned.
            selected: (B, B) bool, pairs that the regularizer attracts.
        """
        return directions[0].query.new_zeros(())


FRAMEWORKS: Registry[Framework | None] = Registry("framework", __name__)
register = FRAMEWORKS.register
