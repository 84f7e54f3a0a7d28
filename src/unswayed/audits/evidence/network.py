"""The network's own margin. Northcutt et al., JAIR 2021; Pleiss et al., NeurIPS 2020.

Best while little is memorised: the network has learnt from all labels, and resists the wrong ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from unswayed.audits.evidence import Evidence, Inputs, register


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
        for rows in inputs.chunks():
            yield inputs.logits[rows].float().log_softmax(dim=1)
