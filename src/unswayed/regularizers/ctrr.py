"""CTRR, the paper's regularizer. Yi et al., CVPR 2022, eq. 6."""

from __future__ import annotations

from torch import Tensor

from unswayed.regularizers import (
    Clamp,
    Form,
    PairWeight,
    Regularizer,
    contrast,
    normalised_weights,
    register,
)
from unswayed.regularizers.pairs import agreement, positives
from unswayed.schedules import NonNegativeSchedule, ThresholdSchedule, value_at
from unswayed.types import Beliefs


def ctrr_loss(
    q: Tensor,
    z: Tensor,
    p: Tensor,
    *,
    tau: float,
    form: Form = "log",
    clamp: Clamp = "similarity",
    pair_weight: PairWeight = "soft",
) -> Tensor:
    """CTRR in one direction: the queries of one view against the keys of the other; a scalar.

    For the symmetric loss, average two calls. Multiply the result with λ yourself.

    >>> import torch
    >>> from unswayed.functional import ctrr_loss
    >>> q = z = torch.tensor([[1.0, 0.0], [0.0, 1.0]])  # both views of two images agree
    >>> p = torch.tensor([[0.9, 0.1], [0.1, 0.9]])  # p_1·p_2 = 0.18 < τ: no pair is selected
    >>> ctrr_loss(q, z, p, tau=0.4)
    tensor(-1.)

    Args:
        q: (B, D) queries, not necessarily normalised; gradients flow.
        z: (B, D) keys; detach them where your framework stops the gradient.
        p: (B, K) class probabilities of the same samples; always detached here.
        tau: pairs with p_i·p_j < τ are not selected. Above 1 only the diagonal is left.
        form: "log" is eq. 6, "inner" is eq. 4.
        clamp: "similarity" (S ≤ 1-1e-4), or "coordinate" as in the published code.
        pair_weight: weigh a selected pair by p_i·p_j ("soft") or by 1 ("hard").
    """
    positive = positives(p)
    weights = normalised_weights(agreement(p, p), positive, tau, pair_weight)
    return contrast(q, z, weights, positive, form=form, clamp=clamp)


@register("ctrr", paper="Yi et al., CVPR 2022, eq. 6")
class CTRR(Regularizer):
    """Attract pairs the classifier believes to be of one class, through log(1 - <q_i, z_j>)."""

    def __init__(
        self,
        weight: NonNegativeSchedule = 50.0,
        tau: ThresholdSchedule = 0.4,
        clamp: Clamp = "similarity",
        pair_weight: PairWeight = "soft",
    ) -> None:
        """Store the options.

        Args:
            weight: λ, the factor of this term in the objective.
            tau: τ, the agreement p_i·p_j from which on a pair is selected; above 1 only the two
                views of an image attract.
            clamp: what is kept away from 1, the similarity or every coordinate.
            pair_weight: weigh a selected pair by p_i·p_j (soft) or by 1 (hard).
        """
        super().__init__(weight)
        self.tau, self.clamp, self.pair_weight = tau, clamp, pair_weight

    def pair_weights(
        self, rows: Beliefs, keys: Beliefs, positive: Tensor, progress: float
    ) -> Tensor:
        """Return W of M_ij = p_i·p_j."""
        tau = value_at(self.tau, progress)
        return normalised_weights(agreement(rows.p, keys.p), positive, tau, self.pair_weight)


@register("inner_product", paper="Yi et al., CVPR 2022, eq. 4")
class InnerProduct(CTRR):
    """The naive form for the ablation: the same pairs attract through -<q_i, z_j>."""

    form: Form = "inner"
