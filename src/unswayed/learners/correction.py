"""Label correction: late in training, labels are replaced by what the network believes.

Chen et al., ICLR 2021 (SLN), sec. 4; Yi et al., CVPR 2022, table 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import ConfigDict
from torch import Tensor, nn

from unswayed.errors import UsageError
from unswayed.losses import Loss
from unswayed.memory import KnownOnCPU, Memory
from unswayed.types import Fraction, Overview


@dataclass(frozen=True)
class Correction:
    """Options of label correction.

    Args:
        start: share of the training that is done when labels are corrected first; 250 of 300
            epochs in SLN.
        prediction: what replaces a label: the most probable class, or all probabilities.
        weight: how much of the given label is kept, w. "sln" as published: its loss, scaled
            between the smallest and the largest, so the *least* plausible label keeps most (an
            outlier makes nearly all w small); "inverse" is one minus that; "confidence" is the
            probability of the given label.
        loss: cross entropy of the given label, or of the targets so far, as SLN's code does.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    start: Fraction = 5 / 6
    prediction: Literal["hard", "soft"] = "hard"
    weight: Literal["sln", "inverse", "confidence"] = "sln"
    loss: Literal["given", "current"] = "given"

    def __post_init__(self) -> None:
        if self.weight == "confidence" and self.loss == "current":
            raise UsageError('weight="confidence" looks at no loss; leave out loss="current"')


class Targets(KnownOnCPU):
    """What every sample is trained towards: its given label until correction starts."""

    started: Tensor
    on_cpu = ("started",)

    def __init__(self, options: Correction, num_samples: int, num_classes: int) -> None:
        super().__init__()
        self.options = options
        self.soft = Memory(num_samples, num_classes)
        self.register_buffer("started", torch.tensor(False))

    def before_epoch(self, overview: Overview) -> None:
        """Correct the labels of the rows that are trained on."""
        if overview.epoch < overview.first_epoch(self.options.start):
            return
        rows = overview.rows
        p = overview.look(overview.network, rows)
        self.soft[rows] = corrected(p, overview.given[rows], self.current(rows), self.options)
        self.started.fill_(True)

    def current(self, rows: Tensor) -> Tensor | None:
        """Return the targets of these rows (n, K), None as long as they are the given labels."""
        return self.soft[rows] if self.started else None


def corrected(p: Tensor, given: Tensor, current: Tensor | None, options: Correction) -> Tensor:
    """Return w · onehot(given) + (1 - w) · prediction, (n, K).

    Args:
        p: (n, K) probabilities.
        given: (n,) labels.
        current: (n, K) targets so far, if there are any.
        options: which prediction, and which w.
    """
    onehot = nn.functional.one_hot(given, p.shape[1]).to(p.dtype)
    against = current if current is not None and options.loss == "current" else onehot
    losses = -(against * p.clamp_min(1e-12).log()).sum(dim=1)  # (n,)
    scaled = (losses - losses.min()) / (losses.max() - losses.min()).clamp_min(1e-12)
    w = {
        "sln": scaled,
        "inverse": 1 - scaled,
        "confidence": p.gather(1, given[:, None]).squeeze(1),
    }[options.weight][:, None]
    hard = nn.functional.one_hot(p.argmax(dim=1), p.shape[1]).to(p.dtype)
    return w * onehot + (1 - w) * (hard if options.prediction == "hard" else p)


def expected(loss: Loss, logits: Tensor, targets: Tensor) -> Tensor:
    """Return Σ_k t_k loss(logits, k), (B,): of cross entropy, its form for soft targets.

    Args:
        loss: one without a memory.
        logits: (B, K).
        targets: (B, K).
    """
    batch, classes = logits.shape
    every = torch.arange(classes, device=logits.device).repeat(batch)
    losses: Tensor = loss(logits.repeat_interleave(classes, dim=0), every)
    return (targets.to(losses.dtype) * losses.view(batch, classes)).sum(dim=1)
