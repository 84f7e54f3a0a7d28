"""Train each given case on the CPU and on the pretended device, and print what happened as JSON.

python trace.py NAME=OVERRIDES ...
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))

import pretend

from unswayed import Dataset, Recipe, build
from unswayed.data import Splits
from unswayed.types import Step

TINY = (
    "data.name=memory",
    "model.width=4",
    "noise.name=symmetric",
    "noise.rate=0.4",
    "train.epochs=4",
    "train.batch_size=30",
    "train.holdout=0.2",
    "train.threads=1",
    "train.evaluate_every=2",
)


def pictures() -> Splits:
    rng = np.random.default_rng(0)
    labels = np.arange(100) % 3
    images = rng.integers(0, 150, (100, 12, 12, 3), dtype=np.uint8)
    images[np.arange(100), :, :, labels] += 100
    train, test = (
        Dataset.from_arrays(images[rows], labels[rows], classes=["a", "b", "c"])
        for rows in (slice(0, 80), slice(80, 100))
    )
    return Splits(train, test)


def trained(overrides: list[str], device: torch.device) -> dict[str, object]:
    """Train, and return the loss of every step, and the numbers and predictions of every epoch."""
    build.pick_device = lambda _: device  # PyTorch cannot be asked for this device by name
    build.check_precision = lambda *_: None
    trainer = build.assemble(Recipe.load("digits", *TINY, *overrides), pictures())[0]
    losses, numbers = [], []
    for event in trainer.events():
        if isinstance(event, Step):
            losses.append(event.loss)
        else:
            found = event.metrics.model_dump(exclude={"seconds"})
            numbers.append([found, event.records.loss.nan_to_num().tolist()])
    return {"losses": losses, "numbers": numbers, "steps": len(losses)}


def main() -> None:
    torch.set_num_threads(1)
    device, found = pretend.register(), {}
    for case in sys.argv[1:]:
        name, _, overrides = case.partition("=")
        here = trained(overrides.split(), torch.device("cpu"))
        pretend.waits.clear()
        try:
            with pretend.Device():
                there = trained(overrides.split(), device)
        except Exception as error:
            import traceback

            traceback.print_exc()
            found[name] = {"error": f"{type(error).__name__}: {error}"}
            continue
        steps, between = Counter(), Counter()
        for (when, place), number in pretend.waits.items():
            (steps if when == "step" else between)[place] += number
        found[name] = {
            "same": here == there,
            "steps": here["steps"],
            "waits": steps,
            "between": between,
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
