r"""What reviewing suspicious labels buys, where the truth is known.

    python benchmarks/review.py [--data DIR] [--runs DIR] [--seeds 3] [--only NAME...] [--save DIR]

A simulated reviewer answers by the true labels and errs in 2 % of the cases. They look at labels in
three orders: that of our review, with its blind re-checks; cleanlab's, by the probabilities of the
same network; and any order. After 250, 1,000 and 4,000 decisions the label noise is counted, and
the network is trained again on the corrected labels: same recipe, seed and computation. Our review
goes on to its stop line, and everything that it promises on the way is compared with the truth. Two
more orders are controls: that of the audit before any decision, without re-checks, and the same
with the given classes in turn.

Trainings, audits and reviews are kept below --runs and never made again. `--dry-run` says what
would be trained, and `--trainings kept` trains nothing. `--save` writes review.json, review.md and
review.png there, and renews the tables of docs/review-study.md. The data are those of
`benchmarks/audit.py`; so are the first trainings.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from audit_measures import Labels
from audit_settings import Setting, available, ours, settings
from common import hardware, save
from review_pictures import draw
from review_simulation import (
    Reviewer,
    Walk,
    audited,
    bookkeeping,
    cleanlab_order,
    corrected,
    even_order,
    kept_walk,
    random_order,
)
from review_tables import filled, page
from review_trainings import accuracies, check, place_of, retrained

from unswayed import Run
from unswayed.runs.provenance import commit

SETTINGS = ("digits-20", "symmetric-20", "asymmetric-40")
MARKS = (250, 1000, 4000)
CONTROLS = ("audit", "even")
"""Trained at the last mark only: a control needs no curve."""

ORDERS = ("ours", "cleanlab", "random", *CONTROLS)
PAGE = Path(__file__).parents[1] / "docs" / "review-study.md"
"""Shows some of the tables."""

PACKAGES = ("unswayed", "torch", "numpy", "scikit-learn", "cleanlab")


def marks_of(samples: int) -> tuple[int, ...]:
    """Return after how many decisions is measured: as many as there are samples for."""
    return tuple(mark for mark in MARKS if mark < samples)


def measured(
    setting: Setting,
    seed: int,
    runs: Path,
    data: Path | None,
    orders: Sequence[str],
    trainings: str,
) -> dict[str, Any]:
    """Return all numbers of a setting with one seed."""
    name = f"{setting.name}, seed {seed}"
    base = ours(setting, seed, runs, data)
    samples, folder = base.samples(), base.path.parent / "review"
    given, true = samples.given, samples.true
    assert true is not None
    marks = marks_of(len(given))
    reviewer = Reviewer(true, len(base.provenance.data.classes), seed)
    walked = Walk({}, [], {})
    if "ours" in orders:
        walked = kept_walk(base, reviewer, marks, folder, lambda word: _say(f"{name}: {word}"))
    p = base.predictions().probabilities.float().numpy()
    ranked = cleanlab_order(p, given, true)
    fixed = {
        "cleanlab": ranked.order,
        "random": random_order(len(given), seed),
        "audit": (first := audited(base).order),
        "even": even_order(first, given),
    }
    points = []
    for mark in marks:
        for order in orders:
            labels = (
                walked.labels[mark]
                if order == "ours"
                else corrected(given, fixed[order], reviewer, mark)
            )
            path = place_of(folder, order, mark)
            train = order not in CONTROLS or mark == marks[-1]
            run = _run(base, setting, seed, data, labels, path, trainings) if train else None
            points.append(
                {
                    "order": order,
                    "decisions": mark,
                    **bookkeeping(labels, given, true),
                    "accuracy": accuracies(run) if run else None,
                }
            )
            _say(f"{name}: {_words(points[-1])}")
    return {
        "setting": setting.name,
        "title": setting.title,
        "seed": seed,
        "samples": len(given),
        "wrong": int((given != true).sum()),
        "start": {**bookkeeping(given, given, true), "accuracy": accuracies(base)},
        "points": points,
        "clean": _clean(base, setting, seed, data, true, folder / "true", trainings),
        "cleanlab": {"score": ranked.score, "ap_by_score": ranked.precision},
        "promises": walked.promises,
        "stop": walked.stop,
    }


def _run(
    base: Run,
    setting: Setting,
    seed: int,
    data: Path | None,
    labels: Labels,
    path: Path,
    trainings: str,
) -> Run | None:
    """Return the run on some labels; None if it is not there and nothing is to be trained."""
    if trainings == "all":
        return retrained(base, setting, seed, data, labels, path)
    if not (path / "summary.json").is_file():
        return None
    run = Run(path)
    check(run, base, labels)
    return run


def _clean(*known: Any) -> dict[str, Any]:
    """Return the accuracy of a training on the true labels."""
    run = _run(*known)
    return {"accuracy": accuracies(run) if run else None}


def _words(point: Mapping[str, Any]) -> str:
    found = f"{point['order']}, {point['decisions']:,}: noise {100 * point['noise']:.2f} %"
    accuracy = point["accuracy"]
    return found + (f", test {100 * accuracy['last']:.2f} %" if accuracy else ", not trained")


def _say(text: str) -> None:
    print(text, flush=True)


def todo(chosen: Sequence[Setting], seeds: int, runs: Path, orders: Sequence[str]) -> Iterator[str]:
    """Yield a line for everything that is not trained yet, and the sum."""
    total = 0.0
    for seed in range(seeds):
        for setting in chosen:
            folder = runs / setting.name / f"seed-{seed}"
            marks = MARKS[:2] if setting.name.startswith("digits") else MARKS
            again = [
                place_of(folder / "review", order, n)
                for n in marks
                for order in orders
                if order not in CONTROLS or n == marks[-1]
            ]
            for path in (folder / "ours", *again, folder / "review" / "true"):
                if not (path / "summary.json").is_file():
                    total += setting.minutes
                    yield f"train {path}: about {setting.minutes:g} min"
    yield f"in all about {total:,.0f} min of one core"


def _about() -> dict[str, Any]:
    """Return what the numbers depend on besides the settings."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "command": "python benchmarks/review.py",
        "commit": commit(),
        "hardware": hardware(),
        "versions": {"python": platform.python_version(), **versions},
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", metavar="DIR", help="in place of UNSWAYED_DATA")
    parser.add_argument("--runs", metavar="DIR", default="runs/audit", help="kept trainings")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=SETTINGS, help="these settings only")
    parser.add_argument("--orders", nargs="+", choices=ORDERS, default=ORDERS)
    parser.add_argument(
        "--trainings", choices=("all", "kept"), default="all", help="kept: train nothing"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be trained")
    parser.add_argument("--save", metavar="DIR", help="write review.json, .md and .png there")
    return parser.parse_args()


def main() -> None:
    """Train what is missing, review, compare, and print."""
    args = _arguments()
    if args.data:
        os.environ["UNSWAYED_DATA"] = args.data
    place = os.environ.get("UNSWAYED_DATA")
    data, runs = Path(place).absolute() if place else None, Path(args.runs).absolute()
    every = {setting.name: setting for setting in settings(data)}
    chosen = available((every[name] for name in args.only or SETTINGS), data)
    if args.dry_run:
        print("\n".join(todo(chosen, args.seeds, runs, args.orders)))
        return
    found = [
        measured(setting, seed, runs, data, args.orders, args.trainings)
        for seed in range(args.seeds)  # one seed of everything first
        for setting in chosen
    ]
    if not found:
        raise SystemExit("nothing to measure")
    found.sort(key=lambda case: (SETTINGS.index(case["setting"]), case["seed"]))
    text = page(found)
    print(f"\n{text}")
    if args.save:
        save({**_about(), "cases": found}, Path(args.save), "review.json")
        (Path(args.save) / "review.md").write_text(text, encoding="utf-8")
        draw(found, Path(args.save) / "review.png")
        if PAGE.is_file():
            PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
