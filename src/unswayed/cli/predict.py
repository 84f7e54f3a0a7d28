"""Classify image files with a finished run."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from pathlib import Path

from unswayed.errors import UsageError

BATCH = 64


HEAD = b"path,label,probability\n"
"""The first line of a table of predictions."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", metavar="RUN", help="a run folder")
    parser.add_argument("images", metavar="IMAGE", nargs="+", help="image files")
    parser.add_argument("--csv", metavar="FILE", help="write path,label,probability to a file")
    parser.add_argument(
        "--weights", choices=("last", "selected"), default="last", help="which weights (last)"
    )


def run(args: argparse.Namespace) -> int:
    """Predict all images that can be read; name the others, and exit with 1 if there are any."""
    import torch

    from unswayed.data.decode import decode
    from unswayed.runs import Run

    found = Run(args.run)
    net, config = found.classifier(args.weights), found.config
    rows: list[tuple[str, str, float]] = []
    failed = 0
    for start in range(0, len(args.images), BATCH):
        paths, images = [], []
        for path in args.images[start : start + BATCH]:
            try:
                images.append(decode(path, config.channels, config.image_size, config.resize))
                paths.append(path)
            except UsageError as error:
                failed += 1
                print(f"unswayed: {error}", file=sys.stderr)
        if images:
            probability, label = net.predict_proba(torch.stack(images)).max(dim=1)
            for path, p, k in zip(paths, probability.tolist(), label.tolist(), strict=True):
                rows.append((path, config.classes[k], p))
    _show(rows, args.csv)
    return 1 if failed else 0


def _show(rows: list[tuple[str, str, float]], target: str | None) -> None:
    if target is None:
        for path, label, probability in rows:
            print(f"{path}\t{label}\t{probability:.4f}")
        return
    from unswayed.files import write_text

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    text.write(HEAD.decode())
    writer.writerows((path, label, f"{probability:.6f}") for path, label, probability in rows)
    file = Path(target)
    if file.is_file() and not file.read_bytes().startswith(HEAD):
        raise UsageError(f"--csv: {target} is there and no table of predictions; choose another")
    try:
        if file.exists() and not file.is_file():  # a pipe or a device cannot be replaced
            file.write_text(text.getvalue(), encoding="utf-8")
        else:
            write_text(file.resolve(), text.getvalue())
    except OSError as error:
        raise UsageError(f"--csv: {target} cannot be written: {error}") from error
    print(target)
