"""ELR+: early-learning targets from the other network's average, on mixed images.

Liu et al., NeurIPS 2020, sec. 4 and appendix.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unswayed.learners import Classifier, Ensemble, Learner, register
from unswayed.learners.mixing import draw_mix
from unswayed.memory import Memory
from unswayed.types import Batch, BelowOne, Fraction, NonNegative, Positive, Terms

EPS = 1e-4


@register("elr_plus", paper="Liu et al., NeurIPS 2020, eq. 9 and sec. 4.3")
class ELRPlus(Learner):
    """Two networks, an average of each; each learns targets that the other's average remembers.

    What is shipped is the average of the first network and the second's moving average.
    """

    classifier: Ensemble

    def __init__(
        self,
        classifier: Classifier,
        new_classifier: Callable[[], Classifier],
        num_samples: int,
        num_classes: int,
        run_seed: int = 0,
        weight: NonNegative = 3.0,
        beta: BelowOne = 0.7,
        alpha: Positive = 1.0,
        decay: BelowOne = 0.997,
        ramp: Fraction = 0.0,
        sharpen_labels: bool = False,
    ) -> None:
        """Build the second network, the averages and the memory.

        Args:
            classifier: the first network.
            new_classifier: makes the second.
            num_samples: N.
            num_classes: K.
            run_seed: of the run.
            weight: λ of the regularizer.
            beta: β, share of a target that stays each time its sample is seen.
            alpha: of mixup's Beta(α, α).
            decay: share of an averaged network that stays each step.
            ramp: share of the training over which λ and the decay rise by exp(-5(1-x)²).
            sharpen_labels: multiply mixed labels by mixed targets and normalise, as for CIFAR-100.
        """
        super().__init__()
        self.second = new_classifier()
        self.first_average = copy.deepcopy(classifier).requires_grad_(False)
        second_average = copy.deepcopy(self.second).requires_grad_(False)
        self.classifier = Ensemble([classifier, second_average])
        memories = [Memory(num_samples, num_classes) for _ in range(2)]  # of each network
        self.memories = nn.ModuleList(memories)
        self.run_seed, self.weight, self.beta, self.alpha = run_seed, weight, beta, alpha
        self.decay, self.ramp, self.sharpen_labels = decay, ramp, sharpen_labels

    @property
    def online(self) -> tuple[Classifier, Classifier]:
        """The two networks that are trained."""
        return self.classifier.parts[0], self.second

    @property
    def average(self) -> tuple[Classifier, Classifier]:
        """Their moving averages."""
        return self.first_average, self.classifier.parts[1]

    @torch.no_grad()
    def before_step(self, progress: float) -> None:
        """Move the averages; parameters only, their batch norms see their own forwards."""
        stays = self.decay * rampup(progress, self.ramp)
        for average, net in zip(self.average, self.online, strict=True):
            for moved, towards in zip(average.parameters(), net.parameters(), strict=True):
                moved.lerp_(towards, 1 - stays)

    def forward(self, batch: Batch) -> Terms:
        """Return the sum of both networks' losses; records are the averaged networks'."""
        totals, regularizers, seen = [], [], []
        for k in (0, 1):
            with torch.no_grad():
                peer: Tensor = self.average[1 - k](batch.views.weak[0])  # (B, K)
            seen.append(peer)
            t = self._remember(k, batch, peer)
            cross_entropy, regularizer = self._losses(k, batch, t)
            totals.append(cross_entropy + self._weight(batch) * regularizer)
            regularizers.append(regularizer.detach())
        logits = torch.stack(seen).mean(dim=0)
        losses = F.cross_entropy(logits, batch.labels, reduction="none")
        parts = {"label": losses.mean(), "regularizer": torch.stack(regularizers).mean()}
        return Terms(totals[0] + totals[1], parts, losses, logits)

    def _weight(self, batch: Batch) -> float:
        return self.weight * rampup(batch.progress, self.ramp)

    def _remember(self, k: int, batch: Batch, peer: Tensor) -> Tensor:
        """Return t_i ← β t_i + (1-β) p_i of the batch, (B, K)."""
        p = peer.softmax(dim=1).clamp(EPS, 1 - EPS)
        p = p / p.sum(dim=1, keepdim=True)
        memory = self.memories[k]
        assert isinstance(memory, Memory)
        t = torch.lerp(p.to(memory.values.dtype), memory[batch.index], self.beta)
        if self.training:
            memory[batch.index] = t
        return t.to(peer.dtype)

    def _losses(self, k: int, batch: Batch, t: Tensor) -> tuple[Tensor, Tensor]:
        """Return cross entropy and log(1 - <t, p>) of network k on mixed images."""
        mix = draw_mix(batch, self.alpha, self.run_seed, f"elr+ {k}")
        t, labels = mix(t), mix(F.one_hot(batch.labels, t.shape[1]).to(t.dtype))
        if self.sharpen_labels:
            labels = labels * t
            labels = labels / labels.sum(dim=1, keepdim=True).clamp_min(1e-12)
        log_p = F.log_softmax(self.online[k](mix.images(batch.views.weak[0])), dim=1)
        p = log_p.exp().clamp(EPS, 1 - EPS)
        aligned = (t * p).sum(dim=1).clamp(max=1 - EPS)
        return -(labels * log_p).sum(dim=1).mean(), torch.log1p(-aligned).mean()


def rampup(progress: float, over: float) -> float:
    """Return exp(-5(1-x)²) with x the share of the ramp that is done; 1 after it."""
    return math.exp(-5 * (1 - progress / over) ** 2) if progress < over else 1.0
