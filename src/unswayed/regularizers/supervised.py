"""The contrastive loss with trusted labels. Yi et al., CVPR 2022, eq. 1."""

from __future__ import annotations

from torch import Tensor

from unswayed.regularizers import Clamp, Form, Regularizer, normalised_weights, register
from unswayed.schedules import NonNegativeSchedule
from unswayed.types import Beliefs


@register("supervised", paper="Yi et al., CVPR 2022, eq. 1")
class Supervised(Regularizer):
    """Attract pairs whose given labels are equal; what wrong labels do to it is the paper's start.

    On clean labels this is the paper's eq. 1, averaged over the partners of each sample.
    """

    def __init__(
        self, weight: NonNegativeSchedule = 50.0, form: Form = "inner", clamp: Clamp = "similarity"
    ) -> None:
        """Store the options.

        Args:
            weight: λ, the factor of this term in the objective.
            form: "inner" is eq. 1; "log" puts eq. 6's logarithm on the same pairs.
            clamp: what is kept away from 1, the similarity or every coordinate.
        """
        super().__init__(weight)
        self.form, self.clamp = form, clamp

    def pair_weights(
        self, rows: Beliefs, keys: Beliefs, positive: Tensor, progress: float
    ) -> Tensor:
        """Return W of M_ij = 1{y_i = y_j}."""
        same = (rows.labels[:, None] == keys.labels[None, :]).to(rows.p.dtype)
        return normalised_weights(same, positive, 0.5, "hard")
