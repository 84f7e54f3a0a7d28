"""Read pickles of numbers, text and NumPy arrays without running anything in them.

A pickle is a program. This reader accepts only the few instructions that make arrays, runs them
with its own plain classes, and refuses all others. NumPy's own code is not called, since it trusts
what a file says about memory.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unswayed.errors import UsageError

_NUMBERS = frozenset(f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)) | {"b1"}
_OBJECTS = frozenset({"O", "O8"})


def unpickle(source: bytes, path: Path | str) -> Any:
    """Return the content of a pickle; strings of Python 2 come back as bytes.

    Args:
        source: the pickle.
        path: the file it came from, for messages.

    Raises:
        UsageError: the pickle asks for anything but numbers, text and arrays, or is damaged.
    """
    try:
        _check_memo(source)
        return plain(_Unpickler(io.BytesIO(source), encoding="bytes").load())
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise UsageError(f"{path} is not a readable pickle of plain arrays: {error}") from error


def _check_memo(source: bytes) -> None:
    """Refuse places in memory that a file is too short to fill: Python would make room for all."""
    for code, place, _ in pickletools.genops(source):
        if "PUT" in code.name and place is not None and place > len(source):
            raise pickle.UnpicklingError(f"it numbers {place:,} values in {len(source):,} bytes")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"it asks for {module}.{name}, which is refused since it could run any program"
            ) from None


class _Dtype:
    """Stands for numpy.dtype: integers and truth values, or a list of objects."""

    def __init__(self, code: str | bytes, *_: Any) -> None:
        name = _text(code)
        if name not in _NUMBERS | _OBJECTS:
            raise pickle.UnpicklingError(f"arrays of type {name!r} are not expected")
        self.dtype = np.dtype(name)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if _text(state[1]) in "<>":
            self.dtype = self.dtype.newbyteorder(_text(state[1]))  # type: ignore[arg-type]


class _Array:
    """Stands for numpy.ndarray, which is made empty first and filled by its state."""

    values: NDArray[Any] | list[Any]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, fortran, data = state
        if isinstance(data, list):
            self.values = data
            return
        if kind.dtype.hasobject:
            raise pickle.UnpicklingError("an array of objects is written as raw memory")
        flat: NDArray[Any] = np.frombuffer(data, dtype=kind.dtype)
        self.values = flat.reshape(shape, order="F" if fortran else "C")


def _reconstruct(*_: Any) -> _Array:
    return _Array()


def _encode(text: str, encoding: str | bytes) -> bytes:
    """Return the bytes that Python 3 writes as text for the readers of Python 2."""
    if _text(encoding) not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"the encoding {encoding!r} is not expected")
    return text.encode("latin-1")


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def plain(value: Any) -> Any:
    """Return the value with arrays in the place of what stood for them.

    Lists of lists are refused: one that holds another twice, and so on, has no end.
    """
    if isinstance(value, _Array):
        value = value.values
    if isinstance(value, list):  # an array of objects holds the dictionary of a .npy file
        return [plain(each) if isinstance(each, dict) else _leaf(each) for each in value]
    if isinstance(value, dict):
        return {key: _listed(each) for key, each in value.items()}
    return value


def _listed(value: Any) -> Any:
    """Return an array, a list of arrays and plain values, or one of them."""
    if isinstance(value, _Array):
        value = value.values
    return [_leaf(each) for each in value] if isinstance(value, list) else value


def _leaf(value: Any) -> Any:
    """Return an array or a plain value."""
    if isinstance(value, _Array):
        value = value.values
    if isinstance(value, list | tuple | dict | set | frozenset):
        raise pickle.UnpicklingError("lists of lists are not expected")
    return value


def vector(values: Any) -> NDArray[Any]:
    """Return labels as an array; a list may hold whole numbers alone, no array again and again."""
    if isinstance(values, list) and not all(isinstance(each, int) for each in values):
        raise TypeError("it must be a vector of integers, not a list of anything else")
    return np.asarray(values)


ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,  # its name since NumPy 2
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
    ("codecs", "encode"): _encode,
}
