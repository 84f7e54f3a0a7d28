r"""What an audit costs when labels are many: seconds and memory by rows and classes.

    python benchmarks/audit_size.py [--rows 10000 100000 ...] [--classes 1000] [--save results]

Logits and features are made: a class has a centre, a sample lies around it, a tenth of the labels
is another class. Memory is the peak above what the inputs themselves take.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch
from common import PeakMemory, hardware, save

from unswayed import find_wrong_labels

WIDTH, WRONG = 64, 0.1


def made(rows: int, classes: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return labels (N,), logits (N, K) and features (N, WIDTH) in half precision."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(classes, WIDTH, generator=generator)
    true = torch.randint(0, classes, (rows,), generator=generator)
    logits = torch.empty(rows, classes, dtype=torch.float16)
    features = torch.empty(rows, WIDTH, dtype=torch.float16)
    for start in range(0, rows, 4096):
        at = slice(start, start + 4096)
        x = centres[true[at]] + 0.5 * torch.randn(len(true[at]), WIDTH, generator=generator)
        features[at], logits[at] = x, x @ centres.T / 4
    wrong = torch.rand(rows, generator=generator) < WRONG
    other = torch.randint(1, classes, (rows,), generator=generator)
    return torch.where(wrong, (true + other) % classes, true), logits, features


def measured(rows: int, classes: int) -> dict[str, Any]:
    """Audit made data."""
    labels, logits, features = made(rows, classes)
    memory, began, cpu = PeakMemory(), time.perf_counter(), time.process_time()
    found = find_wrong_labels(labels.numpy(), logits=logits, features=features)
    return {
        "rows": rows,
        "classes": classes,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "megabytes": round(memory.megabytes()),
        "inputs_megabytes": round(2 * (logits.numel() + features.numel()) / 2**20),
        "estimated": round(found.noise.rate, 4),
    }


def main() -> None:
    """Measure all sizes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--save", metavar="DIR", help="write audit-size.json there")
    args = parser.parse_args()
    found = []
    for rows in args.rows:
        found.append(measured(rows, args.classes))
        print(found[-1], flush=True)
    if args.save:
        command = "python benchmarks/audit_size.py"
        text = {"command": command, "hardware": hardware(), "sizes": found}
        save(text, Path(args.save), "audit-size.json")


if __name__ == "__main__":
    main()
