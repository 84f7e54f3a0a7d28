"""What the network said of a sample while it was trained. Pleiss et al., NeurIPS 2020, "AUM".

A wrong label is learnt late if at all. Its mean over all epochs shows that even where the last
network has memorised it.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from unswayed.audits.evidence import Evidence, Inputs, register


@register("dynamics", paper="Pleiss et al., NeurIPS 2020; Swayamdipta et al., EMNLP 2020")
class Dynamics(Evidence):
    """Mean probabilities over the epochs of the training; of held-out rows, the last network's.

    Records hold the probabilities of the given and of the predicted class. The rest is shared
    evenly by the others.
    """

    name = "dynamics"

    def applies(self, inputs: Inputs) -> bool:
        """Need records, and logits for rows that have none."""
        return inputs.records is not None and inputs.logits is not None

    def log_beliefs(self, inputs: Inputs) -> Iterator[Tensor]:
        """Yield (b, K)."""
        records, logits = inputs.records, inputs.logits
        assert records is not None
        assert logits is not None
        for rows in inputs.chunks():
            given = inputs.given[rows]
            total = torch.zeros(len(given), inputs.num_classes)
            epochs = torch.zeros(len(given), 1)
            for of_given, highest, predicted in zip(
                records.given_probability, records.probability, records.predicted, strict=True
            ):
                p = _spread(
                    given, of_given[rows], predicted[rows].long(), highest[rows], total.shape
                )
                known = ~of_given[rows].isnan()[:, None]
                total += torch.where(known, p, 0.0)
                epochs += known
            last = logits[rows].float().softmax(dim=1)
            mean = torch.where(epochs > 0, total / epochs.clamp_min(1), last)
            yield mean.clamp_min(1e-6).log()


def _spread(
    given: Tensor, of_given: Tensor, predicted: Tensor, highest: Tensor, shape: torch.Size
) -> Tensor:
    """Return probabilities (b, K) with two classes known, and the rest shared evenly."""
    agrees = predicted == given
    known = torch.where(agrees, highest, of_given + highest)
    others = shape[1] - torch.where(agrees, 1, 2)
    rest = ((1 - known) / others.clamp_min(1)).clamp_min(0)
    p = rest[:, None].expand(shape).clone()
    p.scatter_(1, predicted.clamp_min(0)[:, None], highest[:, None])
    return p.scatter_(1, given[:, None], torch.where(agrees, highest, of_given)[:, None])
