"""A whole training step of CTRR, views included, beside the usual way, in one run.

    python benchmarks/step.py [--rounds 3] [--save results]         # images/s and peak memory
    python benchmarks/step.py --only "width 16" --save results      # of one network only
    python benchmarks/step.py --options --only "width 32" [--save results]  # what options give
    python benchmarks/step.py --limits [--save results]             # what our step is bound by
    python benchmarks/step.py --train 1000 [--seeds 3] [--save results]   # where both end up

The plain reference is what a careful reader of the paper writes first: torchvision's transforms on
one PIL image after the other in a `DataLoader` (its best number of workers is taken), one forward
for each of the three views, the loss as in the paper's pseudocode, memory contiguous, fp32. Ours
starts from the same weights and has the same batch, threads and optimizer; it is measured in fp32
and, where the processor has it, in bf16, there also with the colours of a view changed by one
affine map. So that the gain of the code and that of the numbers can be told apart, the reference
runs in bf16 too, with the number of workers that is best in fp32. Each side runs in a process of
its own, in turns; the median round counts. Memory is the peak of that process above what it held
before the first step, when it had network, images and optimizer; workers of a `DataLoader` are not
counted (Linux only).
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from common import PeakMemory, hardware, save
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader
from torch.utils.flop_counter import FlopCounterMode
from torchvision import transforms as T

from unswayed.build import assemble
from unswayed.data import Dataset, Splits
from unswayed.device import has_bf16
from unswayed.frameworks.simsiam import SimSiam
from unswayed.learners.regularized import Regularized
from unswayed.optimizers.sgd import SGD
from unswayed.recipe import Recipe
from unswayed.report.table import Spread
from unswayed.runs.provenance import commit
from unswayed.training.trainer import Trainer


class Network(NamedTuple):
    """Words of a recipe, how many times as fast as the reference it should train, most steps."""

    words: tuple[str, ...]
    goal: float
    steps: int = 100


NETWORKS = {
    "fast, width 16": Network(("model.name=fast", "model.width=16"), 3.0),
    "fast, width 32": Network(("model.name=fast", "model.width=32"), 3.0),
    "fast, width 64": Network(("model.name=fast", "model.width=64"), 3.0),
    "PreAct ResNet-18": Network(("model.name=preact_resnet18",), 1.25, steps=2),
}
HEADS = ["framework.name=simsiam", "framework.projector_widths=[256, 256]"]
SAMPLES, BATCH, WARM_UP = 4096, 128, 3

OURS = {
    "fp32": ("train.precision=fp32",),
    "bf16": ("train.precision=bf16",),
    "bf16, affine colours": ("train.precision=bf16", "views.strong.colour=affine"),
}
"""Words of a recipe for our sides."""

OPTIONS = {
    "bf16": OURS["bf16"],
    "bf16, joined": (*OURS["bf16"], "learner.joined=true"),
    "bf16, compiled": (*OURS["bf16"], "train.compile=default"),
}
"""Those of `--options`."""

TRAINED = {
    "small, fp32": ("train.precision=fp32",),
    "fast, bf16": ("model.name=fast", "model.width=16", "train.precision=bf16"),
}
"""What `--train` compares; the reference is in fp32 beside either."""

LOW = "bf16 plain, workers: "
"""The reference in bf16; its number of workers follows."""


class PlainStep(nn.Module):
    """The reference: CTRR in SimSiam, written down from the paper."""

    def __init__(self, learner: Regularized, *, low: bool = False) -> None:
        """Begin with the weights and options of ours.

        Args:
            learner: CTRR in SimSiam.
            low: run the networks, not the loss, in bf16.
        """
        super().__init__()
        self.low = low
        assert isinstance(learner.framework, SimSiam)
        assert learner.regularizer is not None
        own = copy.deepcopy(learner).to(memory_format=torch.contiguous_format)
        self.backbone, self.head = own.classifier.backbone, own.classifier.head
        self.projector, self.predictor = own.framework.projector, own.framework.predictor
        self.mean, self.std = own.classifier.mean.flatten(), own.classifier.std.flatten()
        self.weight, self.tau = own.regularizer.weight, own.regularizer.tau

    def forward(self, x: Tensor, x1: Tensor, x2: Tensor, y: Tensor) -> Tensor:
        """Return L_ce + λ L_ctr of normalised views."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.low):
            logits = self.head(self.backbone(x))
            z1 = self.projector(self.backbone(x1))
            z2 = self.projector(self.backbone(x2))
            q1, q2 = self.predictor(z1), self.predictor(z2)
        if self.low:
            logits, z1, z2, q1, q2 = (each.float() for each in (logits, z1, z2, q1, q2))
        p = logits.softmax(dim=1).detach()
        contrast = self.pairs(q1, z2.detach(), p) / 2 + self.pairs(q2, z1.detach(), p) / 2
        return F.cross_entropy(logits, y) + self.weight * contrast

    def pairs(self, q: Tensor, z: Tensor, p: Tensor) -> Tensor:
        """Return eq. 6 in one direction, with the spec's normalisation of each row."""
        q, z = q / q.norm(dim=1, keepdim=True), z / z.norm(dim=1, keepdim=True)
        s, m = q @ z.T, p @ p.T
        same = torch.eye(len(s), dtype=s.dtype)
        w = same + (1 - same) * m * (m >= self.tau)
        w = w / w.sum(dim=1, keepdim=True)
        e = same * -s + (1 - same) * torch.log(1 - s.clamp(max=1 - 1e-4))
        return (w * e).sum(dim=1).mean()


class PlainViews(torch.utils.data.Dataset[tuple[Tensor, Tensor, Tensor, int]]):
    """One PIL image after the other, each transformed three times."""

    def __init__(self, trainer: Trainer, mean: Tensor, std: Tensor) -> None:
        """Read the options of our views, so that both do the same to an image."""
        data, strong, weak = (
            trainer.train,
            trainer.batches.policy.strong,
            trainer.batches.policy.weak,
        )
        pixels = np.moveaxis(data.images[torch.arange(len(data))].numpy(), 1, 3).squeeze()
        self.images = [Image.fromarray(each) for each in pixels]
        self.labels = data.given.tolist()
        size = data.image_size
        end = [T.ToTensor(), T.Normalize(mean.tolist(), std.tolist())]
        self.weak = T.Compose(
            [
                T.RandomResizedCrop(size, weak.area, weak.ratio),
                T.RandomHorizontalFlip(weak.flip),
                *end,
            ]
        )
        self.strong = T.Compose(
            [
                T.RandomResizedCrop(size, strong.area, strong.ratio),
                T.RandomHorizontalFlip(strong.flip),
                T.RandomApply([T.ColorJitter(*strong.jitter)], strong.jitter_probability),
                T.RandomGrayscale(strong.grayscale),
                *end,
            ]
        )

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor, Tensor, int]:
        image = self.images[row]
        return self.weak(image), self.strong(image), self.strong(image), self.labels[row]


def plain_steps(
    trainer: Trainer, workers: int, steps: int, seed: int = 0, *, low: bool = False
) -> Iterator[PlainStep]:
    """Train the reference with the trainer's optimizer options; yield it after every step."""
    torch.manual_seed(seed)
    settings, options = trainer.settings, trainer.optimization.options
    assert isinstance(options, SGD)
    step = PlainStep(trainer.learner, low=low)
    loader = DataLoader(
        PlainViews(trainer, step.mean, step.std),
        settings.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        persistent_workers=workers > 0,
    )
    optimizer = torch.optim.SGD(
        [p for p in step.parameters() if p.requires_grad],
        lr=options.lr,
        momentum=options.momentum,
        weight_decay=options.weight_decay,
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    step.train()

    def made() -> Iterator[PlainStep]:
        count = 0
        while True:
            for x, x1, x2, y in loader:
                loss = step(x, x1, x2, y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                loss.item()
                schedule.step()
                count += 1
                yield step
                if count == steps:
                    return

    return made()


def our_steps(trainer: Trainer) -> Iterator[Any]:
    """Train with the product."""
    while True:
        trainer.step %= trainer.steps
        yield trainer.make_step()


def trainer_of(network: str, side: str) -> Trainer:
    """Return a trainer of CTRR on colour images of noise; the reference takes fp32 from it."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (SAMPLES, 3, 32, 32), dtype=np.uint8)
    splits = Splits(Dataset.from_arrays(images, rng.integers(0, 10, SAMPLES)), None)
    words = ["data.name=memory", "train.epochs=10", "train.holdout=0", "regularizer.weight=1"]
    words += [f"train.batch_size={BATCH}", *(OURS | OPTIONS).get(side, OURS["fp32"])]
    recipe = Recipe.from_dict({}, "method=ctrr", *words, *HEADS, *NETWORKS[network].words)
    return assemble(recipe, splits)[0]


def own_round(network: str, side: str, steps: int) -> dict[str, float]:
    """Be the process of one side: one of ours, or the reference with so many workers."""
    trainer = trainer_of(network, side)
    if side in OURS | OPTIONS:
        made = our_steps(trainer)
    else:
        workers, low = int(side.removeprefix(LOW)), side.startswith(LOW)
        made = plain_steps(trainer, workers, 10**6, low=low)
    del trainer  # what the reference does not need
    gc.collect()
    memory = PeakMemory()
    for _ in range(min(WARM_UP, steps)):
        next(made)
    began = time.perf_counter()
    for _ in range(steps):
        next(made)
    speed = steps * BATCH / (time.perf_counter() - began)
    return {"images_per_second": speed, "peak_mb": memory.megabytes()}


def a_round(network: str, side: str, steps: int) -> dict[str, float]:
    """Run one side in a process of its own."""
    command = [sys.executable, __file__, "--own", network, side, "--steps", str(steps)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, float] = json.loads(answer.splitlines()[-1])
    return found


def measure(networks: Sequence[str], rounds: int, steps: int) -> list[dict[str, Any]]:
    """Return images/s and memory of all sides with these networks."""
    native = has_bf16(torch.device("cpu"))
    plain = [str(workers) for workers in range(torch.get_num_threads() + 1)]
    sides = [side for side in OURS if native or side == "fp32"]
    rows = []
    for network in networks:
        few = min(steps, NETWORKS[network].steps)
        found: dict[str, list[dict[str, float]]] = defaultdict(list)
        for _ in range(rounds):
            for side in (*sides, *plain):
                found[side].append(a_round(network, side, few))
            best = max(plain, key=lambda side: _median(found[side], "images_per_second"))
            if native:
                low = next((side for side in found if side.startswith(LOW)), LOW + best)
                found[low].append(a_round(network, low, few))
        rows += _rows(network, found, best, few)
    return rows


def measure_options(networks: Sequence[str], rounds: int, steps: int) -> list[dict[str, Any]]:
    """Return what our options give, beside bf16 without them."""
    rows = []
    for network in networks:
        few = min(steps, NETWORKS[network].steps)
        found: dict[str, list[dict[str, float]]] = defaultdict(list)
        for _ in range(rounds):
            for side in OPTIONS:
                found[side].append(a_round(network, side, few))
        rows += _rows(network, found, "bf16", few)
    return rows


def _median(rounds: Sequence[dict[str, float]], number: str) -> float:
    return statistics.median(each[number] for each in rounds)


def _rows(
    network: str, found: dict[str, list[dict[str, float]]], best: str, steps: int
) -> list[dict[str, Any]]:
    """Return a row for each side, relative to one of them, and print it."""
    rows = []
    for side, those in found.items():
        workers = side.removeprefix(LOW)
        low = " in bf16" if side.startswith(LOW) else ""
        rows.append(
            {
                "network": network,
                "side": f"plain{low}, {workers} workers" if workers.isdigit() else f"ours, {side}",
                "images_per_second": _median(those, "images_per_second"),
                "relative": _median(those, "images_per_second")
                / _median(found[best], "images_per_second"),
                "peak_mb": _median(those, "peak_mb"),
                "peak_mb_of_plain": _median(found[best], "peak_mb"),
                "rounds": len(those),
                "steps": steps,
                **origin(),
            }
        )
        print(row_text(rows[-1]), flush=True)
    return rows


def with_others(found: dict[str, Any], file: Path) -> dict[str, Any]:
    """Return the rows together with those of other networks that the file has."""
    if not file.is_file():
        return found
    measured = {row["network"] for row in found["rows"]}
    before = json.loads(file.read_text(encoding="utf-8"))["rows"]
    rows = [row for row in before if row["network"] not in measured] + found["rows"]
    names = [*NETWORKS, *TRAINED]
    return found | {"rows": sorted(rows, key=lambda row: names.index(row["network"]))}


def row_text(row: dict[str, Any]) -> str:
    """Return one line of the table."""
    return (
        f"{row['network']:18} {row['side']:26} {row['images_per_second']:7.0f} images/s "
        f"{row['relative']:5.2f} ×  {row['peak_mb']:6.0f} MB"
    )


def facts(command: str) -> dict[str, Any]:
    """Return where the numbers come from."""
    return {
        "command": command,
        "batch_size": BATCH,
        "hardware": hardware(),
        **origin(),
    }


def origin() -> dict[str, Any]:
    """Return what may differ from row to row of a file that several runs have made."""
    return {
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
    }


def limits(networks: Sequence[str], steps: int) -> dict[str, Any]:
    """Return the share of convolutions in our step, and how fast they run beside a plain product.

    Convolutions are timed by the profiler, whose overhead is not in the time of a step: that is
    measured without it.
    """
    rows = []
    native = has_bf16(torch.device("cpu"))
    for network in networks:
        for side in ("fp32", "bf16") if native else ("fp32",):
            made = our_steps(trainer_of(network, side))
            for _ in range(WARM_UP):
                next(made)
            with FlopCounterMode(display=False) as counter:
                next(made)
            counts = counter.get_flop_counts()["Global"]
            flops = sum(n for name, n in counts.items() if "convolution" in str(name))
            began = time.perf_counter()
            for _ in range(steps):
                next(made)
            seconds = (time.perf_counter() - began) / steps
            with torch.profiler.profile() as profile:
                for _ in range(steps):
                    next(made)
            inside = sum(
                event.self_cpu_time_total / 1e6 / steps
                for event in profile.key_averages()
                if "convolution" in event.key
            )
            product = product_speed(getattr(torch, {"fp32": "float32", "bf16": "bfloat16"}[side]))
            rows.append(
                {
                    "network": network,
                    "side": side,
                    "ms": 1e3 * seconds,
                    "ms_of_convolutions": 1e3 * inside,
                    "gflops_of_convolutions": flops / inside / 1e9,
                    "gflops_of_a_product": product / 1e9,
                    "steps": steps,
                }
            )
            print(
                f"{network:18} {side:6} {1e3 * seconds:6.0f} ms a step, convolutions "
                f"{1e3 * inside:.0f} ms at {flops / inside / 1e9:.0f} GFLOP/s; "
                f"a product of matrices {product / 1e9:.0f} GFLOP/s",
                flush=True,
            )
    return facts("python benchmarks/step.py --limits") | {"rows": rows}


def product_speed(dtype: torch.dtype, size: int = 2048, times: int = 7) -> float:
    """Return the best FLOP/s of a product of two square matrices."""
    a, b = (torch.randn(size, size).to(dtype) for _ in range(2))
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        a @ b
        spent.append(time.perf_counter() - began)
    return 2 * size**3 / min(spent)


def train_both(network: str, steps: int, seeds: int) -> dict[str, Any]:
    """Return the test accuracies with which both sides end on the digits.

    Args:
        network: of `TRAINED`.
        steps: at least so many; the last epoch is finished.
        seeds: how often.
    """
    found: dict[str, list[float]] = {"ours": [], "plain": []}
    for seed in range(seeds):
        words = [f"train.seed={seed}", "train.batch_size=64"]
        words += ["noise.name=symmetric", "noise.rate=0.4", "train.holdout=0"]
        words += ["train.warmup_epochs=0", "train.clip_norm=0", "optimizer.nesterov=false"]
        words += ["views.weak.name=resized_crop", "views.weak.flip=0", "views.weak.area=[0.5, 1.0]"]
        words += ["train.threads=1", *HEADS, *TRAINED[network]]
        epochs = -(-steps // assemble(Recipe.load("digits", *words))[0].steps)
        trainer, _ = assemble(Recipe.load("digits", *words, f"train.epochs={epochs}"))
        made = trainer.steps * epochs
        *_, reference = plain_steps(trainer, 0, made, seed)
        assert trainer.test is not None
        shipped = copy.deepcopy(trainer.classifier)
        shipped.backbone, shipped.head = reference.backbone, reference.head
        test = trainer.test
        for event in trainer.epochs():
            last = event.metrics.test_accuracy
        found["ours"].append(last)
        guess = shipped.predict_proba(test.images[torch.arange(len(test))]).argmax(dim=1)
        found["plain"].append(float((guess.numpy() == test.given).mean()))
        print(
            f"{network}, seed {seed}: ours {found['ours'][-1]:.4f}, plain {found['plain'][-1]:.4f}"
        )
    spreads = {name: Spread.of(values) for name, values in found.items()}
    return {
        "network": network,
        "batch_size": 64,
        "steps": made,
        "data": "digits, 40 % symmetric noise",
        "test_accuracy": found,
        "mean": {name: each.mean for name, each in spreads.items()},
        "spread": {name: each.deviation for name, each in spreads.items()},
        **origin(),
    }


def main() -> None:
    """Measure, print a table, and say which goals were missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--only", default="", help="networks whose name contains this")
    parser.add_argument("--options", action="store_true")
    parser.add_argument("--limits", action="store_true")
    parser.add_argument("--train", type=int, metavar="STEPS")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--own", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.own:
        print(json.dumps(own_round(*args.own, args.steps)))
        return
    networks = [name for name in NETWORKS if args.only in name]
    if args.limits:
        name, found = "step-limits.json", limits(networks, args.steps)
    elif args.train:
        name = "step-training.json"
        rows = [train_both(each, args.train, args.seeds) for each in TRAINED if args.only in each]
        found = facts("python benchmarks/step.py --train") | {"rows": rows}
    else:
        name = "step-options.json" if args.options else "step.json"
        work = measure_options if args.options else measure
        command = f"python benchmarks/step.py{' --options' * args.options}"
        found = facts(command) | {"rows": work(networks, args.rounds, args.steps)}
    if args.save:
        save(with_others(found, args.save / name), args.save, name)
    for network in networks if name == "step.json" else ():
        goal = NETWORKS[network].goal
        ours = [r for r in found["rows"] if r["network"] == network and "ours" in r["side"]]
        best = max(ours, key=lambda row: row["relative"])
        lean = best["peak_mb"] <= best["peak_mb_of_plain"]
        met = "met" if best["relative"] >= goal and lean else "missed"
        print(f"{network}: {best['relative']:.2f} × ({best['side']}), asked {goal} ×: {met}")


if __name__ == "__main__":
    main()
