"""Read files from strangers: odd bytes for every reader of the package, guided by coverage.

    python benchmarks/fuzz.py --minutes-each 2 [--only safetensors] [--save results]

atheris (`pip install 'unswayed[fuzz]'`) changes bytes so that they reach code which no file has
reached yet. `fuzz_targets.py` makes a file of the bytes, has a reader read it, and says what went
wrong. Each reader runs in a process of its own, one after the other. A file that breaks a reader is
kept in the folder of findings; `tests/fuzz` replays what was found before.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LONGEST_INPUT = 12_000
SILENT = 120
"""Seconds after which a reader that does not come back is ended: it hangs in native code."""

GIGABYTES = 6
"""Address space that a reader may take above what it has at first, so that the machine lives."""

INSTRUMENTED = ["unswayed", "fuzz_targets", "tomllib", "tarfile", "zipfile", "gzip", "PIL"]
"""Packages whose Python code guides the changes; what is written in C or Rust does not."""


def main() -> int:
    """Fuzz all targets, or those that are named, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes-each", type=float, default=2.0, help="for each reader (2)")
    parser.add_argument("--only", nargs="+", default=[], metavar="READER")
    parser.add_argument("--findings", default="runs/fuzz", help="where files are kept (runs/fuzz)")
    parser.add_argument("--corpus", help="keep the inputs here and go on from them next time")
    parser.add_argument("--seed", type=int, default=1, help="of the changes (1)")
    parser.add_argument("--save", metavar="FOLDER", help="write fuzz.json into this folder")
    args = parser.parse_args()
    targets = _targets()
    unknown = set(args.only) - set(targets)
    if unknown:
        raise SystemExit(f"--only: no reader {sorted(unknown)}; there are: {', '.join(targets)}")
    folder = Path(args.findings).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    from fuzz_targets import prepare

    prepare(folder / "run")
    rows = []
    for name in args.only or targets:
        rows.append({"target": name, "reads": targets[name].reads, **_fuzzed(name, args, folder)})
        print(_line(rows[-1]), flush=True)
    if args.save:
        from common import hardware, save

        file = Path(args.save) / "fuzz.json"
        known = json.loads(file.read_text(encoding="utf-8"))["targets"] if file.is_file() else []
        latest = {row["target"]: row for row in (*known, *rows)}  # of others, what was found before
        found = [latest[name] for name in targets if name in latest]
        save({"hardware": hardware(), "targets": found}, Path(args.save), file.name)
    return 1 if any(row["findings"] for row in rows) else 0


def _targets() -> dict[str, Any]:
    """Return the targets, whose code reports what it reaches."""
    import atheris
    import sklearn.neighbors  # noqa: F401 - large packages come first: they are not instrumented
    from torch._weights_only_unpickler import Unpickler

    Unpickler.load = atheris.instrument_func(Unpickler.load)
    sys.path.insert(0, str(Path(__file__).parent))
    with atheris.instrument_imports(include=INSTRUMENTED):
        from fuzz_targets import TARGETS
    return TARGETS


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['target']:<14} {row['executions']:>9,} files  {row['read']:>8,} read  "
        f"{row['features']:>7,} features  "
        f"{row['seconds']:>5.0f} s  {len(row['findings'])} findings"
    )


def _fuzzed(name: str, args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Fuzz a target until its time is over; if its process dies, that is a finding too."""
    from fuzz_targets import TARGETS

    scratch = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))
    corpus = Path(args.corpus) / name if args.corpus else scratch / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, each in enumerate(TARGETS[name].seeds()):
        (corpus / f"seed-{number:02d}").write_bytes(each)
    started, executions, features, seed = time.monotonic(), 0, 0, args.seed
    while (left := 60 * args.minutes_each - (time.monotonic() - started)) > 1:
        words = [f"-max_total_time={left:.0f}", f"-max_len={LONGEST_INPUT}", f"-seed={seed}"]
        words += ["-timeout=0", "-rss_limit_mb=0", "-detect_leaks=0", "-print_final_stats=1"]
        code = _watched(name, folder, scratch, [*words, str(corpus)])
        text = (scratch / "log.txt").read_text(encoding="utf-8", errors="replace")
        counts = re.findall(r"^#(\d+)\s.*?ft: (\d+)", text, flags=re.MULTILINE)
        done = re.findall(r"number_of_executed_units: (\d+)", text)
        executions += int(done[-1] if done else counts[-1][0] if counts else 0)
        features = max([features, *(int(each) for _, each in counts)])
        if code == 0:
            break
        if not (scratch / "current").is_file():
            raise SystemExit(f"{name} did not start:\n{text[-3000:]}")
        last = (scratch / "current").read_bytes()
        _keep(folder, name, last, f"its process ended with {code}\n{text[-2000:]}")
        seed += 1
    seconds, read = time.monotonic() - started, (scratch / "read").stat().st_size
    shutil.rmtree(scratch)
    said = [each.read_text(encoding="utf-8") for each in folder.glob(f"{name}-????????.txt")]
    return {
        "executions": executions,
        "read": read,
        "features": features,
        "seconds": round(seconds),
        "findings": sorted(each.partition("\n")[0] for each in said),
    }


def _watched(name: str, folder: Path, scratch: Path, words: list[str]) -> int:
    """Fuzz in a copy of this process and return its exit code; end it if it hangs for good."""
    process = os.fork()
    if process == 0:
        try:
            _fuzz(name, folder, scratch, words)
        finally:
            os._exit(99)  # libFuzzer leaves by itself when the time is over
    while True:
        time.sleep(0.2)
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        current = scratch / "current"
        if current.is_file() and time.time() - current.stat().st_mtime > SILENT:
            os.kill(process, 9)


def _fuzz(name: str, folder: Path, scratch: Path, words: list[str]) -> None:
    """Fuzz in this process, which ends with it."""
    import atheris
    from fuzz_targets import TARGETS, outcome

    log = os.open(scratch / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    place = scratch / "files"
    place.mkdir(exist_ok=True)
    now = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (now + GIGABYTES * 2**30,) * 2)
    current = (scratch / "current").open("wb", buffering=0)
    good = (scratch / "read").open("ab", buffering=0)  # a byte for each file: this process dies

    def once(data: bytes) -> None:
        current.seek(0)
        current.write(data)
        current.truncate()
        found = outcome(TARGETS[name], data, place)
        if found.read:
            good.write(b".")
        if found.problem:
            _keep(folder, name, data, found.problem)

    atheris.Setup(["fuzz", *words], once, enable_python_coverage=True)
    atheris.Fuzz()


def _keep(folder: Path, name: str, data: bytes, what: str) -> None:
    """Keep a finding, the shortest file of each kind of problem."""
    kind = re.sub(r"\d+", "0", what.partition(":")[0])
    place = folder / f"{name}-{hashlib.sha256(kind.encode()).hexdigest()[:8]}"
    known = place.with_suffix(".bin")
    if not known.exists() or known.stat().st_size > len(data):
        known.write_bytes(data)
        place.with_suffix(".txt").write_text(what + "\n", encoding="utf-8", errors="replace")


if __name__ == "__main__":
    sys.exit(main())
