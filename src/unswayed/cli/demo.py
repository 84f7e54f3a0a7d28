"""See it work: find the wrong labels among digits of which a fifth is labelled wrongly.

The digits are written as PNG files into class folders. `unswayed clean` then does with that folder
what it does with yours. At the end the truth, which it was not told, shows how well it did. With
--compare, cross entropy and CTRR are trained on noisy digits instead, and shown epoch by epoch.
"""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from unswayed.cli.clean import clean
from unswayed.cli.effect import show_effect
from unswayed.errors import UsageError

if TYPE_CHECKING:
    from unswayed.audits import Audit
    from unswayed.data import Dataset
    from unswayed.runs import Run

WRONG, SIDE, MINUTES = 0.2, 16, 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("overrides", nargs="*", metavar="key=value", help="options of the training")
    add("--runs", default="runs/demo", help="where everything goes (runs/demo)")
    add("--compare", action="store_true", help="compare cross entropy and CTRR")
    add("--seeds", type=int, help="with --compare: how many seeds, from 0 on (1)")
    add("--save", metavar="DIR", help="with --compare: also write demo.json and demo.svg there")


def run(args: argparse.Namespace) -> int:
    """Write the digits, clean them, and compare with the truth."""
    folder = Path(args.runs)
    if args.compare:
        seeds = 1 if args.seeds is None else args.seeds
        show_effect(folder, args.overrides, seeds, args.save)
        return 0
    if args.seeds is not None or args.save:
        raise UsageError("--seeds and --save belong to: unswayed demo --compare")
    write_digits(folder)
    made, found = clean(folder / "digits", folder / "run", MINUTES, args.overrides)
    for line in compared_with_truth(made, found, folder):
        print(line)
    return 0


def write_digits(folder: Path) -> None:
    """Write the digits into class folders, a fifth of them into a wrong one, and the truth apart.

    `digits/` is what is cleaned, `truth.csv` has the true label of each, and `test/` holds digits
    with true labels that are not trained on.
    """
    if (folder / "truth.csv").is_file():
        return
    from unswayed.build import facts_of
    from unswayed.data.digits import digits
    from unswayed.files import write_text
    from unswayed.noise import NOISES

    train, test = digits(size=SIDE)
    assert test is not None
    given = NOISES.build("symmetric", facts_of(train), rate=WRONG).corrupt(
        train.given, train.keys, 0
    )
    _write_images(folder / "test", test, [test.classes[k] for k in test.given])
    ids = _write_images(folder / "digits", train, [train.classes[k] for k in given])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("id", "true"))
    writer.writerows(zip(ids, (train.classes[k] for k in train.given), strict=True))
    write_text(folder / "truth.csv", text.getvalue())  # last: all images are there


def _write_images(folder: Path, data: Dataset, labels: list[str]) -> list[str]:
    """Write images into the folders of these labels, and return their paths inside `folder`."""
    import torch
    from PIL import Image

    names = []
    for row, label in enumerate(labels):
        names.append(f"{label}/{Path(data.ids[row]).name}.png")
        file = folder / names[-1]
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(data.images[torch.tensor([row])][0, 0].numpy()).save(file)
    return names


def compared_with_truth(run: Run, found: Audit, folder: Path) -> list[str]:
    """Return what only the truth can tell, a line each, and draw the first labels."""
    import numpy as np

    from unswayed.report.contact_sheet import contact_sheet

    with (folder / "truth.csv").open(encoding="utf-8", newline="") as file:
        true = {row["id"]: row["true"] for row in csv.DictReader(file)}
    wrong = [each.given != true[each.id] for each in found]  # the most suspicious first
    listed, hits, all_wrong = found.to_review, sum(wrong[: found.to_review]), sum(wrong)
    right, tested = _tested(run, folder / "test")
    sheet = folder / "contact-sheet.png"
    number = {name: k for k, name in enumerate(found.classes)}
    contact_sheet(
        found,
        sheet,
        image=lambda row: run.image(str(found.ids[row])),
        true=np.array([number[true[name]] for name in found.ids]),
    )
    return [
        "",
        f"what only the truth can tell ({folder / 'truth.csv'}):",
        f"{hits} of the {listed} labels worth a look are wrong ({_percent(hits, listed)}); "
        f"that finds {_percent(hits, all_wrong)} of all {all_wrong} wrong labels",
        f"the network classifies {_percent(right, tested)} of {tested} other digits correctly",
        f"the first forty in pictures, with the truth: {sheet}",
    ]


def _tested(run: Run, folder: Path) -> tuple[int, int]:
    """Return how many test images the network classifies correctly, and how many there are."""
    import torch

    from unswayed.data.decode import decode

    config, files = run.config, sorted(folder.glob("*/*.png"))
    images = [decode(file, config.channels, config.image_size, config.resize) for file in files]
    best = run.classifier().predict_proba(torch.stack(images)).argmax(dim=1).tolist()
    guessed = [config.classes[k] for k in best]
    labels = [file.parent.name for file in files]
    return sum(a == b for a, b in zip(guessed, labels, strict=True)), len(files)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"
