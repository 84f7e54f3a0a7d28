"""Mixed images: the draws that mixup and the methods built on it share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unswayed.device import sent
from unswayed.processes import own, whole
from unswayed.randomness import bits, uniform
from unswayed.types import Batch


class Mix(NamedTuple):
    """x ← l x + (1-l) x[partner], with l ≥ 1/2: every mixture is mostly the sample it stands for.

    Swapping the two sides of all pairs leaves a random pairing random, so taking the larger of l
    and 1-l loses nothing; some papers state it explicitly.
    """

    share: float  # l
    partner: Tensor  # (n,)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the mixture of rows (n, ...)."""
        return torch.lerp(x[self.partner], x, self.share)

    def images(self, x: Tensor) -> Tensor:
        """Return the mixture of images; partners may be those of another process."""
        return own(self(whole(x)))


def draw_mix(batch: Batch, alpha: float, seed: int, purpose: str, copies: int = 1) -> Mix:
    """Draw l ~ Beta(α, α) and a random partner for each of the batch's rows.

    Args:
        batch: one step.
        alpha: α.
        seed: of the run.
        purpose: makes the draws of one method or network differ from another's.
        copies: how many views of each sample there are, one after the other.
    """
    from scipy.special import betaincinv  # slow to import, and few methods mix images

    index = batch.rows_on_cpu()
    u = uniform(seed, f"{purpose} share", batch.epoch, index[0])
    share = float(betaincinv(alpha, alpha, u)[0])
    rows = np.arange(copies)[:, None] * 2**32 + index
    order = np.argsort(bits(seed, f"{purpose} partner", batch.epoch, rows.ravel()), kind="stable")
    return Mix(max(share, 1 - share), sent(torch.from_numpy(order), batch.index.device))
