"""SIGKILL at any moment, also while saving, loses nothing: real processes, real signals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import unswayed
from conftest import TINY
from unswayed import files

WORDS = (*TINY, "train.checkpoint_minutes=0", "framework.name=byol", "train.ema=0.9")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return unswayed.train("digits", *WORDS, run=tmp_path_factory.mktemp("whole") / "run")


def results(path):
    names = ["model.safetensors", "selected.safetensors"]
    names += sorted(p.relative_to(path).as_posix() for p in (path / "records").iterdir())
    return {
        f"{name}:{key}": tensor.reshape(-1).view(torch.uint8)
        for name in names
        for key, tensor in files.read_tensors(path / name)[0].items()
    }


@pytest.mark.parametrize(
    ("kind", "numbers", "at_least"),
    [
        ("fsync", (1, 2, 4, 6, 7, 9, 12, 17, 20), 7),
        ("replace", (2, 3, 4, 5, 6, 8, 11, 14), 6),
        ("after", (0, 5, 11, 23, 31, 47, 60), 4),
    ],
)
def test_killed_again_and_again_the_result_is_the_same_to_the_bit(
    undisturbed, tmp_path, kind, numbers, at_least
):
    path = tmp_path / "run"
    assert killed(path, kind, numbers, WORDS) >= at_least
    check_same(undisturbed.path, path)
    assert not list(path.rglob("*.tmp"))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["elr", "coteaching", "dividemix", "sln-mo-lc"])
def test_what_a_method_remembers_survives_too(tmp_path, method):
    small = [word for word in TINY if not word.startswith("framework.")]
    words = (*small, f"method={method}", "train.epochs=3", "train.checkpoint_minutes=0")
    words += ("learner.warmup=0.4", "learner.history=2") if method == "dividemix" else ()
    words += ("learner.correction.start=0.4",) if method == "sln-mo-lc" else ()
    whole = unswayed.train("digits", *words, run=tmp_path / "whole")
    assert killed(tmp_path / "run", "fsync", (5, 9, 14, 19), words) >= 3
    check_same(whole.path, tmp_path / "run")


def killed(path, kind, numbers, words):
    """Train with children that are killed, and return how many were."""
    script = Path(__file__).parent / "mortal.py"
    command = [sys.executable, script, path, kind, *map(str, numbers), "--", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def check_same(whole, path):
    expected, found = results(whole), results(path)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[key], found[key]) for key in expected)
