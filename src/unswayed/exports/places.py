"""Where an export goes: never over anything but an unchanged export of the same run.

`exports.json` in the run folder has the digests of what was exported, by place.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unswayed import files
from unswayed.errors import DamagedFileError, UsageError
from unswayed.parsing import parse_object
from unswayed.runs import Run, remove_leftovers

FILE = "exports.json"


@contextmanager
def placed(run: Run, to: Path) -> Iterator[Path]:
    """Yield a path to make a file or a folder at; after the block it is renamed to `to`.

    If the same is there already, nothing is changed.
    """
    check_free(run, to)
    files.make_folder(to.parent)
    remove_leftovers(to)
    new = to.with_name(f".{to.name}.{os.getpid()}.new")
    try:
        yield new
        fresh = digest(new)
        if to.exists() and digest(to) == fresh:
            return
        _record(run, to, fresh)  # first: a crash in between leaves nothing that is not known
        _rename(new, to)
    finally:
        _remove(new)


def check_free(run: Run, to: Path) -> None:
    """Refuse a place with something that this run did not export, or that was changed since."""
    if not (to.exists() or to.is_symlink()):
        return
    known = _records(run).get(_key(run, to))
    if known is None or to.is_symlink():
        raise UsageError(f"{to} exists and is no export of {run.path}; choose another --to")
    if digest(to) not in known:
        raise UsageError(
            f"{to} was changed since it was exported; move it away, or choose another --to"
        )


def check_outside(run: Run, to: Path) -> None:
    """Refuse the input, and places among the images of a folder."""
    data = run.recipe.sections["data"]
    for option, value in data.items():
        if option in ("path", "corrected") and value and to.resolve() == Path(value).resolve():
            raise UsageError(f"{to} is the input itself, data.{option}; choose another --to")
    if data["name"] == "folder" and to.resolve().is_relative_to(Path(data["path"]).resolve()):
        raise UsageError(f"{to} lies inside the data folder {data['path']}; choose another --to")


def digest(path: Path) -> str:
    """Return a hash of a file, or of all names, links and files in a folder."""
    found = hashlib.sha256()
    inside = sorted(path.rglob("*")) if path.is_dir() else [path]
    for each in inside:
        found.update(os.fsencode(each.relative_to(path)) + b"\0")
        if each.is_symlink():
            found.update(b"link " + os.fsencode(each.readlink()))
        elif each.is_file():
            with each.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def _key(run: Run, to: Path) -> str:
    """Return a place as text; below the run folder it moves with the run."""
    top, place = run.path.resolve(), to.parent.resolve() / to.name
    return str(place.relative_to(top) if place.is_relative_to(top) else place)


def _records(run: Run) -> dict[str, list[str]]:
    file = run.path / FILE
    if not file.is_file():
        return {}
    try:
        found = parse_object(file.read_bytes())
        return {str(place): [str(each) for each in known] for place, known in found.items()}
    except (ValueError, TypeError) as error:
        raise DamagedFileError(f"{file} is damaged: {error}; remove it") from error


def _record(run: Run, to: Path, fresh: str) -> None:
    """Note what is about to be there; what is there now stays known, in case of a crash."""
    known, key = _records(run), _key(run, to)
    older = [each for each in known.get(key, []) if each != fresh]
    files.write_json(run.path / FILE, known | {key: [*older[-1:], fresh]})


def _rename(new: Path, to: Path) -> None:
    if new.is_file():
        with files.atomic(to) as temporary:
            new.replace(temporary)
        return
    if hasattr(os, "sync"):  # its files have no temporary names of their own
        os.sync()
    old = to.with_name(f".{to.name}.{os.getpid()}.old")
    if to.exists():
        to.rename(old)
    new.rename(to)
    files.sync_folder(to.parent)
    _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
