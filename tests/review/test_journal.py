from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from example_audits import HOSTILE

from unswayed.errors import DamagedFileError, UsageError
from unswayed.review.journal import Event, Journal, new_key, read_events, unknown
from unswayed.review.verdicts import plain


def decision(sample="a", choice="keep", **more):
    known = {"key": new_key(), "time": "2026-01-01", "reviewer": "me", **more}
    return Event(id=sample, decision=choice, **known)


@contextmanager
def disk_of(size):
    """No file can grow beyond so many bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "review.jsonl"


def test_what_is_appended_is_read_by_others(path):
    first, second = Journal(path), Journal(path)
    events = [decision("a"), decision("b", "relabel", label="cat", given="dog")]
    assert first.append(events) == events
    assert second.refresh() == events
    more = decision("c")
    assert second.append([more]) == [more]
    assert first.refresh() == [more]
    assert first.events == second.events == Journal(path).refresh()


@pytest.mark.parametrize("name", HOSTILE[:5] + HOSTILE[6:])
def test_any_name_comes_back_on_one_line(path, name):
    name = plain(name)
    Journal(path).append([decision(name, "relabel", label=name, given=name, reviewer=name[:200])])
    assert path.read_bytes().count(b"\n") == 1
    (event,) = read_events(path)
    assert (event.id, event.label, event.given) == (name, name, name)


def test_a_torn_last_line_is_ignored_and_then_cut(path):
    journal = Journal(path)
    journal.append([decision("a")])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"key": "0000", "ti')
    assert [event.id for event in Journal(path).refresh()] == ["a"]
    Journal(path).append([decision("b")])
    assert [event.id for event in Journal(path).refresh()] == ["a", "b"]
    assert path.read_bytes().startswith(whole)


def test_a_full_disk_loses_nothing_and_adds_nothing(path):
    journal = Journal(path)
    journal.append([decision("a")])
    before = path.read_bytes()
    with disk_of(len(before) + 30), pytest.raises(OSError, match="File too large"):
        journal.append([decision("b")])
    assert path.read_bytes() == before
    journal.append([decision("c")])
    assert [event.id for event in journal.events] == ["a", "c"]


def test_every_confirmed_decision_survives_kill_9(path):
    code = (
        "import sys; from pathlib import Path\n"
        "from unswayed.review.journal import Event, Journal, new_key\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "for n in range(100000):\n"
        "    journal.append([Event(key=new_key(), time='t', reviewer='r', id=str(n),"
        " decision='keep')])\n"
        "    print(n, flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
    )
    said = [process.stdout.readline() for _ in range(25)]
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    confirmed = [line for line in [*said, *rest.splitlines(keepends=True)] if line.endswith("\n")]
    kept = [event.id for event in Journal(path).refresh()]
    assert kept[: len(confirmed)] == [line.strip() for line in confirmed]
    assert len(kept) - len(confirmed) <= 1


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"{}",
        b"[1]",
        b'{"key": "0000", "time": "t", "reviewer": "r", "id": "a", "decision": "burn"}',
        b'{"key": "0000", "time": "t", "reviewer": "", "id": "a", "decision": "keep"}',
        b'{"key": "0000", "id": "' + b"x" * 300_000 + b'"}',
        b"\xff\xfe",
    ],
)
def test_a_line_that_is_no_decision_is_named(path, line):
    journal = Journal(path)
    journal.append([decision("a")])
    with path.open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(DamagedFileError, match="line 2 is no decision"):
        Journal(path).refresh()
    with pytest.raises(UsageError, match="line 2"):
        read_events(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_events(tmp_path / "nothing")


def test_a_journal_that_became_shorter_is_noticed(path):
    journal = Journal(path)
    journal.append([decision("a"), decision("b")])
    os.truncate(path, 0)
    with pytest.raises(DamagedFileError, match="shorter"):
        journal.refresh()


def test_a_folder_that_cannot_be_written_is_said_before_anybody_decides(tmp_path):
    (tmp_path / "review.jsonl").mkdir()  # stands for any reason, also for who may write anything
    with pytest.raises(UsageError, match="so no decision could be kept"):
        Journal(tmp_path / "review.jsonl").check_writable()


def test_a_reader_never_sees_what_is_being_written(path):
    journal, other = Journal(path), Journal(path)
    journal.append([decision("a")])
    with journal._lock, pytest.raises(TimeoutError):
        other._lock.acquire(timeout=0.05)


def test_unknown_events_are_told_by_key_and_sample():
    one = decision("a")
    same, other = one.model_copy(), one.model_copy(update={"id": "b"})
    assert unknown([same, other], [one]) == [other]
