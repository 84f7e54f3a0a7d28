"""Write files atomically: under another name, synced, then renamed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from unswayed.errors import DamagedFileError
from unswayed.parsing import parse_object

ENTRY = "unswayed"
"""The key of our note in the header of a safetensors file."""

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
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


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
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Return all rows; an incomplete last line, left by a crash, is ignored."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(parse_object(line))
        except ValueError as error:
            if number < len(lines):
                raise DamagedFileError(f"{path} is damaged in line {number}: {error}") from error
    return rows


def write_tensors(path: Path, tensors: Mapping[str, Tensor], note: Mapping[str, Any]) -> None:
    """Write a safetensors file atomically, with a JSON note and a digest in its header."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(note)
    # One entry: safetensors writes several in a random order, and equal files would differ.
    header = {ENTRY: json.dumps({"digest": _digest(plain, text), "note": text})}
    with atomic(path) as temporary:
        try:
            save_file(plain, temporary, metadata=header)
        except SafetensorError as error:  # a full disk, for one
            raise OSError(f"{path} cannot be written: {error}") from error


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return tensors and note; raise `DamagedFileError` if a bit has changed."""
    with path.open("rb"):  # what cannot be opened is not damaged: an OSError says why
        pass
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise DamagedFileError(f"{path} is damaged: {error}") from error
    try:
        known = parse_object(header.get(ENTRY, "{}"))
        note = str(known.get("note", "{}"))
        if known.get("digest") != _digest(tensors, note):
            raise ValueError("its content does not match its digest")
        return tensors, parse_object(note)
    except ValueError as error:
        raise DamagedFileError(f"{path} is damaged: {error}") from error


def _digest(tensors: Mapping[str, Tensor], note: str) -> str:
    digest = hashlib.blake2b(note.encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
