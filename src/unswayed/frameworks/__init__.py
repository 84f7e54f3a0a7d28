"""How embeddings arise: two strong views in, queries and keys out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn

from unswayed.registry import Registry
from unswayed.types import Pairs

BNStats = Literal["both", "weak"]
Second = Literal["gradient", "no gradient", "unused"]


class Framework(nn.Module, ABC):
    """Projector, predictor and target network around a backbone that belongs to the learner.

    `bn_stats` says which views feed the running batch-norm statistics that testing uses: the weak
    and the strong ones, as in the published code, or the weak ones alone.
    """

    second: Second = "gradient"
    """How the learner's backbone encodes the second view: with gradient, without, or not at all."""

    def __init__(self, bn_stats: BNStats) -> None:
        super().__init__()
        self.bn_stats = bn_stats

    @abstractmethod
    def forward(self, features: Sequence[Tensor], images: Sequence[Tensor]) -> Sequence[Pairs]:
        """Return one or two directions; keys carry no gradient where the paper stops it.

        Args:
            features: (B, F) of the two views, of the first alone where the second is unused.
            images: (B, C, H, W) the two views, normalised, for a network of the framework's own.
        """

    def before_step(self, backbone: nn.Module, progress: float) -> None:
        """Called once a training step, before the forward. BYOL moves its target here."""

    def repulsion(self, directions: Sequence[Pairs], selected: Tensor, positive: Tensor) -> Tensor:
        """Return the framework's own term against collapse, beside the attraction of pairs.

        Args:
            directions: what `forward` returned.
            selected: (B, M) bool, pairs that the regularizer attracts.
            positive: (B,) the key of each row that is its own other view.
        """
        return directions[0].query.new_zeros(())


FRAMEWORKS: Registry[Framework | None] = Registry("framework", __name__)
register = FRAMEWORKS.register
