"""Where the numbers of a run come from."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict

import unswayed
from unswayed.noise import Noise, realised
from unswayed.recipe import Recipe
from unswayed.training.trainer import Trainer

LAYOUT = 2
"""Of run folders. Version 0.1 before its runs were typed wrote layout 1, which is not read."""


class Facts(BaseModel):
    """Plain values that are read back as they were written."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DataFacts(Facts):
    """What was trained and tested on."""

    fingerprint: str
    test_fingerprint: str | None
    samples: int
    skipped: int  # files that could not be read
    trained_on: int
    held_out: int
    test: int
    classes: list[str]
    root: str | None = None  # where images lie that are files


class NoiseFacts(Facts):
    """What was done to the labels."""

    convention: str
    expected_matrix: list[list[float]]
    realised_rate: float | None = None  # where true labels are known
    realised_matrix: list[list[float]] | None = None


class Hardware(Facts):
    """What computed."""

    device: str
    name: str
    cores: int | None
    threads: int
    platform: str


class Software(Facts):
    """Versions."""

    python: str
    torch: str
    numpy: str


class Resumed(Facts):
    """A run went on."""

    commit: str | None
    started: str


class Resolved(Facts):
    """Options of `train` that were decided on this machine."""

    precision: str | None = None
    epochs: int | None = None


class Provenance(Facts):
    """What is needed to trace a number back to its origin."""

    layout: int = LAYOUT
    name: str
    method: str
    resolved: Resolved
    unswayed: str
    commit: str | None
    started: str
    seed: int
    data: DataFacts
    noise: NoiseFacts
    hardware: Hardware
    software: Software
    resumed: list[Resumed] = []

    @property
    def commits(self) -> list[str]:
        """The code it was started with, and went on with where that was another; "" is unknown."""
        return list(
            dict.fromkeys(c or "" for c in (self.commit, *(r.commit for r in self.resumed)))
        )


def gather(
    trainer: Trainer, noise: Noise, recipe: Recipe, resolved: Mapping[str, Any]
) -> Provenance:
    """Return the provenance of a run that is about to start."""
    return Provenance(
        name=recipe.name,
        method=recipe.label,
        resolved=Resolved(**resolved),
        unswayed=unswayed.__version__,
        commit=commit(),
        started=now(),
        seed=trainer.settings.seed,
        data=_data(trainer),
        noise=_noise(trainer, noise),
        hardware=Hardware(
            device=str(trainer.device),
            name=_processor(trainer.device),
            cores=os.cpu_count(),
            threads=torch.get_num_threads(),
            platform=platform.platform(),
        ),
        software=Software(
            python=platform.python_version(), torch=torch.__version__, numpy=np.__version__
        ),
    )


def now() -> str:
    """Return the time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _data(trainer: Trainer) -> DataFacts:
    train, test = trainer.splits
    return DataFacts(
        fingerprint=train.fingerprint(),
        test_fingerprint=None if test is None else test.fingerprint(),
        samples=len(train),
        skipped=len(train.skipped),
        trained_on=len(trainer.rows),
        held_out=len(trainer.holdout),
        test=len(test) if test is not None else 0,
        classes=list(train.classes),
        root=train.files and train.files.root,
    )


def _noise(trainer: Trainer, noise: Noise) -> NoiseFacts:
    train = trainer.train
    rate = matrix = None
    if train.true is not None:
        found = realised(train.true, train.given, train.num_classes)
        rate, matrix = found.rate, found.matrix.tolist()
    return NoiseFacts(
        convention=noise.convention,
        expected_matrix=noise.matrix().tolist(),
        realised_rate=rate,
        realised_matrix=matrix,
    )


@cache
def commit() -> str | None:
    """Return the commit of a source checkout, with a mark if the package had changes in it.

    Other files, such as saved results, do not count. None where there is no checkout of ours: an
    environment may lie in the repository of somebody else. A process asks once: what it has
    imported does not change with the files.
    """
    try:
        if not _git("ls-files", "__init__.py"):
            return None
        return _git("rev-parse", "HEAD") + ("-dirty" if _git("status", "--porcelain", ".") else "")
    except (OSError, subprocess.TimeoutExpired):
        return None


def _git(*words: str) -> str:
    """Return what git says of the package's folder; nothing where it cannot."""
    said = subprocess.run(
        ["git", *words],
        cwd=Path(unswayed.__file__).parent,
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    return said.stdout.strip()


def _processor(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.processor()
