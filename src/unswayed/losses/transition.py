"""What loss corrections share: the matrix T, given or estimated. Patrini et al., CVPR 2017.

T[i, j] is the probability that a sample of class i is given label j. Estimating it takes a first
part of the training, with cross entropy. Its best network on the noisy hold-out tells, for each
class, which sample belongs to it most surely, an anchor; what it predicts there is a row of T.
Training then begins anew from that network with the corrected loss.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from annotated_types import Ge, Gt, Le, Lt
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from unswayed.errors import UsageError
from unswayed.losses import Loss
from unswayed.losses.best import Best
from unswayed.noise.estimate import anchor_matrix, confident_matrix
from unswayed.noise.matrix import stochastic
from unswayed.schedules import restart_epoch
from unswayed.types import Fraction, Overview

Matrix = NDArray[np.float64]
MatrixOption = Literal["estimate", "confident", "known"] | list[list[float]]


class Corrected(Loss):
    """Cross entropy as long as T is to be estimated, then a loss that T corrects."""

    matrix: Tensor  # (K, K) T
    estimated: Tensor
    on_cpu = ("estimated",)

    def __init__(
        self,
        num_classes: int,
        classifier: nn.Module | None = None,
        known_matrix: ArrayLike | None = None,
        matrix: MatrixOption = "estimate",
        warmup: Annotated[float, Gt(0), Lt(1)] | None = None,
        percentile: Annotated[float, Ge(0), Le(100)] | None = None,
        identity: Fraction = 0.0,
    ) -> None:
        """Take T if it is there, and a copy of the network otherwise.

        Args:
            num_classes: K.
            classifier: the network that is trained; needed where T is estimated.
            known_matrix: the realised T, where true labels are known.
            matrix: T: "estimate" it from anchors as the paper does, or from all "confident"
                predictions of held-out samples; take the "known" one from the true labels, or its
                rows.
            warmup: share of the training that goes into the estimate, half if not given; then it
                begins anew.
            percentile: predictions at or above this percentile of their class are outliers and no
                anchors, 97 if not given; 0 keeps all, as was done for CIFAR-100.
            identity: α, T is replaced by (1 - α) T + α I.
        """
        super().__init__()
        if warmup is not None and matrix not in ("estimate", "confident"):
            raise UsageError(
                "loss.warmup is for an estimate; leave it out, or set loss.matrix=estimate"
            )
        if percentile is not None and matrix != "estimate":
            raise UsageError(
                "loss.percentile is for anchors; leave it out, or set loss.matrix=estimate"
            )
        self.anchors = matrix == "estimate"
        self.warmup, self.identity = warmup or 0.5, identity
        self.percentile = 97.0 if percentile is None else percentile
        self.best: Best | None = None
        self.register_buffer("matrix", torch.eye(num_classes))
        self.register_buffer("estimated", torch.tensor(False))
        if matrix in ("estimate", "confident"):
            if classifier is None:
                raise UsageError("to estimate its matrix, this loss needs the classifier")
            self.best = Best(classifier)
            self.trained = (classifier,)  # in a tuple, so that it is no part of this module
            self.restart = self.warmup
        else:
            self.use(mixed(given_matrix(matrix, known_matrix, num_classes), identity))

    @abstractmethod
    def corrected(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the corrected loss, (B,)."""

    def use(self, matrix: Matrix) -> None:
        """Correct with this T."""
        self.matrix.copy_(torch.from_numpy(matrix))

    def before_epoch(self, overview: Overview) -> None:
        """Keep track of the best network; after the warm-up, estimate T and go back to it."""
        if self.best is None or self.estimated:
            return
        self.best.offer(overview.network, _fit(overview))
        if overview.epoch < restart_epoch(self.warmup, overview.epochs):
            return
        self.use(mixed(self.found(overview, self.best.network), self.identity))
        # What is evaluated may be an average of the weights that are trained: both go back.
        self.best.restore(*self.trained, overview.network)
        self.estimated.fill_(True)

    def found(self, overview: Overview, network: nn.Module) -> Matrix:
        """Estimate T."""
        if self.anchors:
            p = overview.look(network, overview.rows).cpu().double().numpy()
            return anchor_matrix(p, self.percentile)
        rows = overview.holdout if len(overview.holdout) else overview.rows
        return confident_matrix(overview.look(network, rows), overview.given[rows])

    def findings(self) -> dict[str, Any]:
        """Return T, once it is estimated."""
        return {"matrix": self.matrix.tolist()} if self.estimated else {}

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return (B,)."""
        if self.best is None or self.estimated:
            return self.corrected(logits, labels)
        return F.cross_entropy(logits, labels, reduction="none")


def _fit(overview: Overview) -> Tensor | None:
    """Return minus the cross entropy on the noisy hold-out, if there is one."""
    if not len(overview.holdout):
        return None
    return -overview.losses(overview.network, overview.holdout).mean()


def mixed(matrix: Matrix, identity: float) -> Matrix:
    """Return (1 - α) T + α I."""
    return (1 - identity) * matrix + identity * np.eye(len(matrix))


def given_matrix(option: MatrixOption, known_matrix: ArrayLike | None, num_classes: int) -> Matrix:
    """Return the T that a recipe gives or the data know, checked."""
    if option != "known":
        return stochastic(option, num_classes, "loss.matrix")
    if known_matrix is None:
        raise UsageError(
            "loss.matrix is 'known', but the true labels are not; give the rows of the matrix, or "
            "use loss.matrix=estimate"
        )
    matrix = np.array(known_matrix, dtype=np.float64)
    absent = ~matrix.any(axis=1)  # classes without a sample, of which nothing was measured
    matrix[absent] = np.eye(len(matrix))[absent]
    return stochastic(matrix, num_classes, "loss.matrix")
