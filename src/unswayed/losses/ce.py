"""Cross entropy: every label is believed."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from unswayed.losses import Loss, register


@register("ce")
class CE(Loss):
    """Cross entropy, -log p_y."""

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return (B,)."""
        return F.cross_entropy(logits, labels, reduction="none")
