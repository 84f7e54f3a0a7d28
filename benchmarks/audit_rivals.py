"""What cleanlab finds in the same data, with every choice made in its favour.

Out-of-sample probabilities come from cross-validated networks, or from models over the features
that our audit uses. Of all label-quality scores that cleanlab offers, the one with the best average
precision counts, which only the truth can tell. A suggested label is the most probable one that is
not the given one.
"""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import Any

import numpy as np
from audit_measures import Labels, Vector, calibration_error, ranking
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unswayed.files import atomic

FOLDS = 5
STRENGTHS = (0.001, 0.03, 1.0)
"""C of logistic regression. The last is scikit-learn's default; wrong labels call for less."""

NEIGHBOURS = 10
"""As many as cleanlab's Datalab asks when it is given features only."""

Matrix = NDArray[np.float32]


def installed() -> bool:
    """Return whether cleanlab can be imported."""
    return importlib.util.find_spec("cleanlab") is not None


def on_features(features: Matrix, given: Labels, folder: Path, seed: int) -> dict[str, Any]:
    """Return probabilities (N, K) and CPU seconds of models over features, by name.

    They are computed once, and kept in the folder.
    """
    file = folder / "feature-models.npz"
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        arrays = {}
        for name, (p, seconds) in _fit(features, given, seed).items():
            arrays |= {f"{name}/p": p.astype(np.float32), f"{name}/s": np.array(seconds)}
        with atomic(file) as temporary, temporary.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays)
    with np.load(file, allow_pickle=False) as kept:
        names = [key.removesuffix("/p") for key in kept.files if key.endswith("/p")]
        return {name: (kept[f"{name}/p"], float(kept[f"{name}/s"])) for name in names}


def _fit(features: Matrix, given: Labels, seed: int) -> dict[str, tuple[Matrix, float]]:
    fits = {c: _timed(_logistic, features, given, c, seed) for c in STRENGTHS}
    losses = {c: log_loss(given, p, labels=np.unique(given)) for c, (p, _) in fits.items()}
    best = min(losses, key=losses.__getitem__)
    every = sum(seconds for _, seconds in fits.values())
    return {
        "logistic": fits[1.0],
        "logistic-best-c": (fits[best][0], every),
        "neighbours": _timed(vote_of_neighbours, features, given),
    }


def _timed(make: Any, *args: Any) -> tuple[Matrix, float]:
    began = time.process_time()
    return make(*args), time.process_time() - began


def _logistic(features: Matrix, given: Labels, c: float, seed: int) -> Matrix:
    """Return out-of-sample probabilities of a logistic regression on standardised features."""
    split = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=1000, tol=1e-3))
    found: Matrix = cross_val_predict(model, features, given, cv=split, method="predict_proba")
    return found


def vote_of_neighbours(features: Matrix, given: Labels) -> Matrix:
    """Return the votes of the nearest samples, the sample itself left out."""
    search = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(features)
    votes = np.eye(int(given.max()) + 1, dtype=np.float32)
    found: Matrix = votes[given[search.kneighbors(return_distance=False)]].mean(axis=1)
    return found


def scores(p: Matrix, given: Labels) -> dict[str, Vector]:
    """Return every label-quality score of cleanlab, turned so that higher is more suspicious."""
    from cleanlab.rank import get_label_quality_scores

    found = {}
    for method in ("self_confidence", "normalized_margin", "confidence_weighted_entropy"):
        for adjust in (False, True):
            if adjust and method == "confidence_weighted_entropy":
                continue  # cleanlab refuses this pair
            name = f"{method}, adjusted" if adjust else method
            quality = get_label_quality_scores(given, p, method=method, adjust_pred_probs=adjust)
            found[name] = 1 - np.asarray(quality, np.float64)
    return found


def cleanlab_finds(p: Matrix, given: Labels, true: Labels) -> dict[str, Any]:
    """Return everything that is measured of cleanlab with these probabilities."""
    from cleanlab.count import estimate_joint, num_label_issues

    p = p / p.sum(axis=1, keepdims=True)
    others = p.copy()
    others[np.arange(len(p)), given] = -1
    suggested = others.argmax(axis=1)
    wrong = given != true
    ranked = {
        name: ranking(score, suggested, given, true) for name, score in scores(p, given).items()
    }
    best = max(ranked, key=lambda name: ranked[name]["ap"])
    unsure = 1 - p[np.arange(len(p)), given].astype(np.float64)
    return {
        **ranked[best],
        "score": best,
        "ap_by_score": {name: each["ap"] for name, each in ranked.items()},
        "calibration_error": calibration_error(unsure, wrong),
        "rate_by_joint": 1 - float(np.trace(estimate_joint(given, p))),
        "rate_by_issues": float(num_label_issues(given, p) / len(given)),
    }
