"""Train again on corrected labels, with everything else as it was, for `benchmarks/review.py`.

Below --runs, `SETTING/seed-0/review/ours-250` is the run on the labels after 250 decisions in our
order, and `ours-250.npz` beside it holds the labels. A finished run is never trained again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from audit_measures import Labels
from audit_settings import Setting, trained

from unswayed import Recipe, Run
from unswayed.files import atomic
from unswayed.noise import realised
from unswayed.noise.labels import LabelFile, encode


def accuracies(run: Run) -> dict[str, Any]:
    """Return test accuracy of the last epoch, and of the one that a noisy hold-out chose."""
    found = run.summary
    return {
        "last": found.last.test_accuracy,
        "selected": found.selected.test_accuracy if found.selected else None,
        "pflop": found.flops / 1e15,
        "epochs": found.epochs,
    }


def place_of(folder: Path, order: str, decisions: int) -> Path:
    """Return the folder of a run on corrected labels."""
    return folder / f"{order}-{decisions}"


def retrained(
    base: Run, setting: Setting, seed: int, data: Path | None, labels: Labels, path: Path
) -> Run:
    """Return the run with the options of another one, on other labels; train it if it is missing.

    Data, seed and computation are those of the base. Its predictions are left out: nobody asks for
    them, and they cost a tenth of the time.
    """
    file = path.with_name(f"{path.name}.npz")
    if not (path / "summary.json").is_file():
        _write(base, labels, seed, file)
    words = [word for word in setting.options(seed, data) if not word.startswith("noise.")]
    words += ["noise.name=file", f"noise.path={json.dumps(str(file))}", "train.predictions=none"]
    run = trained(path, Recipe.load(setting.recipe, *words))
    check(run, base, labels)
    return run


def check(run: Run, base: Run, labels: Labels) -> None:
    """Refuse a run that is kept, but was trained on other labels or with other computation."""
    if not np.array_equal(run.samples().given, labels):
        raise SystemExit(f"{run.path} was trained on other labels; remove it")
    if run.summary.flops != base.summary.flops:
        raise SystemExit(f"{run.path} cost another computation than {base.path}; remove it")


def _write(base: Run, labels: Labels, seed: int, file: Path) -> None:
    samples, classes = base.samples(), tuple(base.provenance.data.classes)
    assert samples.true is not None
    found = LabelFile(
        ids=tuple(samples.ids.tolist()),
        before=samples.true,
        given=labels,
        classes=classes,
        convention="labels after a simulated review",
        seed=seed,
        expected=realised(samples.true, labels, len(classes)).matrix,
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic(file) as temporary:
        temporary.write_bytes(encode(found, ".npz"))
