"""The published training at its full size, as far as it gets, beside cross entropy at equal steps.

    UNSWAYED_DATA=DIR python benchmarks/confirmation.py --hours 2 [--save results]
    python benchmarks/confirmation.py --draw --save results

PreAct ResNet-18, CIFAR-10, 80 % symmetric noise by the published generator, the recipe
`official-byol` with its λ, τ and learning rate: 550 epochs, which a CPU does not finish. Both
trainings take turns, an epoch each, and stop after the round in which the time is up; called again,
they go on. bf16 where the processor has it. What is compared are equal epochs, that is, equal steps
and images; CTRR takes more than twice the computation for each.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from common import hardware, save

from unswayed.recipe import Recipe
from unswayed.runs import Run
from unswayed.session import train
from unswayed.types import Epoch, Step

METHODS = {"CE": "ce", "CTRR (BYOL)": "ctrr-byol/cifar10-sym80"}
WORDS = [
    "data.name=cifar10",
    "noise.name=symmetric",
    "noise.inclusive=true",
    "noise.rate=0.8",
    'noise.official_seed="2021"',
    "train.seed=2021",
    "train.precision=auto",
]


class EnoughError(Exception):
    """One more epoch is done, and saved."""


def recipe(method: str) -> Recipe:
    """Return the full-size recipe of a method; cross entropy differs in nothing else."""
    return Recipe.load("official-byol", f"method={method}", *WORDS)


def one_epoch(method: str, folder: Path) -> None:
    """Go on with a training for one epoch; its state is saved at the end of each."""

    def watch(event: Step | Epoch) -> None:
        if isinstance(event, Epoch):
            test = event.metrics.test_accuracy
            print(f"{method}: epoch {event.epoch + 1}, test {100 * test:.2f} %", flush=True)
            raise EnoughError

    try:
        train(recipe(method), run=folder, watch=watch)
    except EnoughError:
        return


def collect(runs: Path) -> dict[str, Any]:
    """Return the curves of both trainings."""
    curves = {}
    for label, method in METHODS.items():
        folder = runs / method.replace("/", "-")
        if (folder / "recipe.toml").is_file():
            run = Run(folder)
            keys = ("epoch", "test_accuracy", "wrong_as_given", "wrong_as_true", "flops", "seconds")
            curves[label] = {
                "epochs": [{key: getattr(row, key) for key in keys} for row in run.metrics],
                "commit": run.provenance.commit,
                "resolved": run.provenance.resolved.model_dump(exclude_none=True),
            }
    return {
        "command": "python benchmarks/confirmation.py",
        "hardware": hardware(),
        "of_epochs": 550,
        "curves": curves,
    }


def draw(found: dict[str, Any], path: Path) -> None:
    """Plot test accuracy and memorised labels over epochs."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6))
    titles = {"test_accuracy": "test accuracy / %", "wrong_as_given": "wrong labels memorised / %"}
    for panel, (key, title) in zip(panels, titles.items(), strict=True):
        for label, curve in found["curves"].items():
            rows = [row for row in curve["epochs"] if row[key] is not None]
            x = [row["epoch"] + 1 for row in rows]
            panel.plot(x, [100 * row[key] for row in rows], "o-", label=label)
        panel.set(title=title, xlabel=f"epoch of {found['of_epochs']}")
        panel.grid(alpha=0.3)
    panels[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main() -> None:
    """Train in turns until the time is up, then save and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--runs", type=Path, default=Path("runs/confirmation"))
    parser.add_argument("--draw", action="store_true", help="train nothing")
    parser.add_argument("--save", type=Path)
    args = parser.parse_args()
    until = time.monotonic() + 3600 * args.hours
    while not args.draw and time.monotonic() < until:
        for method in METHODS.values():
            one_epoch(method, args.runs / method.replace("/", "-"))
    if args.save:
        found = collect(args.runs)
        save(found, args.save, "confirmation.json")
        draw(found, args.save / "confirmation.png")


if __name__ == "__main__":
    main()
