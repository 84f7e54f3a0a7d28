"""Data with known wrong labels, and the trainings on them, for `benchmarks/audit.py`.

Below --runs there is a folder for each setting and seed. In it, `ours` is the run that is audited,
and `ce-3/fold-0` the first of three networks of a cross-validation with cross entropy. A finished
run is never trained again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from unswayed import Recipe, Run, Splits, train
from unswayed.build import make_trainer, resolve, settled
from unswayed.device import threads
from unswayed.files import atomic, write_json
from unswayed.noise import realised
from unswayed.noise.labels import LabelFile, encode
from unswayed.session import Event, Opened
from unswayed.training.cost import PROBED, course
from unswayed.training.measure import probabilities as probabilities_of
from unswayed.types import Epoch

THREAD = "train.threads=1"
CIFAR = ("model.width=16", "train.budget=0.02 PFLOP", "train.holdout=0.1", THREAD)
PHOTOS = (
    "model.width=16",
    "data.name=folder",
    "data.size=64",
    "views.weak.padding=4",
    "train.epochs=30",
    "train.budget=",
    "train.batch_size=128",
    "train.holdout=0.1",
    THREAD,
)
"""How clothing photos are trained from scratch. So few photos need more steps in an epoch than the
recipe makes, and photos of twice the side need twice the padding."""

NOISES = (("symmetric", 0.2), ("asymmetric", 0.4), ("instance", 0.2))  # on CIFAR-10
DIGITS = (0.05, 0.2, 0.4)
BATCHES = "cifar-10-batches-bin"

PLACES = ("noise.path", "data.path")
"""Options that may differ between a run and its setting: data may have moved."""


@dataclass(frozen=True)
class Setting:
    """Data with wrong labels, and how to train on them."""

    name: str
    title: str
    recipe: str
    overrides: tuple[str, ...]
    needs: str = ""  # a file or folder in UNSWAYED_DATA
    minutes: float = 0  # of one core for one training, about
    frozen: bool = False  # no training: features of a pretrained encoder
    human: bool = False  # labels come from the file `needs`

    def options(self, seed: int, data: Path | None) -> list[str]:
        """Return the overrides of the recipe for one seed."""
        found = [*self.overrides, f"train.seed={seed}"]
        if "data.name=folder" in found and data is not None:
            found.append(f"data.path={json.dumps(str(data / self.needs))}")
        return found


def settings(data: Path | None) -> list[Setting]:
    """Return all settings; each human label file in the data folder is one."""
    files = sorted(data.glob("cifar10n_*.npz")) if data else []
    names = [file.stem.removeprefix("cifar10n_") for file in files] or ["random1"]
    return [*map(_people, names), *map(_cifar, NOISES), *map(_digits, DIGITS), *_clothing()]


def _people(name: str) -> Setting:
    title, file = f"CIFAR-10, answers of people ({name})", f"cifar10n_{name}.npz"
    return Setting(name, title, "cpu/cifar10", CIFAR, file, minutes=1.8, human=True)


def _cifar(noise: tuple[str, float]) -> Setting:
    kind, rate = noise
    words = (*CIFAR, f"noise.name={kind}", f"noise.rate={rate}")
    title = f"CIFAR-10, {kind} {rate:.0%}".replace("%", " %")
    return Setting(f"{kind}-{100 * rate:.0f}", title, "cpu/cifar10", words, BATCHES, minutes=1.8)


def _digits(rate: float) -> Setting:
    title = f"digits, symmetric {100 * rate:.0f} %"
    words = (f"noise.rate={rate}", THREAD)
    return Setting(f"digits-{100 * rate:.0f}", title, "digits", words, minutes=0.7)


def _clothing() -> Iterator[Setting]:
    for frozen, how in ((True, "frozen features"), (False, "trained from scratch")):
        for rate in (0.05, 0.2):
            words = (*PHOTOS, "noise.name=symmetric", f"noise.rate={rate}")
            name = f"clothing-{'frozen' if frozen else 'scratch'}-{100 * rate:.0f}"
            title = f"clothing photos, {how}, symmetric {100 * rate:.0f} %"
            yield Setting(
                name, title, "cpu/cifar10", words, "clothing", 0 if frozen else 1.5, frozen
            )


def missing(setting: Setting, data: Path | None) -> str:
    """Return what a setting lacks, in one line; empty if it can be run."""
    wanted = [setting.needs] if setting.needs else []
    wanted += [BATCHES] if setting.human else []
    if wanted and data is None:
        return "UNSWAYED_DATA is not set"
    absent = [name for name in wanted if data is not None and not (data / name).exists()]
    return f"{data} holds no {absent[0]}" if absent else ""


def available(wanted: Iterable[Setting], data: Path | None) -> list[Setting]:
    """Return the settings whose data are there, and say which are not."""
    found = []
    for setting in wanted:
        lacks = missing(setting, data)
        if lacks:
            print(f"{setting.name}: skipped, {lacks}", flush=True)
        else:
            found.append(setting)
    return found


def ours(setting: Setting, seed: int, runs: Path, data: Path | None) -> Run:
    """Return the run that is audited; train it if it is missing."""
    words = setting.options(seed, data)
    if setting.human:
        assert data is not None
        words += [
            "noise.name=file",
            f"noise.path={json.dumps(str(_label_file(setting, runs, data)))}",
        ]
    return trained(
        runs / setting.name / f"seed-{seed}" / "ours", Recipe.load(setting.recipe, *words)
    )


def trained(path: Path, recipe: Recipe, data: Splits | None = None) -> Run:
    """Return the finished run in a folder; train it if it is missing, and note its CPU time."""
    if (path / "summary.json").is_file():
        run = Run(path)
        differing = set(recipe.difference(run.recipe)) - set(PLACES)
        if differing:
            raise SystemExit(
                f"{path} holds a run of other options ({', '.join(sorted(differing))}); remove it, "
                "or choose another --runs"
            )
        return run
    print(f"training {path}", flush=True)
    watch = Clock()
    run = train(recipe, run=path, data=data, watch=watch)
    if watch.whole:
        write_json(cost_file(path), watch.cost())
    return run


class Clock:
    """Measures the CPU time of a training, and of the last pass over all rows after it."""

    def __init__(self) -> None:
        self.began = self.last = time.process_time()
        self.whole = True

    def __call__(self, event: Event) -> None:
        """Take the time of an event."""
        if isinstance(event, Opened):
            self.whole = event.state == "new"  # of a resumed run, the first part is not known
        if isinstance(event, Epoch):
            self.last = time.process_time()

    def cost(self) -> dict[str, float]:
        """Return CPU seconds up to the last epoch, and from there to the finished run."""
        return {"training": self.last - self.began, "finish": time.process_time() - self.last}


def cost_file(path: Path) -> Path:
    """Return where the CPU time of a run is noted."""
    return path.with_name(f"{path.name}.cost.json")


def cost_of(run: Run) -> dict[str, Any]:
    """Return CPU seconds and PFLOP of a training; None for the seconds of a resumed one."""
    file = cost_file(run.path)
    seconds = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return {
        "cpu_seconds": seconds.get("training"),
        "finish_cpu_seconds": seconds.get("finish"),
        "pflop": run.summary.flops / 1e15,
    }


def cross_validated(
    run: Run, setting: Setting, method: str, folds: int, data: Path | None
) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """Return out-of-sample probabilities (N, K) of a cross-validation, and what it cost.

    The network and the augmentation are those of the run. All folds together cost as much as the
    run, rounded up to whole epochs. Nothing is held out but the fold itself.
    """
    folder = run.path.parent / f"{method}-{folds}"
    file = folder / "probabilities.npz"
    if not file.is_file():
        _train_folds(run, setting, method, folds, data, folder)
    with np.load(file, allow_pickle=False) as found:
        seconds = float(found["cpu_seconds"])
        return found["probabilities"], {
            "pflop": float(found["pflop"]),
            "cpu_seconds": None if np.isnan(seconds) else seconds,  # of a resumed fold, not known
            "epochs": int(found["epochs"]),
        }


def kept(run: Run, method: str, folds: int) -> bool:
    """Return whether a cross-validation was made before."""
    return (run.path.parent / f"{method}-{folds}" / "probabilities.npz").is_file()


def folds_of(setting: Setting, seed: int) -> list[tuple[str, int]]:
    """Return method and number of folds of each cross-validation.

    One of them has our own loss. It tells how much of a difference the loss makes.
    """
    if setting.frozen:
        return []
    return [("ce", 3), ("ce", 5)] + ([("gce", 3)] if setting.human and seed == 0 else [])


def todo(chosen: Sequence[Setting], seeds: int, runs: Path, rivals: str) -> Iterator[str]:
    """Yield a line for everything that is not trained yet, and the sum."""
    total = 0.0
    for setting in chosen:
        for seed in range(seeds):
            folder = runs / setting.name / f"seed-{seed}"
            ends = [] if setting.frozen else ["ours/summary.json"]
            if rivals == "all":
                ends += [f"{m}-{k}/probabilities.npz" for m, k in folds_of(setting, seed)]
            for end in ends:
                if not (folder / end).is_file():
                    total += setting.minutes
                    yield f"train {(folder / end).parent}: about {setting.minutes:g} min"
    yield f"in all about {total:,.0f} min of one core"


def _train_folds(
    run: Run, setting: Setting, method: str, folds: int, data: Path | None, folder: Path
) -> None:
    noisy, seed = run.data().train, run.recipe.settings.seed
    recipe = _fold_recipe(setting, method, seed, data)
    probabilities = np.zeros((len(noisy), noisy.num_classes), np.float32)
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    costs, epochs = [], 0
    for number, (rows, out) in enumerate(split.split(noisy.given, noisy.given)):
        part = Splits(noisy.select(rows), noisy.select(out))
        if not epochs:
            epochs = _affordable(recipe, part, run.summary.flops / folds)
            recipe = recipe.with_overrides(f"train.epochs={epochs}", "train.budget=")
        fold = trained(folder / f"fold-{number}", recipe, part)
        assert part.test is not None
        began = time.process_time()
        probabilities[out] = probabilities_of(fold.classifier(), part.test).numpy()
        cost, after = cost_of(fold), time.process_time() - began
        seconds = [cost["cpu_seconds"], cost["finish_cpu_seconds"]]
        costs.append((cost["pflop"], np.nan if None in seconds else sum(seconds) + after))
    pflop, cpu = np.sum(costs, axis=0)
    with atomic(folder / "probabilities.npz") as temporary, temporary.open("wb") as file:
        np.savez(file, probabilities=probabilities, pflop=pflop, cpu_seconds=cpu, epochs=epochs)


def _fold_recipe(setting: Setting, method: str, seed: int, data: Path | None) -> Recipe:
    """Return the recipe of a fold, which takes its data from Python; its epochs are not settled."""
    words = [w for w in setting.options(seed, data) if w.split(".")[0] not in ("noise", "data")]
    words += ["data.name=memory", "noise.name=none", f"method={method}", "train.holdout=0"]
    words += ["train.predictions=none", "train.evaluate_every=100"]
    return Recipe.load(setting.recipe, *words)


def _affordable(recipe: Recipe, part: Splits, flops: float) -> int:
    """Return the epochs that cost so much, rounded up, in favour of the rival."""
    plain = recipe.with_overrides("train.budget=")
    with threads(recipe.settings.threads):
        known = {**resolve(plain, part), "epochs": PROBED}
        total = course(make_trainer(settled(plain, known), part))
    return next(epochs for epochs in count(1) if total(epochs) >= flops)


def _label_file(setting: Setting, runs: Path, data: Path) -> Path:
    """Write the answers of people as a label file of this package, once."""
    path = runs / "labels" / f"{setting.name}.npz"
    if path.is_file():
        return path
    official = Recipe.load("cpu/cifar10").build("data").train
    with np.load(data / setting.needs, allow_pickle=False) as file:
        given = file["given"].astype(np.int64)
    if given.shape != official.given.shape:
        raise SystemExit(f"{data / setting.needs}: 'given' has shape {given.shape}, not (50000,)")
    labels = LabelFile(
        ids=official.ids,
        before=official.given,
        given=given,
        classes=official.classes,
        convention=f"answers of people, {setting.needs}",
        seed=0,
        expected=realised(official.given, given, official.num_classes).matrix,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(labels, ".npz"))
    return path
