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


def positives(rows: Tensor) -> Tensor:
    """Return the positives of rows that are their own keys: sample i belongs to key i, (B,)."""
    return torch.arange(len(rows), device=rows.device)


def agreement(rows: Tensor, keys: Tensor) -> Tensor:
    """Return M_ij = p_i·p_j, (B, M), of probabilities (B, K) and (M, K), without gradient."""
    with torch.autocast(rows.device.type, enabled=False):
        return single(rows.detach()) @ single(keys.detach()).T


def similarity(q: Tensor, z: Tensor, clamp: Clamp) -> Tensor:
    """Return S, (B, M), of queries (B, D) and keys (M, D), brought to unit length first.

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


def normalised_weights(
    agreement: Tensor, positive: Tensor, tau: float, pair_weight: PairWeight
) -> Tensor:
    """Return W: agreements below τ are dropped, the positive counts 1, rows sum to one.

    Args:
        agreement: (B, M).
        positive: (B,) the key of each row that is its own other view.
        tau: τ.
        pair_weight: weigh a selected pair by its agreement ("soft") or by 1 ("hard").
    """
    if pair_weight not in ("soft", "hard"):
        raise UsageError(f"pair_weight must be 'soft' or 'hard', not {pair_weight!r}")
    selected = agreement >= tau
    kept = agreement if pair_weight == "soft" else torch.ones_like(agreement)
    v = torch.where(selected, kept, 0).scatter_(1, positive[:, None], 1)
    return v.div_(v.sum(dim=1, keepdim=True))


def contrast(
    q: Tensor, z: Tensor, weights: Tensor, positive: Tensor, *, form: Form, clamp: Clamp
) -> Tensor:
    """Return (1/B) Σ_i Σ_j W_ij E_ij, with E = -S at the positive and log(1 - S) or -S elsewhere.

    The logarithm only ever sees S ≤ 1 - ε, and at the positive it is replaced, not masked by
    multiplication: a coincident pair costs log ε instead of making the batch NaN.

    Args:
        q: (B, D) queries.
        z: (M, D) keys.
        weights: (B, M).
        positive: (B,) the key of each row that is its own other view.
        form: log(1 - S), eq. 6, or -S, eq. 4.
        clamp: see `similarity`.
    """
    s = similarity(q, z, clamp)
    if form == "inner":
        cost = -s
    elif form == "log":
        at = positive[:, None]
        cost = torch.log1p(-s.clamp(max=1 - EPS)).scatter(1, at, -s.gather(1, at))
    else:
        raise UsageError(f"form must be 'log' or 'inner', not {form!r}")
    return (weights * cost).sum(dim=1).mean()
