"""A whole epoch of training batches from image files, beside the usual way, in one run.

    python benchmarks/loading.py [--images 20000] [--folder DIR] [--save results]

Makes JPEGs of about 256 px, then reads one epoch at 128 px in three views (weak, strong, strong):
ours from the cache that a first run left, and torchvision's ImageFolder with a DataLoader and
per-image transforms at its best number of workers. Each side is a process of its own, so that
peak memory is its own (workers included). Then indexes and inspects 200,000 small files.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import save

SIZE, BATCH, CLASSES = 128, 256, 10


def make_jpegs(root: Path, count: int) -> None:
    """Write smooth random images with some grain, about 20 kB each, unless they are there."""
    import numpy as np
    from PIL import Image

    if (root / "done").exists():
        made = len(list(root.glob("jpegs/*/*.jpg")))
        if made != count:
            advice = "remove it, or choose another --folder"
            sys.exit(f"{root} has {made} images, not {count}; {advice}")
        return
    rng = np.random.default_rng(0)
    for k in range(CLASSES):
        (root / "jpegs" / f"class{k}").mkdir(parents=True, exist_ok=True)
    grain = rng.integers(-12, 12, (300, 300, 3))
    for number in range(count):
        side = (int(rng.integers(224, 289)), int(rng.integers(224, 289)))
        coarse = Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8))
        pixels = np.asarray(coarse.resize(side, Image.Resampling.BICUBIC)).astype(int)
        pixels = np.clip(pixels + grain[: side[1], : side[0]], 0, 255).astype(np.uint8)
        path = root / "jpegs" / f"class{number % CLASSES}" / f"{number:06d}.jpg"
        Image.fromarray(pixels).save(path, quality=90)
        if number % 1000 == 0:
            print(f"made {number} of {count} images", file=sys.stderr, flush=True)
    (root / "done").touch()


def ours(root: Path) -> dict[str, float]:
    """Time one epoch of views from the cache, and what opening it costs."""
    import torch

    from unswayed.data import DATASETS
    from unswayed.randomness import permutation
    from unswayed.views import VIEWS, Policy

    began = time.perf_counter()
    data = DATASETS.build("folder", path=str(root / "jpegs"), size=SIZE, cache="disk").train
    opened = time.perf_counter()
    policy = Policy(VIEWS.build("resized_crop"), VIEWS.build("strong"), 0)
    order = permutation(0, "order", data.keys, 0)
    for start in range(0, len(data) - BATCH + 1, BATCH):
        rows = order[start : start + BATCH]
        views = policy(
            data.images[torch.from_numpy(rows)], data.keys[rows], 0, ("weak", "strong", "strong")
        )
        policy.recycle(views)  # as the trainer does after each step
    seconds = time.perf_counter() - opened
    return {"open_seconds": opened - began, "images_per_second": len(data) / seconds}


def theirs(root: Path, workers: int, count: int) -> dict[str, float]:
    """Time torchvision's way, over the first batches or a whole epoch."""
    import torch
    import torchvision.transforms as T
    from torchvision.datasets import ImageFolder

    weak = T.Compose([T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), T.ToTensor()])
    strong = T.Compose(
        [
            T.RandomResizedCrop(SIZE, scale=(0.2, 1.0)),
            T.RandomHorizontalFlip(),
            T.RandomApply([T.ColorJitter(0.4, 0.4, 0.4, 0.1)], 0.8),
            T.RandomGrayscale(0.2),
            T.ToTensor(),
        ]
    )
    data = ImageFolder(root / "jpegs", lambda image: (weak(image), strong(image), strong(image)))
    if count:
        data = torch.utils.data.Subset(data, torch.randperm(len(data))[:count].tolist())
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        data, BATCH, shuffle=True, num_workers=workers, drop_last=True
    )
    began = time.perf_counter()
    seen = sum(len(labels) for _, labels in loader)
    return {"workers": workers, "images_per_second": seen / (time.perf_counter() - began)}


def inspected(root: Path) -> dict[str, float]:
    """Index and inspect 200,000 small files."""
    from unswayed.data.inspect import inspect

    began = time.perf_counter()
    found = inspect(root / "many")
    return {"files": sum(found.counts["train"].values()), "seconds": time.perf_counter() - began}


def make_many(root: Path, count: int = 200_000) -> None:
    """Write small PNGs, each different, by patching the pixels of one."""
    import io

    import numpy as np
    from PIL import Image

    if (root / "many-done").exists():
        return
    for k in range(CLASSES):
        (root / "many" / f"class{k}").mkdir(parents=True, exist_ok=True)
    for number in range(count):
        digits = np.frombuffer(number.to_bytes(4, "little") * 16, np.uint8).reshape(8, 8)
        buffer = io.BytesIO()
        Image.fromarray(digits).save(buffer, "BMP")
        (root / "many" / f"class{number % CLASSES}" / f"{number:06d}.bmp").write_bytes(
            buffer.getvalue()
        )
    (root / "many-done").touch()


def apart(root: Path, *what: str) -> dict[str, float]:
    """Run one measurement in a process of its own, and add its peak memory in MB."""
    command = [sys.executable, __file__, "--folder", str(root), "--measure", *what]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    numbers: dict[str, float] = json.loads(answer.splitlines()[-1])
    return numbers


def measure(root: Path, what: list[str]) -> None:
    """Be that process."""
    kind, *numbers = what
    if kind == "ours":
        found = ours(root)
    elif kind == "theirs":
        found = theirs(root, int(numbers[0]), int(numbers[1]))
    else:
        found = inspected(root)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    found["peak_mb"] = (own + workers * found.get("workers", 0)) / 1024
    print(json.dumps(found))


def main() -> None:
    """Measure everything and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "loading")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    os.environ["UNSWAYED_CACHE"] = str(args.folder / "cache")
    if args.measure:
        measure(args.folder, args.measure)
        return
    args.folder.mkdir(parents=True, exist_ok=True)
    make_jpegs(args.folder, args.images)
    results = {
        "images": args.images,
        "cores": os.cpu_count(),
        "first_run": apart(args.folder, "ours"),
    }
    trials = [apart(args.folder, "theirs", str(n), "2048") for n in (0, 1, 2, 4)]
    best = max(trials, key=lambda trial: trial["images_per_second"])
    results["torchvision"] = apart(args.folder, "theirs", str(int(best["workers"])), "0")
    results["ours"] = apart(args.folder, "ours")
    make_many(args.folder)
    results["inspect"] = apart(args.folder, "inspect")
    ratio = results["ours"]["images_per_second"] / results["torchvision"]["images_per_second"]
    results["ratio"] = ratio
    print(json.dumps(results, indent=2))
    print(f"ours is {ratio:.2f} times as fast")
    if args.save:
        save(results, args.save, "loading.json")


if __name__ == "__main__":
    main()
