"""Estimate what the cells of a grid cost on this machine, by a few steps on random images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from unswayed.bench.grid import Cell, Shape
from unswayed.build import make_trainer, prepare, resolve, settled
from unswayed.data import Dataset, Splits
from unswayed.device import threads
from unswayed.recipe import Recipe
from unswayed.training.cost import Budget, Cost, course, epoch_cost
from unswayed.training.trainer import Trainer

LEAST, PIXELS, BATCHES = 16, 2**15, 4
"""The least number of images in a step, the most pixels of a step with more images, and the number
of steps. All are small, since a step of a large network takes seconds on a CPU."""


class Estimate(NamedTuple):
    """The cost of a training on a CPU core, or on the GPU of its recipe, without evaluation."""

    flops: float
    seconds: float


def estimates(
    cells: Sequence[Cell], shapes: Mapping[str, Shape]
) -> Iterator[tuple[Cell, Estimate]]:
    """Yield the cost of each cell. Cells that differ in noise, seed, λ, τ or lr are timed once.

    Args:
        cells: of one grid.
        shapes: the shape of the data by column; if it is missing, the data are loaded.
    """
    known: dict[tuple[str, Shape], Estimate] = {}
    seen: dict[str, Shape] = {}
    for cell in cells:
        data = repr(cell.recipe.sections["data"])
        if cell.column not in shapes and data not in seen:
            seen[data] = _look(cell.recipe)
        shape = shapes.get(cell.column) or seen[data]
        plain = without_free_options(cell.recipe)
        key = plain.key(), shape
        if key not in known:
            known[key] = estimate(plain, shape)
        yield cell, known[key]


def estimate(recipe: Recipe, shape: Shape) -> Estimate:
    """Return what a training on data of this shape costs, from a short one on random images."""
    budget = recipe.settings.budget
    size = min(recipe.settings.batch_size, max(LEAST, PIXELS // shape.side**2))
    few = Recipe.from_dict(recipe.sections, f"train.batch_size={size}", "train.budget=")
    share = 1 - few.settings.holdout
    with threads(few.settings.threads):
        splits = _random_images(shape, math.ceil(size * BATCHES / share))
        trainer = make_trainer(settled(few, resolve(few, splits)), splits)
        last = few.settings.epochs - 1
        epoch_cost(trainer, last, timed=False)  # includes what a learner does only once
        cost = epoch_cost(trainer, last, timed=True)
        if budget:
            return _spent(Budget.parse(budget), cost)
        flops = _whole(trainer, cost.flops)
    times = shape.samples * share / (size * trainer.steps)
    return Estimate(flops * times, flops * times * cost.seconds / cost.flops)


def _whole(trainer: Trainer, last: float) -> float:
    """Return the operations of all epochs of a short training.

    Args:
        trainer: has epochs of a few steps.
        last: operations of the last epoch.
    """
    epochs = trainer.settings.epochs
    if epochs == 1 or epoch_cost(trainer, 0, timed=False).flops == last:
        return epochs * last
    return course(trainer)(epochs)


def _spent(budget: Budget, cost: Cost) -> Estimate:
    """Return the cost of a training that has a budget."""
    pace = cost.flops / cost.seconds
    if budget.kind == "flops":
        return Estimate(budget.amount, budget.amount / pace)
    return Estimate(budget.amount * pace, budget.amount)


def without_free_options(recipe: Recipe) -> Recipe:
    """Return the recipe with noise, seed, λ, τ and lr fixed, which do not change its cost."""
    seedless = {**recipe.sections["train"], "seed": 0}
    plain = recipe.with_options("noise", name="none").with_options("train", **seedless)
    plain = plain.with_options("optimizer", **{**recipe.sections["optimizer"], "lr": 0.01})
    contrast = dict(recipe.sections["regularizer"])
    for name, value in {"weight": 1.0, "tau": 0.5}.items():
        if contrast.get(name):  # with λ = 0 there is nothing to compute
            contrast[name] = value
    plain = plain.with_options("regularizer", **contrast)
    model = dict(recipe.sections["model"])
    if "weights" in model:
        model["weights"] = None  # which may have to be fetched
    return plain.with_options("data", name="memory").with_options("model", **model)


def _look(recipe: Recipe) -> Shape:
    splits, _ = prepare(recipe)
    train = splits.train
    return Shape(len(train), max(train.image_size), train.num_classes, train.channels)


def _random_images(shape: Shape, count: int) -> Splits:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (count, shape.channels, shape.side, shape.side), dtype=np.uint8)
    labels = np.arange(count) % shape.classes
    names = [str(each) for each in range(shape.classes)]
    return Splits(Dataset.from_arrays(images, labels, true=labels, classes=names), None)
