"""Find official data: in the option `root`, or in the variable UNSWAYED_DATA."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from unswayed.errors import UsageError

VARIABLE = "UNSWAYED_DATA"


def folders(root: str | None, needs: str) -> list[Path]:
    """Return the folders to search.

    Args:
        root: the option; without it the variable is used, which may name several folders as PATH
            does.
        needs: what must be in one of them, for the error message.

    Raises:
        UsageError: no folder is named, or none of those named exists.
    """
    named = [root] if root else os.environ.get(VARIABLE, "").split(os.pathsep)
    places = [Path(name).expanduser().absolute() for name in named if name.strip()]
    if not places:
        raise UsageError(
            f"where are the data? Set data.root=FOLDER, or the environment variable {VARIABLE}. "
            f"That folder must hold {needs}"
        )
    found = [place for place in places if place.exists()]
    if not found:
        said = "data.root" if root else VARIABLE
        raise UsageError(
            f"there is no folder {places[0]}, which {said} names; it must hold {needs}"
        )
    return found


def look(root: str | None, names: Sequence[str], needs: str) -> Path | None:
    """Return the first of these files or folders that exists.

    Names come in order of preference; the root may also be the file or folder itself.
    """
    for place in folders(root, needs):
        for name in names:
            if place.name == name:
                return place
            if (place / name).exists():
                return place / name
    return None


def find(root: str | None, names: Sequence[str], needs: str) -> Path:
    """Return the first of these files or folders, or say what to put where."""
    found = look(root, names, needs)
    if found is None:
        looked = " and ".join(map(str, folders(root, needs)))
        raise UsageError(f"nothing was found in {looked}, which must hold {needs}")
    return found


def fetch(url: str, target: Path, md5: str) -> None:
    """Download a file; it gets its name only when it is complete and has this md5.

    Raises:
        UsageError: there is no connection, no space, or the file is not the one expected.
    """
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    digest = hashlib.md5(usedforsecurity=False)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with urlopen(url, timeout=60) as answer, part.open("wb") as file:
            while block := answer.read(2**20):
                digest.update(block)
                file.write(block)
        if digest.hexdigest() != md5:
            raise UsageError(
                f"{url} is not the official file: its md5 is {digest.hexdigest()}, expected {md5}; "
                "nothing was kept"
            )
        part.replace(target)
    except (OSError, HTTPException) as error:
        raise UsageError(
            f"{url} could not be downloaded: {error}. Fetch it by other means and put it at "
            f"{target}"
        ) from error
    finally:
        part.unlink(missing_ok=True)


def expect(what: str, found: int, official: int) -> None:
    """Warn if the number of samples is not the official one."""
    if found != official:
        warnings.warn(
            f"{what} has {found:,} images, not the official {official:,}; numbers will not be "
            "comparable with published ones",
            stacklevel=3,
        )
