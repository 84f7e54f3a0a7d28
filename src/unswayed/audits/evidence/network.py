"""The network's own margin. Northcutt et al., JAIR 2021; Pleiss et al., NeurIPS 2020.

Best while little is memorised: the network has learnt from all labels, and resists the wrong ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from unswayed.audits.evidence import Evidence, Inputs, register

PRIOR, LARGEST = 1.0, 2.0
"""Samples that are added to each class, and the most that a logit is changed."""


@register("network", paper="Northcutt et al., JAIR 2021, sec. 3")
class Network(Evidence):
    """Log-probabilities of the last network, of rows it was trained on as well."""

    name = "network"

    def applies(self, inputs: Inputs) -> bool:
        """Need logits."""
        return inputs.logits is not None

    def log_beliefs(self, inputs: Inputs) -> Iterator[Tensor]:
        """Yield (b, K)."""
        assert inputs.logits is not None
        balance = balance_of(inputs)
        for rows in inputs.chunks():
            yield (inputs.logits[rows].float() + balance).log_softmax(dim=1)


def balance_of(inputs: Inputs) -> Tensor:
    """Return what to add to logits (K,), so that classes are expected as often as they are given.

    A network learns hard and rare classes late, and believes in them too seldom. Without this their
    labels would all look wrong.
    """
    if "balance" not in inputs.cache:
        assert inputs.logits is not None
        expected = torch.zeros(inputs.num_classes, dtype=torch.float64)
        for rows in inputs.chunks():
            expected += inputs.logits[rows].float().softmax(dim=1).sum(dim=0)
        given = torch.bincount(inputs.given, minlength=inputs.num_classes)
        ratio = ((given + PRIOR) / (expected + PRIOR)).log().clamp(-LARGEST, LARGEST)
        inputs.cache["balance"] = ratio.float(), ratio.float()
    return inputs.cache["balance"][0]
