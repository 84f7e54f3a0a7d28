"""What a start, a checkpoint and the predictions cost with a million image files in 1,000 classes.

    python benchmarks/large.py [--rows 10000 100000 1000000] [--folder DIR] [--save results]

Cases whose numbers are in results/large.json already are not measured again.

Makes as many files as the largest number of rows: images of 8×8 pixels, every one different, and a
table that names them. Trains a tiny network on the first rows of it, but a few steps instead of an
epoch; then it writes what the end of an epoch and of a training write. Every row of the result is a
process of its own, or two of torchrun. Seconds are of the CPU, of all threads of a process.
Megabytes are the largest resident memory, of which "above" counts what came after the imports.
Pages of a mapped cache count, though the system can take them back at any time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import PeakMemory, hardware, resident, save

CLASSES, SIDE, STEPS, BATCH = 1000, 8, 20, 256
FILE = "large.json"
SIZES = (10_000, 100_000, 1_000_000)
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}

COLUMNS = {
    "rows": "rows",
    "cache": "images",
    "processes": "processes",
    "first_seconds": "first start, s",
    "start_seconds": "later start, s",
    "start_mb": "MB at start",
    "above_mb": "above imports",
    "checkpoint_seconds": "checkpoint, s",
    "checkpoint_mb": "checkpoint, MB",
    "records_seconds": "records, s",
    "predictions_seconds": "predictions, s",
    "predictions_mb": "predictions, MB",
    "predicting_mb": "memory above, MB",
}


def make_files(root: Path, count: int) -> None:
    """Write small bitmaps, each different, in a folder for each class, unless they are there."""
    done = root / "done"
    if done.exists() and int(done.read_text()) >= count:
        return
    head = _bitmap_header()
    for k in range(CLASSES):
        (root / f"{k:03d}").mkdir(parents=True, exist_ok=True)
    for number in range(count):
        pixels = number.to_bytes(4, "little") * (SIDE * SIDE * 3 // 4)
        with open(f"{root}/{number % CLASSES:03d}/{number:07d}.bmp", "wb", buffering=0) as file:  # noqa: PTH123  a Path each takes as long again
            file.write(head + pixels)
        if number % 100_000 == 0:
            print(f"made {number:,} of {count:,} files", file=sys.stderr, flush=True)
    done.write_text(str(count))


def _bitmap_header() -> bytes:
    import io

    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (SIDE, SIDE)).save(buffer, "BMP")
    return buffer.getvalue()[: -SIDE * SIDE * 3]


def make_table(root: Path, rows: int) -> Path:
    """Write a manifest of the first files."""
    path = root / f"{rows}.csv"
    with path.open("w", encoding="utf-8") as file:
        file.write("path,label\n")
        for n in range(rows):
            file.write(f"{n % CLASSES:03d}/{n:07d}.bmp,class {n % CLASSES:03d}\n")
    return path


def cpu() -> float:
    """Return the seconds of CPU of all threads so far."""
    return time.process_time()


def measure(table: Path, cache: str, *, whole: bool) -> dict[str, float]:
    """Start a training, make a few steps, and write what an epoch and a training write."""
    import torch

    from unswayed import Recipe, processes
    from unswayed.build import assemble
    from unswayed.runs import Run, predictions
    from unswayed.runs.provenance import gather
    from unswayed.types import Step

    processes.start()
    imported, began, peak = resident(), cpu(), PeakMemory()
    options = ["method=ce", "data.name=manifest", f"data.path={table}", f"data.size={SIDE}"]
    options += [f"data.cache={cache}", "noise.name=none", "model.width=8", "train.threads=1"]
    options += [f"train.batch_size={BATCH}", "train.epochs=1", "train.drop_last=true"]
    recipe = Recipe.load("digits", *options)
    torch.set_num_threads(1)
    trainer, noise = assemble(recipe)
    folder = table.with_suffix(f".run-{cache}")
    if processes.is_first():
        shutil.rmtree(folder, ignore_errors=True)
        facts = gather(trainer, noise, recipe, {})
        Run.create(folder, recipe, facts, trainer.train, trainer.holdout)
    processes.wait()
    run, events = Run(folder), trainer.events()
    assert isinstance(next(events), Step)
    found = {"imported_mb": imported, "start_seconds": cpu() - began}
    found |= {"start_mb": imported + peak.megabytes(), "above_mb": peak.megabytes()}
    if not whole:
        return found
    began = cpu()
    for _ in range(STEPS):
        next(events)
    found["step_seconds"] = (cpu() - began) / STEPS

    began, peak = cpu(), PeakMemory()
    tensors, plain = trainer.state()
    if processes.is_first():
        run.write_checkpoint(tensors, plain)
        found["checkpoint_mb"] = _megabytes(next(folder.glob("checkpoints/state-*")))
    found |= {"checkpoint_seconds": cpu() - began, "checkpoint_peak_mb": peak.megabytes()}

    began = cpu()
    if processes.is_first():
        run.write_records(0, trainer.recorder.records)
    found["records_seconds"] = cpu() - began

    began, peak = cpu(), PeakMemory()
    predictions.write_predictions(trainer, folder)
    found |= {"predictions_seconds": cpu() - began, "predicting_mb": peak.megabytes()}
    if processes.is_first():
        found["predictions_mb"] = _megabytes(folder / predictions.FILE)
        shutil.rmtree(folder)
    return found


def _megabytes(path: Path) -> float:
    return path.stat().st_size / 1e6


def apart(table: Path, cache: str, number: int, *, whole: bool) -> list[dict[str, float]]:
    """Measure in processes of their own, and return what each found."""
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(number))
    command = [sys.executable, *(torchrun if number > 1 else ()), __file__]
    with tempfile.TemporaryDirectory() as answers:
        words = ["--measure", str(table), cache, str(int(whole)), answers]
        subprocess.run([*command, *words], check=True, env={**os.environ, **ENVIRONMENT})
        files = sorted(Path(answers).iterdir())
        return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def be_measured(words: Sequence[str]) -> None:
    """Be such a process."""
    table, cache, whole, answers = words
    found = measure(Path(table), cache, whole=whole == "1")
    from unswayed import processes

    name = f"{processes.rank()}.json"
    (Path(answers) / name).write_text(json.dumps(found), encoding="utf-8")
    processes.wait()
    if processes.count() > 1:
        processes.leave(0)


def case(root: Path, rows: int, cache: str, number: int = 1) -> dict[str, Any]:
    """Return a row of the result: a first start, which checks or caches the files, and a later."""
    shutil.rmtree(root / "cache", ignore_errors=True)
    table = make_table(root / "files", rows)
    first = apart(table, cache, number, whole=False)
    later = apart(table, cache, number, whole=True)
    largest = {name: max(each[name] for each in later if name in each) for name in later[0]}
    row = {"rows": rows, "cache": cache, "processes": number}
    row |= {"first_seconds": max(each["start_seconds"] for each in first), **largest}
    row["first_mb"] = max(each["above_mb"] for each in first)
    print(line(row), flush=True)
    return row


def line(row: dict[str, Any]) -> str:
    """Return a row of the printed table."""
    return "| " + " | ".join(_text(row[name]) for name in COLUMNS) + " |"


def _text(value: float | str) -> str:
    if isinstance(value, str):
        return value
    value = max(value, 0)  # memory may be given back meanwhile
    return f"{value:,.2f}" if isinstance(value, float) and value < 10 else f"{value:,.0f}"


def main() -> None:
    """Measure every case, print the table and save it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES)
    parser.add_argument("--shared", type=int, nargs="*", default=(100_000,), help="by two")
    parser.add_argument("--caches", nargs="+", default=("disk", "stream"))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "large")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    os.environ.setdefault("UNSWAYED_CACHE", str(args.folder / "cache"))
    if args.measure:
        be_measured(args.measure)
        return
    print("| " + " | ".join(COLUMNS.values()) + " |\n" + "|" + " ---: |" * len(COLUMNS))
    kinds = {(rows, cache, 1) for rows in args.rows for cache in args.caches}
    kinds |= {(rows, cache, 2) for rows in args.shared for cache in args.caches}
    known = _known(args.save)
    if missing := kinds - known.keys():
        make_files(args.folder / "files", max(rows for rows, *_ in missing))
    for rows, cache, number in sorted(missing):
        known[rows, cache, number] = case(args.folder, rows, cache, number)
        if args.save:
            cases = [known[kind] for kind in sorted(known)]
            settings = {"classes": CLASSES, "side": SIDE, "steps": STEPS, "batch_size": BATCH}
            save({**hardware(), **settings, "cases": cases}, args.save, FILE)
    print("\n".join(growth(list(known.values()))))


def growth(cases: list[dict[str, Any]]) -> list[str]:
    """Say what an image more takes, from the fewest images to the most."""
    said = []
    alone = [each for each in cases if each["processes"] == 1]
    for cache in sorted({each["cache"] for each in alone}):
        ours = [each for each in alone if each["cache"] == cache]
        few, many = (choose(ours, key=lambda each: each["rows"]) for choose in (min, max))
        more = many["rows"] - few["rows"]
        if more == 0:
            continue
        held = (many["above_mb"] - few["above_mb"]) * 2**20 / more
        later, first = (
            (many[name] - few[name]) / more * 1e6 for name in ("start_seconds", "first_seconds")
        )
        said.append(
            f"{cache}, {few['rows']:,} to {many['rows']:,} images: each takes {held:.0f} bytes, "
            f"{first:.0f} µs at the first start and {later:.0f} µs at a later one"
        )
    return said


def _known(folder: Path | None) -> dict[tuple[int, str, int], dict[str, Any]]:
    """Return the cases that were measured before."""
    if folder is None or not (folder / FILE).is_file():
        return {}
    cases = json.loads((folder / FILE).read_text(encoding="utf-8"))["cases"]
    for each in cases:
        print(line(each))
    return {(each["rows"], each["cache"], each["processes"]): each for each in cases}


if __name__ == "__main__":
    main()
