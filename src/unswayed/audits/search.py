"""Find wrong labels: ask all evidences, calibrate them, choose one, and say how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from unswayed.audits.calibration import calibrate, temperature
from unswayed.audits.choice import qualities
from unswayed.audits.evidence import EVIDENCE, Evidence, Inputs, Remembered
from unswayed.audits.evidence.neighbours import nearest
from unswayed.audits.flags import flags_of
from unswayed.audits.opinion import Opinion, opinion_of
from unswayed.audits.result import Audit, NoiseEstimate
from unswayed.data.dataset import check_labels
from unswayed.errors import UsageError
from unswayed.noise.estimate import confident_joint
from unswayed.runs import Run

FEW_SAMPLES, FEW_OF_CLASS, ENOUGH = 300, 5, 100
CLOSE = 0.005
"""Evidences whose agreement differs by less are equally good; the first of `PREFERRED` is taken."""

PREFERRED = ("network", "consensus", "heads", "neighbours")
RATED = ("neighbours", "consensus", "heads", "network")
"""Whose confident joint tells the share of wrong labels: the first two that apply."""

NINETY = 1.645
"""Standard errors on either side of a 90 % interval."""

Vector = NDArray[np.float64]


class Judged(NamedTuple):
    """An evidence, what it says, and the joint distribution of given and true labels by it."""

    evidence: Evidence
    opinion: Opinion
    joint: Vector
    slope: float  # of the margin
    plain_rate: float  # share of wrong labels, if wrong ones are drawn at random


def audit(run: Run, evidence: str | None = None) -> Audit:
    """Judge the labels that a finished run was trained on.

    Args:
        run: a finished run with predictions.
        evidence: use this one, in place of the one that agrees best with the others.
    """
    samples, predictions = run.samples(), run.predictions()
    trained = np.ones(len(samples.given), dtype=bool)
    trained[samples.holdout] = False
    classes = run.provenance.data.classes
    inputs = Inputs(samples.given, len(classes), predictions.logits, predictions.features, trained)
    return judge(inputs, [str(name) for name in samples.ids], classes, evidence)


def find_wrong_labels(
    labels: ArrayLike,
    *,
    probabilities: Any = None,
    logits: Any = None,
    features: Any = None,
    in_sample: bool = False,
    ids: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    evidence: str | None = None,
) -> Audit:
    """Judge labels of any data by any model: images, text, tables.

    >>> import numpy as np
    >>> from unswayed import find_wrong_labels
    >>> labels = np.repeat([0, 1], 200)
    >>> labels[:8] = 1  # wrong
    >>> features = np.random.default_rng(0).normal(size=(400, 2)) + np.repeat([[4], [-4]], 200, 0)
    >>> found = find_wrong_labels(labels, features=features)
    >>> sorted(int(finding.id) for finding in list(found)[:8])
    [0, 1, 2, 3, 4, 5, 6, 7]

    Args:
        labels: (N,) whole numbers from 0, or names.
        probabilities: (N, K) of a model, best from cross-validation.
        logits: (N, K), in place of probabilities.
        features: (N, F) of any encoder; alone they are enough.
        in_sample: whether the model was trained on these very labels.
        ids: names of the samples; their numbers if not given.
        classes: names of the classes.
        evidence: use this one, in place of the one that agrees best with the others.
    """
    given, names = _labels(labels, classes)
    beliefs = _matrix(logits, "logits", len(given))
    if beliefs is None and probabilities is not None:
        p = _matrix(probabilities, "probabilities", len(given))
        assert p is not None
        if bool((p < 0).any()) or bool((p.sum(dim=1) - 1).abs().max() > 0.01):
            raise UsageError("probabilities must not be negative, and each row must sum to one")
        beliefs = p.clamp_min(1e-12).log()
    if beliefs is not None and beliefs.shape[1] != len(names):
        raise UsageError(
            f"there are {len(names)} classes, and {beliefs.shape[1]} columns of probabilities"
        )
    trained = np.full(len(given), in_sample)
    inputs = Inputs(given, len(names), beliefs, _matrix(features, "features", len(given)), trained)
    return judge(inputs, ids or [str(row) for row in range(len(given))], names, evidence)


def judge(
    inputs: Inputs, ids: Sequence[str], classes: Sequence[str], evidence: str | None = None
) -> Audit:
    """Judge all labels; `audit` and `find_wrong_labels` end here."""
    if len(ids) != len(inputs):
        raise UsageError(f"there are {len(inputs)} labels and {len(ids)} ids")
    judged = _judged(inputs)
    if not judged:
        raise UsageError(
            "there is nothing to judge labels by; give probabilities, logits or features"
        )
    if evidence is not None and evidence not in judged:
        raise UsageError(
            f"the evidence {evidence!r} cannot be used here; there are: {', '.join(judged)}"
        )
    noise = estimate_noise(judged, inputs)
    p_wrong = {name: _p_wrong(each, inputs, noise.rate) for name, each in judged.items()}
    agreement = qualities(p_wrong)
    chosen = evidence or _best(agreement)
    opinion = judged[chosen].opinion
    suggested = opinion.best_other.numpy().astype(np.int64)
    return Audit(
        ids=ids,
        classes=list(classes),
        given=inputs.labels,
        suggested=suggested,
        p_wrong=p_wrong[chosen],
        p_suggested=p_wrong[chosen] * _share_of_best_other(opinion),
        noise=noise,
        evidence=chosen,
        qualities=agreement,
        flags=flags_of(inputs, opinion),
        nearest=nearest(inputs)[0][:, :5].numpy() if inputs.features is not None else None,
        warnings=_warnings(inputs, judged, noise, classes),
    )


def _judged(inputs: Inputs) -> dict[str, Judged]:
    found = {}
    for name in EVIDENCE.names():
        evidence = Remembered(EVIDENCE.build(name))
        if evidence.applies(inputs):
            opinion = opinion_of(evidence, inputs)
            joint = confident_joint(
                partial(evidence.log_beliefs, inputs), inputs.given, inputs.num_classes
            )[1]
            slope, rate = temperature(evidence, inputs, _unseen(evidence, inputs))
            found[name] = Judged(evidence, opinion, joint, slope, rate)
    return found


def _unseen(evidence: Evidence, inputs: Inputs) -> NDArray[np.int64]:
    """Return the rows whose labels an evidence has not seen; all, if those are too few."""
    unseen = np.flatnonzero(~inputs.trained)
    if evidence.name == "network" and len(unseen) >= ENOUGH:
        return unseen
    return np.arange(len(inputs))


def estimate_noise(judged: dict[str, Judged], inputs: Inputs) -> NoiseEstimate:
    """Return the share of wrong labels with its interval.

    The interval has two parts: what a draw of so many samples leaves open, and how far evidences
    and two models of the noise differ.
    """
    rates = [1 - float(np.trace(each.joint)) for each in judged.values()]
    rates.append(float(np.mean([each.plain_rate for each in judged.values()])))
    first = [name for name in RATED if name in judged][:2]
    joint = np.mean([judged[name].joint for name in first], axis=0)
    rate = 1 - float(np.trace(joint))
    sampling = np.sqrt(max(rate * (1 - rate), 1e-9) / len(inputs))
    model = float(np.std(rates, ddof=1))
    half = NINETY * float(np.hypot(sampling, model))
    spread = NINETY * np.sqrt(joint * (1 - joint) / len(inputs))
    low, high = np.clip(joint - spread, 0, 1), np.clip(joint + spread, 0, 1)
    return NoiseEstimate(rate, max(0.0, rate - half), min(1.0, rate + half), joint, low, high)


def _p_wrong(judged: Judged, inputs: Inputs, rate: float) -> Vector:
    labelled = judged.joint.sum(axis=1)
    right = np.divide(
        np.diag(judged.joint), labelled, out=np.ones(len(labelled)), where=labelled > 0
    )
    margin = judged.opinion.margin.double().numpy()
    return calibrate(margin, inputs.labels, judged.slope, rate, 1 - right).p_wrong(
        margin, inputs.labels
    )


def _best(agreement: dict[str, float]) -> str:
    top = max(agreement.values())
    return next(name for name in PREFERRED if agreement.get(name, -1.0) >= top - CLOSE)


def _share_of_best_other(opinion: Opinion) -> Vector:
    """Return how much of the belief in other classes than the given one the best of them has."""
    others = -torch.expm1(opinion.log_given.double().clamp(max=-1e-12))
    best = (opinion.log_given - opinion.margin).double().exp()
    share: Vector = (best / others.clamp_min(1e-12)).clamp(max=1).numpy()
    return share


def _warnings(
    inputs: Inputs, judged: dict[str, Judged], noise: NoiseEstimate, classes: Sequence[str]
) -> list[str]:
    found = []
    if len(inputs) < FEW_SAMPLES:
        found.append(f"{len(inputs)} samples are few: take the probabilities as rough")
    counts = np.bincount(inputs.labels, minlength=len(classes))
    rare = [classes[k] for k in np.flatnonzero(counts < FEW_OF_CLASS).tolist()]
    if rare:
        found.append(f"fewer than {FEW_OF_CLASS} samples: {', '.join(rare[:5])}; judge them by eye")
    chance = counts.max() / len(inputs)
    agrees = max(float((each.opinion.margin > 0).double().mean()) for each in judged.values())
    if agrees < chance + 0.1:
        found.append("the model is hardly better than guessing: no label can be judged by it")
    if set(judged) == {"network"} and inputs.trained.any():
        found.append(
            "the model was trained on these labels: wrong ones that it memorised stay hidden"
        )
    if noise.high - noise.low > 0.2:
        found.append("the evidences differ widely about the share of wrong labels")
    return found


def _labels(
    labels: ArrayLike, classes: Sequence[str] | None
) -> tuple[NDArray[np.int64], list[str]]:
    values = np.asarray(labels)
    if values.dtype.kind in "US" or values.dtype == object:
        names = [str(name) for name in (classes if classes is not None else np.unique(values))]
        number = {name: k for k, name in enumerate(names)}
        unknown = sorted({str(value) for value in values} - number.keys())
        if unknown:
            raise UsageError(f"the label {unknown[0]!r} is none of the classes {names[:5]}")
        return np.array([number[str(value)] for value in values], dtype=np.int64), names
    given = check_labels(values, "labels")
    top = int(given.max(initial=0)) + 1
    names = list(classes) if classes is not None else [str(k) for k in range(top)]
    if len(given) < 2 or len(names) < 2 or top > len(names) or given.min() < 0:
        raise UsageError(
            f"labels must be at least two whole numbers from 0 to {len(names) - 1}, of two classes"
        )
    return given, names


def _matrix(values: Any, what: str, rows: int) -> Tensor | None:
    if values is None:
        return None
    found = torch.as_tensor(np.asarray(values)) if not isinstance(values, Tensor) else values
    if found.ndim != 2 or len(found) != rows or not found.is_floating_point():
        raise UsageError(
            f"{what} must be floats with a row for each of the {rows} labels, not "
            f"{found.dtype} of shape {tuple(found.shape)}"
        )
    if not bool(torch.isfinite(found).all()):
        raise UsageError(f"{what} hold values that are not finite")
    return found
