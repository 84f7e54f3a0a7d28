"""What the network believes of a sample's nearest neighbours.

A wrong label that was memorised stands alone among its neighbours, which were not.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from unswayed.audits.evidence import Evidence, Inputs, register
from unswayed.audits.evidence.neighbours import Neighbour, nearest
from unswayed.audits.evidence.network import balance_of


@register("consensus", paper="Iscen et al., CVPR 2022, eq. 3")
class Consensus(Evidence):
    """Mean probabilities of the nearest neighbours in feature space, without the sample itself."""

    name = "consensus"

    def __init__(self, k: Neighbour = 10) -> None:
        """Store the options.

        Args:
            k: how many neighbours are asked.
        """
        self.k = k

    def applies(self, inputs: Inputs) -> bool:
        """Need features and logits."""
        return inputs.features is not None and inputs.logits is not None and len(inputs) > 2

    def log_beliefs(self, inputs: Inputs) -> Iterator[Tensor]:
        """Yield (b, K)."""
        assert inputs.logits is not None
        everyone, balance = nearest(inputs)[0][:, : self.k], balance_of(inputs)
        p = torch.empty(len(inputs), inputs.num_classes, dtype=torch.float16)
        for part in inputs.chunks():
            p[part] = (inputs.logits[part].float() + balance).softmax(dim=1)
        for part in inputs.chunks():
            total = torch.zeros(part.stop - part.start, inputs.num_classes)
            for column in everyone[part].long().T:
                total += p[column]
            yield (total / everyone.shape[1]).clamp_min(1e-6).log()
