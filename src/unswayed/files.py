"""Write files atomically: under another name, synced, then renamed."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch
from safetensors import safe_open
from torch import Tensor

from unswayed.errors import DamagedFileError, UnwritableFileError
from unswayed.parsing import parse_object

ENTRY = "unswayed"
"""The key of our note in the header of a safetensors file."""

BLOCK = 2**24
"""Bytes of a file that are read at a time."""

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.complex64: "C64",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""The names of types in a safetensors file."""


class Shape(NamedTuple):
    """What a tensor in a file is like."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.dtype.itemsize * math.prod(self.shape)


_UMASK = os.umask(0)
os.umask(_UMASK)


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path; after the block it is synced and renamed to `path`."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.chmod(0o666 & ~_UMASK)  # some writers make files that only their owner can read
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException as error:
        with suppress(OSError):  # a disk that has become read-only refuses this as well
            temporary.unlink(missing_ok=True)
        # What is written may be read meanwhile, such as an image: its errors name another file.
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            raise UnwritableFileError(path, error) from error
        raise


def make_folder(path: Path) -> None:
    """Make a folder and those above it, so that a power failure does not undo it."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder durable."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any, *, indent: int | None = 2) -> None:
    """Write a JSON file atomically, on one line if `indent` is None."""
    write_text(path, json.dumps(value, indent=indent, ensure_ascii=False) + "\n")


def write_sections(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object atomically, every entry on a line: a large matrix takes one of them."""
    entries = (f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in value.items())
    write_text(path, "{\n" + ",\n".join(entries) + "\n}\n")


def append_json_line(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row to a JSON-lines file and sync it."""
    try:
        with path.open("ab") as file:
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UnwritableFileError(path, error) from error


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Return all rows; an incomplete last line, left by a crash, is ignored."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(parse_object(line))
        except ValueError as error:  # no JSON, or no text at all
            if number < len(lines):
                raise DamagedFileError(f"{path} is damaged in line {number}: {error}") from error
    return rows


def write_tensors(path: Path, tensors: Mapping[str, Tensor], note: Mapping[str, Any]) -> None:
    """Write a safetensors file atomically, with a JSON note and a digest in its header."""
    shapes = {name: Shape(tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()}
    with writing(path, shapes, note) as append:
        for name, tensor in tensors.items():
            append(name, tensor)


@contextmanager
def writing(
    path: Path, shapes: Mapping[str, Shape], note: Mapping[str, Any]
) -> Iterator[Callable[[str, Tensor], None]]:
    """Yield a function that adds rows to a tensor of a file, which `write_tensors` could write.

    So tensors that do not fit into memory can be written. The file is there after the block. The
    library's own writer renames a hidden file of its own, which stays behind after a kill.

    Args:
        path: the file.
        shapes: of the whole tensors.
        note: for the header.
    """
    places, end = {}, 0
    for name in sorted(shapes, key=lambda name: (-shapes[name].dtype.itemsize, name)):
        places[name], end = end, end + shapes[name].size
    text = json.dumps(note)
    start = len(_header(shapes, places, text, _digest(b"").hexdigest()))
    written = dict.fromkeys(shapes, 0)

    def append(name: str, rows: Tensor) -> None:
        if rows.dtype != shapes[name].dtype:
            raise TypeError(f"{name} is {shapes[name].dtype}, not {rows.dtype}")
        content = _bytes(rows.detach().cpu().contiguous())
        file.seek(start + places[name] + written[name])
        file.write(content)
        written[name] += len(content)

    with atomic(path) as temporary, temporary.open("w+b") as file:
        yield append
        for name, shape in shapes.items():
            if written[name] != shape.size:
                raise ValueError(f"{name} is not complete in {path}")
        digest = _digest(text.encode())
        for name in sorted(shapes):
            digest.update(_title(name, *shapes[name]))
            _digest_block(digest, file, start + places[name], shapes[name].size)
        file.seek(0)
        file.write(_header(shapes, places, text, digest.hexdigest()))


def _header(
    shapes: Mapping[str, Shape], places: Mapping[str, int], note: str, digest: str
) -> bytes:
    """Return the beginning of a safetensors file; its length does not depend on the digest."""
    entries: dict[str, Any] = {
        "__metadata__": {ENTRY: json.dumps({"digest": digest, "note": note})}
    }
    for name, start in places.items():
        dtype, shape = shapes[name]
        offsets = [start, start + shapes[name].size]
        entries[name] = {"dtype": DTYPES[dtype], "shape": shape, "data_offsets": offsets}
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return tensors and note; raise `DamagedFileError` if a bit has changed."""
    with path.open("rb"):  # what cannot be opened is not damaged: an OSError says why
        pass
    try:
        with safe_open(path, framework="pt") as file:
            known = parse_object((file.metadata() or {})[ENTRY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        same = known["digest"] == _digest_of(tensors, known["note"])
        note = parse_object(known["note"])
    except (OSError, MemoryError):
        raise
    except Exception as error:  # a changed byte can make anything of a header
        raise DamagedFileError(f"{path} is damaged: {error}") from error
    if not same:
        raise DamagedFileError(f"{path} is damaged: its content does not match its digest")
    return tensors, note


def _digest(start: bytes) -> hashlib.blake2b:
    return hashlib.blake2b(start, digest_size=16)


def _digest_of(tensors: Mapping[str, Tensor], note: str) -> str:
    digest = _digest(note.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(_title(name, tensor.dtype, tuple(tensor.shape)))
        digest.update(_bytes(tensor))
    return digest.hexdigest()


def _title(name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> bytes:
    return f"{name}{dtype}{shape}".encode()


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.reshape(-1).view(torch.uint8).numpy().data


def _digest_block(digest: hashlib.blake2b, file: BinaryIO, start: int, size: int) -> None:
    """Add the bytes of a part of a file to a digest."""
    file.seek(start)
    while size:
        block = file.read(min(BLOCK, size))
        if not block:
            raise OSError("it became shorter while it was written")
        digest.update(block)
        size -= len(block)
