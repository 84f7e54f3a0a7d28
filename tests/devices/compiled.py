"""Train each given case compiled and not, and write how far apart the losses of the steps are.

python compiled.py OUT float32|float64 NAME=OVERRIDES ...
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch._dynamo.utils import counters
from trained import pictures, recipe

from unswayed import build, processes
from unswayed.training.trainer import Trainer
from unswayed.types import Step


def trainer(overrides: str, compiled: str) -> Trainer:
    words = [*overrides.split(), "train.epochs=2", f"train.compile={compiled}"]
    return build.assemble(recipe(words), pictures())[0]


def losses(trainer: Trainer, states: list) -> list[float]:
    found = []
    for event in trainer.events():
        if isinstance(event, Step):
            found.append(event.loss)
            tensors, plain = trainer.state()
            states.append(({k: v.clone() for k, v in tensors.items()}, plain))
    return found


def compared(overrides: str) -> dict[str, object]:
    torch._dynamo.reset()  # or it would use what it compiled for another case
    plain, compiled, again = (trainer(overrides, how) for how in ("off", "default", "default"))
    states: list = []
    expected = losses(plain, [])
    before = counters["frames"]["ok"]
    found = losses(compiled, states)
    seen = counters["frames"]["ok"] - before
    again.load_state(*states[1])
    resumed = losses(again, [])
    return {
        "apart": float(np.abs(np.subtract(expected, found)).max()),
        "resumed apart": float(np.abs(np.subtract(expected[2:], resumed)).max()),
        "same names": plain.state()[0].keys() == compiled.state()[0].keys(),
        "compiled": seen,
    }


def main() -> None:
    out, precision, *cases = sys.argv[1:]
    torch.set_default_dtype(getattr(torch, precision))
    torch.set_num_threads(1)
    processes.start()
    named = dict(case.split("=", 1) for case in cases)
    found = {name: compared(overrides) for name, overrides in named.items()}
    if processes.is_first():
        Path(out).write_text(json.dumps(found))
    processes.wait()
    processes.leave(0)


if __name__ == "__main__":
    main()
