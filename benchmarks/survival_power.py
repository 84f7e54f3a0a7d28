"""What a power failure may leave of a folder: every state that POSIX allows, from recorded calls.

A file keeps what it held when it was last synced. A name in a folder, and what a rename changed,
are kept once the folder was synced. Of all that came later anything may be lost or kept, in the
order of each folder; of what was written, any beginning, or zeros in its place.
"""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from survival_calls import Call

Name = tuple[str, "Thing | None"]


@dataclass(eq=False)
class Thing:
    """A file or a folder, with all it has held since it was synced; the first is on the disk."""

    folder: bool
    contents: list[bytes] = field(default_factory=lambda: [b""])  # of a file
    changes: list[list[Name]] = field(default_factory=list)  # of a folder, since it was synced
    names: dict[str, Thing] = field(default_factory=dict)  # of a folder, on the disk

    def now(self) -> dict[str, Thing]:
        """Return the names in a folder, as processes see them."""
        return _changed(self.names, self.changes)

    def sync(self) -> None:
        """Put everything on the disk."""
        self.names, self.changes = self.now(), []
        self.contents = self.contents[-1:]


def _changed(names: dict[str, Thing], changes: list[list[Name]]) -> dict[str, Thing]:
    found = dict(names)
    for change in changes:
        for name, thing in change:
            if thing is None:
                found.pop(name, None)
            else:
                found[name] = thing
    return found


class Disk:
    """A folder on a disk, of which every change is told."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.root = _read(top)
        self.all = [self.root]

    def note(self, call: Call) -> None:
        """Take in a call that has just succeeded."""
        path = Path(call.path)
        if call.kind == "syncall":
            for thing in self._below(self.root):
                thing.sync()
        elif call.kind == "sync":
            self._thing(path).sync()
        elif call.kind == "mkdir":
            self._set(path, Thing(folder=True))
        elif call.kind in ("unlink", "rmdir"):
            self._set(path, None)
        elif call.kind == "rename":
            thing = self._thing(path)
            old, new = self._thing(path.parent), self._thing(Path(call.to).parent)
            if old is new:
                old.changes.append([(path.name, None), (Path(call.to).name, thing)])
            else:
                new.changes.append([(Path(call.to).name, thing)])
                old.changes.append([(path.name, None)])
        elif call.kind == "open" and call.creates:
            self._set(path, Thing(folder=False))
        elif call.kind in ("open", "write", "truncate"):
            self._thing(path).contents.append(path.read_bytes())

    def _set(self, path: Path, thing: Thing | None) -> None:
        self._thing(path.parent).changes.append([(path.name, thing)])

    def _thing(self, path: Path) -> Thing:
        thing = self.root
        for part in path.relative_to(self.top).parts:
            thing = thing.now()[part]
        return thing

    def _below(self, thing: Thing) -> list[Thing]:
        inner = [x for each in thing.now().values() for x in self._below(each)]
        return [thing, *inner]

    def fail(self, to: Path, rng: random.Random | None = None) -> None:
        """Write what is left after a power failure now.

        Args:
            to: a folder that is made anew.
            rng: chooses what is left of what was not synced; without it all of that is lost.
        """
        shutil.rmtree(to, ignore_errors=True)
        _write(self.root, to, rng)


def _read(path: Path) -> Thing:
    if path.is_dir():
        return Thing(folder=True, names={each.name: _read(each) for each in path.iterdir()})
    return Thing(folder=False, contents=[path.read_bytes()])


def _write(thing: Thing, to: Path, rng: random.Random | None) -> None:
    if not thing.folder:
        to.write_bytes(_content(thing, rng))
        return
    to.mkdir()
    kept = rng.choice((0, len(thing.changes), rng.randint(0, len(thing.changes)))) if rng else 0
    for name, each in _changed(thing.names, thing.changes[:kept]).items():
        _write(each, to / name, rng)


def _content(thing: Thing, rng: random.Random | None) -> bytes:
    if rng is None or len(thing.contents) == 1:
        return thing.contents[0]
    found = rng.choice((thing.contents[0], rng.choice(thing.contents)))
    if rng.random() < 0.3 and found is not thing.contents[0]:
        cut = rng.randint(0, len(found))  # its length is on the disk, and not all of its bytes
        found = found[:cut] + (b"" if rng.random() < 0.5 else bytes(len(found) - cut))
    return found


def same_names(left: Path, right: Path) -> bool:
    """Return whether two folders hold equal files, locks left out."""
    return listing(left) == listing(right)


def listing(top: Path) -> dict[str, bytes]:
    """Return all that a folder holds, locks left out."""
    return {
        os.path.relpath(each, top): b"" if each.is_dir() else each.read_bytes()
        for each in top.rglob("*")
        if not each.name.endswith("lock")
    }
