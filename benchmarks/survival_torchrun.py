"""Two processes of a real torchrun: one is killed, stopped, or cannot write; or torchrun ends."""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from survival_children import Ended, differences
from survival_pairs import Pair

START = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
WAITING = 180
"""Seconds in which all must have begun, or ended."""

SMALL = 8192
"""Bytes that a file may have in the process that cannot write: metrics fit, weights do not."""

Disturb = Callable[[int, list[int]], None]


def torchrun(folder: Path, rng: random.Random, args: argparse.Namespace) -> dict[str, Any]:
    """Do everything to torchrun; all must end with one line, leave none behind, and be resumed."""
    pair = Pair(folder / "pair", rng)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    kills = max(1, 10 // args.every)
    tries: list[tuple[str, Disturb]] = [
        (f"process {number % 2} killed", _signalled(number % 2, signal.SIGKILL))
        for number in range(kills)
    ]
    tries += [
        ("process 0 cannot write", lambda _, ranks: _limit(ranks[0])),
        ("process 1 stopped, longer than the patience", _signalled(1, signal.SIGSTOP)),
        ("torchrun itself killed", lambda agent, _: os.kill(agent, signal.SIGKILL)),
    ]
    for number, (name, disturb) in enumerate(tries):
        home = folder / str(number)
        home.mkdir()
        lost = _one(pair, home, disturb, rng, ends_well=name.startswith("torchrun"))
        counts[name] += 1
        counts["ended in time, with at most one line, with nobody left, resumed equal"] += not lost
        wrong += [f"{name}: {each}" for each in lost]
    return {**counts, "wrong": wrong}


def _signalled(rank: int, number: int) -> Disturb:
    return lambda _, ranks: os.kill(ranks[rank], number)


def _limit(pid: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (SMALL, SMALL))


def _one(
    pair: Pair, home: Path, disturb: Disturb, rng: random.Random, *, ends_well: bool
) -> list[str]:
    run, said = home / "run", home / "said"
    words = [*START, "-m", "unswayed", "train", *pair.words, "--run-folder", str(run)]
    surroundings = {**os.environ, "UNSWAYED_PATIENCE": "0.1"}
    with said.open("wb") as out:
        agent = subprocess.Popen(words, stdout=out, stderr=out, env=surroundings)
    ranks: list[int] = []
    until = time.monotonic() + WAITING
    while len(ranks) < 2 or not any((run / "checkpoints").glob("state-*")):
        if agent.poll() is not None or time.monotonic() > until:
            agent.kill()
            return [f"it did not begin: {said.read_text()[-600:]}"]
        ranks = _ranks(agent.pid)
        time.sleep(0.01)
    time.sleep(rng.uniform(0, 0.3))
    disturb(agent.pid, ranks)
    code, wrong = agent.wait(timeout=WAITING), []
    while any(_alive(pid) for pid in ranks) and time.monotonic() < until:
        time.sleep(0.05)
    left = [pid for pid in ranks if _alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    found = Ended(code, said.read_text(errors="replace"))
    if code == 0 or left or "Traceback" in _of_unswayed(found.said):
        wrong.append(f"torchrun ended with {code}, {len(left)} left: {found.said[-1500:]}")
    if len(found.told) != (not ends_well):
        wrong.append(f"it told {found.told}: {found.said[-1500:]}")
    both = pair.together(pair.going_on(run))
    if any(each.code or not each.clear for each in both):
        wrong.append(f"resume said: {both[0].said[-500:]} {both[1].said[-500:]}")
    else:
        wrong += differences(pair.digests, run, "state-")
    return wrong


def _of_unswayed(said: str) -> str:
    """Leave out torchrun's own report of a failure, which has a traceback."""
    return said.partition("torch/distributed/run.py")[0].rpartition("Traceback")[0]


def _ranks(agent: int) -> list[int]:
    """Return the processes that torchrun started, in order."""
    found: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent != agent:
                continue
            for each in (folder / "environ").read_bytes().split(b"\0"):
                if each.startswith(b"RANK="):
                    found[int(each[5:])] = int(folder.name)
        except OSError:
            continue
    return [found[rank] for rank in sorted(found)]


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
