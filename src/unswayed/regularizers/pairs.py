"""The mathematics that all pair regularizers share, with the paper's symbols.

q: queries h(f(x')), z: keys sg(f(x'')); S_ij = <q~_i, z~_j>; M_ij how much i and j agree.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.errors import UsageError

Form = Literal["log", "inner"]
Clamp = Literal["similarity", "coordinate"]
PairWeight = Literal["soft", "hard"]

EPS = 1e-4


def single(x: Tensor) -> Tensor:
    """Return at least single precision: in bfloat16, 1 - ε is 1, and its logarithm infinite."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def agreement(p: Tensor) -> Tensor:
    """Return M_ij = p_i·p_j, (B, B), of probabilities (B, K), without gradient."""
    with torch.autocast(p.device.type, enabled=False):
        p = single(p.detach())
        return p @ p.T


def similarity(q: Tensor, z: Tensor, clamp: Clamp) -> Tensor:
    """Return S, (B, B), of rows that are brought to unit length first.

    "coordinate" is the published code: every coordinate is clamped to [ε, 1-ε] after
    normalisation, which makes the space the positive orthant. "similarity" keeps unit vectors.
    """
    if clamp not in ("similarity", "coordinate"):
        raise UsageError(f"clamp must be 'similarity' or 'coordinate', not {clamp!r}")
    with torch.autocast(q.device.type, enabled=False):
        q, z = F.normalize(single(q), dim=1), F.normalize(single(z), dim=1)
        if clamp == "coordinate":
            q, z = q.clamp(EPS, 1 - EPS), z.clamp(EPS, 1 - EPS)
        return q @ z.T


def normalised_weights(agreement: Tensor, tau: float, pair_weight: PairWeight) -> Tensor:
    """Return W: agreements below τ are dropped, the diagonal counts 1, rows sum to one."""
    if pair_weight not in ("soft", "hard"):
        raise UsageError(f"pair_weight must be 'soft' or 'hard', not {pair_weight!r}")
    selected = agreement >= tau
    kept = agreement if pair_weight == "soft" else torch.ones_like(agreement)
    v = torch.where(selected, kept, 0).fill_diagonal_(1)
    return v.div_(v.sum(dim=1, keepdim=True))


def contrast(q: Tensor, z: Tensor, weights: Tensor, *, form: Form, clamp: Clamp) -> Tensor:
    """Return (1/B) Σ_i Σ_j W_ij E_ij, with E_ii = -S_ii and E_ij = log(1 - S_ij) or -S_ij.

    The logarithm only ever sees S ≤ 1 - ε, and on the diagonal it is replaced, not masked by
    multiplication: a coincident pair costs log ε instead of making the batch NaN.
    """
    s = similarity(q, z, clamp)
    if form == "inner":
        cost = -s
    elif form == "log":
        cost = torch.log1p(-s.clamp(max=1 - EPS)).diagonal_scatter(-s.diagonal())
    else:
        raise UsageError(f"form must be 'log' or 'inner', not {form!r}")
    return (weights * cost).sum(dim=1).mean()
