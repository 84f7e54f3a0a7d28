"""Which labels are clean, by a mixture of two Gaussians over the losses. Li et al., ICLR 2020."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor


def clean_probability(losses: Tensor) -> Tensor:
    """Return the probability (n,) that a sample belongs to the component of small losses.

    Losses are scaled to [0, 1] first. If they are all equal, or the two components fall
    together, nothing speaks against any label: all are clean.

    Args:
        losses: (n,).
    """
    # A second to import, and only methods that sort labels need it.
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    spread = losses.max() - losses.min() if len(losses) else losses.sum()
    if len(losses) < 2 or not spread > 1e-12:
        return torch.ones_like(losses)
    scaled = ((losses - losses.min()) / spread).cpu().double().numpy()[:, None]
    mixture = GaussianMixture(
        2, max_iter=10, tol=1e-2, reg_covar=5e-4, means_init=[[0.0], [1.0]], random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # ten rounds are the definition
        mixture.fit(scaled)
    if abs(mixture.means_[0, 0] - mixture.means_[1, 0]) < 1e-6:
        return torch.ones_like(losses)
    posterior = mixture.predict_proba(scaled)[:, mixture.means_[:, 0].argmin()]
    return torch.from_numpy(posterior).to(losses)
