"""Fig. 3: a linear layer is trained with wrong labels on features that were learnt from right ones.

The features come from cross entropy, and from cross entropy with the contrast of eq. 1, which
knows the right labels. The paper does not say whether its contrast was trained beside a cross
entropy, nor how its linear layer was; here by SGD with momentum and a falling rate, on standardised
features.
"""

from __future__ import annotations

from matplotlib.figure import Figure
from torch import Tensor

from reproduction.figures import Lab, Measured, drawing, need_contrast, need_test, with_overrides
from reproduction.figures.probe import Seen, network, probe, standardised, true_labels
from unswayed.build import prepare
from unswayed.data import Splits
from unswayed.recipe import Recipe
from unswayed.report.colours import colours_of
from unswayed.runs import Run
from unswayed.training.measure import features

FEATURES = {
    "CE": ["method=ce"],
    "CTR (eq. 1)": ["regularizer.name=supervised"],
}
NOISES = {
    "sym 80": ["noise.name=symmetric", "noise.inclusive=true", "noise.rate=0.8"],
    "asym 40": ["noise.name=asymmetric", "noise.rate=0.4"],
}
MAPS = {"cifar10": "cifar10"}
"""What becomes what under asymmetric noise, by data; the next class elsewhere, as published."""

EPOCHS = 40


def measure(recipe: Recipe, lab: Lab) -> Measured:
    """Return what probes do, by noise, features and seed."""
    need_contrast(recipe)
    need_test(prepare(with_overrides(recipe, seed=0))[0])
    curves: dict[str, dict[str, list[list[Seen]]]] = {noise: {} for noise in NOISES}
    for label, overrides in FEATURES.items():
        for seed in range(lab.seeds):
            name = label.split()[0].lower()
            clean, run = lab.train(recipe, *overrides, "noise.name=none", seed=seed, name=name)
            x, x_test = _features(run, prepare(clean)[0])
            for noise in NOISES:
                noisy = prepare(with_overrides(recipe, *_noise(recipe, noise), seed=seed))[0]
                labels = noisy.train.given, true_labels(noisy.train)
                test = x_test, need_test(noisy).given
                seen = probe((x, *labels), test, epochs=EPOCHS, seed=seed)
                curves[noise].setdefault(label, []).append(seen)
    return {"seeds": lab.seeds, "epochs": EPOCHS, "curves": curves}


def _noise(recipe: Recipe, name: str) -> list[str]:
    overrides = NOISES[name]
    if name.startswith("asym"):
        overrides = [*overrides, f"noise.map={MAPS.get(recipe.sections['data']['name'], 'next')}"]
    return overrides


def _features(run: Run, splits: Splits) -> tuple[Tensor, Tensor]:
    """Return standardised features of the training and the test images."""
    net = network(run)
    return standardised(features(net, splits.train), features(net, need_test(splits)))


def draw(measured: Measured) -> Figure:
    """Draw memorisation and test accuracy for each noise."""
    drawn, axes = drawing.panels(4, side=3.2)
    for place, (noise, curves) in enumerate(measured["curves"].items()):
        for label, colour in colours_of(curves).items():
            for panel, entry in ((2 * place, 0), (2 * place + 1, 2)):
                values = [[epoch[entry] for epoch in seed] for seed in curves[label]]
                drawing.band(axes[panel], values, label, colour)
        drawing.finish(axes[2 * place], f"{noise}: wrong labels memorised", "%")
        drawing.finish(axes[2 * place + 1], f"{noise}: test accuracy", "%")
    drawing.legend(axes[0])
    return drawn
