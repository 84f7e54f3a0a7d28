"""Every reader of files, each with what it must hold to when a stranger made the file.

A reader returns a result, or raises one of our own errors with a message of one line. It does not
raise anything else, hang, fill the memory, unpickle, start a program, open a connection or write
outside its folder.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import resource
import shutil
import signal
import struct
import sys
import tarfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from fuzz_inputs import (
    Choices,
    as_json,
    odd_npy,
    odd_npz,
    odd_png,
    odd_tensors,
    repaired_png,
    twisted,
)
from PIL import Image

import unswayed
from unswayed import Run, UsageError, files
from unswayed.audits.storage import read_audit, write_audit
from unswayed.bench.grid import Grid
from unswayed.bench.published import Published
from unswayed.bench.results import read_failures
from unswayed.data import animal10n, cifar, cifarn, clothing1m
from unswayed.data.corrected import read_labels
from unswayed.data.decode import decode
from unswayed.data.inspect import inspect
from unswayed.data.npz import npz
from unswayed.data.tables import read_table
from unswayed.errors import DamagedFileError
from unswayed.models import resnet
from unswayed.noise import labels as noise_labels
from unswayed.noise import matrix as noise_matrix
from unswayed.recipe import Recipe
from unswayed.review.journal import read_events
from unswayed.review.verdicts import Verdicts

CPU_SECONDS, WALL_SECONDS, MEGABYTES, LONGEST = 5.0, 60.0, 1024, 2000
"""What one file may take, and how many characters a message may have."""

RUN = (
    *("train.epochs=1", "data.size=8", "model.width=4", "framework.projector_widths=[16, 16]"),
    *("framework.predictor_hidden=8", "train.threads=1", "noise.rate=0.2"),
)


class Hang(BaseException):
    """A file took too long. No handler of the readers catches it."""


@dataclass(frozen=True)
class Target:
    """A reader: `attempt` makes a file of some bytes in a folder, and reads it."""

    name: str
    reads: str
    attempt: Callable[[bytes, Path], object]
    seeds: Callable[[], Sequence[bytes]] = field(default=lambda: [b"", bytes(16)])


TARGETS: dict[str, Target] = {}


def target(name: str, reads: str, seeds: Callable[[], Sequence[bytes]] | None = None) -> Any:
    """Keep a function as the attempt of a target."""

    def keep(attempt: Callable[[bytes, Path], object]) -> Callable[[bytes, Path], object]:
        more = {"seeds": seeds} if seeds else {}
        TARGETS[name] = Target(name, reads, attempt, **more)
        return attempt

    return keep


# --- what is forbidden ---------------------------------------------------------------------------

_watched: list[tuple[Path, list[str]]] = []
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CHANGES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink",
            "os.truncate", "os.chmod", "os.chown", "shutil.rmtree", "shutil.copyfile",
            "shutil.move")  # fmt: skip
_PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork",
             "socket.connect", "socket.bind", "pickle.find_class", "ctypes.dlopen")  # fmt: skip


def _audit(event: str, values: tuple[Any, ...]) -> None:
    if not _watched:
        return
    folder, seen = _watched[-1]
    if event in _PROGRAMS:
        seen.append(f"{event} {values[:1]!r}")
    elif event == "open" and isinstance(values[0], str | bytes) and values[2] & _WRITES:
        _note_place(event, values[0], folder, seen)
    elif event in _CHANGES:
        for place in values[:2]:
            if isinstance(place, str | bytes | Path):
                _note_place(event, place, folder, seen)


def _note_place(event: str, place: Any, folder: Path, seen: list[str]) -> None:
    path = os.path.realpath(os.fsdecode(place))
    if path != os.devnull and not Path(path).is_relative_to(folder):
        seen.append(f"{event} outside the folder: {path!r}")


@cache
def _listen() -> None:
    sys.addaudithook(_audit)


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Raise `Hang` in this thread when a file takes too long, by its work or by waiting."""

    def stop(number: int, _frame: object) -> None:
        raise Hang("too much work" if number == signal.SIGPROF else "waits for ever")

    before = [signal.signal(each, stop) for each in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for each, handler in zip((signal.SIGPROF, signal.SIGALRM), before, strict=True):
            signal.signal(each, handler)


class Outcome(NamedTuple):
    """What became of a file: it was read or refused, and what the reader did wrong, if anything."""

    read: bool
    problem: str = ""


def outcome(one: Target, data: bytes, folder: Path) -> Outcome:
    """Return what a reader does with the file of some bytes."""
    _listen()
    seen: list[str] = []
    where = folder.resolve()
    peak, started = _peak(), time.process_time()
    said: BaseException | None = None
    _watched.append((where, seen))
    try:
        with warnings.catch_warnings(), _limited():
            warnings.simplefilter("ignore")
            one.attempt(data, where)
    except (UsageError, DamagedFileError) as error:
        said = error
    except (Exception, Hang) as error:
        return Outcome(False, f"{type(error).__name__} {_place(error)}: {str(error)[:300]!r}")
    finally:
        _watched.pop()
    if seen:
        return Outcome(said is None, seen[0])
    if time.process_time() - started > CPU_SECONDS:
        return Outcome(said is None, f"took more than {CPU_SECONDS:g} CPU seconds")
    if _peak() - peak > MEGABYTES:
        return Outcome(said is None, f"took more than {MEGABYTES} MB")
    return Outcome(said is None, "" if said is None else _wrong_words(said))


def _wrong_words(said: BaseException) -> str:
    """Return what is wrong with a message: one readable line is right."""
    text = str(said)
    if any(
        letter < " " or "\x7f" <= letter < "\xa0" or letter in "\u2028\u2029" for letter in text
    ):
        return f"message of several lines or with control characters {_place(said)}: {text[:300]!r}"
    if len(text) > LONGEST:
        return f"message of {len(text)} characters {_place(said)}: {text[:300]!r}"
    if not text.isprintable() and max(text) >= "\ud800":
        try:
            text.encode()
        except UnicodeEncodeError:
            return f"message that cannot be printed {_place(said)}: {text[:300]!r}"
    return ""


def _place(error: BaseException) -> str:
    """Return the last line of ours that an error came from, and the last line of all."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [each for each in frames if "/unswayed/" in each.filename]
    shown = dict.fromkeys(
        f"{Path(each.filename).name}:{each.name}" for each in (*ours[-1:], *frames[-1:])
    )
    return "in " + ", ".join(shown)


def _peak() -> float:
    """Return the most memory in MB that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# --- a run folder --------------------------------------------------------------------------------


_places: list[Path] = []


def prepare(place: Path) -> None:
    """Make a finished and audited run in a folder if there is none, before anything is watched."""
    if not place.is_dir():
        run = unswayed.train("digits", *RUN, run=place)
        write_audit(unswayed.audit(run), run)
    _places[:] = [place]


def _template() -> Path:
    """Return a valid run, of which a target changes a file."""
    return _places[0]


@contextlib.contextmanager
def _run_with(name: str, content: bytes, folder: Path) -> Iterator[Run]:
    """Yield a run of which one file is replaced."""
    place = folder / "run"
    if not place.is_dir():
        shutil.copytree(_template(), place)
    before = (_template() / name).read_bytes() if (_template() / name).is_file() else None
    (place / name).write_bytes(content)
    try:
        yield Run(place)
    finally:
        (place / name).write_bytes(before) if before is not None else (place / name).unlink()


def _read_numbers(run: Run) -> None:
    repr((run.provenance, run.summary, run.config, run.metrics, run.recipe, run.method))


RUN_JSON = ("provenance.json", "summary.json", "config.json", "metrics.jsonl")


@target("run-json", "provenance, summary, config and metrics of a run")
def _run_json(data: bytes, folder: Path) -> None:
    choices = Choices(data)
    name = choices.pick(RUN_JSON)
    valid = (_template() / name).read_text(encoding="utf-8")
    text = as_json(twisted(json.loads(valid), choices)).encode("utf-8", "surrogatepass")
    text = choices.flip(text) if choices.number(4) == 3 else text
    if name.endswith("l") and choices.number(2):
        text = valid.encode() + text + b"\n" + valid.encode()
    with _run_with(name, text, folder) as run:
        _read_numbers(run)
        if name == "config.json":
            run.classifier()


@target("run-samples", "samples.npz of a run, and images by its paths")
def _run_samples(data: bytes, folder: Path) -> None:
    choices = Choices(data)
    with np.load(_template() / "samples.npz") as found:
        arrays = dict(found)
    if choices.number(2):
        names = [choices.text().replace("\0", "0") for _ in range(3)]
        arrays["paths"] = np.array([*names, *["x.png"] * (len(arrays["ids"]) - 3)])
    with _run_with("samples.npz", odd_npz(arrays, choices), folder) as run:
        samples = run.samples()
        read_audit(run)
        with contextlib.suppress(UsageError):
            run.image(str(samples.ids[choices.number(3)]))
        run.data()


RUN_TENSORS: dict[str, Callable[[Run], object]] = {
    "predictions.safetensors": lambda run: run.predictions().probabilities.sum().item(),
    "records/epoch-0000.safetensors": lambda run: run.records().loss.shape,
    "model.safetensors": lambda run: run.classifier(),
    "audit.safetensors": lambda run: _use_audit(run),
}


def _use_audit(run: Run) -> None:
    found = read_audit(run)
    list(found)
    str(found), found.summary(), found.to_review, found.noise.matrix
    for row in range(len(found)):
        if found.nearest is not None:
            [found.ids[each] for each in found.nearest[row]]
        if found.top is not None:
            [found.classes[each] for each in found.top[row]]
    [[found.ids[row] for row in group] for group in found.groups]


@target("run-tensors", "predictions, records, weights and audit of a run (safetensors)")
def _run_tensors(data: bytes, folder: Path) -> None:
    choices = Choices(data)
    name = choices.pick(list(RUN_TENSORS))
    tensors, note = files.read_tensors(_template() / name)
    new = folder / "new.safetensors"
    files.write_tensors(new, odd_tensors(tensors, choices), {})
    text = as_json(twisted(note, choices) if note and choices.number(2) else note)
    with _run_with(name, _with_note(new, text), folder) as run:
        RUN_TENSORS[name](run)


def _with_note(path: Path, note: str) -> bytes:
    """Return a safetensors file with another note and the digest that fits it."""
    from safetensors.torch import load_file, save

    tensors = load_file(path)
    known = {"digest": files._digest_of(tensors, note), "note": note}
    return save(tensors, {files.ENTRY: json.dumps(known)})


def _tensor_seeds() -> list[bytes]:
    from safetensors.torch import save

    plain = {"a": torch.arange(3), "b": torch.zeros(2, 2)}
    entry = {"digest": files._digest_of(plain, "{}"), "note": "{}"}
    return [b"\1" + save(plain, {files.ENTRY: json.dumps(entry)}), b"\0" * 8, b"\2[" * 9]


@target("safetensors", "any safetensors file, from its header on", _tensor_seeds)
def _safetensors(data: bytes, folder: Path) -> None:
    choices = Choices(data)
    path = folder / "x.safetensors"
    what = choices.number(3)
    if what == 1:
        path.write_bytes(choices.rest())
    else:
        entry = {"digest": "", "note": "{}"}
        tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
        head: Any = {"__metadata__": {files.ENTRY: json.dumps(entry)}, "a": tensor}
        if what == 2:
            head["__metadata__"][files.ENTRY] = as_json(twisted(entry, choices)) if (
                choices.number(2)) else choices.rest().decode("utf-8", "replace")  # fmt: skip
        else:
            head = twisted(head, choices)
        text = as_json(head).encode("utf-8", "surrogatepass")
        path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
    files.read_tensors(path)


# --- text ----------------------------------------------------------------------------------------

SHIPPED = Path(unswayed.__file__).parent / "recipes"


def _recipe_seeds() -> list[bytes]:
    found = [each.read_bytes() for each in sorted(SHIPPED.rglob("*.toml"))]
    return [each for each in found if len(each) < 3000] + [
        b'extends = "digits"\n[loss]\nname = "gce"\nq = 0.7\n',
        b'method = "elr/cifar100"\n[data]\nname = "digits"\n[schedule]\nmilestones=[1]\n',
        b'[data]\nname = "npz"\npath = "x.npz"\n[regularizer]\nweight = {start=1, end=2}\n',
    ]


@target("recipe", "a recipe (TOML)", _recipe_seeds)
def _recipe(data: bytes, folder: Path) -> None:
    (folder / "x.toml").write_bytes(data)
    made = Recipe.load(folder / "x.toml")
    again = folder / "again.toml"
    again.write_text(made.to_toml(), encoding="utf-8")
    assert Recipe.load(again).sections == made.sections
    made.key()


GRID = b"""description = "x"
extends = "digits"
seeds = 2
methods = ["ce", { name = "gce", label = "GCE", set = ["loss.q=0.5"] }]
settings = { "sym 20" = ["noise.rate=0.2"], "sym 40" = ["noise.rate=0.4"] }
skip = { gce = ["sym 20"] }
shape = { samples = 100, side = 8, classes = 10 }
[train]
epochs = 2
[scales.small]
seeds = 1
"""


@target("grid", "a grid (TOML)", lambda: [GRID])
def _grid(data: bytes, folder: Path) -> None:
    (folder / "x.toml").write_bytes(data)
    Grid.load(folder / "x.toml")


PUBLISHED = b"""title = "t"
source = "s"
runs = 3
columns = ["a", "b"]
[last]
ce = [[80.5, 0.3], []]
gce = [[1, 2, 3], [4]]
"""


@target("published", "a table of published numbers (TOML)", lambda: [PUBLISHED])
def _published(data: bytes, folder: Path) -> None:
    (folder / "x.toml").write_bytes(data)
    Published.load(folder / "x.toml")


TABLE_SEEDS = {
    ".csv": b'path,label,true_label,split,id\na.png,cat,cat,train,1\n"b,c.png",dog,dog,test,2\n',
    ".tsv": b"file_name\tlabel\na.png\tcat\nb.png\tdog\n",
    ".jsonl": b'{"path": "a.png", "label": "cat", "true_label": 1}\n{"image": "b", "label": 2}\n',
}


def _table_seeds() -> list[bytes]:
    return [bytes((n,)) + text for n, text in enumerate(TABLE_SEEDS.values())]


@target("tables", "tables of image files: CSV, TSV, JSON lines", _table_seeds)
def _tables(data: bytes, folder: Path) -> None:
    choices = Choices(data)
    path = folder / f"x{choices.pick(list(TABLE_SEEDS))}"
    path.write_bytes(choices.rest())
    read_table(path, folder)


def _parquet_seeds() -> list[bytes]:
    import pyarrow
    import pyarrow.parquet

    file = io.BytesIO()
    table = pyarrow.table({"path": ["a.png", "b.png"], "label": ["cat", "dog"]})
    pyarrow.parquet.write_table(table, file)
    return [b"\0" + file.getvalue(), *(bytes((1, n, n)) + bytes(range(12)) for n in range(12))]


@target("parquet", "tables of image files: Parquet", _parquet_seeds)
def _parquet(data: bytes, folder: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    choices = Choices(data)
    path = folder / "x.parquet"
    if choices.number(2) == 0:
        path.write_bytes(choices.rest())
    else:
        kinds = (
            pyarrow.string(), pyarrow.int64(), pyarrow.binary(), pyarrow.bool_(), pyarrow.float16(),
            pyarrow.timestamp("ns"), pyarrow.timestamp("s", tz="x/y"), pyarrow.date64(),
            pyarrow.decimal128(9, 2), pyarrow.list_(pyarrow.int8()), pyarrow.duration("s"),
            pyarrow.null(),
            pyarrow.struct([("a", pyarrow.int8())]), pyarrow.time64("ns"), pyarrow.uint64(),
        )  # fmt: skip
        columns = {}
        for name in ("path", "label", choices.pick(("id", "split", "true_label", "x", "path"))):
            kind = choices.pick(kinds)
            bits = np.frombuffer(choices.take(8).ljust(8, b"\0") * 64, np.uint8)
            count = choices.pick((1, 2, 3, 3))
            try:
                buffers = [None, pyarrow.py_buffer(np.arange(4, dtype=np.int32).tobytes()),
                           pyarrow.py_buffer(bits.tobytes())]  # fmt: skip
                plain = kind not in (kinds[0], kinds[2])
                columns[name] = pyarrow.Array.from_buffers(
                    kind, count, [None, buffers[2]] if plain else buffers
                )
            except (pyarrow.ArrowException, ValueError, TypeError):
                columns[name] = pyarrow.nulls(count, kind)
        try:
            short = min(map(len, columns.values()))
            rows = {name: column.slice(0, short) for name, column in columns.items()}
            pyarrow.parquet.write_table(pyarrow.table(rows), path)
        except (pyarrow.ArrowException, ValueError):
            return  # Arrow does not write it either
    read_table(path, folder)


@target(
    "corrected", "corrected labels (CSV)", lambda: [b"id,label,true_label\na,cat,dog\nb,,cat\n"]
)
def _corrected(data: bytes, folder: Path) -> None:
    (folder / "x.csv").write_bytes(data)
    read_labels(folder / "x.csv")


def _noise_seeds() -> list[bytes]:
    given = np.array([0, 1, 1])
    made = noise_labels.LabelFile(
        ("a", "b", "c"), np.array([0, 1, 0]), given, ("x", "y"), "none", 3, np.eye(2)
    )
    return [b"\0" + noise_labels.encode(made, ".csv"), b"\1" * 9, b"\2" * 9]


@target("noise-labels", "files of noisy labels (CSV and npz)", _noise_seeds)
def _noise(data: bytes, folder: Path) -> None:
    choices = Choices(data)
    note = {"format": noise_labels.FORMAT, "convention": "none", "seed": "3", "rate": 0.1,
            "classes": ["x", "y"], "matrix": np.eye(2).tolist(),
            "expected_matrix": np.eye(2).tolist()}  # fmt: skip
    what = choices.number(3)
    path = folder / ("x.npz" if what == 2 else "x.csv")
    if what == 0:
        path.write_bytes(choices.rest())
    elif what == 1:
        text = as_json(twisted(note, choices)) + "\nid,before,given\n"
        path.write_bytes(b"# " + text.encode("utf-8", "surrogatepass") + b"a,0,1\nb,1,1\n")
    else:
        columns = {"ids": ["a", "b"], "before": np.array([0, 1]), "given": np.array([1, 1])}
        path.write_bytes(odd_npz({**note, **columns}, choices))
    found = noise_labels.read(path)
    found.realised(), found.expected_rate()


@target(
    "noise-matrix", "noise matrices (CSV, npy, npz)", lambda: [b"\x000.9,0.1\n0,1\n", b"\1", b"\2"]
)
def _matrix(data: bytes, folder: Path) -> None:
    choices = Choices(data)
    what = choices.number(3)
    path = folder / f"x{('.csv', '.npy', '.npz')[what]}"
    if what == 0:
        path.write_bytes(choices.rest())
    elif what == 1:
        path.write_bytes(odd_npy(np.eye(2), choices))
    else:
        path.write_bytes(odd_npz({"matrix": np.eye(2), "b": np.arange(3)}, choices))
    noise_matrix.Matrix(2, path=str(path))


def _event_lines() -> list[bytes]:
    event = {"key": "0123", "time": "2026-01-01T00:00:00", "reviewer": "me", "id": "train/0",
             "decision": "keep", "label": None, "given": "", "how": "single"}  # fmt: skip
    more = {**event, "key": "4567", "decision": "undo", "of": "0123"}
    return [json.dumps(event).encode() + b"\n", json.dumps(more).encode() + b"\n"]


@target("journal", "decisions of a review (JSON lines)",
        lambda: [b"\0" + b"".join(_event_lines()), b"\1" * 12])  # fmt: skip
def _journal(data: bytes, folder: Path) -> None:
    choices = Choices(data)
    if choices.number(2) == 0:
        text = choices.rest()
    else:
        events = [twisted(json.loads(line), choices) for line in _event_lines() * 2]
        lines = [as_json(each).encode("utf-8", "surrogatepass") for each in events]
        text = b"\n".join(lines)
    (folder / "x.jsonl").write_bytes(text)
    verdicts = Verdicts(["train/0", "train/1"], ["a", "b"], np.array([0, 1]))
    events = read_events(folder / "x.jsonl")
    verdicts.apply(events)
    verdicts.said_wrong(), verdicts.repeats(), verdicts.rechecks()
    verdicts.check(events, "x.jsonl")


NOTES = ("skipped.json", "exports.json", "failures.json")


@target("notes", "skipped files, exports and failures of a run or grid (JSON)")
def _notes(data: bytes, folder: Path) -> None:
    from unswayed.exports.places import check_free
    from unswayed.exports.source import skipped

    choices = Choices(data)
    name = choices.pick(NOTES)
    text = as_json(twisted({"a": ["b", "c"], "d": "e"}, choices)).encode("utf-8", "surrogatepass")
    text = choices.flip(text) if choices.number(3) == 2 else text
    if name == "failures.json":
        from unswayed.bench.results import FAILURES

        (folder / FAILURES).write_bytes(text)
        sorted(read_failures(folder).items())
        return
    (folder / "there").touch()
    with _run_with(name, text, folder) as run:
        sorted(skipped(run)) if name == "skipped.json" else check_free(run, folder / "there")


# --- arrays --------------------------------------------------------------------------------------


@target("npz", "data as arrays (npz)", lambda: [bytes((0, n)) * 9 for n in range(8)])
def _npz(data: bytes, folder: Path) -> None:
    choices = Choices(data)
    arrays = {"train_x": np.zeros((4, 3, 3), np.uint8), "train_y": np.array([0, 1, 0, 1]),
              "train_true": np.array([0, 1, 1, 1]), "test_x": np.zeros((2, 3, 3), np.uint8),
              "test_y": np.array([0, 1]), "classes": np.array(["a", "b"])}  # fmt: skip
    (folder / "x.npz").write_bytes(odd_npz(arrays, choices))
    npz(path=str(folder / "x.npz"))


def _pickle_seeds() -> list[bytes]:
    batch = {b"data": np.zeros((1, cifar.PIXELS), np.uint8), b"labels": [0], b"filenames": [b"a"]}
    small = {b"data": np.zeros((1, 2), np.uint8), b"labels": [0, 1]}
    return [pickle.dumps(each, protocol) for each in (batch, small) for protocol in (0, 2, 4)]


SMALL = cifar.Cifar(
    "cifar10",
    (
        cifar.Form(
            "python",
            "p.tar.gz",
            "",
            "py",
            (cifar.File("a", "train", 1, ""), cifar.File("b", "test", 1, "")),
        ),
    ),
    (cifar.Kind("fine", b"labels", ("cat", "dog")),),
)


@target("cifar-pickle", "CIFAR, python version (pickles)", _pickle_seeds)
def _cifar_pickle(data: bytes, folder: Path) -> None:
    place = folder / "py"
    place.mkdir(exist_ok=True)
    (place / "a").write_bytes(data)
    (place / "b").write_bytes(_pickle_seeds()[0])
    cifar.load(SMALL, "fine", cifar.Source(str(folder), "python", "ignore"))


def _tar_seeds() -> list[bytes]:
    found, batch = [], _pickle_seeds()[2]
    for kind in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=kind) as tar:
            for name in ("py/a", "py/b", "long/" + "x" * 98):
                info = tarfile.TarInfo(name)
                info.size = len(batch)
                tar.addfile(info, io.BytesIO(batch))
        found.append(file.getvalue())
    return found


@target("cifar-archive", "CIFAR's archive (tar.gz)", _tar_seeds)
def _cifar_archive(data: bytes, folder: Path) -> None:
    archive = folder / "p.tar.gz"
    archive.write_bytes(data if data[:1] == b"\x1f" else gzip.compress(data, 1))
    cifar.load(SMALL, "fine", cifar.Source(str(folder), "python", "ignore"))


def _label_seeds() -> list[bytes]:
    known = {"clean_label": np.array([0, 1]), "worse_label": np.array([1, 1])}
    file = io.BytesIO()
    torch.save(known, file)
    with zipfile.ZipFile(file) as archive:
        inner = next(archive.read(name) for name in archive.namelist() if name.endswith("pkl"))
    old = io.BytesIO()
    torch.save({key: torch.from_numpy(each) for key, each in known.items()}, old,
               _use_new_zipfile_serialization=False)  # fmt: skip
    array = np.empty((), object)
    array[()] = known
    new = io.BytesIO()
    np.save(new, array, allow_pickle=True)
    seeds = [b"\0" + inner, b"\0" + pickle.dumps(known, 2), b"\1" + old.getvalue()]
    return [*seeds, b"\2" + new.getvalue()]


@target("cifarn", "human labels of CIFAR (.pt and .npy)", _label_seeds)
def _cifarn(data: bytes, folder: Path) -> None:
    choices = Choices(data)
    what = choices.number(3)
    path = folder / ("x.npy" if what == 2 else "x.pt")
    path.write_bytes(_torch_zip(choices.rest()) if what == 0 else choices.rest())
    known = cifarn.read_labels(path)
    for name in ("clean_label", "worse_label"):
        cifarn._labels(known, [name], path)


def _torch_zip(inner: bytes) -> bytes:
    """Return a file of torch.save with some pickle in it, whose storages are small."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in (("data.pkl", inner), ("byteorder", b"little"), ("version", b"3\n"),
                              ("data/0", bytes(16)), ("data/1", bytes(16))):  # fmt: skip
            archive.writestr(f"x/{name}", content)
    return file.getvalue()


def _weight_seeds() -> list[bytes]:
    file = io.BytesIO()
    torch.save({"weight": torch.zeros(2, 2), "bias": torch.ones(2)}, file)
    with zipfile.ZipFile(file) as archive:
        inner = next(archive.read(name) for name in archive.namelist() if name.endswith("pkl"))
    return [b"\0" + inner, b"\1" + file.getvalue(), *(b"\2" + s[1:] for s in _tensor_seeds()[:1])]


@target("weights", "pretrained weights (.pth and .safetensors)", _weight_seeds)
def _weights(data: bytes, folder: Path) -> None:
    choices = Choices(data)
    what = choices.number(3)
    path = folder / ("x.safetensors" if what == 2 else "x.pth")
    path.write_bytes(_torch_zip(choices.rest()) if what == 0 else choices.rest())
    net = torch.nn.Linear(2, 2)
    resnet._load(net, "resnet18", str(path))


@target("animal10n", "ANIMAL-10N, binary version", lambda: [bytes(9) + b"\1", b"\1" * 60])
def _animal10n(data: bytes, folder: Path) -> None:
    choices = Choices(data)
    record = choices.take(8).ljust(8, b"\0") + bytes(animal10n.RECORD - 8)
    extra = choices.take(choices.number(3))
    (folder / "data_batch_1.bin").write_bytes(record * choices.number(3) + extra)
    (folder / "test_batch.bin").write_bytes(record)
    animal10n._from_records(folder, "train", animal10n.Reading(64, "rgb", "crop", "memory", 0.1))


CLOTHING = (b"images/0/a.jpg 3\n", b"images/0/a.jpg\nimages/1/b.jpg\n")


@target("clothing1m", "lists of Clothing1M", lambda: [b"\0" + CLOTHING[0], b"\1" + CLOTHING[1]])
def _clothing(data: bytes, folder: Path) -> None:
    choices = Choices(data)
    for old in folder.glob("*.txt"):
        old.unlink()
    if choices.number(2) == 0:
        (folder / "noisy_train.txt").write_bytes(choices.rest())
    else:
        (folder / "noisy_train_key_list.txt").write_bytes(choices.rest())
        (folder / "noisy_label_kv.txt").write_bytes(CLOTHING[0])
    (folder / "images" / "0").mkdir(parents=True, exist_ok=True)
    (folder / "images" / "0" / "a.jpg").touch()
    keys, _ = clothing1m._listed(folder, "noisy_train")
    clothing1m._paths(folder, keys)


# --- images and folders --------------------------------------------------------------------------

KINDS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")


def _image_seeds() -> list[bytes]:
    whole = np.arange(7 * 5 * 3, dtype=np.uint8).reshape(5, 7, 3)
    found = []
    for mode in ("RGB", "L", "1", "P", "I;16"):
        for kind in KINDS:
            image = Image.fromarray(whole)
            image = image.convert("I").convert(mode) if mode == "I;16" else image.convert(mode)
            file = io.BytesIO()
            with contextlib.suppress(OSError, KeyError):
                image.save(file, kind)
                found.append(bytes((0, 0)) + file.getvalue())
    exif = Image.Exif()
    exif[274] = 6
    file = io.BytesIO()
    Image.fromarray(whole).save(file, "JPEG", exif=exif)
    script = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
    more = [b"\0\0" + file.getvalue(), b"\1\0" + found[0][2:], b"\2" + bytes(9), b"\0\0" + script]
    return [*found, *more]


@target("image", "image files of any kind", _image_seeds)
def _image(data: bytes, folder: Path) -> None:
    choices = Choices(data)
    path = folder / "train" / "a" / "x.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    what = choices.number(3)
    channels = choices.pick((3, 1))
    content = odd_png(choices) if what == 2 else choices.rest()
    path.write_bytes(repaired_png(content) if what == 1 else content)
    small = folder / "train" / "b" / "y.ppm"
    if not small.is_file():
        small.parent.mkdir(exist_ok=True)
        for name in ("y.ppm", "z.ppm"):
            small.with_name(name).write_bytes(b"P6 1 1 255\n" + name[:3].encode())
    said = inspect(folder / "train").unreadable.get("a/x.png", "")
    if said:
        assert _wrong_words(ValueError(said)) == "", _wrong_words(ValueError(said))
    from unswayed.runs.run import _open

    with contextlib.suppress(UsageError):
        _open(folder, "train/a/x.png", 8)
    decode(path, channels, (8, 8))


NAMES = (
    *("train", "test", "val", "a", "b", "c", "line\nbreak", "\x1b[31m", "x.png", "y.jpg", ".hid"),
    *("\udcff\udcfe", "z" * 200, " ", "-rf", "é.png", "con.PNG", "x.png.png", "%s", "\u202egnp.x"),
)


def _folder_seeds() -> list[bytes]:
    """Return two classes of two images, the same with odd names, pipes, and links."""
    pictures = b"\2\x08\1\2\x09\1"
    plain = b"\1\3" + pictures + b"\0\0\1\4" + pictures
    odd = b"\1\6" + pictures + b"\0\0\1\x0b" + pictures
    return [plain, odd, plain + b"\4\x0f" + b"\3\x10\4", b"\3\x08" * 9, b"\4\x09" * 9, plain * 2]


def _make(place: Path, what: int, choices: Choices) -> None:
    """Make a file, a link or a pipe."""
    with contextlib.suppress(OSError):
        if what == 2:
            place.write_bytes(choices.pick((b"", b"P6 1 1 255\nabc", b"broken")))
        elif what == 3:
            place.symlink_to(choices.pick((".", "..", "a", "../a", "/", "nowhere", place.name)))
        elif what == 4:
            os.mkfifo(place)
        else:
            place.symlink_to(place.parent.parent / choices.pick(NAMES))


@target("folder", "folders with odd names, links and special files", _folder_seeds)
def _folder(data: bytes, folder: Path) -> None:
    root = folder / "tree"
    watched, _watched[:] = list(_watched), []  # making the tree is not reading it
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    choices, here = Choices(data), root
    while choices.at < len(data):
        what, name = choices.number(6), choices.pick(NAMES)
        place = here / name
        if what == 0:
            here = root
        elif what == 1 and not place.is_symlink():  # nothing is ever made through a link
            with contextlib.suppress(OSError):
                place.mkdir(exist_ok=True)
                here = place
        elif not os.path.lexists(place):
            _make(place, what, choices)
    _watched[:] = watched
    inspect(root)  # finds the layout, and follows links that leave the folder
