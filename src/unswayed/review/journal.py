"""The journal of a review: every decision as one line of JSON, on the disk before it counts.

Nothing is ever rewritten. Undo and redo are lines of their own, so a journal can be read after a
crash, by two servers at once, or beside the journal of somebody else.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unswayed.errors import DamagedFileError, UsageError
from unswayed.files import sync_folder
from unswayed.parsing import first_complaint

FILE = "review.jsonl"
LONGEST_NAME, LONGEST_LINE = 8_000, 200_000
"""Characters of an id or a class name, and bytes of a line that holds three of them, escaped."""

WAIT = 5
"""Seconds that another process may take to write."""

Choice = Literal["relabel", "keep", "none", "unsure", "remove"]
How = Literal["single", "bulk", "recheck", "repeat", "settle", "report"]


class Event(BaseModel):
    """One line: a decision about a sample, or the undo or redo of an earlier key."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    key: str = Field(min_length=4, max_length=64)  # the same for all samples of a bulk decision
    time: str = Field(max_length=64)
    reviewer: str = Field(min_length=1, max_length=200)
    id: str = Field(default="", max_length=LONGEST_NAME)
    decision: Choice | Literal["undo", "redo"]
    label: str | None = Field(default=None, max_length=LONGEST_NAME)  # the new one, of `relabel`
    given: str = Field(default="", max_length=LONGEST_NAME)  # the label that was judged
    how: How = "single"
    of: str = Field(default="", max_length=64)  # the key that is undone or redone

    def line(self) -> bytes:
        """Return the event as a line of the file."""
        return json.dumps(self.model_dump(exclude_defaults=True)).encode() + b"\n"

    @property
    def identity(self) -> tuple[str, str]:
        """What two journals can be compared by."""
        return self.key, self.id


def new_key() -> str:
    """Return a name that no other decision has."""
    return secrets.token_hex(8)


def now() -> str:
    """Return the time, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Journal:
    """The file, and the events that were read from it so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: list[Event] = []
        self._read = 0  # bytes
        self._lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=WAIT)

    def refresh(self) -> list[Event]:
        """Read what was added since, here or by another process, and return it."""
        try:
            if self.path.stat().st_size == self._read:
                return []
        except FileNotFoundError:
            return []
        with self._locked(), self.path.open("rb") as file:  # nobody is writing now
            file.seek(0, os.SEEK_END)
            if file.tell() < self._read:
                raise DamagedFileError(f"{self.path} has become shorter; start anew")
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]  # a crash may have left a part of a line
        fresh = parse(whole, self.path, len(self.events))
        self._read += len(whole)
        self.events += fresh
        return fresh

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the file; in a folder that nobody can write to, that is not needed."""
        try:
            self._lock.acquire()
        except Timeout:
            raise
        except OSError:
            yield
            return
        try:
            yield
        finally:
            self._lock.release()

    def append(self, events: Sequence[Event]) -> list[Event]:
        """Write events and sync them; return them with what others have added before.

        If the disk is full, nothing is added and an OSError says so.
        """
        data = b"".join(event.line() for event in events)
        with self._lock:
            new = not self.path.exists()
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                end = _cut_torn_line(handle)
                try:
                    _write_all(handle, data)
                    os.fsync(handle)
                except OSError:
                    os.ftruncate(handle, end)
                    raise
            finally:
                os.close(handle)
            if new:
                sync_folder(self.path.parent)
            return self.refresh()

    def check_writable(self) -> None:
        """Refuse a folder in which no decision could be kept."""
        try:
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666))
        except OSError as error:
            raise UsageError(
                f"{self.path} cannot be written ({error.strerror}), so no decision could be kept; "
                "make the folder writable, or review a copy of it"
            ) from error


def parse(data: bytes, where: Path, before: int = 0) -> list[Event]:
    """Return the events of some lines; a line that is none is named.

    Args:
        data: whole lines.
        where: the file, for the message.
        before: lines that came before them.
    """
    found = []
    for number, line in enumerate(data.split(b"\n")[:-1], start=before + 1):
        try:
            if len(line) > LONGEST_LINE:
                raise DamagedFileError(f"{where}, line {number} is no decision: it is too long")
            found.append(Event.model_validate_json(line))
        except ValidationError as error:
            said = first_complaint(error)
            raise DamagedFileError(f"{where}, line {number} is no decision: {said}") from error
    return found


def read_events(path: Path) -> list[Event]:
    """Return the events of a file, such as a journal of another run or a report's download."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    if data and not data.endswith(b"\n"):
        data += b"\n"
    try:
        return parse(data, path)
    except DamagedFileError as error:
        raise UsageError(
            f"{error}; expected is a review.jsonl of a run, or what a report downloads"
        ) from error


def unknown(events: Iterable[Event], known: Iterable[Event]) -> list[Event]:
    """Return the events that are not among the known ones, in order."""
    seen = {event.identity for event in known}
    return [event for event in events if event.identity not in seen]


def _cut_torn_line(handle: int) -> int:
    """Remove what a crash left of a line that was never confirmed; return the length."""
    end = os.lseek(handle, 0, os.SEEK_END)
    if not end or os.pread(handle, 1, end - 1) == b"\n":
        return end
    start = max(0, end - LONGEST_LINE)
    whole = start + os.pread(handle, end - start, start).rfind(b"\n") + 1
    os.ftruncate(handle, whole)
    return whole


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
