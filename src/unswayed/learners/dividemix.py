"""DivideMix: labels that look wrong are dropped, their images kept. Li et al., ICLR 2020."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.learners import Classifier, Ensemble, Learner, register
from unswayed.learners.mixing import draw_mix
from unswayed.memory import Memory
from unswayed.noise.estimate import clean_probability
from unswayed.types import Batch, BelowOne, Count, Fraction, NonNegative, Overview, Positive, Terms


@register("dividemix", paper="Li et al., ICLR 2020, algorithm 1, eq. 3-12")
class DivideMix(Learner):
    """Two networks; each divides the data for the other, which learns semi-supervised by MixMatch.

    Both networks take their step on the same batch, divided by the peer, and guess labels in
    training mode; the published code trains one network for an epoch, then the other, on batches
    of labelled and unlabelled images, with the peer in evaluation mode.
    """

    classifier: Ensemble
    views = ("weak", "weak")
    divided: Tensor
    on_cpu = ("divided",)

    def __init__(
        self,
        classifier: Classifier,
        new_classifier: Callable[[], Classifier],
        num_samples: int,
        run_seed: int = 0,
        warmup: BelowOne = 1 / 30,
        unlabelled_weight: NonNegative = 25.0,
        ramp: Fraction = 16 / 300,
        alpha: Positive = 4.0,
        temperature: Positive = 0.5,
        threshold: Fraction = 0.5,
        history: Count = 1,
        penalty: bool = False,
    ) -> None:
        """Build the second network and the memory of losses.

        Args:
            classifier: the first network.
            new_classifier: makes the second.
            num_samples: N.
            run_seed: of the run.
            warmup: share of the training with plain cross entropy, at least an epoch if it is not
                0; 10 of 300 epochs for CIFAR-10.
            unlabelled_weight: λ_u, which must suit the noise: 0 for little or asymmetric noise.
            ramp: share of the training over which λ_u rises after the warm-up; 16 of 300 epochs.
            alpha: of MixMatch's Beta(α, α).
            temperature: T of the sharpening.
            threshold: a label is kept if it is clean with a higher probability than this.
            history: over how many epochs losses are averaged; 5 for 90 % noise.
            penalty: punish confident predictions during the warm-up, for asymmetric noise.
        """
        super().__init__()
        if penalty and not warmup:
            raise UsageError("learner.penalty acts in the warm-up; it needs learner.warmup above 0")
        self.classifier = Ensemble([classifier, new_classifier()])
        self.register_buffer("divided", torch.tensor(False))
        self.clean = Memory(num_samples, 2, fill=1.0)  # of each network
        self.history = Memory(num_samples, 2, history, fill=torch.nan)
        self.run_seed, self.warmup, self.ramp = run_seed, warmup, ramp
        self.unlabelled_weight, self.alpha, self.temperature = unlabelled_weight, alpha, temperature
        self.threshold, self.penalty = threshold, penalty

    def before_epoch(self, overview: Overview) -> None:
        """Co-divide: fit each network's losses by a mixture of two Gaussians."""
        if overview.epoch < max(overview.first_epoch(self.warmup), self.warmup > 0):
            return
        self.divided.fill_(True)
        rows = overview.rows
        slot = overview.epoch % self.history.values.shape[2]
        history, clean = self.history[rows], self.clean[rows]  # (n, 2, epochs), (n, 2)
        for k, net in enumerate(self.classifier.members):
            losses = overview.losses(net, rows)
            history[:, k, slot] = (losses - losses.min()) / spread(losses)
            clean[:, k] = clean_probability(history[:, k].nanmean(dim=1))
        self.history[rows], self.clean[rows] = history, clean

    def forward(self, batch: Batch) -> Terms:
        """Return the sum of both networks' losses."""
        if not self.divided:
            return self._warm(batch)
        views = batch.views.weak
        with torch.no_grad():
            logits = torch.stack(
                [torch.stack([net(x) for x in views]) for net in self.classifier.members]
            )  # (2 networks, 2 views, B, K)
            guess = logits.softmax(dim=3).mean(dim=1)  # (2, B, K)
        terms = [self._mixmatch(k, batch, torch.cat(views), guess) for k in (0, 1)]
        labelled, unlabelled, uniform = torch.stack(terms).sum(dim=0)
        total = labelled + self._unlabelled_weight(batch) * unlabelled + uniform
        seen = logits[:, 0].mean(dim=0)
        losses = F.cross_entropy(seen, batch.labels, reduction="none")
        kept = (self.clean[batch.index] > self.threshold).float().mean()
        parts = {"label": losses.mean(), "unlabelled": unlabelled.detach(), "kept": kept}
        return Terms(total, parts, losses, seen)

    def _warm(self, batch: Batch) -> Terms:
        logits = torch.stack([net(batch.views.weak[0]) for net in self.classifier.members])
        log_p = F.log_softmax(logits, dim=2)  # (2, B, K)
        labels = batch.labels.expand(2, -1)[:, :, None]
        losses = -log_p.gather(2, labels).squeeze(2)  # (2, B)
        total = losses.mean(dim=1).sum()
        if self.penalty:
            total = total + (log_p.exp() * log_p).sum(dim=2).mean(dim=1).sum()
        each = losses.detach().mean(dim=0)
        return Terms(total, {"label": each.mean()}, each, logits.detach().mean(dim=0))

    def _mixmatch(self, k: int, batch: Batch, x: Tensor, guess: Tensor) -> Tensor:
        """Return L_x, L_u and L_reg of network k, as (3,); its peer divides the batch."""
        w = self.clean[batch.index][:, 1 - k].to(guess.dtype)[:, None]
        labelled = w.squeeze(1) > self.threshold  # (B,)
        given = F.one_hot(batch.labels, guess.shape[2]).to(guess.dtype)
        refined = w * given + (1 - w) * guess[k]  # eq. 5
        target = torch.where(labelled[:, None], refined, guess.mean(dim=0))  # eq. 7
        target = sharpened(target, self.temperature).repeat(2, 1)  # for both views
        mix = draw_mix(batch, self.alpha, self.run_seed, f"dividemix {k}", copies=2)
        log_p = F.log_softmax(self.classifier.members[k](mix.images(x)), dim=1)  # (2B, K)
        p, target = log_p.exp(), mix(target)
        mask = labelled.repeat(2).to(p.dtype)
        cross_entropy = -(target * log_p).sum(dim=1)
        squared = (p - target).square().mean(dim=1)
        mean = p.mean(dim=0).clamp_min(1e-12)
        uniform = -mean.log().mean() - torch.tensor(float(len(mean))).log()  # KL(π ‖ mean p)
        return torch.stack([average(cross_entropy, mask), average(squared, 1 - mask), uniform])

    def _unlabelled_weight(self, batch: Batch) -> float:
        risen = (batch.progress - self.warmup) / self.ramp if self.ramp else 1.0
        return self.unlabelled_weight * min(max(risen, 0.0), 1.0)


def spread(losses: Tensor) -> Tensor:
    """Return max - min, but never zero."""
    return (losses.max() - losses.min()).clamp_min(1e-12)


def sharpened(p: Tensor, temperature: float) -> Tensor:
    """Return p^(1/T), normalised; eq. 6."""
    return (p.clamp_min(1e-30).log() / temperature).softmax(dim=1)


def average(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean where the mask is 1; zero where it is nowhere."""
    return (values * mask).sum() / mask.sum().clamp_min(1)
