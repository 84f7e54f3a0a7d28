"""Make odd files out of random bytes: nearly valid, so that they get past the first check."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

T = TypeVar("T")

HUGE = "\ue000"
"""Stands in JSON for a number of so many digits that Python refuses to read it."""

WORDS = (
    *("", "a", "path", "label", "id", "train", "test", "../../x", "/etc/passwd", "x" * 5000),
    *("line\nbreak", "\x1b[31mred\x07", "nul\0", "\ud800", "\u2028", "é", "0", "-1", HUGE, "../.."),
)
NUMBERS = (0, 1, -1, 2, 255, 2**31, 2**63, -(2**63) - 1, 10**30, 1e308, 0.5, -0.0, 10**9)
VALUES: tuple[Any, ...] = (
    *(None, True, False, float("nan"), float("inf"), [], {}, [[]], [None], {"": 0}),
    *NUMBERS,
    *WORDS,
)
SHAPES = ("()", "(0,)", "(1,)", "(-1,)", "(3, 0)", "(10**12,)", "(1000000000000,)", "(2, 2)")
KINDS = ("<i8", "<f8", "|u1", "|b1", "<U4", "|S3", "|O", "<M8[s]", "<c16", ">i4", "|V9", "<i2")
DTYPES = (
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn),
)


class Choices:
    """Decisions that are read from bytes, so that changed bytes change a decision."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        """Return the next bytes; fewer at the end."""
        found = self.data[self.at : self.at + count]
        self.at += len(found)
        return found

    def rest(self) -> bytes:
        """Return all bytes that are left."""
        return self.take(len(self.data))

    def number(self, below: int) -> int:
        """Return 0, ..., below - 1; 0 if no byte is left."""
        width = 1 if below <= 256 else 2 if below <= 65536 else 4
        return int.from_bytes(self.take(width), "little") % max(1, below)

    def pick(self, options: Sequence[T]) -> T:
        """Return one of some options."""
        return options[self.number(len(options))]

    def flip(self, content: bytes) -> bytes:
        """Return content with up to four bytes changed, perhaps cut."""
        changed = bytearray(content)
        for _ in range(self.number(5)):
            if changed:
                changed[self.number(len(changed))] = self.number(256)
        return bytes(changed[: self.number(len(changed))] if self.number(8) == 7 else changed)

    def text(self) -> str:
        """Return some text, of a known odd kind or of the bytes themselves."""
        if self.number(2):
            return self.pick(WORDS)
        return self.take(self.number(40)).decode("utf-8", "replace")


def twisted(value: Any, choices: Choices) -> Any:
    """Return a copy of plain values in which up to three places differ."""
    changed = json.loads(json.dumps(value))
    for _ in range(choices.number(4)):
        changed = _twist(changed, choices)
    return changed


def _twist(value: Any, choices: Choices) -> Any:
    if isinstance(value, dict | list) and value and choices.number(6):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = choices.pick(keys)
        what = choices.number(8)
        if what == 0:
            del value[key]
        elif what == 1 and isinstance(value, dict):
            value[choices.text()] = json.loads(json.dumps(value[key]))
        elif what == 1:
            value *= 1 + choices.number(40)
        else:
            value[key] = _twist(value[key], choices)
        return value
    if choices.number(12) == 11:
        depth = choices.number(3000)
        return f"{HUGE}{depth}"
    return choices.text() if choices.number(4) == 3 else choices.pick(VALUES)


def as_json(value: Any) -> str:
    """Return JSON, in which marked words stand for numbers that are too long or lists too deep."""
    text = json.dumps(value)
    mark = json.dumps(HUGE)[1:-1]
    text = text.replace(f'"{mark}"', "9" * 5000)
    while (start := text.find(f'"{mark}')) >= 0:
        end = text.index('"', start + 1)
        depth = int("0" + text[start + 1 + len(mark) : end])
        text = text[:start] + "[" * depth + "]" * depth + text[end + 1 :]
    return text


def npy(kind: str, shape: str, body: bytes, version: int = 1) -> bytes:
    """Return a .npy file whose header may lie."""
    text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}}}"
    if kind.startswith("["):
        text = text.replace(repr(kind), kind)
    size = struct.pack("<H" if version == 1 else "<I", len(text) + 1)
    return b"\x93NUMPY" + bytes((version, 0)) + size + text.encode() + b"\n" + body


def plain_npy(array: Any) -> bytes:
    """Return a valid .npy file."""
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=False)
    return file.getvalue()


def odd_npy(array: Any, choices: Choices) -> bytes:
    """Return an array as a file that is wrong in some way."""
    values = np.asarray(array)
    what = choices.number(7)
    if what == 0:
        return npy(
            choices.pick(KINDS), choices.pick(SHAPES), choices.take(64), 1 + choices.number(3)
        )
    if what == 1:
        return choices.flip(plain_npy(values))
    if what == 2:
        return npy("[('a', '<i8'), ('b', '<U3')]", "(2,)", bytes(40))
    if what == 3:
        return plain_npy(np.zeros([choices.number(4) for _ in range(choices.number(5))], np.int64))
    if what == 4 and values.dtype.kind in "iu":
        changed = values.copy().reshape(-1)
        if len(changed):
            low = np.iinfo(changed.dtype).min
            changed[choices.number(len(changed))] = choices.pick((127, low, low + 1, 0, 100))
        return plain_npy(changed.reshape(values.shape))
    if what == 5:
        kind: Any = choices.pick((np.float64, np.int32, np.bool_, np.uint8, "U9"))
        return plain_npy(values.astype(kind) if values.dtype.kind in "iuf" else np.arange(3))
    return plain_npy(values[: choices.number(len(values) + 1)] if values.ndim else values)


def odd_npz(arrays: Mapping[str, Any], choices: Choices) -> bytes:
    """Return arrays as an archive, some of them wrong, missing, renamed or there twice."""
    members = {name: plain_npy(array) for name, array in arrays.items()}
    for _ in range(choices.number(4)):
        name = choices.pick(list(arrays))
        what = choices.number(8)
        if what == 0:
            members.pop(name, None)
        elif what == 1:
            members[choices.text() or "x"] = members.pop(name, b"")
        elif what == 2:
            members[name] = npy("|u1", str((choices.number(2**25),)), bytes(choices.number(2**25)))
        else:
            members[name] = odd_npy(arrays[name], choices)
    file = io.BytesIO()
    method = choices.pick((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            shown = name.encode("utf-8", "replace").decode().replace("\0", "0") or "empty"
            archive.writestr(f"{shown}.npy" if choices.number(9) < 8 else shown, content)
    return choices.flip(file.getvalue()) if choices.number(3) == 2 else file.getvalue()


def odd_tensors(tensors: Mapping[str, Tensor], choices: Choices) -> dict[str, Tensor]:
    """Return tensors of which some differ in name, type, shape or values."""
    changed = dict(tensors)
    for _ in range(choices.number(4)):
        name = choices.pick(list(tensors))
        shape = [choices.number(4) for _ in range(choices.number(4))]
        what = choices.number(6)
        if what == 0:
            changed.pop(name, None)
        elif what == 1:
            text = choices.text().encode("utf-8", "replace").decode().replace(HUGE, "huge")
            changed[text] = changed.pop(name, torch.zeros(1))
        elif what == 2:
            changed[name] = torch.zeros(shape).to(choices.pick(DTYPES))
        elif what == 3:
            changed[name] = tensors[name].to(choices.pick(DTYPES))
        elif what == 4:
            changed[name] = (
                tensors[name][: choices.number(5)] if tensors[name].ndim else tensors[name]
            )
        elif tensors[name].numel():
            flat = tensors[name].clone().reshape(-1)
            value = choices.pick((float("nan"), float("inf"), -1, 127, 0, -128, 100))
            if (not flat.is_floating_point() and value != value) or abs(value) == float("inf"):
                value = -1
            flat[choices.number(len(flat))] = value if flat.dtype != torch.uint8 else abs(value)
            changed[name] = flat.reshape(tensors[name].shape)
    return changed


def png(chunks: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return a PNG file of chunks, with right checksums."""
    parts = [
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def odd_png(choices: Choices) -> bytes:
    """Return a PNG of an odd size and kind, perhaps a bomb."""
    sides = (0, 1, 2, 7, 100, 3000, 9000, 20000, 2**31 - 1)
    width, height = choices.pick(sides), choices.pick(sides)
    depth, colour = choices.pick((1, 2, 4, 8, 16, 3)), choices.pick((0, 2, 3, 4, 6, 1))
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, choices.number(3) // 2)
    pixels = zlib.compress(bytes(choices.number(2**22)) + choices.take(20), 1)
    extra = [(choices.pick((b"tRNS", b"PLTE", b"gAMA", b"eXIf", b"iCCP", b"zTXt", b"acTL", b"fcTL",
                            b"fdAT", b"iTXt", b"tEXt", b"sRGB", b"cHRM")),
              choices.take(choices.number(60))) for _ in range(choices.number(4))]  # fmt: skip
    return png([(b"IHDR", head), *extra, (b"IDAT", pixels), (b"IEND", b"")])


def repaired_png(content: bytes) -> bytes:
    """Return a PNG with the checksums of its chunks set right."""
    chunks, at = [], 8
    while at + 8 <= len(content):
        (size,) = struct.unpack(">I", content[at : at + 4])
        size = min(size, len(content) - at - 8)
        chunks.append((content[at + 4 : at + 8], content[at + 8 : at + 8 + size]))
        at += 12 + size
    return png(chunks)
