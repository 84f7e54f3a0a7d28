"""What frozen features tell of true labels, and of wrong ones: the paper's theory, on networks.

A network that was trained on noisy labels with cross entropy, and one with CTRR. From below: what a
linear layer can read from the features about the true labels of all samples, and about the given
labels of wrongly labelled ones, which nothing but memory tells.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from unswayed.build import prepare
from unswayed.figures import Measured, Train, drawing
from unswayed.figures.probe import information_bits, network, standardised
from unswayed.recipe import Recipe
from unswayed.training.evaluate import features

METHODS = {"CE": ["method=ce"], "CTRR": []}
WHAT = {"true": "I(Z; Y), all samples", "wrong": "I(Z; Ỹ), wrong labels"}


def measure(recipe: Recipe, folder: Path, seeds: int, train: Train) -> Measured:
    """Return lower bounds in bits, by method and seed."""
    bits: dict[str, dict[str, list[float]]] = {}
    for label, words in METHODS.items():
        found: dict[str, list[float]] = {what: [] for what in WHAT}
        for seed in range(seeds):
            own = Recipe.from_dict(recipe.sections, *words, f"train.seed={seed}", name=recipe.name)
            run = train(own, folder / f"{label.lower()}-seed{seed}")
            data = prepare(own)[0].train
            assert data.true is not None
            x, _ = standardised(z := features(network(run), data), z)
            wrong = data.given != data.true
            found["true"].append(information_bits(x, data.true, seed=seed))
            found["wrong"].append(information_bits(x[wrong], data.given[wrong], seed=seed))
        bits[label] = found
    return {"seeds": seeds, "bits": bits}


def draw(measured: Measured) -> Figure:
    """Draw a bar for each method, with the single seeds on it."""
    drawn, axes = drawing.panels(len(WHAT))
    for panel, (what, title) in zip(axes, WHAT.items(), strict=True):
        for number, found in enumerate(measured["bits"].values()):
            values = found[what]
            panel.bar(number, sum(values) / len(values), color=drawing.COLOURS[number], alpha=0.6)
            panel.plot([number] * len(values), values, "k.", markersize=5)
        panel.set_xticks(range(len(measured["bits"])), list(measured["bits"]))
        panel.axhline(0, color="black", linewidth=0.8)
        drawing.finish(panel, title, "at least, bits", "")
    return drawn
