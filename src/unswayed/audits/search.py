"""Find wrong labels: ask all evidences, calibrate them, choose among them, and say how sure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from unswayed.audits.choice import PREFERRED, choose, qualities
from unswayed.audits.duplicates import Pictures, groups_of, leaks_of, unique_rows
from unswayed.audits.evidence import EVIDENCE, Evidence, Inputs, Remembered
from unswayed.audits.evidence.neighbours import nearest
from unswayed.audits.flags import flags_of, outliers
from unswayed.audits.opinion import Opinion, opinion_of
from unswayed.audits.posterior import Judgement, Noise, judge_by, noise_of, together
from unswayed.audits.result import Audit, NoiseEstimate
from unswayed.data.dataset import check_labels
from unswayed.errors import UsageError
from unswayed.noise.estimate import Confident, compare_confident
from unswayed.runs import Run

FEW_SAMPLES, FEW_OF_CLASS, ENOUGH = 1000, 5, 100

CROSS_FITTED = ("consensus", "heads", "neighbours")
"""They judge a label without having seen it."""

NINETY = 1.645
"""Standard errors on either side of a 90 % interval."""

MODEL = 0.09
"""Standard error of the rate, as a share of it, where samples are many: what was measured on sets
of labels whose truth is known (docs/audit.md)."""

SHORT_LONG = (10, 30)
"""Epochs up to which a training is short, and from which on it is long."""

DRAWS = 200
"""Of the bootstrap."""

SHOWN = 5
"""Neighbours that an audit keeps of each sample."""

WEAK = 0.5
"""If labels bear out no more of the noise than that, a weak model may be the reason for it."""

MEMORISED = 0.25
"""More agreement than that with labels that were trained on than with others is memory."""

Vector = NDArray[np.float64]


class Judged(NamedTuple):
    """An evidence and what it predicts."""

    evidence: Evidence
    opinion: Opinion
    inputs: Inputs

    def confident(self, rows: NDArray[np.int64] | None = None) -> Confident:
        """Compare all labels, or those of some rows, with confident predictions."""
        at = np.arange(len(self.inputs)) if rows is None else rows
        return compare_confident(
            self.opinion.predicted[at],
            self.opinion.confidence[at],
            self.inputs.labels[at],
            self.inputs.num_classes,
            self.inputs.keys[at],
        )


class Told(NamedTuple):
    """What evidences tell about the noise."""

    rate: float
    error: float  # standard error of the rate
    counts: Vector  # (K, K) of confident samples by given label (rows) and prediction (columns)
    memorised: bool


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
    inputs = Inputs(
        samples.given,
        len(classes),
        predictions.logits,
        predictions.features,
        trained,
        run.records() if run.has_records() else None,
    )
    ids = [str(name) for name in samples.ids]
    return judge(inputs, ids, classes, evidence, pictures_of(run, predictions.test_features))


def pictures_of(run: Run, test_features: Tensor | None) -> Pictures | None:
    """Return the images of a run, if the data are there."""
    try:
        train, test = run.data()
    except (UsageError, OSError):
        return None
    tested = test.images if test is not None else None
    return Pictures(train.images, tested, test_features)


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
    inputs: Inputs,
    ids: Sequence[str],
    classes: Sequence[str],
    evidence: str | None = None,
    pictures: Pictures | None = None,
) -> Audit:
    """Judge all labels; `audit` and `find_wrong_labels` end here."""
    if len(ids) != len(inputs):
        raise UsageError(f"there are {len(inputs)} labels and {len(ids)} ids")
    if inputs.logits is None and inputs.features is None:
        raise UsageError(
            "there is nothing to judge labels by; give probabilities, logits or features"
        )
    rows, twin = unique_rows(inputs)  # equal samples are judged once
    part = inputs.select(rows) if len(rows) < len(inputs) else inputs
    judged = _judged(part)
    if evidence is not None and evidence not in judged:
        raise UsageError(
            f"the evidence {evidence!r} cannot be used here; there are: {', '.join(judged)}"
        )
    told = noise_told(part, judged)
    labelled = np.bincount(part.labels, minlength=len(classes))
    noise = noise_of(told.counts, told.rate, labelled)
    judgements = {name: _judgement(each, part, noise) for name, each in judged.items()}
    agreement = qualities({name: each.p_wrong for name, each in judgements.items()})
    chosen = [evidence] if evidence else _chosen(judgements, agreement, told)
    best = together([judgements[name] for name in chosen], part.labels)
    weak = next(judgements[name] for name in PREFERRED if name in judged).support <= WEAK
    close = nearest(part)[0][:, :SHOWN] if part.features is not None and len(part) > 2 else None
    groups, leaks = groups_of(inputs, pictures), leaks_of(inputs, pictures)
    p_top = best.p_top[twin]
    return Audit(
        ids=ids,
        classes=list(classes),
        given=inputs.labels,
        suggested=best.suggested[twin],
        p_wrong=best.p_wrong[twin],
        p_suggested=best.p_suggested[twin],
        noise=with_intervals(told, best.joint, len(part), weak=weak),
        evidence=" + ".join(chosen),
        qualities=agreement,
        p_wrong_by={name: each.p_wrong[twin] for name, each in judgements.items()},
        flags=flags_of(p_top, outliers(part)[twin], groups, leaks, inputs.labels),
        top=best.top[twin],
        p_top=p_top,
        nearest=None if close is None else rows[close.numpy()][twin].astype(np.int32),
        groups=groups,
        reliability=best.reliability,
        warnings=[*_warnings(part, judged, classes, weak=weak), *_memory(part, judged)],
    )


def _judged(inputs: Inputs) -> dict[str, Judged]:
    found = {}
    for name in EVIDENCE.names():
        evidence = Remembered(EVIDENCE.build(name))
        if evidence.applies(inputs):
            found[name] = Judged(evidence, opinion_of(evidence, inputs), inputs)
    return found


def noise_told(inputs: Inputs, judged: dict[str, Judged]) -> Told:
    """Return what evidences tell about the noise before any label is judged."""
    memorised = has_memorised(inputs, judged)
    shown, held_out = compared(judged), honest(inputs, judged)
    if memorised and held_out is not None:
        shown = [held_out]  # memorised labels have bent even the features of the rest
    during = None if memorised else over_time(inputs, judged)
    return Told(*rate_of(shown, held_out, during), shown[0].counts, memorised)


def _chosen(judgements: dict[str, Judgement], agreement: dict[str, float], told: Told) -> list[str]:
    """Return the evidences to use; of a network that has memorised, the course of its training."""
    if told.memorised and "dynamics" in judgements:
        return ["dynamics"]
    return choose(agreement, {name: each.cost for name, each in judgements.items()})


def has_memorised(inputs: Inputs, judged: dict[str, Judged]) -> bool:
    """Return whether the network knows by heart what it was trained on."""
    seen, unseen = agreement_of(inputs, judged)
    return seen - unseen > MEMORISED


def agreement_of(inputs: Inputs, judged: dict[str, Judged]) -> tuple[float, float]:
    """Return how often the network agrees with labels that it was trained on, and with others."""
    held_out = ~inputs.trained
    if "network" not in judged or held_out.sum() < ENOUGH or held_out.all():
        return 0.0, 0.0
    agrees = judged["network"].opinion.predicted == inputs.labels
    return float(agrees[~held_out].mean()), float(agrees[held_out].mean())


def compared(judged: dict[str, Judged]) -> list[Confident]:
    """Return what evidences tell about the noise that have not seen the labels, or the network."""
    found = [judged[name].confident() for name in CROSS_FITTED if name in judged]
    return found or [judged["network"].confident()]


def honest(inputs: Inputs, judged: dict[str, Judged]) -> Confident | None:
    """Return what the network tells of rows that it was not trained on, if they are enough."""
    rows = np.flatnonzero(~inputs.trained)
    if "network" not in judged or len(rows) < ENOUGH:
        return None
    return judged["network"].confident(rows)


def _judgement(judged: Judged, inputs: Inputs, noise: Noise) -> Judgement:
    """Judge by one evidence; its slope is fitted to labels it has not seen, if they suffice."""
    unseen = np.arange(len(inputs))
    held_out = np.flatnonzero(~inputs.trained)
    if judged.evidence.name == "network" and len(held_out) >= ENOUGH:
        unseen = held_out
    return judge_by(judged.evidence, inputs, noise, unseen)


def over_time(inputs: Inputs, judged: dict[str, Judged]) -> tuple[Confident, float] | None:
    """Return what the whole training tells, and how far to follow it rather than its end.

    The more often a network has seen a label, the more its confidence hangs on that label: right
    ones look sure, and wrong ones hide among the unsure. Early epochs do not know that yet.
    """
    if "dynamics" not in judged or inputs.records is None:
        return None
    few, many = SHORT_LONG
    weight = float(np.clip((len(inputs.records.loss) - few) / (many - few), 0.0, 1.0))
    return judged["dynamics"].confident(), weight


def rate_of(
    shown: Sequence[Confident],
    held_out: Confident | None = None,
    during: tuple[Confident, float] | None = None,
) -> tuple[float, float]:
    """Return the share of wrong labels and its standard error.

    Mistakes of an evidence add to the rate that it tells, so the lowest is the best. The error has
    three parts: what another draw of samples would give, how far the evidences differ, and how far
    they were all off where the truth is known.
    """
    rates = [each.rate for each in shown]
    lowest = shown[int(np.argmin(rates))]
    training, weight = during or (lowest, 0.0)
    rate = (1 - weight) * lowest.rate + weight * training.rate
    rng = np.random.default_rng(0)
    draws = [(training if weight > 0.5 else lowest).resampled(rng).rate for _ in range(DRAWS)]
    rates += [held_out.rate] if held_out is not None else []
    between = np.std(rates, ddof=1) if len(rates) > 1 else MODEL * rate
    return rate, float(np.sqrt(np.var(draws) + between**2 + (MODEL * rate) ** 2))


def with_intervals(told: Told, joint: Vector, samples: int, *, weak: bool) -> NoiseEstimate:
    """Return the estimate with 90 % intervals, of every pair of classes as well.

    A pair is as uncertain as the rate, and as a count of the samples that showed it.
    """
    rate = told.rate
    shared = told.error / rate if rate > 0 else 0.0
    relative = np.sqrt(shared**2 + 1 / (told.counts + 1))
    half = NINETY * (joint * relative + 1 / samples)
    wrong = joint.sum(axis=1) - np.diag(joint)
    np.fill_diagonal(half, NINETY * (wrong * shared + np.sqrt(wrong / samples) + 1 / samples))
    low, high = (np.clip(joint + sign * half, 0, 1) for sign in (-1, 1))
    # Where nothing was found, so many samples can still hide one in a few.
    hidden = 3 / max(samples, 1)
    reach = NINETY * told.error
    lowest = 0.0 if weak else max(0.0, rate - reach)
    return NoiseEstimate(rate, lowest, min(1.0, max(rate + reach, hidden)), joint, low, high)


def _warnings(
    inputs: Inputs, judged: dict[str, Judged], classes: Sequence[str], *, weak: bool
) -> list[str]:
    found = []
    if len(inputs) < FEW_SAMPLES:
        found.append(
            f"{len(inputs)} samples are few: P(wrong) may be far too sure; look before you change "
            "a label"
        )
    counts = np.bincount(inputs.labels, minlength=len(classes))
    rare = [classes[k] for k in np.flatnonzero(counts < FEW_OF_CLASS).tolist()]
    if rare:
        more = f" and {len(rare) - 5} more" if len(rare) > 5 else ""
        found.append(
            f"fewer than {FEW_OF_CLASS} samples: {', '.join(rare[:5])}{more}; judge them by eye"
        )
    agrees = [float((each.opinion.predicted == inputs.labels).mean()) for each in judged.values()]
    if max(agrees) < counts.max() / len(inputs) + 0.1:
        found.append("the model is hardly better than guessing: no label can be judged by it")
    elif weak:
        found.append(
            "the model is weak, and its own mistakes look like wrong labels: take the share of "
            "wrong labels as the most that there may be"
        )
    return found


def _memory(inputs: Inputs, judged: dict[str, Judged]) -> list[str]:
    """Return what to say of a network that was trained on the labels."""
    if set(judged) == {"network"} and inputs.trained.any():
        return ["the model was trained on these labels: wrong ones that it memorised stay hidden"]
    if not has_memorised(inputs, judged):
        return []
    seen, unseen = agreement_of(inputs, judged)
    return [
        f"the network has memorised labels: it agrees with {100 * seen:.0f} % of those it was "
        f"trained on and with {100 * unseen:.0f} % of those held out; train it for fewer epochs"
    ]


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
