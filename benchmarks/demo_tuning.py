"""Is the demo's comparison fair? Both methods, the same number of settings each, three seeds.

    python benchmarks/demo_tuning.py [--long] [--runs runs/demo-tuning] [--save results]

Cross entropy is tried at five learning rates, CTRR at three and at two other λ. For each method
the setting is chosen by the accuracy on the *noisy* hold-out after the last epoch, never by the
test labels. With --long, 100 epochs: cross entropy at the two rates that memorise least, CTRR as
in the demo. Resumable; about a quarter of an hour on two cores.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import unswayed
from unswayed.files import write_json
from unswayed.report.table import Spread

SEEDS = (0, 1, 2)
SETTINGS = {
    "digits-ce": [f"optimizer.lr={lr}" for lr in (0.005, 0.01, 0.02, 0.05, 0.1)],
    "digits": [
        *(f"optimizer.lr={lr}" for lr in (0.01, 0.02, 0.05)),
        *(f"regularizer.weight={weight}" for weight in (5.0, 20.0)),
    ],
}
LONG = {
    "digits-ce": ["optimizer.lr=0.0025", "optimizer.lr=0.005"],
    "digits": ["optimizer.lr=0.02"],
}


def one(job: tuple[str, str, int, str, int]) -> tuple[str, str, dict[str, float]]:
    """Train one cell on one thread and return its numbers."""
    recipe, word, seed, folder, epochs = job
    path = Path(folder) / f"{recipe}-{word}-epochs{epochs}-seed{seed}"
    words = (word, f"train.seed={seed}", f"train.epochs={epochs}", "train.threads=1")
    last = unswayed.train(recipe, *words, run=path).summary.last.model_dump()
    keys = ("test_accuracy", "holdout_accuracy", "wrong_as_given")
    return recipe, word, {key: last[key] for key in keys}


def main() -> None:
    """Run the grid and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", default="runs/demo-tuning")
    parser.add_argument("--save", default="results")
    parser.add_argument("--long", action="store_true")
    args = parser.parse_args()
    epochs = 100 if args.long else 60
    settings = LONG if args.long else SETTINGS
    jobs = [
        (recipe, word, seed, args.runs, epochs)
        for recipe, words in settings.items()
        for word in words
        for seed in SEEDS
    ]
    cells: dict[tuple[str, str], list[dict[str, float]]] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for number, (recipe, word, numbers) in enumerate(pool.map(one, jobs), start=1):
            cells.setdefault((recipe, word), []).append(numbers)
            print(f"{number}/{len(jobs)} {recipe} {word}", flush=True)
    rows = []
    for recipe in settings:
        group = {word: runs for (name, word), runs in cells.items() if name == recipe}
        held = {w: Spread.of([r["holdout_accuracy"] for r in runs]) for w, runs in group.items()}
        chosen = max(held, key=lambda word: held[word].mean)
        for word, runs in group.items():
            test = Spread.of([r["test_accuracy"] for r in runs])
            memorised = Spread.of([r["wrong_as_given"] for r in runs])
            mark = "  <- chosen on the noisy hold-out" if word == chosen else ""
            print(
                f"{recipe:10} {word:24} test, last {test.percent():14} hold-out "
                f"{held[word].percent():14} memorised {memorised.percent()}{mark}"
            )
            row = {"recipe": recipe, "setting": word, "chosen": word == chosen, "runs": runs}
            rows.append(row)
    Path(args.save).mkdir(parents=True, exist_ok=True)
    name = f"demo-tuning-{epochs}.json"
    write_json(Path(args.save) / name, {"epochs": epochs, "seeds": SEEDS, "rows": rows})


if __name__ == "__main__":
    main()
