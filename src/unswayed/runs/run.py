"""A run is a folder. Later stages read nothing else.

recipe.toml              every option, resolved
provenance.json          version, commit, seed, data fingerprint, realised noise, hardware
skipped.json             files of the data set that could not be read, and why, if there are any
samples.npz              ids, given labels, true labels where known, held-out rows, paths of files
metrics.jsonl            one row per epoch
records/                 per-sample loss, margin, probabilities and prediction, a file per epoch
checkpoints/             the last two states, and the weights that did best on the noisy hold-out
model.safetensors, selected.safetensors, config.json, predictions.safetensors, README.md,
summary.json             once finished
audit.*, report.html     what an audit found
review.jsonl             decisions of people
"""

from __future__ import annotations

import errno
import glob
import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor
from torch.overrides import TorchFunctionMode

from unswayed import files
from unswayed.data import Dataset, Splits
from unswayed.data.decode import opened
from unswayed.data.texts import Texts, texts_of
from unswayed.errors import BusyError, DamagedFileError, UsageError
from unswayed.learners import Classifier, Ensemble, Network
from unswayed.models import MODELS, Backbone
from unswayed.parsing import first_complaint, read_arrays, read_json
from unswayed.processes import count
from unswayed.recipe import Recipe
from unswayed.runs.predictions import FILE as PREDICTIONS
from unswayed.runs.predictions import Predictions
from unswayed.runs.provenance import LAYOUT, Provenance, Resumed, commit, now
from unswayed.runs.summary import Summary
from unswayed.types import Count, Metrics, Records, Side

Which = Literal["last", "selected"]
M = TypeVar("M", bound=BaseModel)


LONGEST_TEXT = 2**14
"""Bytes of an id or a path. A longer one would make room for all others to be as long."""


class Samples(NamedTuple):
    """What is known of the N training samples, in the data set's order."""

    ids: NDArray[np.str_]
    given: NDArray[np.int64]
    true: NDArray[np.int64] | None
    holdout: NDArray[np.int64]  # rows that were not trained on
    paths: NDArray[np.str_] | None = None  # relative to `provenance.data.root`


class Config(BaseModel):
    """What the weights of a run are for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unswayed: str
    model: dict[str, Any]
    classes: list[str]
    channels: Count
    image_size: tuple[Side, Side]  # (H, W)
    resize: Literal["crop", "squash"]
    mean: list[float]
    std: list[float]
    members: int = Field(1, ge=1, le=16)  # networks whose logits are averaged


class Run:
    """A run folder, and what can be read from it.

    >>> import unswayed
    >>> unswayed.train("digits", "train.epochs=1", "data.size=8", run="runs/short")
    Run('runs/short', finished)
    >>> run = unswayed.Run("runs/short")
    >>> run.method, run.summary.epochs, run.recipe.settings.seed
    ('ce + ctrr (simsiam)', 1, 0)
    >>> test = run.data().test
    >>> run.classifier().predict_proba(test.images).shape == (len(test), 10)
    True
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / "recipe.toml").is_file():
            there = "is not a run folder: it holds no recipe.toml"
            what = there if self.path.is_dir() else "is not there"
            raise UsageError(
                f"{self.path} {what}; unswayed clean and unswayed train make run folders, in runs/ "
                "unless --run says where"
            )

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {'finished' if self.finished else 'unfinished'})"

    @classmethod
    def create(
        cls,
        path: Path,
        recipe: Recipe,
        provenance: Provenance,
        data: Dataset,
        holdout: NDArray[np.int64],
    ) -> Run:
        """Make the folder under another name, then rename it: a run folder is never incomplete."""
        new = path.with_name(f".{path.name}.{os.getpid()}.new")
        try:
            files.make_folder(path.parent)
            remove_leftovers(path)
            for folder in (new, new / "records", new / "checkpoints"):
                folder.mkdir()
            columns = {"given": data.given, "holdout": holdout, **_columns("ids", data.ids)}
            if data.true is not None:
                columns["true"] = data.true
            if data.files is not None:
                columns |= _columns("paths", data.files.paths)
            with files.atomic(new / "samples.npz") as temporary, temporary.open("wb") as file:
                np.savez(file, allow_pickle=False, **columns)
            files.write_sections(new / "provenance.json", provenance.model_dump())
            if data.skipped:
                files.write_json(new / "skipped.json", dict(data.skipped))
            files.write_text(new / "recipe.toml", recipe.to_toml())
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
        """Whether the training reached its last epoch."""
        return (self.path / "summary.json").is_file()

    @property
    def recipe(self) -> Recipe:
        """The recipe of the run, with every option filled in."""
        name = self.provenance.name  # and a layout that is not ours is refused
        file = self.path / "recipe.toml"
        try:
            return replace(_load(file, file.stat().st_mtime_ns), name=name)
        except UsageError as error:
            raise DamagedFileError(f"{file} is damaged: {error}") from error

    @property
    def method(self) -> str:
        """The method as the user wrote it, or its parts, such as `ce + ctrr (simsiam)`."""
        return self.provenance.method

    @property
    def provenance(self) -> Provenance:
        """What the numbers depend on: code, data, noise, seed and hardware."""
        found = read_json(self.path / "provenance.json")
        if found.get("layout") != LAYOUT:
            raise UsageError(
                f"{self.path} was written by an older or newer version of unswayed (layout "
                f"{found.get('layout', 1)}, this one reads {LAYOUT}); train it again"
            )
        return self._checked(Provenance, found, "provenance.json")

    @property
    def summary(self) -> Summary:
        """The numbers of a finished run."""
        if not self.finished:
            raise UsageError(
                f"{self.path} is not finished; go on with: unswayed resume {self.path}"
            )
        self.provenance  # noqa: B018  a layout that is not ours is refused
        return self._checked(Summary, read_json(self.path / "summary.json"), "summary.json")

    @property
    def config(self) -> Config:
        """What the weights are for: classes, image size, normalisation, architecture."""
        self.summary  # noqa: B018  an unfinished run says so
        return self._checked(Config, read_json(self.path / "config.json"), "config.json")

    def _checked(self, kind: type[M], found: Mapping[str, Any], name: str) -> M:
        try:
            return kind(**found)
        except ValidationError as error:
            said = first_complaint(error)
            raise DamagedFileError(f"{self.path / name} is damaged: {said}") from error

    @property
    def metrics(self) -> list[Metrics]:
        """The numbers of every epoch, in order."""
        rows = files.read_json_lines(self.path / "metrics.jsonl")
        return [self._checked(Metrics, row, "metrics.jsonl") for row in rows]

    def samples(self) -> Samples:
        """Return ids and labels of the training samples.

        >>> import unswayed
        >>> run = unswayed.train("digits", "train.epochs=1", "data.size=8", run="runs/short")
        >>> wrong = run.samples().given != run.samples().true
        >>> f"{wrong.mean():.1%} of the labels are wrong"
        '40.0% of the labels are wrong'
        """
        file, classes = self.path / "samples.npz", self.provenance.data.classes
        try:
            columns = read_arrays(file)
            ids, paths = _texts(columns, "ids"), None
            if "paths" in columns:
                paths = _texts(columns, "paths")
            given, true, holdout = columns["given"], columns.get("true"), columns["holdout"]
            found = Samples(ids, given, true, holdout, paths)
            _check_samples(found, len(classes))
        except Exception as error:  # zip, zlib and NumPy each have their own for a damaged file
            raise DamagedFileError(f"{file} is damaged: {error}") from error
        return found

    def records(self) -> Records:
        """Return the per-sample records of all epochs, each stacked to (epochs, N).

        >>> import unswayed
        >>> run = unswayed.train("digits", "train.epochs=1", "data.size=8", run="runs/short")
        >>> records = run.records()
        >>> records.given_probability.shape == (1, run.provenance.data.samples)
        True
        >>> bool(records.loss[0, run.samples().holdout].isnan().all())  # never trained on
        True
        """
        paths = _in_order((self.path / "records").glob("epoch-*.safetensors"))
        samples = self.provenance.data.samples
        epochs = []
        for path in paths:
            tensors, _ = files.read_tensors(path)
            if {*tensors} != {*Records._fields} or any(
                each.shape != (samples,) for each in tensors.values()
            ):
                raise DamagedFileError(f"{path} is damaged: it is no record of {samples} samples")
            epochs.append(Records(**tensors))
        if not epochs:
            raise UsageError(f"{self.path} has no records: none yet, or they were not kept")
        return Records(*(torch.stack(parts) for parts in zip(*epochs, strict=True)))

    def has_records(self) -> bool:
        """Return whether the folder holds per-sample records."""
        return any((self.path / "records").glob("epoch-*.safetensors"))

    def predictions(self) -> Predictions:
        """Return logits and features of every training sample, held-out ones included.

        They are those of the last epoch's network, on images without augmentation. The file is
        mapped into memory: what is not used takes none.

        >>> import unswayed
        >>> run = unswayed.train("digits", "train.epochs=1", "data.size=8", run="runs/short")
        >>> run.predictions().probabilities.shape == (run.provenance.data.samples, 10)
        True
        """
        self.summary  # noqa: B018  an unfinished run says so
        if not (self.path / PREDICTIONS).is_file():
            raise UsageError(
                f"{self.path} kept no predictions: it was trained with train.predictions=none, or "
                "by a grid without --keep"
            )
        known = self.provenance.data
        return Predictions.read(self.path, known.samples, len(known.classes))

    def data(self) -> Splits:
        """Return the training data, with the labels of this run, and the test data."""
        splits = self.recipe.build("data")
        samples, train = self.samples(), splits.train
        if len(train) == len(samples.given):
            train = replace(train, given=samples.given, true=samples.true)
        found = Splits(train, splits.test)
        self.check_data(found)
        return found

    def check_data(self, splits: Splits) -> None:
        """Refuse data that differ from those the run was started with."""
        known = self.provenance.data
        for which, wanted, data in (
            ("training", known.fingerprint, splits.train),
            ("test", known.test_fingerprint, splits.test),
        ):
            if wanted != (None if data is None else data.fingerprint()):
                raise UsageError(
                    f"the {which} data are not those {self.path} was started with; train on these "
                    "in another folder, with --run"
                )

    def image(self, sample: str, side: int | None = None) -> Image.Image:
        """Return the image of a training sample by its id.

        Args:
            sample: the id.
            side: pixels that are enough; a JPEG file is then decoded faster, not much larger. A
                file is read in full size if this is left out.
        """
        samples, root = self._samples, self._root
        row = self._rows.get(sample)
        if row is None:
            raise UsageError(f"{self.path} has no training sample {sample!r}")
        if samples.paths is not None and root is not None:
            return _open(Path(root), str(samples.paths[row]), side)
        pixels = self._train.images[torch.tensor([row])][0].permute(1, 2, 0).numpy()
        return Image.fromarray(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels)

    @cached_property
    def _samples(self) -> Samples:
        return self.samples()

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {str(name): row for row, name in enumerate(self._samples.ids)}

    @cached_property
    def _root(self) -> str | None:
        return self.provenance.data.root

    @cached_property
    def _train(self) -> Dataset:
        return self.data().train

    def classifier(self, which: Which = "last") -> Network:
        """Return the trained network, of the last or of the selected epoch, in evaluation mode."""
        name = "model.safetensors" if which == "last" else "selected.safetensors"
        if not (self.path / name).is_file():
            self.summary  # noqa: B018  an unfinished run says so
            raise UsageError(f"{self.path} has no {which} weights: it trained without a hold-out")
        config = self.config
        weights, _ = files.read_tensors(self.path / name)
        try:
            _check_weights(config, weights)
            net = _network(config)
            net.load_state_dict(weights)
        except (KeyError, RuntimeError, ValueError) as error:
            where = f"{self.path / name} or config.json"
            raise DamagedFileError(f"{where} is damaged: they do not fit: {error}") from error
        return net.eval()

    def kept_weights(self) -> list[Which]:
        """Return which weights the folder holds: "last", and "selected" after a hold-out."""
        there = (self.path / "selected.safetensors").is_file()
        return ["last", "selected"] if there else ["last"]

    def note_resumed(self) -> None:
        """Write into the provenance that the run was resumed, and with which commit."""
        known = self.provenance
        again = Resumed(commit=commit(), started=now(), processes=count())
        known = known.model_copy(update={"resumed": [*known.resumed, again]})
        files.write_sections(self.path / "provenance.json", known.model_dump())

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Refuse a second process. The lock is free again once its process has ended."""
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
        """Write the per-sample records of an epoch."""
        path = self.path / "records" / f"epoch-{epoch:04d}.safetensors"
        files.write_tensors(path, records._asdict(), {"epoch": epoch})

    def write_selected(self, epoch: int, net: Network) -> None:
        """Write the weights of the epoch that is best on the noisy hold-out so far."""
        path = self.path / "checkpoints" / f"selected-{epoch:04d}.safetensors"
        files.write_tensors(path, net.state_dict(), {"epoch": epoch})

    def write_checkpoint(self, tensors: Mapping[str, Tensor], plain: Mapping[str, Any]) -> None:
        """Write a state, then delete all older ones but the last."""
        folder = self.path / "checkpoints"
        name = f"state-{plain['epoch']:04d}-{plain['step']:06d}.safetensors"
        files.write_tensors(folder / name, tensors, plain)
        self._remove_old()

    def _remove_old(self) -> None:
        # The last state but one is kept in case the last is damaged; so are the weights that
        # were selected when it was written.
        for old in [*self._kept("state")[:-2], *self._kept("selected")[:-2]]:
            old.unlink()

    def _kept(self, what: str) -> list[Path]:
        return _in_order((self.path / "checkpoints").glob(f"{what}-*.safetensors"))

    def has_state(self) -> bool:
        """Return whether there is a state to resume from."""
        return bool(self._kept("state"))

    def newest_state(self) -> tuple[dict[str, Tensor], dict[str, Any], list[str]]:
        """Return the newest good state, and the names of damaged files.

        The state is empty if there is none. Damaged files are renamed, so that they are not read
        again.
        """
        damaged: list[str] = []
        for path in reversed(self._kept("state")):
            try:
                return *files.read_tensors(path), damaged
            except DamagedFileError:
                path.rename(path.with_suffix(".damaged"))
                damaged.append(path.name)
        return {}, {}, damaged

    def append_metrics(self, row: Metrics) -> None:
        """Append the metrics of an epoch."""
        files.append_json_line(self.path / "metrics.jsonl", row.model_dump(exclude_none=True))

    def rewind(self, epoch: int, metrics: Sequence[Metrics], *, keep: bool = False) -> None:
        """Remove what is newer than a state: metrics, records and weights of later epochs.

        Args:
            epoch: the first epoch that the state does not have.
            metrics: the rows that the state has.
            keep: rename weights and records in place of removing them. They are good, and making
                them again may take long.
        """
        rows = [json.dumps(row.model_dump(exclude_none=True)) for row in metrics]
        files.write_text(self.path / "metrics.jsonl", "".join(f"{row}\n" for row in rows))
        for pattern in ("records/epoch-*.safetensors", "checkpoints/selected-*.safetensors"):
            for path in _in_order(self.path.glob(pattern)):
                if int(path.stem.rpartition("-")[2]) < epoch:
                    continue
                if keep:
                    path.rename(path.with_suffix(".older"))
                else:
                    path.unlink()
        for leftover in self.path.rglob(".*.tmp"):
            leftover.unlink()
        self._remove_old()  # a kill may have come before it


def _columns(name: str, texts: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return two arrays that hold texts: all their bytes, and where each of them ends."""
    letters, ends = texts_of(texts).arrays()
    return {name: letters, f"{name}_end": ends}


def _texts(columns: Mapping[str, NDArray[Any]], name: str) -> NDArray[np.str_]:
    """Return texts; earlier development versions wrote them as they are."""
    found = columns[name]
    if f"{name}_end" in columns:
        ends = columns[f"{name}_end"]
        # All texts will take as much room as the longest.
        if len(ends) and np.diff(ends, prepend=0).max() > LONGEST_TEXT:
            raise ValueError(f"{name!r} holds a text of more than {LONGEST_TEXT} bytes")
        found = np.array(list(Texts.from_arrays(found, ends)), dtype=np.str_)
    return found


class _Untouched(TorchFunctionMode):
    """Leave tensors as they are: drawing weights that are not there takes seconds of imports."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function unless it changes a tensor in place."""
        name = getattr(func, "__name__", "")
        if name.endswith("_") and not name.endswith("__"):
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))


def _backbone(config: Config) -> Backbone:
    options = {k: v for k, v in config.model.items() if k not in ("name", "weights")}
    facts = {"in_channels": config.channels, "image_size": config.image_size}
    return MODELS.build(str(config.model["name"]), facts, **options)


def _network(config: Config) -> Network:
    """Return a network without its weights."""
    classifiers = [
        Classifier(_backbone(config), len(config.classes), config.mean, config.std)
        for _ in range(config.members)
    ]
    return classifiers[0] if len(classifiers) == 1 else Ensemble(classifiers)


def _check_weights(config: Config, weights: Mapping[str, Tensor]) -> None:
    """Refuse weights that are not those of a network, before it takes memory."""
    with torch.device("meta"), _Untouched():
        backbone = _backbone(config)
    wanted = {f"backbone.{name}": each.shape for name, each in backbone.state_dict().items()}
    wanted["head.weight"] = torch.Size((len(config.classes), backbone.feature_dim))
    for number in range(config.members):
        prefix = f"members.{number}." if config.members > 1 else ""
        for name, shape in wanted.items():
            if prefix + name not in weights or weights[prefix + name].shape != shape:
                raise ValueError(f"{prefix + name} has another shape, or is not there")


def _check_samples(samples: Samples, classes: int) -> None:
    """Refuse columns that are no ids, labels, rows and paths of equally many samples."""
    count = len(samples.ids)
    numbers = {"given": classes, "true": classes, "holdout": count}
    for name, column in samples._asdict().items():
        if column is None:
            continue
        kind, length = ("i", None) if name == "holdout" else ("i", count)
        if name in ("ids", "paths"):
            kind = "U"
        if column.dtype.kind != kind or column.shape != (length or len(column),):
            raise ValueError(f"{name!r} is {column.dtype} of shape {column.shape}")
        top = numbers.get(name)
        if top is not None and len(column) and not 0 <= column.min() <= column.max() < top:
            raise ValueError(f"{name!r} holds numbers outside the range 0..{top - 1}")


def _open(root: Path, relative: str, side: int | None = None) -> Image.Image:
    """Read an image file, which must lie below a folder; a JPEG no larger than `side` needs."""
    path = root / relative
    if Path(os.path.normpath(path)).is_relative_to(root):
        try:
            with opened(path) as image:
                if side is not None:
                    image.draft(None, (side, side))  # a JPEG is shrunk while it is decoded
                image.load()
                return image
        except Exception as error:  # Pillow raises many kinds for a damaged file
            raise UsageError(f"the image {path} cannot be read: {error}") from error
    raise UsageError(f"the image {relative!r} does not lie below {root}")


def _in_order(paths: Iterable[Path]) -> list[Path]:
    """Sort `state-12-000003.safetensors` and the like by their numbers; others are not ours."""
    parts = {path: path.stem.split("-")[1:] for path in paths}
    ours = [path for path, numbers in parts.items() if all(map(str.isdecimal, numbers))]
    return sorted(ours, key=lambda path: [int(number) for number in parts[path]])


def remove_leftovers(path: Path) -> None:
    """Remove `.NAME.PID.new`, which a process that was killed was making to rename it to NAME."""
    for new in path.parent.glob(f".{glob.escape(path.name)}.*.new"):
        pid = new.name.split(".")[-2]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists() and Path("/proc/self").exists():
            if new.is_dir():
                shutil.rmtree(new, ignore_errors=True)
            else:
                new.unlink(missing_ok=True)


def find_runs(path: str | Path) -> list[Run]:
    """Return the run at a path, or the runs in the folders below it."""
    top = Path(path)
    if not top.is_dir() or (top / "recipe.toml").is_file():
        return [Run(top)]
    below = sorted(recipe.parent for recipe in top.rglob("recipe.toml"))
    if not below:
        raise UsageError(f"{top} is not a run folder, and there is none in it")
    return [Run(folder) for folder in below]


@cache
def _load(file: Path, _changed: int) -> Recipe:
    return Recipe.load(file)  # a grid asks for hundreds of them, again and again


def runs_by_key(top: Path, pattern: str = "**", ignoring: Collection[str] = ()) -> dict[str, Run]:
    """Return the finished runs below a folder by their recipe's key, one run for each key.

    Runs that this version cannot read are left out.
    """
    found: dict[str, Run] = {}
    for run in finished_runs(top, pattern):
        with suppress(UsageError, DamagedFileError):
            found.setdefault(run.recipe.key(ignoring), run)
    return found


def finished_runs(top: Path, pattern: str = "**") -> Iterator[Run]:
    """Yield the finished runs below a folder; half-made copies are left out."""
    for file in sorted(top.glob(f"{pattern}/recipe.toml")):
        run = Run(file.parent)
        if run.finished and not run.path.name.startswith("."):
            yield run
