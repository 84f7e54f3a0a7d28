"""Images per second of our views beside torchvision's and kornia's, in one run.

    python benchmarks/augment.py [--threads N] [--sizes 32 64 128] [--batch 256] [--save results]

Every contender starts from the same uint8 images in memory and hands over batches of floats in
[0, 1]. An image counts when all its three views are made: one weak (resized crop, flip) and two
strong (resized crop, flip, jitter of 80 %, gray for 20 %). Contenders take turns, so that a slow
moment of the machine hits them all alike, and the median turn counts. Torchvision works image by
image, in this process and in as many loader processes as there are threads; those are started
before the clock. Kornia works on whole batches, and on parts that fit a cache better; it draws the
order of the jitter once for all images of a call, the others for each image. Ours is torchvision's
jitter; with affine colours it is an approximation of it, as kornia's is not.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision.transforms as v1
from common import hardware, save
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from unswayed.randomness import keys_of
from unswayed.views import VIEWS, Policy

GOALS = {32: 2.0, 64: 2.0, 128: 1.0}
"""How many times as fast as every other we want to be, by image size."""

OURS, AFFINE = "ours", "ours, affine colours"
WEAK_AREA, STRONG_AREA = (0.08, 1.0), (0.2, 1.0)
FLIP, JITTER, JITTERED, GRAY = 0.5, (0.4, 0.4, 0.4, 0.1), 0.8, 0.2
PART = 32

Turn = Callable[[], None]
"""Makes the three views of all images once."""


class ThreeViews(Dataset[tuple[Tensor, Tensor, Tensor]]):
    """Torchvision's way: images that are transformed when they are asked for, one by one."""

    def __init__(self, images: Sequence[Any] | Tensor, weak: nn.Module, strong: nn.Module) -> None:
        self.images, self.weak, self.strong = images, weak, strong

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor, Tensor]:
        image = self.images[row]
        return self.weak(image), self.strong(image), self.strong(image)


def random_images(count: int, size: int) -> Tensor:
    """Return colour images of noise; what a view costs does not depend on what they show."""
    rng = np.random.default_rng(0)
    return torch.from_numpy(rng.integers(0, 256, (count, 3, size, size), dtype=np.uint8))


def ours(images: Tensor, batch: int, colour: str) -> Turn:
    """Return our way, with the memory of a batch used again as the trainer does."""
    policy = Policy(VIEWS.build("resized_crop"), VIEWS.build("strong", colour=colour), 0)
    keys = keys_of([str(row) for row in range(len(images))])
    epochs = itertools.count()

    def turn() -> None:
        epoch = next(epochs)
        for start in range(0, len(images), batch):
            rows = slice(start, start + batch)
            policy.recycle(policy(images[rows], keys[rows], epoch, ("weak", "strong", "strong")))

    return turn


def pil_views(images: Tensor) -> ThreeViews:
    """Return torchvision's first transforms, on PIL images."""
    size = images.shape[-1]
    weak = v1.Compose(
        [v1.RandomResizedCrop(size, WEAK_AREA), v1.RandomHorizontalFlip(FLIP), v1.ToTensor()]
    )
    strong = v1.Compose(
        [
            v1.RandomResizedCrop(size, STRONG_AREA),
            v1.RandomHorizontalFlip(FLIP),
            v1.RandomApply([v1.ColorJitter(*JITTER)], JITTERED),
            v1.RandomGrayscale(GRAY),
            v1.ToTensor(),
        ]
    )
    pictures = [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in images]
    return ThreeViews(pictures, weak, strong)


def tensor_views(images: Tensor) -> ThreeViews:
    """Return torchvision's second transforms, on uint8 tensors."""
    size = images.shape[-1]
    floats = v2.ToDtype(torch.float32, scale=True)
    weak = v2.Compose(
        [v2.RandomResizedCrop(size, WEAK_AREA), v2.RandomHorizontalFlip(FLIP), floats]
    )
    strong = v2.Compose(
        [
            v2.RandomResizedCrop(size, STRONG_AREA),
            v2.RandomHorizontalFlip(FLIP),
            v2.RandomApply([v2.ColorJitter(*JITTER)], JITTERED),
            v2.RandomGrayscale(GRAY),
            floats,
        ]
    )
    return ThreeViews(images, weak, strong)


def loaded(views: ThreeViews, batch: int, workers: int) -> Turn:
    """Return a loader's way; its processes, if any, wait while others have their turn."""
    loader = DataLoader(views, batch, num_workers=workers, persistent_workers=workers > 0)

    def turn() -> None:
        for _ in loader:
            pass

    return turn


def kornias(images: Tensor, batch: int, part: int) -> Turn:
    """Return kornia's way, so many images of a batch at a time."""
    import kornia.augmentation as K

    size = tuple(images.shape[-2:])
    weak = nn.Sequential(
        K.RandomResizedCrop(size, scale=WEAK_AREA, same_on_batch=False),
        K.RandomHorizontalFlip(p=FLIP, same_on_batch=False),
    )
    strong = nn.Sequential(
        K.RandomResizedCrop(size, scale=STRONG_AREA, same_on_batch=False),
        K.RandomHorizontalFlip(p=FLIP, same_on_batch=False),
        K.ColorJitter(*JITTER, p=JITTERED, same_on_batch=False),
        K.RandomGrayscale(p=GRAY, same_on_batch=False),
    )

    def turn() -> None:
        for whole in images.split(batch):
            floats = [some.float() / 255 for some in whole.split(part)]
            made = [(weak(x), strong(x), strong(x)) for x in floats]
            if len(made) > 1:
                [torch.cat(views) for views in zip(*made, strict=True)]

    return turn


def contenders(size: int, batch: int, count: int, threads: int) -> dict[str, Turn]:
    """Return what takes turns, ours first."""
    images = random_images(count, size)
    turns = {OURS: ours(images, batch, "exact"), AFFINE: ours(images, batch, "affine")}
    for name, views in {
        "torchvision on PIL": pil_views(images),
        "torchvision v2 on tensors": tensor_views(images),
    }.items():
        turns[name] = loaded(views, batch, 0)
        if threads > 1:
            turns[f"{name}, {threads} workers"] = loaded(views, batch, threads)
    if importlib.util.find_spec("kornia"):
        turns["kornia"] = kornias(images, batch, batch)
        if batch > PART:
            turns[f"kornia, {PART} at a time"] = kornias(images, batch, PART)
    return turns


def timed(turns: dict[str, Turn], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of every turn; the first, which is not timed, warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for number in range(rounds + 1):
        for name, turn in turns.items():
            began = time.perf_counter()
            turn()
            if number > 0:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def measure(size: int, batch: int, count: int, threads: int, rounds: int) -> list[dict[str, Any]]:
    """Return a row for each contender at one image size and one number of threads."""
    torch.set_num_threads(threads)
    seconds = timed(contenders(size, batch, count, threads), rounds)
    own, affine = (statistics.median(seconds[name]) for name in (OURS, AFFINE))
    rows = []
    for name, taken in seconds.items():
        row = {
            "contender": name,
            "threads": threads,
            "size": size,
            "images_per_second": count / statistics.median(taken),
            "slowest": count / max(taken),
            "fastest": count / min(taken),
        }
        if name not in (OURS, AFFINE):
            ratio = statistics.median(taken) / own
            row |= {"ratio": ratio, "goal": GOALS[size], "met": ratio >= GOALS[size]}
            row |= {"ratio_affine": statistics.median(taken) / affine}
        rows.append(row)
    return rows


def line(row: dict[str, Any]) -> str:
    """Return a row as text."""
    text = f"{row['contender']:38} {row['threads']:7} {row['size']:4} "
    text += f"{row['images_per_second']:9.0f}"
    if row["contender"] in (OURS, AFFINE):
        return text
    ratios = f"{row['ratio']:7.2f} {row['ratio_affine']:8.2f}"
    return f"{text} {ratios} {row['goal']:5.1f} {'met' if row['met'] else 'missed'}"


def facts() -> dict[str, Any]:
    """Return what the numbers depend on besides the code."""
    names = ["torch", "torchvision", "pillow", "numpy"]
    names += ["kornia"] if importlib.util.find_spec("kornia") else []
    return {
        "hardware": hardware(),
        "software": {
            "python": platform.python_version(),
            **{name: version(name) for name in names},
        },
    }


def main() -> None:
    """Measure, print a table, and say line by line whether the goal is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--sizes", type=int, nargs="+", default=list(GOALS), choices=GOALS)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--batches", type=int, default=2, help="of each thread in a turn")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--save", type=Path)
    args = parser.parse_args()
    if not importlib.util.find_spec("kornia"):
        print("kornia is left out; `pip install kornia` brings it in", file=sys.stderr)
    count = args.batches * args.threads * args.batch  # as many batches for every loader process
    head = f"{'contender':38} {'threads':>7} {'px':>4} {'images/s':>9}"
    print(f"{head} {'ours ×':>7} {'affine ×':>8} {'goal':>5}")
    rows = []
    for threads, size in itertools.product(sorted({1, args.threads}), args.sizes):
        found = measure(size, args.batch, count, threads, args.rounds)
        print("\n".join(map(line, found)), flush=True)
        rows += found
    if args.save:
        result = {
            "command": "python benchmarks/augment.py",
            "counted": "images of which one weak and two strong views are made",
            "batch_size": args.batch,
            "images_in_a_turn": count,
            "rounds": args.rounds,
            **facts(),
            "contenders": rows,
        }
        save(result, args.save, "augment.json")


if __name__ == "__main__":
    main()
