"""What pairs do to the gradient in the course of a training, counted by whether they are right."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reproduction.figures import Lab, Measured, need_contrast, need_noise, place, with_overrides
from unswayed import files
from unswayed.build import assemble
from unswayed.device import threads
from unswayed.errors import UsageError
from unswayed.learners.regularized import Regularized, running_statistics
from unswayed.randomness import permutation
from unswayed.recipe import Recipe
from unswayed.regularizers.pairs import EPS, positives, similarity
from unswayed.session import Watch
from unswayed.training.trainer import Trainer
from unswayed.types import Batch, Beliefs, Step

FORMS = {"eq. 4": "inner_product", "eq. 6": "ctrr"}
BATCHES = 4
"""After every epoch, so many batches are looked at, the same ones each time."""


class Shares(NamedTuple):
    """Of the pairs i ≠ j that are selected in some batches."""

    precision: float | None  # share of pairs of one true class; None if none is selected
    wrong_inner: float | None  # share of wrong pairs in the gradient of eq. 4
    wrong_log: float | None  # the same for eq. 6
    selected: float  # share of all pairs


@torch.no_grad()
def shares(learner: Regularized, batches: list[Batch], true: list[Tensor]) -> Shares:
    """Return how much right and wrong pairs pull.

    A pair's pull is the norm of its gradient at q_i: W_ij √(1 - s²) / |q_i| with eq. 4, and
    1/(1 - s) times that with eq. 6. Norms are added: pulls against each other do not cancel.

    Args:
        learner: CTRR in some framework.
        batches: views and given labels.
        true: (B,) true labels of each batch.
    """
    sums: dict[str, float] = defaultdict(float)
    for batch, labels in zip(batches, true, strict=True):
        for name, value in _sums(learner, batch, labels).items():
            sums[name] += value

    def share(part: str, whole: str) -> float | None:
        return sums[part] / sums[whole] if sums[whole] else None

    return Shares(
        share("right", "selected"),
        share("wrong_inner", "inner"),
        share("wrong_log", "log"),
        sums["selected"] / sums["pairs"],
    )


def _sums(learner: Regularized, batch: Batch, true: Tensor) -> dict[str, float]:
    assert learner.regularizer is not None
    with running_statistics(learner, update=False):
        logits, directions = learner.passes(batch)
    p = torch.stack([each.softmax(dim=1) for each in logits]).mean(dim=0)
    rows = Beliefs(p, batch.labels)
    weights = learner.regularizer.pair_weights(rows, rows, positives(p), batch.progress)
    others = ~torch.eye(len(p), dtype=torch.bool, device=p.device)
    selected = (weights > 0) & others
    true = true.to(p.device)
    wrong = true[:, None] != true[None, :]
    sums = {
        "pairs": float(others.sum()),
        "selected": float(selected.sum()),
        "right": float((selected & ~wrong).sum()),
        **dict.fromkeys(("inner", "wrong_inner", "log", "wrong_log"), 0.0),
    }
    for query, key in directions:
        s = similarity(query, key, "similarity")
        pull = weights * (1 - s.square()).clamp_min(0).sqrt() / query.norm(dim=1, keepdim=True)
        free = selected & (s < 1 - EPS)  # beyond, the clamp stops the gradient of eq. 6
        for name, pulls in (("inner", pull * selected), ("log", pull / (1 - s) * free)):
            pulls = torch.where(pulls.isfinite(), pulls, 0)
            sums[name] += float(pulls.sum())
            sums[f"wrong_{name}"] += float((pulls * wrong).sum())
    return sums


def course(recipe: Recipe, path: Path, watch: Watch | None = None) -> list[dict[str, Any]]:
    """Train, look after every epoch, and keep what was seen in a file: it is not trained again.

    Weights are not kept: a training that is stopped begins anew.

    Args:
        recipe: what to train.
        path: the file, which is this recipe's alone.
        watch: sees how far it is.
    """
    if path.is_file():
        known: Measured = json.loads(path.read_text(encoding="utf-8"))
        found: list[dict[str, Any]] = known["epochs"]
        return found
    with threads(recipe.settings.threads):
        trainer, _ = assemble(recipe)
        if trainer.train.true is None or not isinstance(trainer.learner, Regularized):
            raise UsageError("this figure needs true labels and a method with a regularizer")
        mixed = permutation(recipe.settings.seed, "pairs", trainer.train.keys[trainer.rows])
        mixed = trainer.rows[mixed[: BATCHES * trainer.settings.batch_size]]
        rows = np.array_split(mixed, BATCHES)
        true = [torch.from_numpy(trainer.train.true[each]) for each in rows]
        epochs = []
        for event in trainer.events():
            if watch is not None:
                watch(event)
            if isinstance(event, Step):
                continue
            trainer.learner.train()
            seen = shares(trainer.learner, [_batch(trainer, each) for each in rows], true)
            test = event.metrics.test_accuracy
            epochs.append({**seen._asdict(), "test_accuracy": test})
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, {"recipe": recipe.to_toml(), "epochs": epochs})
    return epochs


def _batch(trainer: Trainer, rows: NDArray[np.int64]) -> Batch:
    """Return these rows as the learner would see them now."""
    return trainer.batches.of_rows(rows, trainer.epoch, trainer.step)


def measure(recipe: Recipe, lab: Lab) -> Measured:
    """Return the course of training with eq. 4 and with eq. 6, for each seed."""
    need_noise(recipe)
    need_contrast(recipe)
    if recipe.sections["regularizer"].get("clamp") == "coordinate":
        raise UsageError(
            "pulls are computed for regularizer.clamp=similarity; add it to the overrides"
        )
    folder = lab.folder.with_name("figure-pairs")  # two figures show the same trainings
    curves: dict[str, list[list[dict[str, Any]]]] = {label: [] for label in FORMS}
    for label, name in FORMS.items():
        for seed in range(lab.seeds):
            own = with_overrides(recipe, f"regularizer.name={name}", seed=seed)
            with lab.watching(f"{label}, seed {seed}") as watch:
                found = course(own, place(folder, name, own).with_suffix(".json"), watch)
            curves[label].append(found)
    return {"seeds": lab.seeds, "curves": curves}


def curve(measured: Measured, label: str, number: str) -> list[list[float | None]]:
    """Return a number of every epoch, for each seed."""
    return [[epoch[number] for epoch in seed] for seed in measured["curves"][label]]
