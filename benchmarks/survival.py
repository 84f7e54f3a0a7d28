r"""Kill trainings, fill disks, cut power and damage files, and count what is lost: nothing.

    python benchmarks/survival.py [--kills 200] [--seed 0] [--only NAME...] [--save DIR]

Every training is a real process that trains a tiny network on digits. After whatever is done to it,
`unswayed resume` goes on, and at the end every file is compared with those of an undisturbed
training: equal means the same bytes. Parts, which --only chooses from:

- `kills`: SIGKILL at random moments and at random system calls, also with a file half written, of
  every method of `unswayed list methods`; one kill in ten hits one of two processes
- `torchrun`: one of two processes of a real torchrun is killed, stopped, or cannot write
- `faults`: all of the following
- `full`: every single call that changes a file fails: the disk is full, read-only or broken
- `disks`: real file systems that are too small or read-only; only root can mount them
- `power`: the power fails after every call, in all the ways that POSIX allows
- `damage`: a checkpoint is cut at every length and overwritten in every range
- `clock`: clocks jump back and forth
- `writers`: two processes want the same folder

Linux on x86-64 only: system calls are watched with ptrace. It prints a table; `--save` writes
survival.json.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import survival_faults as faults
from common import hardware, save
from survival_children import warm
from survival_kills import kills
from survival_torchrun import torchrun

from unswayed import methods
from unswayed.runs.provenance import commit

FILE = "survival.json"
Part = Callable[[Path, random.Random, argparse.Namespace], dict[str, Any]]

FAULTS: dict[str, Part] = {
    "full": faults.full,
    "disks": faults.disks,
    "power": faults.power,
    "damage": faults.damage,
    "clock": faults.clock,
    "writers": faults.writers,
}
PARTS: dict[str, Part] = {"kills": kills, **FAULTS, "torchrun": torchrun}


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200, help="SIGKILLs (200)")
    parser.add_argument("--states", type=int, default=300, help="states after power failures (300)")
    parser.add_argument("--every", type=int, default=1, help="try every n-th failing call (1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="+", default=methods.names(), metavar="NAME")
    parser.add_argument("--only", nargs="+", choices=[*PARTS, "faults"], default=list(PARTS))
    parser.add_argument("--save", type=Path, metavar="DIR")
    return parser.parse_args(words)


def main() -> int:
    """Do the parts, and return 1 if anything was lost."""
    args = arguments()
    chosen = [x for each in args.only for x in (FAULTS if each == "faults" else [each])]
    top = Path(tempfile.mkdtemp(prefix="survival-")).resolve()
    found = kept(args.save)
    lost = 0
    try:
        warm(top / "warm")
        for name in chosen:
            folder = top / name
            folder.mkdir()
            facts = {"seed": args.seed, "commit": commit(), **hardware()}
            part = PARTS[name](folder, random.Random(f"{args.seed} {name}"), args)
            lost += show(name, part)
            found[name] = part | facts
            if args.save:
                save(found, args.save, FILE)
            shutil.rmtree(folder)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    return 1 if lost else 0


def kept(folder: Path | None) -> dict[str, Any]:
    """Return what was measured before; a part that is not chosen now stays as it is."""
    file = folder and folder / FILE
    return json.loads(file.read_text(encoding="utf-8")) if file and file.is_file() else {}


def show(name: str, part: dict[str, Any]) -> int:
    """Print the numbers of a part, and return how many things went wrong in it."""
    for what, number in part.items():
        if isinstance(number, int):
            print(f"{name:9} {number:7,}  {what}")
    for each in part["wrong"]:
        print(f"{name:9} WRONG    {each}")
    sys.stdout.flush()
    return len(part["wrong"])


if __name__ == "__main__":
    sys.exit(main())
