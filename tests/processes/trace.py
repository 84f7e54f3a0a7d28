"""Train each given case for 20 steps in double precision, and write what happened.

    python trace.py OUT MODE/NAME=OVERRIDES ...                            one process
    torchrun --nproc-per-node 3 trace.py OUT MODE/NAME=OVERRIDES ...       three of them

The mode "frozen" leaves batch norm in evaluation mode, "shared" normalises over all processes, and
"naive" does what people do: it forms pairs of a process's own rows, with batch norm as in "frozen".
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"

import torch
from sklearn.datasets import load_digits
from torch.nn.modules.batchnorm import _BatchNorm

from unswayed import Dataset, Recipe, processes
from unswayed.build import assemble
from unswayed.data import Splits
from unswayed.files import write_tensors
from unswayed.learners import regularized
from unswayed.regularizers.pairs import positives
from unswayed.types import Step

TINY = (
    "data.name=memory",
    "model.width=4",
    "noise.name=symmetric",
    "noise.rate=0.4",
    "train.epochs=2",
    "train.batch_size=31",  # which neither two nor three divide
    "train.holdout=0.1",
    "train.threads=1",
)


def digits() -> Splits:
    found = load_digits()
    images = (found.images * 15).astype("uint8")[:, None]
    names = [str(k) for k in range(10)]
    train, test = (
        Dataset.from_arrays(images[rows], found.target[rows], classes=names)
        for rows in (slice(0, 345), slice(345, 405))
    )
    return Splits(train, test)


def keep_out_of_training(net: torch.nn.Module) -> None:
    for norm in net.modules():
        if isinstance(norm, _BatchNorm):
            norm.eval()
            norm.train = lambda mode=True, norm=norm: norm


def attract_own_rows_only(learner) -> None:
    """Let every process contrast its own rows, as if there were no others."""
    regularizer = learner.regularizer
    weights, cost = regularizer.pair_weights, regularizer.forward
    regularized.keys = lambda z: z  # the last case of a start, then: it stays
    regularizer.pair_weights = lambda rows, keys, positive, progress: weights(
        rows, rows, positives(rows.p), progress
    )
    regularizer.forward = lambda pairs, w, positive: cost(pairs, w, positives(pairs[0].query))


def trace(overrides: list[str], mode: str) -> dict[str, torch.Tensor]:
    trainer = assemble(Recipe.load("digits", *TINY, *overrides), digits())[0]
    if mode == "naive":
        attract_own_rows_only(trainer.learner)
    if mode != "shared":
        keep_out_of_training(trainer.learner)
    losses, found = [], {}
    for event in trainer.events():
        if not isinstance(event, Step):
            continue
        losses.append(event.loss)
        if len(losses) == 1:
            for name, parameter in trainer.learner.named_parameters():
                if parameter.grad is not None:
                    found[f"gradient {name}"] = parameter.grad.clone()
    states = {f"state {k}": v for k, v in trainer.learner.state_dict().items()}
    numbers = {f"measured {k}": torch.tensor(v) for k, v in trainer.measure().items()}
    return {"loss": torch.tensor(losses), **found, **states, **numbers}


def main() -> None:
    out, *cases = sys.argv[1:]
    warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    processes.start()
    for case in cases:
        name, _, overrides = case.partition("=")
        found = trace(overrides.split(), name.partition("/")[0])
        if processes.is_first():
            path = Path(out) / f"{name}.safetensors"
            path.parent.mkdir(exist_ok=True)
            write_tensors(path, found, {})
    processes.wait()
    processes.leave(0)


if __name__ == "__main__":
    main()
