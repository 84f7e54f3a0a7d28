"""A run is a folder, and the only thing that later stages read.

recipe.toml         every option, resolved
provenance.json     version, commit, seed, data fingerprint, realised noise, hardware
skipped.json        files of the data set that could not be read, and why, if there are any
labels.npz          ids, given labels, true labels where known, held-out rows
metrics.jsonl       one row per epoch
records/            per-sample loss, margin, probability and prediction, one file per epoch
checkpoints/        the last two states, and the weights that did best on the noisy hold-out
model.safetensors, selected.safetensors, config.json, README.md, summary.json   once finished
"""

from __future__ import annotations

import errno
import glob
import json
import os
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from torch import Tensor

from unswayed.data import Dataset
from unswayed.errors import BusyError, DamagedFileError, UsageError
from unswayed.learners import Classifier, Ensemble, Network
from unswayed.models import MODELS
from unswayed.training import files
from unswayed.training.records import Records

Which = Literal["last", "selected"]


class Labels(NamedTuple):
    """What is known of the labels of the training set, in its order."""

    ids: NDArray[np.str_]
    given: NDArray[np.int64]
    true: NDArray[np.int64] | None
    holdout: NDArray[np.int64]  # rows that were not trained on


class Run:
    """A run folder; reading needs no other object."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / "recipe.toml").is_file():
            raise UsageError(f"{self.path} is not a run folder: it holds no recipe.toml")

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {'finished' if self.finished else 'unfinished'})"

    @classmethod
    def create(
        cls,
        path: Path,
        recipe: str,
        provenance: Mapping[str, Any],
        data: Dataset,
        holdout: NDArray[np.int64],
    ) -> Run:
        """Make the folder beside its place, then rename it: it is complete or not there."""
        new = path.with_name(f".{path.name}.{os.getpid()}.new")
        try:
            remove_leftovers(path)
            for folder in (new, new / "records", new / "checkpoints"):
                folder.mkdir(parents=True)
            columns = {"ids": np.array(data.ids), "given": data.given, "holdout": holdout}
            if data.true is not None:
                columns["true"] = data.true
            with files.atomic(new / "labels.npz") as temporary, temporary.open("wb") as file:
                np.savez(file, allow_pickle=False, **columns)
            files.write_json(new / "provenance.json", provenance)
            if data.skipped:
                files.write_json(new / "skipped.json", dict(data.skipped))
            files.write_text(new / "recipe.toml", recipe)
            new.replace(path)
            files.sync_folder(path.parent)
        except OSError as error:
            shutil.rmtree(new, ignore_errors=True)
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and (path / "recipe.toml").is_file():
                raise BusyError(f"another process has just made {path}; wait for it") from None
            raise UsageError(f"the run folder {path} cannot be written: {error}") from error
        return cls(path)

    @property
    def finished(self) -> bool:
        """Whether the training came to its end."""
        return (self.path / "summary.json").is_file()

    @property
    def recipe(self) -> dict[str, Any]:
        """The resolved recipe."""
        try:
            return tomllib.loads((self.path / "recipe.toml").read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DamagedFileError(f"{self.path / 'recipe.toml'} is damaged") from error

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the numbers come from."""
        return self._json("provenance.json")

    @property
    def summary(self) -> dict[str, Any]:
        """The numbers of a finished run."""
        if not self.finished:
            raise UsageError(
                f"{self.path} is not finished; go on with: unswayed resume {self.path}"
            )
        return self._json("summary.json")

    def _json(self, name: str) -> dict[str, Any]:
        try:
            value: dict[str, Any] = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError, FileNotFoundError) as error:
            raise DamagedFileError(f"{self.path / name} is damaged: {error}") from error
        return value

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """One row per epoch."""
        return files.read_json_lines(self.path / "metrics.jsonl")

    def labels(self) -> Labels:
        """Return ids and labels of the training set."""
        with np.load(self.path / "labels.npz", allow_pickle=False) as file:
            true = file["true"] if "true" in file.files else None
            return Labels(file["ids"], file["given"], true, file["holdout"])

    def records(self) -> Records:
        """Return the per-sample records of all epochs, each stacked to (epochs, N)."""
        paths = _in_order((self.path / "records").glob("epoch-*.safetensors"))
        epochs = [Records(**files.read_tensors(path)[0]) for path in paths]
        if not epochs:
            raise UsageError(f"{self.path} has no records yet")
        return Records(*(torch.stack(parts) for parts in zip(*epochs, strict=True)))

    def classifier(self, which: Which = "last") -> Network:
        """Return the trained network in evaluation mode: of the last epoch, or the selected one."""
        name = "model.safetensors" if which == "last" else "selected.safetensors"
        if not (self.path / name).is_file():
            self.summary  # noqa: B018  an unfinished run says so
            raise UsageError(f"{self.path} has no {which} weights: it trained without a hold-out")
        config = self.config
        options = {k: v for k, v in config["model"].items() if k not in ("name", "weights")}
        classifiers = [
            Classifier(
                MODELS.build(
                    config["model"]["name"], {"in_channels": config["channels"]}, **options
                ),
                len(config["classes"]),
                config["mean"],
                config["std"],
            )
            for _ in range(config.get("members", 1))
        ]
        net = classifiers[0] if len(classifiers) == 1 else Ensemble(classifiers)
        net.load_state_dict(files.read_tensors(self.path / name)[0])
        return net.eval()

    def kept_weights(self) -> list[Which]:
        """Return which weights the folder holds."""
        there = (self.path / "selected.safetensors").is_file()
        return ["last", "selected"] if there else ["last"]

    def note_resumed(self, commit: str | None) -> None:
        """Add to the provenance that the run goes on, and with which code."""
        known = self.provenance
        now = datetime.now(UTC).isoformat(timespec="seconds")
        known["resumed"] = [*known.get("resumed", []), {"commit": commit, "started": now}]
        files.write_json(self.path / "provenance.json", known)

    @property
    def config(self) -> dict[str, Any]:
        """What the weights are for: classes, image size, normalisation, architecture."""
        return self._json("config.json")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Refuse a second process; the lock dies with its process, even if it is killed."""
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise BusyError(f"another process is working on {self.path}; wait for it") from None
        try:
            yield
        finally:
            lock.release()

    def write_records(self, epoch: int, records: Records) -> None:
        """Keep the per-sample records of an epoch."""
        path = self.path / "records" / f"epoch-{epoch:04d}.safetensors"
        files.write_tensors(path, records._asdict(), {"epoch": epoch})

    def write_selected(self, epoch: int, net: Network) -> None:
        """Keep the weights of an epoch that did best on the noisy hold-out so far."""
        path = self.path / "checkpoints" / f"selected-{epoch:04d}.safetensors"
        files.write_tensors(path, net.state_dict(), {"epoch": epoch})

    def write_checkpoint(self, tensors: Mapping[str, Tensor], plain: Mapping[str, Any]) -> None:
        """Keep a state, then drop what it makes useless: all but the one before it."""
        folder = self.path / "checkpoints"
        name = f"state-{plain['epoch']:04d}-{plain['step']:06d}.safetensors"
        files.write_tensors(folder / name, tensors, plain)
        # The last state but one is kept in case this one is damaged; so are the weights that
        # were selected when it was written.
        for old in [*self._kept("state")[:-2], *self._kept("selected")[:-2]]:
            old.unlink()

    def _kept(self, what: str) -> list[Path]:
        return _in_order((self.path / "checkpoints").glob(f"{what}-*.safetensors"))

    def has_state(self) -> bool:
        """Return whether there is anything to go on from."""
        return bool(self._kept("state"))

    def newest_state(self) -> tuple[dict[str, Tensor], dict[str, Any], list[str]]:
        """Return the newest good state, empty if there is none, and the damaged ones passed over.

        Damaged files are renamed, so that nobody stumbles over them again.
        """
        damaged: list[str] = []
        for path in reversed(self._kept("state")):
            try:
                return *files.read_tensors(path), damaged
            except DamagedFileError:
                path.rename(path.with_suffix(".damaged"))
                damaged.append(path.name)
        return {}, {}, damaged

    def rewind(self, epoch: int, metrics: Sequence[Mapping[str, Any]]) -> None:
        """Go back to what a state knew: its metrics, and nothing of epochs to be trained again."""
        rows = [json.dumps(row) for row in metrics]
        files.write_text(self.path / "metrics.jsonl", "".join(f"{row}\n" for row in rows))
        for pattern in ("records/epoch-*.safetensors", "checkpoints/selected-*.safetensors"):
            for path in self.path.glob(pattern):
                if int(path.stem.rpartition("-")[2]) >= epoch:
                    path.unlink()
        for leftover in self.path.rglob(".*.tmp"):
            leftover.unlink()


def _in_order(paths: Iterable[Path]) -> list[Path]:
    """Sort `state-12-000003.safetensors` and the like by their numbers."""
    return sorted(paths, key=lambda path: [int(part) for part in path.stem.split("-")[1:]])


def remove_leftovers(path: Path) -> None:
    """Remove half-made folders of processes that were killed while making this run.

    They are called `.NAME.PID.new`.
    """
    for folder in path.parent.glob(f".{glob.escape(path.name)}.*.new"):
        pid = folder.name.split(".")[-2]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists() and Path("/proc/self").exists():
            shutil.rmtree(folder, ignore_errors=True)


def find_runs(path: str | Path) -> list[Run]:
    """Return the run at a path, or the runs in the folders below it."""
    top = Path(path)
    if not top.is_dir() or (top / "recipe.toml").is_file():
        return [Run(top)]
    below = sorted(recipe.parent for recipe in top.rglob("recipe.toml"))
    if not below:
        raise UsageError(f"{top} is not a run folder, and there is none in it")
    return [Run(folder) for folder in below]


def finished_runs(top: Path, pattern: str = "**") -> Iterator[Run]:
    """Yield the finished runs in folders below one; copies that were interrupted are left out."""
    for file in sorted(top.glob(f"{pattern}/recipe.toml")):
        run = Run(file.parent)
        if run.finished and not run.path.name.startswith("."):
            yield run
