"""A short teacher, then a student on corrected labels: P(true class | image, given label).

The teacher is trained with cross entropy for a first part of the training, too short to memorise
much, with a learning rate that falls to its end: beliefs in the middle of a training are worth
little. It says how classes are
mislabelled, T, and what each image shows, p. The student goes on from its weights, with a schedule
of its own, towards t_k ∝ p_k^β T[k, y]: what the audit believes of a label, in the loop.
"""

from __future__ import annotations

from typing import Annotated, Any

import torch
import torch.nn.functional as F
from annotated_types import Gt, Lt
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.losses import Loss, register
from unswayed.memory import Memory
from unswayed.noise.estimate import confident_matrix
from unswayed.schedules import restart_epoch
from unswayed.types import Overview, Positive

LEAST = 1e-3
"""No label is less probable than this for any class: T is counted on few samples."""


def label_posterior(p: Tensor, labels: Tensor, matrix: Tensor, *, sharpness: float = 1.0) -> Tensor:
    """Return P(true class | image, given label), (B, K), proportional to p^β T[:, y].

    >>> import torch
    >>> from unswayed.functional import label_posterior
    >>> p = torch.tensor([[0.6, 0.4]])  # the network prefers class 0, the label says 1
    >>> never, often = torch.eye(2), torch.tensor([[0.6, 0.4], [0.0, 1.0]])
    >>> label_posterior(p, torch.tensor([1]), never).round(decimals=2)  # labels are never wrong
    tensor([[0., 1.]])
    >>> label_posterior(p, torch.tensor([1]), often).round(decimals=2)  # 0 is often called 1
    tensor([[0.3800, 0.6200]])

    Args:
        p: (B, K) probabilities of a network.
        labels: (B,) given labels.
        matrix: (K, K) T, whose row i holds the probabilities of the labels given to class i.
        sharpness: β, the power of p. Networks that resist labels are too unsure of themselves.
    """
    likely = matrix.to(p).clamp_min(LEAST).log().T[labels]  # (B, K) log T[:, y]
    return (sharpness * p.clamp_min(1e-12).log() + likely).softmax(dim=1)


@register("posterior")
class Posterior(Loss):
    """Cross entropy for a short teacher; then towards P(true class | image, given label)."""

    matrix: Tensor  # (K, K) T
    corrected: Tensor

    def __init__(
        self,
        num_samples: int,
        num_classes: int,
        teacher: Annotated[float, Gt(0), Lt(1)] = 0.35,
        sharpness: Positive = 2.0,
    ) -> None:
        """Begin with the given labels.

        Args:
            num_samples: N.
            num_classes: K.
            teacher: share of the training that is the teacher's.
            sharpness: β, the power of the teacher's probabilities.
        """
        super().__init__()
        self.restart, self.sharpness = teacher, sharpness
        self.targets = Memory(num_samples, num_classes)  # t
        self.register_buffer("matrix", torch.eye(num_classes))
        self.register_buffer("corrected", torch.tensor(False))

    @property
    def has_memory(self) -> bool:
        """Return True: every sample has its target."""
        return True

    def before_epoch(self, overview: Overview) -> None:
        """When the teacher is done, estimate T and correct the labels that are trained on."""
        if self.corrected or overview.epoch < restart_epoch(self.restart, overview.epochs):
            return
        rows, given, teacher = overview.rows, overview.given, overview.network
        p = overview.look(teacher, rows)
        # The teacher has not seen the labels that are held out, and T is not made too good.
        held = overview.holdout
        unseen = overview.look(teacher, held) if len(held) else p
        matrix = confident_matrix(unseen, given[held] if len(held) else given[rows])
        self.matrix.copy_(torch.from_numpy(matrix))
        posterior = label_posterior(p, given[rows], self.matrix, sharpness=self.sharpness)
        self.targets[rows] = posterior
        self.corrected.fill_(True)

    def findings(self) -> dict[str, Any]:
        """Return T, once it is estimated."""
        return {"matrix": self.matrix.tolist()} if self.corrected else {}

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return (B,). Without an index, which only evaluation may leave out, labels are kept."""
        if index is None and self.training:
            raise UsageError("posterior needs the index of each sample, to find its target")
        if index is None or not self.corrected:
            return F.cross_entropy(logits, labels, reduction="none")
        targets = self.targets[index].to(logits.dtype)
        return F.cross_entropy(logits, targets, reduction="none")
