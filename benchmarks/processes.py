"""What several processes gain, what their messages cost, and what that means for GPUs.

    python benchmarks/processes.py [--rounds 3] [--steps 6] [--save results]

1. Efficiency: images/s of two processes with one thread each, over those of one process with two
   threads. For CTRR, for cross entropy in this package, and for cross entropy with PyTorch's own
   DistributedDataParallel and batch norms of each process alone, which is the usual way. All on the
   same network, by turns, in the median round.
2. Messages: seconds of a step of CTRR that are spent on gathering rows and on the moments of batch
   norms, by batch, embedding and number of processes. A barrier before each message keeps waiting
   for a slower process out of them.
3. A model: a message takes a latency and a time for each byte, both fitted to messages of other
   sizes. It must tell the seconds of part 2. With the numbers of GPUs in place of gloo's, which are
   assumptions, it projects 8 and 64 GPUs.

Leave the machine alone meanwhile: a process that waits for the other one measures the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from common import hardware, save
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel
from torch.utils.flop_counter import FlopCounterMode

from unswayed import processes
from unswayed.build import assemble
from unswayed.data import Dataset, Splits
from unswayed.models import norms
from unswayed.recipe import Recipe
from unswayed.report.table import Spread
from unswayed.training.trainer import Trainer

BATCH, EMBEDDING, CLASSES, SIDE, WIDTH = 256, 256, 10, 32, 16
WARM_UP = 2

SIDES = ("ctrr", "ce", "plain")
CROWDS = (1, 2)

BATCHES = (64, 256, 1024)
EMBEDDINGS = (64, 256, 2048)
NUMBERS = (2, 3, 4)

SIZES = (64, 1024, 16384, 262144, 4194304)
"""Bytes that a process sends, in the messages that the model is fitted to."""

KINDS = ("all_gather", "all_reduce")
PURPOSES = ("rows", "norms")


@dataclass(frozen=True)
class Link:
    """What a message between GPUs costs; assumptions."""

    name: str
    gpus: int
    latency: float  # seconds
    bandwidth: float  # bytes a second and GPU


LINKS = (
    Link("8 GPUs, one machine", 8, 20e-6, 100e9),
    Link("64 GPUs, eight machines", 64, 60e-6, 20e9),
)
GPU_FLOPS = 30e12
"""Operations a second that a GPU really makes in training; an assumption."""


def main() -> None:
    """Run the three parts, print them, and save them if asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--save", type=Path, metavar="DIR")
    parser.add_argument("--part", help=argparse.SUPPRESS)  # what a started process does
    args = parser.parse_args()
    if args.part:
        take_part(json.loads(args.part))
        return
    found: dict[str, Any] = {"hardware": hardware(), "rounds": args.rounds, "steps": args.steps}
    found["efficiency"] = efficiency(args.rounds, args.steps)
    found["messages"] = messages(args.steps)
    found["model"] = model(found["messages"])
    found["projection"] = [project(link, per_gpu) for link in LINKS for per_gpu in (32, 128)]
    if args.save:
        save(found, args.save, "processes.json")


def efficiency(rounds: int, steps: int) -> list[dict[str, Any]]:
    """Return images/s of every side in one process and in two, and their ratio."""
    speeds: dict[tuple[str, int], list[float]] = defaultdict(list)
    for _, side, crowd in product(range(rounds), SIDES, CROWDS):
        told = start(crowd, work="train", side=side, steps=steps, threads=2 // crowd)
        speeds[side, crowd].append(BATCH / told["seconds"])
    rows = []
    for side in SIDES:
        one, two = (speeds[side, crowd] for crowd in CROWDS)
        ratios = [b / a for a, b in zip(one, two, strict=True)]
        medians = [statistics.median(each) for each in (one, two, ratios)]
        row = dict(zip(("one", "two", "efficiency"), medians, strict=True))
        rows.append({"side": side, **row, "spread": Spread.of(ratios).deviation})
        print(f"{side:6} one {medians[0]:7.1f}/s  two {medians[1]:7.1f}/s  × {medians[2]:.2f}")
    return rows


def messages(steps: int) -> list[dict[str, Any]]:
    """Return what the messages of a step are and take, along three axes."""
    points = [(batch, EMBEDDING, 2) for batch in BATCHES]
    points += [(BATCH, embedding, 2) for embedding in EMBEDDINGS]
    points += [(BATCH, EMBEDDING, number) for number in NUMBERS]
    rows = []
    for batch, embedding, number in dict.fromkeys(points):
        told = start(
            number, work="messages", side="ctrr", steps=steps, batch=batch, embedding=embedding
        )
        rows.append({"batch": batch, "embedding": embedding, "processes": number, **told})
        shares = {purpose: told[purpose]["seconds"] / told["seconds"] for purpose in PURPOSES}
        print(
            f"batch {batch:4}  embedding {embedding:4}  processes {number}  step "
            f"{told['seconds']:.3f} s  rows {shares['rows']:.2%}  norms {shares['norms']:.2%}"
        )
    return rows


def model(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return fitted latencies and bandwidths, and what they say of the measured messages."""
    found = []
    for number in NUMBERS:
        fitted = start(number, work="fit")
        found.append({"processes": number, **fitted})
        for row in rows:
            if row["processes"] != number:
                continue
            for purpose in PURPOSES:
                seen = row[purpose]
                seen["modelled"] = sum(
                    sent["each"] * (of["latency"] + sent["bytes"] * of["per_byte"])
                    for sent in seen["sent"]
                    for of in [fitted[sent["kind"]]]
                )
                print(
                    f"batch {row['batch']:4}  embedding {row['embedding']:4}  processes {number}  "
                    f"{purpose:5} {1e3 * seen['seconds']:7.2f} ms, modelled "
                    f"{1e3 * seen['modelled']:7.2f} ms"
                )
    return found


def project(link: Link, per_gpu: int) -> dict[str, Any]:
    """Return what a step of CTRR with the paper's ResNet would spend, if the link is as assumed."""
    words = ["method=ctrr", "model.name=preact_resnet18", "framework.projector_widths=[2048,2048]"]
    trainer = build(2, *words)
    batch, embedding, rows = per_gpu * link.gpus, 2048, per_gpu
    with FlopCounterMode(display=False) as counter:
        trainer.make_step()
    layers = sum(isinstance(m, _BatchNorm) for m in trainer.learner.classifier.modules())
    heads = sum(isinstance(m, _BatchNorm) for m in trainer.learner.modules()) - layers
    gradients = 4 * sum(p.numel() for p in trainer.learner.parameters() if p.requires_grad)
    pairs = 2 * 2 * 3 * rows * batch * embedding  # forward and backward, both directions
    compute = (counter.get_total_flops() / 2 * rows + pairs) / GPU_FLOPS
    times = {
        "rows": 3 * link.latency
        + 4 * rows * (link.gpus - 1) * (2 * embedding + CLASSES) / link.bandwidth,
        # Three views pass the backbone, two the heads; each norm sends one message forth, one back.
        "norms": 2 * (3 * layers + 2 * heads) * link.latency,
        "gradients": link.latency + 2 * gradients / link.bandwidth,
    }
    total = compute + sum(times.values())
    shares = {name: seconds / total for name, seconds in times.items()}
    print(
        f"projected: {link.name}, {per_gpu} images each: "
        + ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
    )
    return {**asdict(link), "per_gpu": per_gpu, "step": total, "pairs": pairs / GPU_FLOPS, **shares}


def start(number: int, **part: Any) -> Any:
    """Let so many processes do their part, and return what the first one prints."""
    words = [__file__, "--part", json.dumps(part)]
    runner = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(number)]
    command = [sys.executable, *(runner if number > 1 else []), *words]
    env = {**os.environ, "OMP_NUM_THREADS": str(part.get("threads", 1))}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def take_part(part: dict[str, Any]) -> None:
    """Do what a started process is for; the first one prints what it found."""
    torch.set_num_threads(part.get("threads", 1))
    processes.start()
    if part["work"] == "fit":
        found: Any = fit()
    elif part["side"] == "plain":
        found = {"seconds": timed(plain_step(), part["steps"])}
    else:
        batch, embedding = part.get("batch", BATCH), part.get("embedding", EMBEDDING)
        words = [f"framework.projector_widths=[256,{embedding}]"] * (part["side"] == "ctrr")
        trainer = build(batch, f"method={part['side']}", "model.name=fast", *words)
        step = steps_of(trainer)
        found = listened(step, part["steps"]) if part["work"] == "messages" else None
        found = found or {"seconds": timed(step, part["steps"])}
    if processes.is_first():
        print(json.dumps(found), flush=True)
    processes.wait()
    processes.leave(0)


def build(batch: int, *words: str) -> Trainer:
    """Return a trainer on random images, with at least as many steps as are measured."""
    numbers = np.random.default_rng(0)
    images = numbers.integers(0, 256, (max(8 * batch, 64), 3, SIDE, SIDE), dtype=np.uint8)
    names = [str(k) for k in range(CLASSES)]
    train = Dataset.from_arrays(images, np.arange(len(images)) % CLASSES, classes=names)
    width = [f"model.width={WIDTH}"] * ("model.name=fast" in words)
    settings = [f"train.batch_size={batch}", "train.holdout=0", "train.epochs=1000"]
    recipe = Recipe.from_dict({}, "data.name=memory", *words, *width, *settings, "train.device=cpu")
    return assemble(recipe, Splits(train, None))[0]


def steps_of(trainer: Trainer) -> Callable[[], object]:
    """Return what makes one step after the other, over and over in one epoch."""
    trainer.before_epoch()

    def step() -> None:
        if trainer.step == trainer.steps:
            trainer.step = 1  # the first step of an epoch counts operations
        trainer.make_step()

    return step


def plain_step() -> Callable[[], object]:
    """Return a step of cross entropy as most people write it: gradients are shared, norms not."""
    net: nn.Module = build(BATCH, "method=ce", "model.name=fast").learner.classifier
    if processes.count() > 1:
        net = DistributedDataParallel(net)
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
    rows = BATCH // processes.count()
    images, labels = torch.rand(rows, 3, SIDE, SIDE), torch.arange(rows) % CLASSES

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(net(images), labels).backward()
        optimizer.step()

    return step


def timed(step: Callable[[], object], steps: int) -> float:
    """Return the seconds of a step, the median of several."""
    for _ in range(WARM_UP):
        step()
    return statistics.median(list(durations(step, steps)))


def durations(step: Callable[[], object], steps: int) -> Iterator[float]:
    """Yield the seconds of each step."""
    for _ in range(steps):
        begun = time.perf_counter()
        step()
        yield time.perf_counter() - begun


class Listening:
    """Notes every message of this process: what it is for, its kind, its bytes and its seconds."""

    def __init__(self) -> None:
        self.purpose = "rows"
        self.heard: dict[tuple[str, str, int], list[float]] = defaultdict(list)
        for kind in KINDS:
            setattr(dist, kind, self._listened(kind, getattr(dist, kind)))
        norms.processes = self  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        """Stand before `unswayed.processes` in batch norms, whose messages are noted as theirs."""
        asked = getattr(processes, name)
        if name not in ("gathered", "summed"):
            return asked

        def for_norms(*words: Any) -> Any:
            self.purpose = "norms"
            done = asked(*words)
            self.purpose = "rows"
            return done

        return for_norms

    def _listened(self, kind: str, message: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any) -> None:
            sent: Tensor = words[-1] if kind == "all_gather" else words[0]
            dist.barrier()
            begun = time.perf_counter()
            message(*words)
            taken = time.perf_counter() - begun
            self.heard[self.purpose, kind, sent.numel() * sent.element_size()].append(taken)

        return call


def listened(step: Callable[[], object], steps: int) -> dict[str, Any]:
    """Return the seconds of a step, and what its messages are and take."""
    found: dict[str, Any] = {"seconds": timed(step, steps)}
    found |= {purpose: {"seconds": 0.0, "sent": []} for purpose in PURPOSES}
    listening = Listening()
    for _ in range(steps):
        step()
    for (purpose, kind, size), taken in listening.heard.items():
        each = len(taken) / steps
        # The median, so that one slow moment does not count.
        found[purpose]["seconds"] += each * statistics.median(taken)
        found[purpose]["sent"].append({"kind": kind, "bytes": size, "each": each})
    return found


def fit() -> dict[str, dict[str, float]]:
    """Return latency and seconds a byte of both kinds of messages, by relative least squares."""
    found = {}
    for kind in KINDS:
        points = []
        for size in SIZES:
            sent = torch.zeros(size // 4)
            room = [torch.empty_like(sent) for _ in range(processes.count())]
            taken = []
            for _ in range(30):
                dist.barrier()
                begun = time.perf_counter()
                if kind == "all_gather":
                    dist.all_gather(room, sent)
                else:
                    dist.all_reduce(sent)
                taken.append(time.perf_counter() - begun)
            points.append((size, statistics.median(taken)))
        sizes, seconds = np.array(points, dtype=float).T
        design = np.stack([1 / seconds, sizes / seconds], axis=1)
        (latency, per_byte), *_ = np.linalg.lstsq(design, np.ones(len(sizes)), rcond=None)
        found[kind] = {"latency": float(latency), "per_byte": float(per_byte)}
    return found


if __name__ == "__main__":
    main()
