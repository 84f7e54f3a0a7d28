"""What frozen features tell of true labels, and of wrong ones: the paper's theory, on networks.

A network that was trained on noisy labels with cross entropy, and one with CTRR. From below: what
a linear layer can read from the features of training samples about the true labels, I(Z; Y), about
the given labels of wrongly labelled ones, I(Z; Ỹ), and about these where the true ones are known
already, I(Z; Ỹ | Y): that is memory and nothing else, while I(Z; Ỹ) has in it that a wrong label is
not the true one. Samples that were held out are left out.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from reproduction.figures import Lab, Measured, drawing, need_contrast, need_noise
from reproduction.figures.probe import information_bits, network, standardised, true_labels
from unswayed.build import prepare
from unswayed.recipe import Recipe
from unswayed.report.colours import colours_of
from unswayed.training.measure import features

METHODS = {"CE": ["method=ce"], "CTRR": []}
WHAT = {
    "true": "I(Z; Y)",
    "given": "I(Z; Ỹ), wrong labels",
    "wrong": "I(Z; Ỹ | Y), wrong labels",
}


def measure(recipe: Recipe, lab: Lab) -> Measured:
    """Return lower bounds in bits, by method and seed."""
    need_noise(recipe)
    need_contrast(recipe)
    bits: dict[str, dict[str, list[float]]] = {}
    for label, overrides in METHODS.items():
        found: dict[str, list[float]] = {what: [] for what in WHAT}
        for seed in range(lab.seeds):
            own, run = lab.train(recipe, *overrides, seed=seed, name=label.lower())
            data = prepare(own)[0].train
            rows = np.setdiff1d(np.arange(len(data)), run.samples().holdout)
            given, true = data.given[rows], true_labels(data)[rows]
            x, _ = standardised(z := features(network(run), data, rows), z)
            wrong = given != true
            found["true"].append(information_bits(x, true, seed=seed))
            found["given"].append(information_bits(x[wrong], given[wrong], seed=seed))
            kept = information_bits(x[wrong], given[wrong], known=true[wrong], seed=seed)
            found["wrong"].append(kept)
        bits[label] = found
    return {"seeds": lab.seeds, "bits": bits}


def draw(measured: Measured) -> Figure:
    """Draw a bar for each method, with the single seeds on it."""
    drawn, axes = drawing.panels(len(WHAT))
    for panel, (what, title) in zip(axes, WHAT.items(), strict=True):
        for number, (label, colour) in enumerate(colours_of(measured["bits"]).items()):
            values = measured["bits"][label][what]
            panel.bar(number, sum(values) / len(values), color=colour, alpha=0.6)
            panel.plot([number] * len(values), values, "k.", markersize=5)
        panel.set_xticks(range(len(measured["bits"])), list(measured["bits"]))
        panel.axhline(0, color="black", linewidth=0.8)
        drawing.finish(panel, title, "at least, bits", "")
    return drawn
