"""Real processes that train tiny networks, forked from one that has loaded PyTorch already."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

os.environ["OMP_NUM_THREADS"] = "1"

import torch

from unswayed import Run, methods
from unswayed.cli import main
from unswayed.runs.provenance import commit
from unswayed.session import train

SMALL = (
    "data.size=8",
    "model.width=4",
    "train.epochs=4",
    "train.checkpoint_minutes=0",
    "train.batch_size=300",
    "train.threads=1",
    "train.drop_last=false",
)
EARLY = {
    "dividemix": ["learner.warmup=0.5", "learner.history=2"],
    "coteaching": ["learner.gradual=1"],
    "jocor": ["learner.gradual=1"],
    "limit": ["learner.sample=true"],
    "limit-laplace": ["learner.sample=true"],
    "truncated-gce": ["loss.start=0.5", "loss.every=1"],
    "ctrr-lc": ["learner.correction.start=0.5"],
    "sln-mo-lc": ["learner.correction.start=0.5", "loss.until=0.5"],
}
"""So that everything a method does happens within four epochs."""


def words_for(method: str) -> tuple[str, ...]:
    """Return a recipe in which a method does all it can within twenty steps."""
    heads = []
    if "framework.name" in methods.get(method).options:
        heads = ["framework.projector_widths=[16, 16]"]
    if method == "supcon":
        heads = ["learner.projector_widths=[16, 16]"]
    return ("digits", f"method={method}", *heads, *SMALL, *EARLY.get(method, ()))


def warm(folder: Path) -> None:
    """Load all that a child needs, once here rather than in every child."""
    torch.set_num_threads(1)
    commit()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(*words_for("ctrr"), run=folder)


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code, or minus the signal that killed it, and what it said."""

    code: int
    said: str

    @property
    def told(self) -> list[str]:
        """The lines in which `unswayed` says what is wrong."""
        lines = self.said.splitlines()
        return [line for line in lines if line.startswith("unswayed: ") and ": note: " not in line]

    @property
    def notes(self) -> list[str]:
        """The lines in which `unswayed` says what it did about damage."""
        return [line for line in self.said.splitlines() if line.startswith("unswayed: note: ")]

    @property
    def clear(self) -> bool:
        """Whether it ended well, or with one line and no traceback."""
        loud = "Traceback" in self.said or "Exception ignored" in self.said
        return not loud and len(self.told) == (self.code != 0)


def command(said: Path, words: Sequence[str], *, before: Callable[[], None] | None = None) -> int:
    """Be the command `unswayed WORDS...`, in a forked child; return the exit code."""
    with said.open("ab", buffering=0) as out:
        for stream in (1, 2):
            os.dup2(out.fileno(), stream)
    sys.stdout, sys.stderr = (os.fdopen(n, "w", buffering=1, closefd=False) for n in (1, 2))
    if before is not None:
        before()
    return main(words)


def ended(status: int, said: Path) -> Ended:
    """Return how a child ended, from what `waitpid` knows."""
    text = said.read_text(encoding="utf-8", errors="replace") if said.exists() else ""
    return Ended(os.waitstatus_to_exitcode(status), text)


def fork(work: Callable[[], int]) -> int:
    """Start work in a forked child, and return its process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        end_with(work)
    return pid


def end_with(work: Callable[[], int]) -> NoReturn:
    """End a forked child with work's exit code: it must not run the parent's clean-up."""
    code = 70
    try:
        code = work()
    except BaseException:
        traceback.print_exc()
    os._exit(code)


def unswayed(said: Path, *words: str, before: Callable[[], None] | None = None) -> Ended:
    """Run `unswayed WORDS...` in a forked child to its end."""
    said.unlink(missing_ok=True)
    pid = fork(lambda: command(said, words, before=before))
    return ended(os.waitpid(pid, 0)[1], said)


CHANGING = {"provenance.json", "README.md", "metrics.jsonl", "summary.json", ".lock"}
"""Times, paths and seconds are in these; of two, the rest is compared."""


def outcome(path: Path) -> dict[str, str]:
    """Return a digest of everything that a training is for, by file; seconds are left out."""
    run = Run(path)
    found = {
        file.relative_to(path).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name not in CHANGING
    }
    rows = [row.model_dump(exclude={"seconds"}) for row in run.metrics]
    summary = run.summary.model_dump(exclude={"seconds"})
    digests = {"metrics": rows, "summary": summary}
    return found | {
        k: hashlib.sha256(json.dumps(v).encode()).hexdigest() for k, v in digests.items()
    }


def differences(whole: dict[str, str], path: Path, ignoring: str = " ") -> list[str]:
    """Return which files are not those of an undisturbed training, and why."""
    found = outcome(path)
    names = [n for n in sorted(whole.keys() | found.keys()) if ignoring not in n]
    gone = [f"{n} is missing" for n in names if n not in found]
    more = [f"{n} is left over" for n in names if n not in whole]
    both = whole.keys() & found.keys()
    return gone + more + [f"{n} differs" for n in names if n in both and whole[n] != found[n]]
