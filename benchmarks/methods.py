"""Seconds and memory per step of every method beside cross entropy, in one run.

    python benchmarks/methods.py [--size 32] [--batch 128] [--rounds 15] [--save results]

All methods are built first, then take their steps in turns, so that a slow moment of the machine
hits them all alike; the median step of each is set against that of cross entropy. A method is
expected to cost what its definition says: so many forwards, so many backwards, where a backward
takes what it is measured to take here. Memory is the peak of three steps in a process of its own,
above what that process holds before the first (Linux only).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import PeakMemory, hardware, save

from unswayed import methods
from unswayed.build import assemble
from unswayed.data import Dataset, Splits
from unswayed.recipe import Recipe
from unswayed.training.trainer import Trainer
from unswayed.types import Batch

ALLOWED = 1.15
SAMPLES = 512


def data(size: int) -> Splits:
    """Return colour images of noise; what a step costs does not depend on what they show."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (SAMPLES, 3, size, size), dtype=np.uint8)
    return Splits(Dataset.from_arrays(images, rng.integers(0, 10, SAMPLES)), None)


def trainer_of(name: str, size: int, batch: int) -> Trainer:
    """Return a trainer in the phase of its method that costs most."""
    words = [
        f"method={name}",
        "data.name=memory",
        f"train.batch_size={batch}",
        "train.epochs=10",
        "train.holdout=0.1",
        "model.name=small",
        "model.width=32",
        "train.threads=1",
    ]
    if "framework.name" in methods.get(name).options:
        # Small heads: the definition counts passes through the network.
        words.append("framework.projector_widths=[128, 128]")
    words += ["learner.projector_widths=[128, 128]"] if name == "supcon" else []
    trainer, _ = assemble(Recipe.from_dict({}, *words), data(size))
    if name == "dividemix":
        trainer.learner.divided.fill_(True)  # after the warm-up
        clean = trainer.learner.clean.values
        clean.copy_(torch.rand(clean.shape))
    return trainer


def batch_of(trainer: Trainer) -> Batch:
    """Return one batch with its views, which are not part of the measurement."""
    return trainer.batches.of_rows(trainer.rows[: trainer.settings.batch_size], 0, 0)


def step(trainer: Trainer, batch: Batch) -> float:
    """Take one step and return its seconds."""
    began = time.perf_counter()
    learner = trainer.learner
    learner.before_step(batch.progress)
    terms = learner(batch)
    trainer.optimization.zero_grad()
    terms.total.backward()
    trainer.optimization.optimizer.step()
    return time.perf_counter() - began


def forward_share(trainer: Trainer, batch: Batch, rounds: int) -> float:
    """Return what share of a cross-entropy step its forward takes."""
    shares = []
    for _ in range(rounds):
        began = time.perf_counter()
        with torch.no_grad():
            trainer.learner.classifier(batch.views.weak[0])
        middle = time.perf_counter()
        step(trainer, batch)
        shares.append((middle - began) / (time.perf_counter() - middle))
    return statistics.median(shares)


def peak(name: str, size: int, batch: int) -> float:
    """Return the memory in MB that steps of a method take, measured in a process of its own."""
    command = [sys.executable, __file__, "--memory", name, "--size", str(size)]
    command += ["--batch", str(batch)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(answer.splitlines()[-1])


def own_peak(name: str, size: int, batch: int) -> float:
    """Be that process."""
    trainer = trainer_of(name, size, batch)
    made = batch_of(trainer)
    memory = PeakMemory()
    for _ in range(3):
        step(trainer, made)
    return memory.megabytes()


def measure(size: int, batch: int, rounds: int) -> dict[str, Any]:
    """Return all numbers."""
    torch.set_num_threads(1)
    names = methods.names()
    trainers = {name: trainer_of(name, size, batch) for name in names}
    batches = {name: batch_of(trainer) for name, trainer in trainers.items()}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + 2):
        for name in names:
            taken = step(trainers[name], batches[name])
            if number >= 2:  # the first steps also reserve memory
                seconds[name].append(taken)
    share = forward_share(trainers["ce"], batches["ce"], rounds)
    plain = statistics.median(seconds["ce"])
    rows = []
    for name in names:
        method = methods.get(name)
        expected = share * method.forwards + (1 - share) * method.backwards
        found = statistics.median(seconds[name]) / plain
        rows.append(
            {
                "method": name,
                "milliseconds": 1000 * statistics.median(seconds[name]),
                "relative": found,
                "expected": expected,
                "excess": found / expected,
                "peak_mb": peak(name, size, batch),
            }
        )
    return {
        "command": "python benchmarks/methods.py",
        "network": "small, width 32",
        "image_size": size,
        "batch_size": batch,
        "threads": 1,
        "rounds": rounds,
        "forward_share": share,
        "hardware": hardware(),
        "torch": torch.__version__,
        "methods": rows,
    }


def main() -> None:
    """Measure, print a table, and fail if a method costs more than its definition."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.memory:
        torch.set_num_threads(1)
        print(own_peak(args.memory, args.size, args.batch))
        return
    found = measure(args.size, args.batch, args.rounds)
    print(f"{'method':28} {'ms':>7} {'× CE':>6} {'expected':>9} {'excess':>7} {'MB':>6}")
    for row in found["methods"]:
        print(
            f"{row['method']:28} {row['milliseconds']:7.1f} {row['relative']:6.2f} "
            f"{row['expected']:9.2f} {row['excess']:7.2f} {row['peak_mb']:6.0f}"
        )
    if args.save:
        save(found, args.save, "methods-cost.json")
    above = [row["method"] for row in found["methods"] if row["excess"] > ALLOWED]
    if above:
        sys.exit(f"more than {ALLOWED - 1:.0%} above the definition: {', '.join(above)}")


if __name__ == "__main__":
    main()
