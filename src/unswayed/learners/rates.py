"""The share of wrong labels, for methods that want to know it: given, known or estimated."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import torch
from annotated_types import Ge, Lt
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.memory import KnownOnCPU
from unswayed.noise.estimate import confident_noise, mixture_rate
from unswayed.types import Overview

RateOption = Literal["estimate", "known"] | Annotated[float, Ge(0), Lt(1)]


class NoiseRate(KnownOnCPU):
    """A noise rate that a run can find out by itself.

    "estimate" compares the held-out given labels with the network's predictions, which are right
    where they are most confident; that trend tells the share of wrong labels. The network's own
    mistakes can only add to it, so the smallest estimate so far counts. Without a hold-out it is
    the weight of the large losses in a mixture of two Gaussians.
    """

    value: Tensor
    on_cpu = ("value",)

    def __init__(self, source: float | str, known_rate: float | None) -> None:
        super().__init__()
        if source == "known" and known_rate is None:
            raise UsageError(
                "noise_rate=known, but the true labels are not known here; give a number, or "
                "noise_rate=estimate"
            )
        self.estimated = source == "estimate"
        start = known_rate if source == "known" else source
        self.register_buffer("value", torch.tensor(0.0 if self.estimated else float(start or 0)))

    def findings(self) -> dict[str, Any]:
        """Return the rate, if it was estimated."""
        return {"noise_rate": float(self.value)} if self.estimated else {}

    def before_epoch(self, overview: Overview) -> None:
        """Estimate anew, if that is asked for; before the first epoch nothing is known."""
        if not self.estimated or overview.epoch == 0:
            return
        if len(overview.holdout):
            rows = overview.holdout
            p = overview.look(overview.network, rows)
            found = self.value.new_tensor(confident_noise(p, overview.given[rows]).rate)
            # An untrained network disagrees for other reasons: only the best one counts.
            found = found if overview.epoch == 1 else torch.minimum(found, self.value)
        else:
            found = mixture_rate(overview.losses(overview.network, overview.rows))
        self.value.copy_(found)
