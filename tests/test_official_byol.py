"""The preset `official-byol` beside the published code: what it repeats, and what it does not."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from learners.parts import build
from pairing import cost_of, weights_of
from reproduction import grid_file
from unswayed import Recipe
from unswayed.bench.grid import Grid
from unswayed.training.optimization import Optimization
from unswayed.types import Pairs

RECIPE = Recipe.load("official-byol", "data.name=cifar10")
P = [[0.9, 0.05, 0.05], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.2, 0.7, 0.1]]
Q = [[3, 4, 0], [2, 1, 0], [0, 1, 2], [-1, 2, 2]]
Z = [[4, 3, 0], [5, 12, 0], [0, 2, 1], [2, -1, 2]]


def double(rows):
    return torch.tensor(rows, dtype=torch.float64)


def test_the_loss_on_the_known_vectors_is_the_published_one_less_its_constant():
    regularizer = RECIPE.build("regularizer")
    weights = weights_of(regularizer, double(P), torch.zeros(4, dtype=torch.long), 0.5)
    loss = cost_of(regularizer, [Pairs(double(Q), double(Z))], weights)
    assert float(loss) == pytest.approx(-1.5391383992, abs=1e-9)
    assert float(loss) + 2 == pytest.approx(0.4608616008, abs=1e-9)  # what the code prints


def test_it_is_one_sided_with_a_target_of_momentum_99():
    framework = RECIPE.sections["framework"]
    assert (framework["name"], framework["symmetric"], framework["momentum"]) == (
        "byol",
        False,
        0.99,
    )


def test_the_learning_rate_is_the_published_cosine_of_the_epoch():
    optimizer, schedule = RECIPE.build("optimizer"), RECIPE.build("schedule")
    made = Optimization(build("regularized"), optimizer, schedule, RECIPE.settings, 195)
    for epoch in (0, 1, 100, 275, 549):
        expected = 0.02 * 0.5 * (1 + math.cos(math.pi * epoch / 550))
        for step in (0, 100, 194):
            found = made.rate(epoch, step)
            assert found == pytest.approx(expected, rel=1e-12)


def test_the_grid_draws_the_published_labels():
    """SHA-256 of the drawn labels of seed "2021" and 80 %, as for the generator itself."""
    (cell,) = Grid.load(grid_file("official-cifar10"), seeds=1).only(["ctrr-byol", "sym 80"])
    noise = cell.recipe.build("noise", {"num_classes": 10})
    given = noise.corrupt(np.full(50_000, 9), np.zeros(50_000, np.uint64), 0)
    again = noise.corrupt(np.full(50_000, 0), np.zeros(50_000, np.uint64), 0)
    drawn = np.where(given == again, given, -1).astype("<i2")
    assert hashlib.sha256(drawn.tobytes()).hexdigest()[:16] == "b5ddd625f676753c"


def published_accuracy(right, batch_size=128):
    """Accuracies of batches, averaged as the published code does: each weighs the same."""
    parts = [right[start : start + batch_size] for start in range(0, len(right), batch_size)]
    return float(np.mean([part.mean() for part in parts]))


def test_the_published_count_of_accuracy_errs_as_the_documentation_says():
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(2000):
        right = rng.random(10_000) < 0.93
        errors.append(100 * (published_accuracy(right) - right.mean()))
    page = (Path(__file__).parents[1] / "docs" / "method.md").read_text(encoding="utf-8")
    assert f"{np.std(errors):.2f} points at 93 %" in page.replace("\n", " ")


def test_nothing_is_held_out_and_decay_is_on_every_parameter():
    settings, optimizer = RECIPE.settings, RECIPE.build("optimizer")
    assert settings.holdout == 0
    assert optimizer.decay_norms_and_biases
    assert (settings.batch_size, optimizer.momentum, optimizer.nesterov) == (256, 0.9, False)
    assert (optimizer.weight_decay, settings.drop_last, settings.clip_norm) == (5e-4, True, 0)
