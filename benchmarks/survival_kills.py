"""SIGKILL at random moments, over all methods."""

from __future__ import annotations

import argparse
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from survival_calls import Call, Decision, Watch
from survival_children import command, differences, ended, fork, outcome, unswayed, words_for
from survival_pairs import Pair

from unswayed import Run

CHAINS = 3
"""A run is killed so many times at most before it may finish."""

IN_PAIRS = 10
"""One kill in so many hits one of two processes that train together."""


@dataclass(frozen=True)
class Whole:
    """An undisturbed training."""

    digests: dict[str, str]
    seconds: float
    calls: int


def undisturbed(folder: Path, method: str) -> Whole:
    """Train without disturbance, and count the calls that change files."""
    run, said = folder / "whole" / "run", folder / "said"
    watch, began = Watch(run.parent), time.monotonic()
    words = ["train", *words_for(method), "--run", str(run)]
    found = ended(watch.run(lambda: command(said, words)), said)
    if found.code:
        raise SystemExit(f"{method} cannot be trained:\n{found.said}")
    return Whole(outcome(run), time.monotonic() - began, len(watch.calls))


def going_on(run: Path, method: str) -> list[str]:
    """Return the command that starts the training, or resumes it."""
    if (run / "recipe.toml").exists():
        return ["resume", str(run)]
    return ["train", *words_for(method), "--run", str(run)]


def killed_at_a_time(said: Path, words: list[str], after: float) -> bool:
    """Start a command, kill it after so many seconds, and return whether it still ran."""
    pid = fork(lambda: command(said, words))
    time.sleep(after)
    os.kill(pid, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def killed_at_a_call(folder: Path, said: Path, words: list[str], number: int, how: str) -> bool:
    """Start a command, and kill it at its n-th call; "torn" takes the next write."""

    def decide(call: Call) -> Decision:
        late = call.number >= number
        return how if late and (how == "kill" or (call.kind == "write" and call.size > 1)) else None

    watch = Watch(folder, decide)
    return os.WIFSIGNALED(watch.run(lambda: command(said, words)))


def kills(folder: Path, rng: random.Random, args: argparse.Namespace) -> dict[str, Any]:
    """Kill as many times as asked, and compare every run at its end."""
    done: Counter[str] = Counter()
    by_method: Counter[str] = Counter()
    wrong: list[str] = []
    equal = runs = 0
    names = list(args.methods)
    whole: dict[str, Whole] = {}
    pair = Pair(folder / "pair", rng) if args.kills >= IN_PAIRS else None
    in_pairs = args.kills // IN_PAIRS
    while sum(done.values()) < args.kills:
        if pair is not None and done["one of two processes"] < in_pairs:
            left = in_pairs - done["one of two processes"]
            kind: Callable[[], Any] = lambda left=left: pair.chain(min(CHAINS, left))  # noqa: E731
            method, (hits, lost) = "ctrr in two processes", kind()
        else:
            method = names[runs % len(names)]
            place = folder / method
            if method not in whole:
                place.mkdir()
                whole[method] = undisturbed(place, method)
            left = args.kills - sum(done.values())
            most = min(rng.randint(1, CHAINS), left)
            hits, lost = chain(place / f"run-{runs}", method, whole[method], rng, most)
            runs += 1
        done += hits
        by_method[method] += sum(hits.values())
        equal += 0 if lost else sum(hits.values())
        wrong += [f"{method}: {each}" for each in lost]
    return {
        "kills": sum(done.values()),
        "of them equal at the end, byte for byte": equal,
        "methods": len(whole),
        **{f"kills {kind}": number for kind, number in sorted(done.items())},
        "by_method": dict(sorted(by_method.items())),
        "wrong": wrong,
    }


def chain(
    run: Path, method: str, whole: Whole, rng: random.Random, most: int
) -> tuple[Counter[str], list[str]]:
    """Train one run, killed some times, to its end; return the kills and what differs."""
    done: Counter[str] = Counter()
    said = run.with_name(f"{run.name}.said")
    home = run.with_name(f"{run.name}.home")
    home.mkdir()
    run = home / "run"
    while sum(done.values()) < most and not (run / "summary.json").exists():
        words = going_on(run, method)
        how = rng.choice(("at a time", "at a time", "at a call", "in a write"))
        number = rng.randint(1, whole.calls)
        if how == "at a time":
            hit = killed_at_a_time(said, words, rng.uniform(0, whole.seconds))
        else:
            what = "torn" if how == "in a write" else "kill"
            hit = killed_at_a_call(home, said, words, number, what)
        done[how] += hit
    last = unswayed(said, *going_on(run, method))
    wrong = [] if last.code == 0 and last.clear else [f"resume said: {last.said[-500:]}"]
    if not wrong:
        wrong = differences(whole.digests, run, "state-")
        wrong += [f"{each.name} is left over" for each in home.iterdir() if each.name != "run"]
        assert Run(run).finished
    return +done, wrong
