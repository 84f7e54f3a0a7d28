"""Build a trainer from a recipe. The one place that knows every component; it writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from unswayed.data import CORRECTED, Dataset, Splits
from unswayed.data.corrected import read_labels
from unswayed.device import check_precision, has_bf16, pick_device
from unswayed.errors import UsageError
from unswayed.learners import Classifier
from unswayed.noise import Noise, realised
from unswayed.randomness import torch_seed
from unswayed.recipe import Recipe
from unswayed.training.cost import PROBED, Budget, epochs_within
from unswayed.training.trainer import Trainer
from unswayed.views.policy import Policy


def assemble(recipe: Recipe, data: Splits | None = None) -> tuple[Trainer, Noise]:
    """Build everything that a recipe names."""
    splits, noise = prepare(recipe, data)
    return make_trainer(settled(recipe, resolve(recipe, splits)), splits), noise


def resolve(recipe: Recipe, splits: Splits) -> dict[str, Any]:
    """Return the options of `train` that depend on this machine or on the cost of an epoch."""
    settings = recipe.settings
    found: dict[str, Any] = {}
    if settings.precision == "auto":
        native = has_bf16(pick_device(settings.device))
        found["precision"] = "bf16" if native else "fp32"
    if settings.budget:
        probe = make_trainer(settled(recipe, {**found, "epochs": PROBED}), splits)
        found["epochs"] = epochs_within(Budget.parse(settings.budget), probe)
    return found


def settled(recipe: Recipe, resolved: Mapping[str, Any]) -> Recipe:
    """Return the recipe with the options that `resolve` found; a budget becomes epochs."""
    budget = {"budget": ""} if "epochs" in resolved else {}
    return recipe.with_options("train", **{**recipe.sections["train"], **resolved, **budget})


def make_trainer(recipe: Recipe, splits: Splits) -> Trainer:
    """Build the trainer for these data."""
    settings = recipe.settings
    device = pick_device(settings.device)
    check_precision(settings.precision, device)
    train = splits.train
    facts = facts_of(train)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(settings.seed, "initial weights"))
        backbone = recipe.build("model", facts)
        facts |= {"backbone": backbone, "feature_dim": backbone.feature_dim}
        statistics = train.channel_statistics()

        def new_classifier() -> Classifier:
            return Classifier(recipe.build("model", facts), train.num_classes, *statistics)

        classifier = Classifier(backbone, train.num_classes, *statistics)
        facts |= {"classifier": classifier, "new_classifier": new_classifier}
        facts |= {"run_seed": settings.seed, **_known_noise(train)}
        for part in ("loss", "framework", "regularizer"):
            facts[part] = recipe.build(part, facts)
        learner = recipe.build("learner", facts)
    policy = Policy(
        recipe.build("views.weak", facts), recipe.build("views.strong", facts), settings.seed
    )
    optimizer, schedule = recipe.build("optimizer"), recipe.build("schedule")
    return Trainer(learner, policy, splits, settings, optimizer, schedule, device)


def prepare(recipe: Recipe, data: Splits | None = None) -> tuple[Splits, Noise]:
    """Return the data with noisy training labels, and the noise."""
    clean, test = recipe.build("data") if data is None else _own(recipe, data)
    _check_fit(clean, test)
    noise: Noise = recipe.build("noise", facts_of(clean))
    given = noise.corrupt(clean.given, clean.keys, recipe.settings.seed)
    noisy = clean if np.array_equal(given, clean.given) else clean.with_given(given)
    return Splits(noisy, test), noise


def _own(recipe: Recipe, data: Splits) -> Splits:
    """Return data given from Python, with the labels of a file if the recipe names one."""
    file = recipe.sections["data"].get(CORRECTED)
    return read_labels(file).applied_to(data) if file else data


def facts_of(data: Dataset) -> dict[str, Any]:
    """Return the values that constructors may ask for once the data are known."""
    return {
        "num_classes": data.num_classes,
        "num_samples": len(data),
        "in_channels": data.channels,
        "image_size": data.image_size,
        "images": data.images,
    }


def _known_noise(data: Dataset) -> dict[str, Any]:
    """Return the realised rate and matrix of wrong labels; None if true labels are unknown."""
    if data.true is None:
        return {"known_rate": None, "known_matrix": None}
    rate, matrix = realised(data.true, data.given, data.num_classes)
    return {"known_rate": rate, "known_matrix": matrix}


def _check_fit(train: Dataset, test: Dataset | None) -> None:
    if test is None:
        return
    if test.classes != train.classes:
        raise UsageError(f"training and test classes differ: {train.classes} and {test.classes}")
    if (test.channels, test.image_size) != (train.channels, train.image_size):
        raise UsageError(
            f"training and test images differ in shape: {tuple(train.images.shape[1:])} and "
            f"{tuple(test.images.shape[1:])}"
        )
