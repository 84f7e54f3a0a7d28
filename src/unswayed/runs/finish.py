"""Finish a run: write its weights, their description and its numbers."""

from __future__ import annotations

import warnings

from unswayed import files
from unswayed.errors import DamagedFileError
from unswayed.processes import from_first, is_first
from unswayed.recipe import Recipe
from unswayed.runs.predictions import write_predictions
from unswayed.runs.run import Config, Run
from unswayed.runs.summary import Summary, summarise
from unswayed.training.trainer import Trainer
from unswayed.types import Numbers

CARD = """\
---
library_name: unswayed
pipeline_tag: image-classification
tags: [noisy-labels, robust-training]
---
# {name}

An image classifier with {classes} classes for {size} images, trained with {method} by
`unswayed` {version}.

| weights | epoch | test accuracy | accuracy on the noisy hold-out |
| --- | --- | --- | --- |
{rows}

The recipe is in `recipe.toml`, where the numbers come from in `provenance.json`. To use it:

    from unswayed import Run
    net = Run("{path}").classifier()          # uint8 or float images (B, C, H, W) in, logits out
"""


def finish(trainer: Trainer, run: Run, recipe: Recipe) -> None:
    """Write all files of a finished run. The summary comes last and marks the run as finished."""
    write_predictions(trainer, run.path)
    if is_first():
        _write(trainer, run, recipe)
    from_first(None)  # the others wait until it is written


def _write(trainer: Trainer, run: Run, recipe: Recipe) -> None:
    known = run.provenance
    summary = summarise(known.name, known.method, run.metrics, trainer.learner.findings())
    files.write_tensors(run.path / "model.safetensors", trainer.classifier.state_dict(), {})
    if summary.selected:
        _keep_selected(run, summary.selected.epoch)
    config = _config(trainer, recipe, known.unswayed)
    files.write_json(run.path / "config.json", config.model_dump())
    files.write_text(run.path / "README.md", _card(run, config, summary))
    files.write_json(run.path / "summary.json", summary.model_dump(exclude_none=True))


def _config(trainer: Trainer, recipe: Recipe, version: str) -> Config:
    train, parts = trainer.train, trainer.classifier.parts
    return Config(
        unswayed=version,
        model=dict(recipe.sections["model"]),
        classes=list(train.classes),
        channels=train.channels,
        image_size=train.image_size,
        resize=train.resize,
        mean=parts[0].mean.flatten().tolist(),
        std=parts[0].std.flatten().tolist(),
        members=len(parts),
    )


def _card(run: Run, config: Config, summary: Summary) -> str:
    height, width = config.image_size
    kept = {"last": summary.last, "selected": summary.selected}
    return CARD.format(
        name=summary.name,
        method=summary.method,
        classes=len(config.classes),
        size=f"{height}×{width}",
        version=config.unswayed,
        rows="\n".join(_card_row(name, row) for name, row in kept.items() if row),
        path=run.path,
    )


def _keep_selected(run: Run, epoch: int) -> None:
    kept = run.path / "checkpoints" / f"selected-{epoch:04d}.safetensors"
    try:
        files.write_tensors(run.path / "selected.safetensors", *files.read_tensors(kept))
    except (DamagedFileError, FileNotFoundError) as error:
        warnings.warn(
            f"the selected weights are lost, their numbers are not: {error}", stacklevel=2
        )


def _card_row(name: str, row: Numbers) -> str:
    shares = (row.test_accuracy, row.holdout_accuracy)
    cells = " | ".join("–" if share is None else f"{100 * share:.2f} %" for share in shares)
    return f"| {name} | {row.epoch + 1} | {cells} |"
