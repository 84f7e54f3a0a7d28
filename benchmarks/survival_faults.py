"""Disks that are full or broken, power that fails, damaged files, clocks that jump, two writers."""

from __future__ import annotations

import argparse
import errno
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from survival_calls import Call, Decision, Watch
from survival_children import (
    Ended,
    command,
    differences,
    ended,
    fork,
    outcome,
    unswayed,
    words_for,
)
from survival_power import Disk, listing, same_names

from unswayed import files
from unswayed.errors import DamagedFileError
from unswayed.review.journal import Event, Journal, new_key, now

Found = dict[str, Any]
WORDS = (*words_for("ce"), "train.epochs=2", "train.checkpoint_minutes=5")
ERRORS = (errno.ENOSPC, errno.EROFS, errno.EIO)
WAITING = 60
"""Seconds in which a process must have ended or begun."""


def whole_run(folder: Path, words: tuple[str, ...] = WORDS) -> tuple[Path, dict[str, str]]:
    """Train without disturbance, and return the run and its digests."""
    run = folder / "whole" / "run"
    found = unswayed(folder / "said", "train", *words, "--run", str(run))
    if found.code:
        raise SystemExit(found.said)
    return run, outcome(run)


def resumed(run: Path, whole: dict[str, str], said: Path | None = None) -> list[str]:
    """Resume a run to its end, or start it anew if there is none; return what is wrong."""
    said = said or run.with_name("said-resumed")
    there = (run / "recipe.toml").exists()
    last = unswayed(said, *(["resume"] if there else ["train", *WORDS, "--run"]), str(run))
    if last.code or not last.clear:
        return [f"resume said: {last.said[-600:]}"]
    ignored = ("state-", ".damaged", ".older")
    differing = differences(whole, run, "state-")
    return [name for name in differing if not any(x in name for x in ignored)]


# --- a disk that is full, read-only or broken ---


def full(folder: Path, rng: random.Random, args: argparse.Namespace) -> Found:
    """Let every call that changes a file fail: from then on, or once."""
    run, whole = whole_run(folder)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    count = _calls(folder, run)
    for number in range(1, count + 1, args.every):
        for lasts in (True, False):
            code, lost = _one_failing(folder / f"{number}-{lasts}", number, lasts, whole)
            counts["failing calls of a training"] += 1
            counts["of them stopped it with one line"] += code != 0
            wrong += lost
    for name, work in LATER.items():
        found, lost = _later(folder / name, name, work, run, args.every)
        counts[f"failing calls of {name}"] += found
        wrong += lost
    return {**counts, "wrong": wrong}


def _calls(folder: Path, run: Path) -> int:
    watch = Watch(folder / "counted")
    words = ["train", *WORDS, "--run", str(folder / "counted" / "run")]
    watch.run(lambda: command(folder / "said", words))
    return len(watch.calls)


def _failing(number: int, lasts: bool) -> Callable[[Call], Decision]:
    def decide(call: Call) -> Decision:
        due = call.number >= number if lasts else call.number == number
        return ERRORS[number % len(ERRORS)] if due else None

    return decide


def _one_failing(
    home: Path, number: int, lasts: bool, whole: dict[str, str]
) -> tuple[int, list[str]]:
    home.mkdir()
    said, run = home / "said", home / "home" / "run"
    watch = Watch(home / "home", _failing(number, lasts))
    found = ended(watch.run(lambda: command(said, ["train", *WORDS, "--run", str(run)])), said)
    what = f"{os.strerror(ERRORS[number % 3])} at call {number}{' and later' if lasts else ''}"
    what += f" ({watch.calls[number - 1].kind} {Path(watch.calls[number - 1].path).name})"
    wrong = [] if found.clear and found.code >= 0 else [f"it said: {found.said[-600:]}"]
    wrong += [f"no file is named: {line}" for line in found.told if str(run.parent) not in line]
    wrong += resumed(run, whole, said)
    shutil.rmtree(home)
    return found.code, [f"{what}: {each}" for each in wrong]


def _decide_labels(run: Path) -> int:
    """Write two decisions into the journal of a review, as its server does."""
    journal = Journal(run / "review.jsonl")
    journal.refresh()
    for name in ("first", "second"):
        journal.append([Event(key=new_key(), time=now(), reviewer="me", id=name, decision="keep")])
    return 0


LATER: dict[str, Callable[[Path, Path], int]] = {
    "an audit": lambda said, run: command(said, ["audit", str(run)]),
    "an export": lambda said, run: command(
        said, ["export", str(run), "--to", str(run.parent / "out" / "fixed.csv"), "--as", "labels"]
    ),
    "a review": lambda said, run: _quietly(said, lambda: _decide_labels(run)),
}


def _quietly(said: Path, work: Callable[[], int]) -> int:
    from unswayed.cli import run_safely

    with said.open("ab", buffering=0) as out:
        os.dup2(out.fileno(), 2)
    return run_safely(work)


def _prepared(home: Path, run: Path) -> Path:
    """Return a copy of a finished run, which has an audit."""
    shutil.copytree(run, home / "home" / "run")
    return home / "home" / "run"


def _later(
    folder: Path, name: str, work: Callable[[Path, Path], int], run: Path, every: int
) -> tuple[int, list[str]]:
    """Let the calls of a later stage fail; what was there before must be there unchanged."""
    folder.mkdir()
    before = folder / "before"
    if name == "an audit":
        shutil.copytree(run, before)
    else:
        _audited(folder, run, before)
    place = _prepared(folder / "counted", before)
    watch = Watch(place.parent)
    watch.run(lambda: work(folder / "said", place))
    count, tried, wrong = len(watch.calls), 0, []
    for number in range(1, count + 1, every):
        home = folder / str(number)
        place = _prepared(home, before)
        watch = Watch(place.parent, _failing(number, lasts=True))
        said = home / "said"
        found = ended(watch.run(lambda: work(said, place)), said)  # noqa: B023
        tried += 1
        what = f"{name}, call {number} ({watch.calls[number - 1]}):"
        if not found.clear:
            wrong.append(f"{what} it said: {found.said[-600:]}")
        kept, known = listing(place), listing(before)
        changed = [
            n for n, content in known.items() if n in run_files(run) and kept.get(n) != content
        ]
        wrong += [f"{what} {n} was changed" for n in changed]
        said.unlink()
        again = ended(_forked(lambda: work(said, place)), said)  # noqa: B023
        if again.code or not again.clear:
            wrong.append(f"{what} once more: {again.said[-600:]}")
        shutil.rmtree(home)
    return tried, wrong


def run_files(run: Path) -> set[str]:
    """Return the names of a run's own files."""
    return set(listing(run))


def _audited(folder: Path, run: Path, to: Path) -> None:
    shutil.copytree(run, to)
    found = unswayed(folder / "said", "audit", str(to))
    if found.code:
        raise SystemExit(found.said)


def _forked(work: Callable[[], int]) -> int:
    return os.waitpid(fork(work), 0)[1]


def disks(folder: Path, rng: random.Random, args: argparse.Namespace) -> Found:
    """Train on real file systems that are too small, then read-only, then large enough."""
    run, whole = whole_run(folder)
    size = sum(file.stat().st_size for file in run.rglob("*") if file.is_file()) // 1024
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for tenths in range(1, 10):
        home, said = folder / f"disk-{tenths}", folder / f"disk-{tenths}.said"
        home.mkdir()
        _mount(home, f"size={max(4, size * tenths // 10)}k")
        what = f"a disk with room for {tenths} tenths of a run"
        train = ("train", *WORDS, "--run", str(home / "run"))
        try:
            found = [unswayed(said, *train)]
            _mount(home, "remount,ro,size=64m")
            found.append(unswayed(said, *train))
            _mount(home, "remount,rw,size=64m")
            counts["trainings on a disk that was full"] += 1
            counts["trainings on a disk that was read-only"] += 1
            wrong += [
                f"{what}: it ended with {each.code}: {each.said[-600:]}"
                for each in found
                if each.code == 0 or not each.clear
            ]
            wrong += [f"{what}: {each}" for each in resumed(home / "run", whole)]
        finally:
            subprocess.run(["umount", str(home)], check=True)
    return {**counts, "wrong": wrong}


def _mount(place: Path, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True)


# --- power that fails ---


def power(folder: Path, rng: random.Random, args: argparse.Namespace) -> Found:
    """Cut the power after every call; resume from some of all that may be left."""
    _, whole = whole_run(folder)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    home = folder / "home"
    home.mkdir()
    disk, kept, states = Disk(home), folder / "states", {}
    kept.mkdir()
    saved = [(0, 0)]

    def after(call: Call) -> None:
        disk.note(call)
        counts["calls after which the power failed"] += 1
        if call.kind == "sync" and call.path.endswith("/checkpoints"):
            saved.append(max([_newest(Path(call.path)), saved[-1]]))
        for variant in range(4):
            to = kept / f"{call.number:04}-{variant}"
            disk.fail(to, rng if variant else None)
            counts["states of the disk after it"] += 1
            states.setdefault(repr(sorted(listing(to).items())), (to, saved[-1]))
            if states[repr(sorted(listing(to).items()))][0] != to:
                shutil.rmtree(to)

    run = home / "runs" / "run"
    watch = Watch(home, after=after)
    watch.run(lambda: command(folder / "said", ["train", *WORDS, "--run", str(run)]))
    counts["different ones"] = len(states)
    disk.fail(folder / "last")
    if not same_names(home, folder / "last"):
        wrong.append("a finished training is not all on the disk")
    chosen = sorted(states.values())
    chosen = rng.sample(chosen, min(args.states, len(chosen)))
    for place, least in chosen:
        again = place / "runs" / "run"
        if (place / "runs").is_dir() and _newest(again / "checkpoints") < least:
            wrong.append(f"{place.name}: the state {least} was saved and is lost")
        elif least > (0, 0) and not (place / "runs").is_dir():
            wrong.append(f"{place.name}: the run is lost")
        wrong += [f"{place.name}: {each}" for each in resumed(again, whole, folder / "said")]
        counts["of them resumed to the same bytes"] += 1
        shutil.rmtree(place)
    counts["of them resumed to the same bytes"] -= len({w.split(":")[0] for w in wrong})
    found, lost = _finished_is_on_disk(folder, run)
    return {**counts, "finished commands that were all on the disk": found, "wrong": wrong + lost}


def _newest(checkpoints: Path) -> tuple[int, int]:
    """Return epoch and step of the newest state that is good."""
    found = [(0, 0)]
    for path in checkpoints.glob("state-*.safetensors"):
        try:
            plain = files.read_tensors(path)[1]
        except DamagedFileError:
            continue
        found.append((plain["epoch"], plain["step"]))
    return max(found)


def _finished_is_on_disk(folder: Path, run: Path) -> tuple[int, list[str]]:
    """Cut the power at the end of commands that come after the training."""
    before, wrong = folder / "audited", []
    _audited(folder, run, before)
    photos = folder / "photos"
    works = {**LATER, "an export of folders": _export_of_folders(folder, photos)}
    for name, work in works.items():
        home = folder / f"after {name}"
        source = folder / "photo-run" if name.endswith("folders") else before
        place = _prepared(home, run if name == "an audit" else source)
        disk = Disk(place.parent)
        watch = Watch(place.parent, after=disk.note)
        found = ended(watch.run(lambda: work(folder / "said", place)), folder / "said")  # noqa: B023
        disk.fail(folder / f"left {name}")
        if found.code or not same_names(place.parent, folder / f"left {name}"):
            wrong.append(f"{name} is not all on the disk: {found.code}")
    return len(works) - len(wrong), wrong


def _export_of_folders(folder: Path, photos: Path) -> Callable[[Path, Path], int]:
    """Train on a folder of photos, and return the work of exporting it as another one."""
    from PIL import Image

    pixels = torch.randint(0, 256, (40, 16, 16, 3), dtype=torch.uint8).numpy()
    for number, each in enumerate(pixels):
        place = photos / ("cat" if number % 2 else "dog") / f"{number:02}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(each).save(place)
    words = ("data.name=folder", f"data.path={photos}", "noise.name=none", "train.batch_size=8")
    run = folder / "photo-run"
    found = unswayed(folder / "said", "train", *WORDS, *words, "--run", str(run))
    found = found if found.code else unswayed(folder / "said", "audit", str(run))
    if found.code:
        raise SystemExit(found.said)
    return lambda said, run: command(
        said, ["export", str(run), "--to", str(run.parent / "fixed"), "--as", "copies"]
    )


# --- damaged files ---


def damage(folder: Path, rng: random.Random, args: argparse.Namespace) -> Found:
    """Cut and overwrite a checkpoint in every way; it is noticed, or nothing has changed."""
    run, whole = whole_run(folder, WORDS)
    state = sorted((run / "checkpoints").glob("state-*"))[-1]
    counts: Counter[str] = Counter({"bytes of the checkpoint": state.stat().st_size})
    wrong: list[str] = []
    for name, ways in (("lengths it was cut to", _cuts), ("ranges overwritten", _ranges)):
        tried, lost = _tried(folder, state, list(ways(state.read_bytes(), rng, args.every)))
        counts[name] += tried
        wrong += lost
    for damaged in (1, 2):
        for number in range(max(1, 6 // args.every)):
            lost = _resumed_from_damage(folder / f"{damaged}-{number}", run, whole, damaged, rng)
            counts[f"resumed with {damaged} damaged checkpoint{'s' * (damaged > 1)}"] += 1
            wrong += lost
    return {**counts, "wrong": wrong}


Way = tuple[int, bytes | None]
"""Where to cut, or where to write which bytes."""


def _cuts(content: bytes, rng: random.Random, every: int) -> Iterator[Way]:
    for length in range(0, len(content), every):
        yield length, None


def _ranges(content: bytes, rng: random.Random, every: int) -> Iterator[Way]:
    header = 8 + int.from_bytes(content[:8], "little")
    for size in (1, 8, 64, 512, 4096):
        end = header if size == 1 else len(content)
        for start in range(0, end, size * every):
            length = min(size, len(content) - start)
            for fresh in (bytes(length), b"\xff" * length, rng.randbytes(length)):
                yield start, fresh


def _tried(folder: Path, state: Path, ways: list[Way]) -> tuple[int, list[str]]:
    """Read a file that is damaged in each way, in a child that may crash."""
    said = folder / "damage"
    said.write_text("")

    def work() -> int:
        copy, content = folder / "copy.safetensors", state.read_bytes()
        tensors, note = files.read_tensors(state)
        for start, fresh in ways:
            new = (
                content[:start]
                if fresh is None
                else (content[:start] + fresh + content[start + len(fresh) :])
            )
            copy.write_bytes(new)
            try:
                found, other = files.read_tensors(copy)
            except DamagedFileError as error:
                wrong = "\n" in str(error)
            except BaseException as error:
                wrong, other = True, f"{type(error)} {error}"
            else:
                wrong = (note, tensors_as_bytes(tensors)) != (other, tensors_as_bytes(found))
            if wrong:
                with said.open("a") as out:
                    out.write(f"{start} {fresh and fresh[:8]!r}: wrong or unclear\n")
        return 0

    status = _forked(work)
    lost = said.read_text().splitlines()
    return len(ways), lost + ([f"reading ended with {status}"] if status else [])


def tensors_as_bytes(tensors: dict[str, torch.Tensor]) -> dict[str, tuple[Any, ...]]:
    """Return tensors so that equal ones are equal, also where they hold no number."""
    return {
        name: (x.dtype, tuple(x.shape), x.reshape(-1).view(torch.uint8).numpy().tobytes())
        for name, x in tensors.items()
    }


def _resumed_from_damage(
    home: Path, run: Path, whole: dict[str, str], damaged: int, rng: random.Random
) -> list[str]:
    """Damage checkpoints of a run that is not finished, and resume it."""
    place = _prepared(home, run)
    for name in ("summary.json", "model.safetensors", "selected.safetensors", "config.json"):
        (place / name).unlink()
    for state in sorted((place / "checkpoints").glob("state-*"))[-damaged:]:
        content = bytearray(state.read_bytes())
        start = rng.randrange(len(content))
        content[start : start + 64] = rng.randbytes(len(content[start : start + 64]))
        state.write_bytes(content if rng.random() < 0.5 else content[:start])
    good = {**_good(place)}
    wrong = resumed(place, whole)
    notes = Ended(0, place.with_name("said-resumed").read_text()).notes
    if len(notes) != damaged:
        wrong.append(f"it noted {notes}")
    kept = set(listing(place).values())
    wrong += [f"{name} is gone" for name, content in good.items() if content not in kept]
    return [f"{damaged} damaged: {each}" for each in wrong]


def _good(run: Path) -> dict[str, bytes]:
    """Return the records and weights of a run."""
    good = [*(run / "records").iterdir(), *(run / "checkpoints").glob("selected-*")]
    return {path.name: path.read_bytes() for path in good}


# --- clocks that jump ---


def clock(folder: Path, rng: random.Random, args: argparse.Namespace) -> Found:
    """Let clocks jump at every look: nothing but numbers of seconds may differ."""
    words = (*WORDS, "train.checkpoint_minutes=1e-9")
    _, whole = whole_run(folder, words)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    jumps: dict[str, Callable[[], float]] = {
        "back": lambda: -rng.uniform(0, 1e5),
        "forth": lambda: rng.uniform(0, 1e5),
        "back and forth": lambda: rng.uniform(-1e5, 1e5),
    }
    for name, jump in jumps.items():
        home = folder / name / "home"
        home.mkdir(parents=True)
        watch, said = Watch(home), folder / "said"
        said.unlink(missing_ok=True)
        train = ["train", *words, "--run", str(home / "run")]
        status = watch.run(lambda: command(said, train, before=lambda: _jumping(jump)))  # noqa: B023
        found = ended(status, said)
        counts["trainings with clocks that jump"] += 1
        if found.code or not found.clear:
            wrong.append(f"{name}: {found.said[-600:]}")
            continue
        wrong += [f"{name}: {n}" for n in differences(whole, home / "run", "state-")]
        rows = files.read_json_lines(home / "run" / "metrics.jsonl")
        seconds = [0.0, *(row["seconds"] for row in rows)]
        if seconds != sorted(seconds):
            wrong.append(f"{name}: seconds {seconds}")
        states = {c.to for c in watch.calls if c.kind == "rename" and "/state-" in c.to}
        counts["checkpoints that were written at their time"] += len(states)
        if len(states) != 10:  # two epochs of four steps, each saved, and both their ends
            wrong.append(f"{name}: only {len(states)} checkpoints: {sorted(states)}")
    return {**counts, "wrong": wrong}


def _jumping(jump: Callable[[], float]) -> None:
    """Make all clocks of this process jump at every look."""
    ahead = 0.0

    def replaced(real: Callable[[], float]) -> Callable[[], float]:
        def told() -> float:
            nonlocal ahead
            ahead += jump()
            return real() + ahead

        return told

    for name in ("time", "monotonic", "perf_counter"):
        setattr(time, name, replaced(getattr(time, name)))


# --- two writers ---


def writers(folder: Path, rng: random.Random, args: argparse.Namespace) -> Found:
    """Start two processes on one folder; one is refused in one line, also if one is killed."""
    _, whole = whole_run(folder)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(max(1, 24 // args.every)):
        home = folder / str(number) / "home"
        home.mkdir(parents=True)
        place, saids = home / "run", [home.parent / f"{each}.said" for each in "ab"]
        words = ["train", *WORDS, "--run", str(place)]
        pids = []
        for said in saids:
            pids.append(fork(partial(command, said, words)))
            time.sleep(rng.choice((0, 0, 0.01, 0.1, 0.5)))
        if rng.random() < 0.3:
            time.sleep(rng.uniform(0, 1))
            os.kill(rng.choice(pids), signal.SIGKILL)
        both = [ended(os.waitpid(pid, 0)[1], s) for pid, s in zip(pids, saids, strict=True)]
        counts["pairs of processes on one folder"] += 1
        counts["processes refused in one line"] += sum(each.code == 2 for each in both)
        for each in both:
            if not (each.code == -signal.SIGKILL or each.clear) or each.code not in (0, 2, -9):
                wrong.append(f"{number}: {each.code} {each.said[-600:]}")
        wrong += [f"{number}: {each}" for each in resumed(place, whole)]
    return {**counts, "wrong": wrong}
