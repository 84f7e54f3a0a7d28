"""Two processes that train together, started as torchrun would; one of them is killed."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist
from survival_calls import Call, Decision, Watch
from survival_children import Ended, command, differences, ended, fork, outcome, words_for

PATIENCE = 120
"""Seconds in which the other process must have noticed."""


class Store:
    """The place where processes meet, in a process of its own as with torchrun."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        self.pid = fork(lambda: self._serve(writing))
        os.close(writing)
        self.port = int(os.read(reading, 16))
        os.close(reading)

    @staticmethod
    def _serve(writing: int) -> int:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=60))
        os.write(writing, str(store.port).encode())
        while True:
            signal.pause()

    def close(self) -> None:
        """End it."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Pair:
    """Trains `ctrr` in two processes."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        folder.mkdir(parents=True)
        self.folder, self.rng, self.number = folder, rng, 0
        self.words = words_for("ctrr")
        self.whole = folder / "whole" / "run"
        watch, began = Watch(self.whole.parent), time.monotonic()
        first, other = self.together(["train", *self.words, "--run", str(self.whole)], watch)
        if first.code or other.code:
            raise SystemExit(f"two processes cannot train:\n{first.said}\n{other.said}")
        self.seconds, self.calls = time.monotonic() - began, len(watch.calls)
        self.digests = outcome(self.whole)

    def going_on(self, run: Path) -> list[str]:
        """Return the command that starts the training, or resumes it."""
        if (run / "recipe.toml").exists():
            return ["resume", str(run)]
        return ["train", *self.words, "--run", str(run)]

    def together(
        self,
        words: list[str],
        watch: Watch | None = None,
        disturb: Callable[[list[int]], None] | None = None,
    ) -> list[Ended]:
        """Run a command in two processes, and return how both ended.

        Args:
            words: the command.
            watch: for the calls of the first process.
            disturb: called with both process ids once they have started.
        """
        store = Store()
        saids = [self.folder / f"said-{rank}" for rank in (0, 1)]
        for said in saids:
            said.unlink(missing_ok=True)

        def work(rank: int) -> Callable[[], int]:
            facts = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_PORT": store.port}
            facts |= {"MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RUN_ID": "survival"}
            facts["TORCHELASTIC_USE_AGENT_STORE"] = True

            def join() -> None:
                os.environ.update({name: str(value) for name, value in facts.items()})

            return lambda: command(saids[rank], words, before=join)

        try:
            other = fork(work(1))
            if watch is not None:
                status = watch.run(work(0))
                found = {0: status, **both_waited({1: other}, failed=status != 0)}
            else:
                pids = {0: fork(work(0)), 1: other}
                if disturb is not None:
                    disturb([*pids.values()])
                found = both_waited(pids)
            return [ended(found[rank], saids[rank]) for rank in (0, 1)]
        finally:
            store.close()

    def chain(self, most: int) -> tuple[Counter[str], list[str]]:
        """Train one run, of which one process is killed some times, to its end."""
        self.number += 1
        home = self.folder / f"home-{self.number}"
        home.mkdir()
        run, done, wrong = home / "run", 0, []
        while done < most and not (run / "summary.json").exists():
            both = self._killed(home, run)
            hit = any(each.code == -signal.SIGKILL for each in both)
            done += hit
            told = [line for each in both for line in each.told]
            if hit and not (run / "summary.json").exists():
                left = next(each for each in both if each.code != -signal.SIGKILL)
                early = left.code == -signal.SIGTERM and len(told) < 2  # it was quicker
                if "Traceback" in left.said or not (early or (left.code > 0 and len(told) == 1)):
                    wrong.append(f"the other process ended with {left.code}: {left.said[-500:]}")
        both = self.together(self.going_on(run))
        if any(each.code or not each.clear for each in both):
            wrong.append(f"resume said: {both[0].said[-500:]} {both[1].said[-500:]}")
        else:
            wrong += differences(self.digests, run, "state-")
        return Counter({"one of two processes": done}), wrong

    def _killed(self, home: Path, run: Path) -> list[Ended]:
        words, rng = self.going_on(run), self.rng
        if rng.random() < 0.5:
            number = rng.randint(1, self.calls)
            how = rng.choice(("kill", "torn"))

            def decide(call: Call) -> Decision:
                writes = call.kind == "write" and call.size > 1
                return how if call.number >= number and (how == "kill" or writes) else None

            return self.together(words, Watch(home, decide))
        after, which = rng.uniform(0, self.seconds), rng.randrange(2)

        def disturb(pids: list[int]) -> None:
            time.sleep(after)
            os.kill(pids[which], signal.SIGKILL)

        return self.together(words, disturb=disturb)


def both_waited(pids: dict[int, int], *, failed: bool = False) -> dict[int, int]:
    """Return how processes ended; if one fails the others get SIGTERM, as from torchrun.

    One that does not end by itself is aborted, which is a failure of the experiment.
    """
    found: dict[int, int] = {}
    until, told = time.monotonic() + PATIENCE, False
    while len(found) < len(pids):
        for rank in pids.keys() - found.keys():
            done, status = os.waitpid(pids[rank], os.WNOHANG)
            if done:
                found[rank] = status
        late, failed = time.monotonic() > until, failed or any(found.values())
        if late or (failed and not told):
            for rank in pids.keys() - found.keys():
                os.kill(pids[rank], signal.SIGABRT if late else signal.SIGTERM)
            told = True
        time.sleep(0.02)
    return found
