"""Fig. 1: the features of training images in the plane, by true and by given label."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from reproduction.figures import Lab, Measured, drawing, need_contrast, need_noise
from reproduction.figures.probe import network, standardised, true_labels
from unswayed.build import prepare
from unswayed.recipe import Recipe
from unswayed.training.measure import features

METHODS = {"CE": ["method=ce"], "CTRR": []}
MOST = 1000
"""Images shown: t-SNE takes seconds for a thousand."""


def measure(recipe: Recipe, lab: Lab) -> Measured:
    """Return places in the plane by t-SNE, and labels; of the first seed only."""
    from sklearn.manifold import TSNE

    need_noise(recipe)
    need_contrast(recipe)
    found = {}
    for label, overrides in METHODS.items():
        own, run = lab.train(recipe, *overrides, seed=0, name=label.lower())
        data = prepare(own)[0].train
        rows = np.linspace(0, len(data) - 1, min(MOST, len(data))).astype(np.int64)
        x, _ = standardised(z := features(network(run), data, rows), z)
        plane = TSNE(random_state=0, init="pca").fit_transform(x.numpy())
        found[label] = {
            "places": np.round(plane, 2).tolist(),
            "true": true_labels(data)[rows].tolist(),
            "given": data.given[rows].tolist(),
            "test_accuracy": run.summary.last.test_accuracy,
        }
    return {"methods": found}


def draw(measured: Measured) -> Figure:
    """Draw a row for each method: coloured by true labels, and by given ones."""
    drawn, axes = drawing.panels(2, rows=len(measured["methods"]))
    panels = iter(axes)
    for label, found in measured["methods"].items():
        x, y = np.array(found["places"]).T
        for what in ("true", "given"):
            panel = next(panels)
            panel.scatter(x, y, c=found[what], cmap="tab10", s=6, linewidths=0)
            panel.set(title=f"{label}, coloured by {what} label", xticks=[], yticks=[])
    return drawn
