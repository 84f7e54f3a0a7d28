"""How many labels are wrong, and which way, told without true labels.

The one home of these estimates: losses, learners and the search for wrong labels share them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unswayed.randomness import bits

Matrix = NDArray[np.float64]
Rows = NDArray[np.int64]

EASY = 0.6
"""The share of the samples, the most confident first, whose disagreement is taken for noise."""

SURE = 0.5
"""The share whose disagreements are counted by pairs of classes."""

STEPS = 60
"""Steps of confidence inside `EASY`."""


def clean_probability(losses: Tensor) -> Tensor:
    """Return the probability (n,) that a sample belongs to the component of small losses.

    A mixture of two Gaussians, Li et al., ICLR 2020, sec. 3.1, in ten rounds from the two clusters
    of k-means, as in the published code. Losses are scaled to [0, 1] first.
    If they are all equal, or the two components fall together, nothing speaks against any label:
    all are clean.

    Args:
        losses: (n,).
    """
    # Imported here: scikit-learn takes a second to load, and only a few methods need it.
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    spread = losses.max() - losses.min() if len(losses) else losses.sum()
    if len(losses) < 2 or not spread > 1e-12:
        return torch.ones_like(losses)
    scaled = ((losses - losses.min()) / spread).cpu().double().numpy()[:, None]
    mixture = GaussianMixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # ten rounds are the definition
        mixture.fit(scaled)
    if abs(mixture.means_[0, 0] - mixture.means_[1, 0]) < 1e-6:
        return torch.ones_like(losses)
    posterior = mixture.predict_proba(scaled)[:, mixture.means_[:, 0].argmin()]
    return torch.from_numpy(posterior).to(losses)


def mixture_rate(losses: Tensor) -> Tensor:
    """Return the share of wrong labels as the weight of the large losses (n,) in a mixture."""
    return 1 - clean_probability(losses).mean()


def anchor_matrix(p: Matrix, percentile: float = 97.0) -> Matrix:
    """Return T, (K, K), whose row i is what is predicted at the anchor of class i.

    Patrini et al., CVPR 2017, sec. 4.

    The anchor is the sample with the largest p_i that is no outlier. Where no positive p_i is
    left without the outliers, because all are equal, it is the largest of all.

    Args:
        p: (N, K) predicted probabilities of the training samples.
        percentile: p_i at or above this percentile of column i are outliers; 0 drops none.
    """
    anchors = []
    for column in p.T:
        kept = column
        if percentile > 0:
            limit = np.percentile(column, percentile, method="higher")
            kept = np.where(column < limit, column, 0.0)
        anchors.append(int((kept if kept.any() else column).argmax()))
    rows = p[anchors]
    normalised: Matrix = rows / rows.sum(axis=1, keepdims=True)
    return normalised


class Confident(NamedTuple):
    """How often given labels differ from confident predictions; all that estimates need."""

    differing: Matrix  # (STEPS,) samples that differ, the most confident first
    seen: Matrix  # (STEPS,) samples
    counts: Matrix  # (K, K) of the `SURE` ones by given label (rows) and prediction (columns)
    differ: float  # share of all samples that differ

    @property
    def rate(self) -> float:
        """The share of wrong labels among all samples.

        Where a classifier is most confident it is right, and who differs is wrong. The less
        confident it is, the more labels are wrong, and the less its own word counts. So the trend
        over the `EASY` samples, a straight line that does not fall, is continued to all: its value
        in the middle is the mean.
        """
        x = EASY * (np.arange(STEPS) + 0.5) / STEPS
        total = self.seen.sum()
        if total <= 0:
            return self.differ
        centre, mean = float((x * self.seen).sum() / total), float(self.differing.sum() / total)
        spread = float((self.seen * (x - centre) ** 2).sum())
        rise = float(((x - centre) * self.differing).sum()) / spread if spread > 0 else 0.0
        return float(np.clip(mean + max(rise, 0.0) * (0.5 - centre), 0.0, self.differ))

    def resampled(self, rng: np.random.Generator) -> Confident:
        """Return the same of another draw of samples: a bootstrap of the counts."""
        differing = rng.poisson(self.differing).astype(np.float64)
        seen = differing + rng.poisson(self.seen - self.differing)
        counts = rng.poisson(self.counts).astype(np.float64)
        return Confident(differing, seen, counts, self.differ)


def compare_confident(
    predicted: Rows,
    confidence: Matrix,
    given: Rows,
    classes: int,
    ties: NDArray[np.uint64] | None = None,
) -> Confident:
    """Compare given labels with predictions, by how confident those are.

    Confidence counts as a rank among the samples that are predicted alike. So hard classes have
    their say, and probabilities need not be calibrated.

    Args:
        predicted: (N,) classes, by a model that has not seen these labels, or resists them.
        confidence: (N,) any number that grows with it.
        given: (N,) labels.
        classes: K.
        ties: (N,) what comes first of equal confidence; drawn by row if not given.
    """
    first = bits(0, "ties", np.arange(len(given))) if ties is None else ties
    order = np.lexsort((first, -confidence, predicted))
    size = np.bincount(predicted, minlength=classes)
    begins = np.cumsum(size) - size
    rank = np.empty(len(given))
    rank[order] = (np.arange(len(given)) - begins[predicted[order]] + 0.5) / size[predicted[order]]
    differs = (predicted != given).astype(float)
    step = np.floor(rank / EASY * STEPS).astype(np.int64)
    easy = step < STEPS
    seen = np.bincount(step[easy], minlength=STEPS).astype(np.float64)
    differing = np.bincount(step[easy], differs[easy], STEPS).astype(np.float64)
    counts = np.zeros((classes, classes))
    sure = rank < SURE
    np.add.at(counts, (given[sure], predicted[sure]), 1.0)
    return Confident(differing, seen, counts, float(differs.mean()))


def confident_noise(p: Tensor, given: Tensor) -> Confident:
    """Compare given labels (n,) with the predictions p (n, K) of a network that never saw them."""
    confidence, predicted = p.double().cpu().max(dim=1)
    return compare_confident(predicted.numpy(), confidence.numpy(), given.cpu().numpy(), p.shape[1])


def confident_matrix(p: Tensor, given: Tensor) -> Matrix:
    """Return T, (K, K), whose row i says how samples are labelled that are most surely of class i.

    The more classes differ only as much as chance would have it, the more they are labelled like
    each other: at 80 % noise, counts alone find pairs of classes that are none.
    """
    counts = confident_noise(p, given).counts
    return smoothed(counts, likely_strength(counts)).T


STRENGTHS = tuple(map(float, np.geomspace(1.0, 1e5, 26)))
"""The strengths among which `likely_strength` chooses."""


def likely_strength(counts: Matrix) -> float:
    """Return the strength of `smoothed` with which the counts are most likely.

    Each class draws its own probabilities of labels from a Dirichlet distribution around what all
    classes have in common. Its concentration is the strength: empirical Bayes.

    Args:
        counts: (K, K) samples by given label (rows) and true class (columns).
    """
    even = torch.from_numpy(_even(counts)).clamp_min(1e-9)
    seen = torch.from_numpy(counts)
    sizes = seen.sum(dim=0)

    def likelihood(strength: float) -> float:
        own = torch.lgamma(seen + strength * even) - torch.lgamma(strength * even)
        alpha = strength * even.sum(dim=0)
        return float((own.sum(dim=0) + torch.lgamma(alpha) - torch.lgamma(sizes + alpha)).sum())

    return max(STRENGTHS, key=likelihood)


def smoothed(counts: Matrix, strength: float) -> Matrix:
    """Return how each true class is labelled, (K, K) with a column for each.

    Args:
        counts: (K, K) samples by given label (rows) and true class (columns).
        strength: samples by which every class is labelled like all of them together, with wrong
            labels of any class.
    """
    found: Matrix = (counts + strength * _even(counts)) / (counts.sum(axis=0) + strength)
    return found


def _even(counts: Matrix) -> Matrix:
    """Return how all classes together are labelled: one rate, and wrong labels of any class."""
    wrong = float((counts.sum() - np.trace(counts)) / max(counts.sum(), 1))
    even: Matrix = np.full(counts.shape, wrong / max(len(counts) - 1, 1))
    np.fill_diagonal(even, 1 - wrong)
    return even


def confident_joint(
    log_beliefs: Callable[[], Iterable[Tensor]], labels: Tensor, num_classes: int
) -> tuple[Matrix, Matrix]:
    """Return counts C and the joint distribution Q of given and true labels, (K, K) each.

    Northcutt et al., JAIR 2021, eq. 1-4. A sample labelled i counts in C[i, j] if its belief in j
    is at least the mean belief in j of the samples labelled j; of several such j, the one believed
    in most. Q scales the rows of C to the number of samples with each label.

    Args:
        log_beliefs: yields log-probabilities (b, K) of all samples in order, each time it is asked;
            they should come from models that have not seen the samples' labels.
        labels: (N,) given.
        num_classes: K.
    """
    sums, counts = torch.zeros(num_classes), torch.bincount(labels, minlength=num_classes)
    for given, p in _with_labels(log_beliefs(), labels):
        sums.index_add_(0, given, p.gather(1, given[:, None]).squeeze(1))
    threshold = torch.where(counts > 0, sums / counts.clamp_min(1), torch.inf)
    joint = torch.zeros(num_classes, num_classes, dtype=torch.float64)
    for given, p in _with_labels(log_beliefs(), labels):
        confident = torch.where(p >= threshold, p, -1.0)
        best, of = confident.max(dim=1)
        sure = best >= 0
        ones = torch.ones(int(sure.sum()), dtype=torch.float64)
        joint.index_put_((given[sure], of[sure]), ones, accumulate=True)
    diagonal = joint.diagonal()
    diagonal.copy_(torch.where(counts > 0, diagonal.clamp_min(1), diagonal))  # as published
    return joint.numpy(), calibrated_joint(joint.numpy(), counts.numpy())


def calibrated_joint(counts: Matrix, labelled: NDArray[np.int64]) -> Matrix:
    """Return the joint distribution whose given labels are as frequent as they are."""
    rows = counts.sum(axis=1, keepdims=True)
    scaled = np.divide(counts, rows, out=np.zeros_like(counts), where=rows > 0) * labelled[:, None]
    total = scaled.sum()
    found: Matrix = scaled / total if total else scaled
    return found


def _with_labels(chunks: Iterable[Tensor], labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield given labels (b,) and probabilities (b, K) of all samples."""
    start = 0
    for chunk in chunks:
        yield labels[start : start + len(chunk)], chunk.exp()
        start += len(chunk)
