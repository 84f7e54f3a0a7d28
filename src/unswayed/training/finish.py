"""What a finished run leaves for others: weights, their description and the numbers."""

from __future__ import annotations

import warnings
from typing import Any

from unswayed.errors import DamagedFileError
from unswayed.training import files
from unswayed.training.run import Run
from unswayed.training.summary import summarise
from unswayed.training.trainer import Trainer

CARD = """\
---
library_name: unswayed
pipeline_tag: image-classification
tags: [noisy-labels, robust-training]
---
# {name}

An image classifier with {classes} classes for {size} images, trained by `unswayed` {version}.

| weights | epoch | test accuracy | accuracy on the noisy hold-out |
| --- | --- | --- | --- |
{rows}

The recipe is in `recipe.toml`, where the numbers come from in `provenance.json`. To use it:

    from unswayed import Run
    net = Run("{path}").classifier()          # uint8 or float images (B, C, H, W) in, logits out
"""


def finish(trainer: Trainer, run: Run, model: dict[str, Any], name: str) -> None:
    """Write the artefacts, the summary last: a folder that has it is finished."""
    summary = summarise(run.metrics) | {"estimated": trainer.learner.findings()}
    files.write_tensors(run.path / "model.safetensors", trainer.classifier.state_dict(), {})
    if summary["selected"]:
        _keep_selected(run, summary["selected"]["epoch"])
    train, parts = trainer.train, trainer.classifier.parts
    height, width = train.image_size
    version = run.provenance["unswayed"]
    config = {
        "unswayed": version,
        "model": model,
        "classes": list(train.classes),
        "channels": train.channels,
        "image_size": [height, width],
        "resize": train.resize,
        "mean": parts[0].mean.flatten().tolist(),
        "std": parts[0].std.flatten().tolist(),
        "members": len(parts),
    }
    files.write_json(run.path / "config.json", config)
    card = CARD.format(
        name=name,
        classes=train.num_classes,
        size=f"{height}×{width}",
        version=version,
        rows="\n".join(_card_row(k, summary[k]) for k in ("last", "selected") if summary[k]),
        path=run.path.name,
    )
    files.write_text(run.path / "README.md", card)
    files.write_json(run.path / "summary.json", {"name": name, **summary})


def _keep_selected(run: Run, epoch: int) -> None:
    kept = run.path / "checkpoints" / f"selected-{epoch:04d}.safetensors"
    try:
        files.write_tensors(run.path / "selected.safetensors", *files.read_tensors(kept))
    except (DamagedFileError, FileNotFoundError) as error:
        warnings.warn(
            f"the selected weights are lost, their numbers are not: {error}", stacklevel=2
        )


def _card_row(name: str, row: dict[str, Any]) -> str:
    shares = (row.get("test_accuracy"), row.get("holdout_accuracy"))
    cells = " | ".join("–" if share is None else f"{100 * share:.2f} %" for share in shares)
    return f"| {name} | {row['epoch'] + 1} | {cells} |"
