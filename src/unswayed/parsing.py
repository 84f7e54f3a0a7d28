"""Read JSON and arrays that may come from strangers: a value, or an error that can be expected."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unswayed.errors import DamagedFileError

if TYPE_CHECKING:
    from pydantic import ValidationError

PACKED = 1100
"""How many times larger than its file an archive of arrays may be; deflate shrinks 1032 times."""


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; raise nothing but `ValueError` if there is none."""
    try:
        return json.loads(text.decode() if isinstance(text, bytes) else text)
    except RecursionError:
        raise ValueError("it is not JSON: it is nested too deeply") from None
    except ValueError as error:  # numbers of thousands of digits and broken Unicode among them
        raise ValueError(f"it is not JSON: {error}") from error


def parse_object(text: str | bytes) -> dict[str, Any]:
    """Return the object of a JSON text; raise nothing but `ValueError` if there is none."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError("it is not an object in JSON")
    return value


def read_json(path: Path) -> dict[str, Any]:
    """Return the object of a JSON file; raise `DamagedFileError` if there is none."""
    try:
        return parse_object(path.read_bytes())
    except (ValueError, FileNotFoundError) as error:
        raise DamagedFileError(f"{path} is damaged: {error}") from error


def first_complaint(error: ValidationError) -> str:
    """Return what pydantic found wrong first, in a few words."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a .npz file, which may hold no pickled object.

    Raises:
        Exception: whatever zip, zlib and NumPy raise for a damaged file.
    """
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        size = sum(member.file_size for member in archive.infolist())
        if size > PACKED * path.stat().st_size:
            raise ValueError(f"it would unpack to {size:,} bytes, more than honest files do")
        file.seek(0)
        with np.load(file, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    for name, array in found.items():
        if not isinstance(array, np.ndarray):  # a member that is no .npy file comes as bytes
            raise ValueError(f"{name!r} is no array")
    return found
