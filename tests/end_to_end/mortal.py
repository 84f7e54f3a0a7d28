"""Train in children that are killed, until a run is finished. Not a test: test_kill.py starts it.

    python mortal.py RUN KIND NUMBER... -- WORDS...

KIND `fsync` or `replace`: child i dies by SIGKILL in the NUMBER-th call of that function, that is
in the middle of a save. KIND `after`: child i is killed from outside after NUMBER milliseconds of
training. When the numbers are used up, a child may finish. Prints how many were killed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from pathlib import Path

import torch

import unswayed
from unswayed.build import assemble
from unswayed.recipe import Recipe

torch.set_num_threads(1)


def die_in(kind: str, number: int) -> None:
    calls = 0
    owner = os if kind == "fsync" else Path
    real = getattr(owner, kind)

    def mortal(*args: object) -> object:
        nonlocal calls
        calls += 1
        if calls == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args)

    setattr(owner, kind, mortal)


def prepare(words: list[str]) -> None:
    """Import all that a child needs, once here rather than in every child."""
    trainer, _ = assemble(Recipe.load("digits", *words))
    next(trainer.events())
    trainer.measure()


def live(run: str, words: list[str], started: int | None) -> None:
    def watch(event: object) -> None:
        nonlocal started
        if started is not None:
            os.write(started, b"x")
            os.close(started)
            started = None

    code = 1
    try:
        unswayed.train("digits", *words, run=run, watch=watch)
        code = 0
    except BaseException:
        traceback.print_exc()
    os._exit(code)  # a forked child must not run the parent's clean-up


def child(run: str, words: list[str], kind: str, number: int | None) -> bool:
    """Return whether the child was killed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        if number is not None and kind != "after":
            die_in(kind, number)
        live(run, words, writing)
    os.close(writing)
    if number is not None and kind == "after":
        os.read(reading, 1)  # its first step is done
        time.sleep(number / 1000)
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(reading)
    if not os.WIFSIGNALED(status) and os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit("a child failed")
    return os.WIFSIGNALED(status)


def main() -> None:
    split = sys.argv.index("--")
    run, kind, *numbers = sys.argv[1:split]
    words = sys.argv[split + 1 :]
    prepare(words)
    killed = sum(child(run, words, kind, int(number)) for number in numbers)
    while not (Path(run) / "summary.json").exists():
        child(run, words, kind, None)
    sys.stdout.write(f"{killed}\n")


if __name__ == "__main__":
    main()
