"""Write files atomically: under another name, synced, then renamed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from unswayed.errors import DamagedFileError, UnwritableFileError

ENTRY = "unswayed"
"""The key of our note in the header of a safetensors file."""

KINDS = {
    torch.float64: "F64",
    torch.int64: "I64",
    torch.uint64: "U64",
    torch.complex64: "C64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.uint32: "U32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int16: "I16",
    torch.uint16: "U16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""Their names in safetensors files, the widest first: so every tensor is aligned."""

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
        if isinstance(error, OSError):
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
            rows.append(json.loads(line))
        except ValueError as error:  # no JSON, or no text at all
            if number < len(lines):
                raise DamagedFileError(f"{path} is damaged in line {number}") from error
    return rows


def write_tensors(path: Path, tensors: Mapping[str, Tensor], note: Mapping[str, Any]) -> None:
    """Write a safetensors file atomically, with a JSON note and a digest in its header.

    The library's own writer renames a hidden file of its own, which stays behind after a kill.
    """
    order = list(KINDS)
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    plain = dict(sorted(plain.items(), key=lambda item: (order.index(item[1].dtype), item[0])))
    text = json.dumps(note)
    about = json.dumps({"digest": _digest(plain, text), "note": text})
    header: dict[str, Any] = {"__metadata__": {ENTRY: about}}
    end = 0
    for name, tensor in plain.items():
        start, end = end, end + tensor.nbytes
        header[name] = {
            "dtype": KINDS[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    head = json.dumps(header, ensure_ascii=False).encode()
    head += b" " * (-len(head) % 8)
    with atomic(path) as temporary, temporary.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for tensor in plain.values():
            file.write(_bytes(tensor))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return tensors and note; raise `DamagedFileError` if a bit has changed."""
    with path.open("rb"):  # what cannot be opened is not damaged: an OSError says why
        pass
    try:
        with safe_open(path, framework="pt") as file:
            known = json.loads((file.metadata() or {})[ENTRY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        same = known["digest"] == _digest(tensors, known["note"])
        note = json.loads(known["note"])
    except (OSError, MemoryError):
        raise
    except Exception as error:  # a changed byte can make anything of a header
        raise DamagedFileError(f"{path} is damaged: {error}") from error
    if not same:
        raise DamagedFileError(f"{path} is damaged: its content does not match its digest")
    return tensors, note


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.reshape(-1).view(torch.uint8).numpy().data


def _digest(tensors: Mapping[str, Tensor], note: str) -> str:
    digest = hashlib.blake2b(note.encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(_bytes(tensor))
    return digest.hexdigest()
