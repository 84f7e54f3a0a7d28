"""Provenance: what the numbers of a run depend on."""

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
from unswayed.processes import count
from unswayed.recipe import Recipe
from unswayed.training.trainer import Trainer

LAYOUT = 2
"""The version of the run folder. Layout 1, of earlier development versions, is not read."""


class Facts(BaseModel):
    """A group of plain values that is written to JSON and read back unchanged."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DataFacts(Facts):
    """The data of a run."""

    fingerprint: str
    test_fingerprint: str | None
    samples: int
    skipped: int  # files that could not be read
    trained_on: int
    held_out: int
    test: int
    classes: list[str]
    root: str | None = None  # the folder of image files


class NoiseFacts(Facts):
    """The label noise: as specified, and as drawn."""

    convention: str
    expected_matrix: list[list[float]]
    realised_rate: float | None = None  # where true labels are known
    realised_matrix: list[list[float]] | None = None


class Hardware(Facts):
    """The machine."""

    device: str
    name: str
    cores: int | None
    threads: int
    platform: str
    processes: int = 1


class Software(Facts):
    """Versions of Python and libraries."""

    python: str
    torch: str
    numpy: str


class Resumed(Facts):
    """A time at which the run was resumed."""

    commit: str | None
    started: str
    processes: int = 1


class Resolved(Facts):
    """Options of `train` that were decided on this machine."""

    precision: str | None = None
    epochs: int | None = None


class Provenance(Facts):
    """Everything needed to trace a number back to its code, data and machine."""

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
        """All commits that the run was trained with, in order; "" is an unknown one."""
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
            processes=count(),
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
    """Return the commit of the package's source, marked `-dirty` if the package was changed.

    Changes of other files, such as saved results, do not count. Returns None if the package is not
    under version control itself, as in an environment inside another repository. Cached, because
    imported code does not change with its files.
    """
    try:
        if not _git("ls-files", "__init__.py"):
            return None
        return _git("rev-parse", "HEAD") + ("-dirty" if _git("status", "--porcelain", ".") else "")
    except (OSError, subprocess.TimeoutExpired):
        return None


def _git(*words: str) -> str:
    """Return the output of a git command in the package's folder; empty if it fails."""
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
