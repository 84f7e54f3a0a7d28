"""A short teacher, then a student on corrected labels: P(true class | image, given label).

The teacher is trained with cross entropy for a first part of the training, too short to memorise
much, with a learning rate that falls to its end: beliefs in the middle of a training are worth
little. It says how classes are mislabelled, T. What it predicts are *given* labels, p = q T, and
undoing T gives what it believes of true classes, q. The student goes on from its weights, with a
schedule of its own, towards t_k ∝ b_k T[k, y]: what the audit believes of a label, in the loop.

- If b are the student's own beliefs of the moment, a step is one of expectation maximisation, with
  the gradient of forward correction. It gets far beyond its teacher even if most labels are wrong.
- But it hardly moves where labels do not tell classes apart: of cats and dogs that are given each
  other's labels in 40 % of the cases. There b = q.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
from annotated_types import Gt, Lt
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.losses import Loss, register
from unswayed.memory import Memory
from unswayed.noise.estimate import confident_matrix
from unswayed.schedules import restart_epoch
from unswayed.types import Overview

LEAST = 1e-3
"""No label is less probable than this for any class: T is counted on few samples."""

UNSURE = 1e-4
"""No class is less probable than this for any image."""

ALIKE = 0.2
"""Labels of two classes hardly tell them apart if they differ so much less than the median pair."""

ROUNDS = 100
"""Of undoing T. Later rounds change little: 20 of them find nearly the same labels."""


def unmixed(p: Tensor, matrix: Tensor, rounds: int = ROUNDS) -> Tensor:
    """Return probabilities of true classes, q with q T ≈ p, from those of given labels, p.

    A network that learns given labels predicts how an image is *called*: of cats of which 40 % are
    called dogs, it says 0.6 and 0.4. The most likely q is found by expectation maximisation, which
    keeps it positive (Richardson, 1972; Lucy, 1974).

    >>> import torch
    >>> from unswayed.functional import unmixed
    >>> matrix = torch.tensor([[0.6, 0.4], [0.0, 1.0]])  # 40 % of class 0 are called 1
    >>> unmixed(torch.tensor([[0.6, 0.4], [0.3, 0.7]]), matrix).round(decimals=1)
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])

    Args:
        p: (B, K) probabilities of given labels.
        matrix: (K, K) T, whose row i holds the probabilities of the labels given to class i.
        rounds: how often q is improved.
    """
    matrix = _positive(matrix.to(p))
    q = torch.full_like(p, 1 / p.shape[1])
    for _ in range(rounds):
        q = q * ((p / (q @ matrix)) @ matrix.T)
        q = q / q.sum(dim=1, keepdim=True)
    return q


def label_posterior(q: Tensor, labels: Tensor, matrix: Tensor) -> Tensor:
    """Return P(true class | image, given label), (B, K), proportional to q T[:, y].

    >>> import torch
    >>> from unswayed.functional import label_posterior
    >>> q = torch.tensor([[0.6, 0.4]])  # the network prefers class 0, the label says 1
    >>> never, often = torch.eye(2), torch.tensor([[0.6, 0.4], [0.0, 1.0]])
    >>> label_posterior(q, torch.tensor([1]), never).round(decimals=2)  # labels are never wrong
    tensor([[0., 1.]])
    >>> label_posterior(q, torch.tensor([1]), often).round(decimals=2)  # 0 is often called 1
    tensor([[0.3800, 0.6200]])

    Args:
        q: (B, K) probabilities of true classes.
        labels: (B,) given labels.
        matrix: (K, K) T, whose row i holds the probabilities of the labels given to class i.
    """
    likely = _positive(matrix.to(q)).T[labels]  # (B, K) T[:, y]
    joint = q.clamp_min(UNSURE) * likely
    return joint / joint.sum(dim=1, keepdim=True)


def _positive(matrix: Tensor) -> Tensor:
    matrix = matrix.clamp_min(LEAST)
    return matrix / matrix.sum(dim=1, keepdim=True)


def confusable(matrix: Tensor) -> Tensor:
    """Return which classes, (K, K), given labels hardly tell apart.

    Those whose labels differ, by the mean of both Kullback-Leibler divergences, `ALIKE` times as
    much as those of the median pair of classes, or less.

    >>> import torch
    >>> from unswayed.losses.posterior import confusable
    >>> matrix = torch.eye(4)
    >>> matrix[:2, :2] = torch.tensor([[0.6, 0.4], [0.4, 0.6]])
    >>> confusable(matrix).int()
    tensor([[0, 1, 0, 0],
            [1, 0, 0, 0],
            [0, 0, 0, 0],
            [0, 0, 0, 0]], dtype=torch.int32)

    Args:
        matrix: (K, K) T, whose row i holds the probabilities of the labels given to class i.
    """
    rows = _positive(matrix)
    cross = rows @ rows.log().T  # Σ_y T[j, y] log T[k, y]
    one_way = cross.diagonal()[:, None] - cross
    apart = (one_way + one_way.T) / 2
    others = ~torch.eye(len(matrix), dtype=torch.bool, device=matrix.device)
    return others & (apart < ALIKE * apart[others].median())


@register("posterior")
class Posterior(Loss):
    """Cross entropy for a short teacher; then towards P(true class | image, given label)."""

    matrix: Tensor  # (K, K) T
    estimated: Tensor
    on_cpu = ("estimated",)

    def __init__(
        self,
        num_samples: int,
        num_classes: int,
        teacher: Annotated[float, Gt(0), Lt(1)] = 0.35,
        beliefs: Literal["auto", "teacher", "student"] = "auto",
    ) -> None:
        """Begin with the given labels.

        Args:
            num_samples: N.
            num_classes: K.
            teacher: share of the training that is the teacher's.
            beliefs: whose beliefs of an image correct its label. "auto" are the teacher's where
                labels hardly tell the two most likely classes apart, and the student's elsewhere.
        """
        super().__init__()
        self.restart, self.of = teacher, beliefs
        self.beliefs = Memory(num_samples, num_classes)  # q
        self.trusted = Memory(num_samples, dtype=torch.bool)  # whether q stays
        self.register_buffer("matrix", torch.eye(num_classes))
        self.register_buffer("estimated", torch.tensor(False))

    @property
    def has_memory(self) -> bool:
        """Return True: the teacher's belief in every sample is kept."""
        return True

    def before_epoch(self, overview: Overview) -> None:
        """When the teacher is done, estimate T, and keep what it believes of true classes."""
        if self.estimated or overview.epoch < restart_epoch(self.restart, overview.epochs):
            return
        rows, given, teacher = overview.rows, overview.given, overview.network
        p = overview.look(teacher, rows)
        # The teacher has not seen the labels that are held out, and T is not made too good.
        held = overview.holdout
        unseen = overview.look(teacher, held) if len(held) else p
        matrix = confident_matrix(unseen, given[held] if len(held) else given[rows])
        self.matrix.copy_(torch.from_numpy(matrix))
        q = unmixed(p, self.matrix)
        self.beliefs[rows], self.trusted[rows] = q, self._trusted(q)
        self.estimated.fill_(True)

    def _trusted(self, q: Tensor) -> Tensor:
        if self.of != "auto":
            return torch.full_like(q[:, 0], self.of == "teacher", dtype=torch.bool)
        first, second = q.topk(2, dim=1).indices.T
        return confusable(self.matrix).to(q.device)[first, second]

    def findings(self) -> dict[str, Any]:
        """Return T, once it is estimated."""
        return {"matrix": self.matrix.tolist()} if self.estimated else {}

    def targets(self, logits: Tensor, labels: Tensor, index: Tensor) -> Tensor:
        """Return t, (B, K): what the label and the teacher, or the student, say together."""
        student = logits.detach().float().softmax(dim=1)
        believed = torch.where(self.trusted[index][:, None], self.beliefs[index], student)
        return label_posterior(believed, labels, self.matrix)

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return (B,). Without an index, which only evaluation may leave out, labels are kept."""
        if index is None and self.training:
            raise UsageError("posterior needs the index of each sample, to find its target")
        if index is None or not self.estimated:
            return F.cross_entropy(logits, labels, reduction="none")
        targets = self.targets(logits, labels, index).to(logits.dtype)
        return F.cross_entropy(logits, targets, reduction="none")
