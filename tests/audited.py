"""A folder of digits with some wrong labels, trained on and audited, for tests of what follows."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from unswayed import Recipe, Run, audit, train
from unswayed.audits.storage import write_audit

NAMES = ("zero", "one", "two")
WORDS = (
    "data.size=16",
    "data.mode=gray",
    "model.width=8",
    "model.mirror=false",
    "views.weak.flip=0.0",
    "views.weak.padding=2",
    "train.epochs=6",
    "train.batch_size=32",
    "train.threads=1",
)


def write_digits(folder, per_class=60, wrong=8, names=NAMES):
    """Write digits as PNG files into class folders, some of each into the next class."""
    raw = load_digits()
    for digit, name in enumerate(names):
        pictures = raw.images[raw.target == digit][:per_class]
        for number, pixels in enumerate(pictures):
            label = names[(digit + 1) % len(names)] if number < wrong else name
            file = folder / label / f"{digit}-{number}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray((pixels * 15).astype(np.uint8)).resize((64, 64)).save(file)
    return folder


def audited_run(folder, run, *words):
    """Train on a folder, audit, and return the run."""
    recipe = Recipe.load("cpu/auto", "data.name=folder", f"data.path={folder}", *WORDS, *words)
    made = train(recipe, run=run)
    write_audit(audit(made), made)
    return made


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory):
    top = tmp_path_factory.mktemp("audited")
    return audited_run(write_digits(top / "digits"), top / "run")


@pytest.fixture
def run(trained_run, tmp_path):
    """A copy of an audited run that a test may write to; its images are shared."""
    return Run(shutil.copytree(trained_run.path, tmp_path / "run"))
