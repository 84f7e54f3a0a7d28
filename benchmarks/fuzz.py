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
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LONGEST_INPUT = 4096
SILENT = 120
"""Seconds after which a reader that does not come back is ended: it hangs in native code."""

GIGABYTES = 6
"""Address space that a reader may take above what it has at first, so that the machine lives."""

INSTRUMENTED = ["unswayed", "fuzz_targets", "tomllib", "tarfile", "zipfile", "gzip", "PIL"]
"""Packages whose Python code guides the changes; what is written in C or Rust does not."""


def main() -> int:
    """Fuzz all targets, or those that are named, and print a table."""
    args = _arguments()
    if args.child:
        return _child(args.child, Path(args.findings), sys.argv[sys.argv.index("--") + 1 :])
    sys.path.insert(0, str(Path(__file__).parent))
    from fuzz_targets import TARGETS, prepare

    unknown = set(args.only) - set(TARGETS)
    if unknown:
        raise SystemExit(f"--only: no reader {sorted(unknown)}; there are: {', '.join(TARGETS)}")
    folder = Path(args.findings).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    prepare(folder / "run")  # once for all readers
    rows = []
    for name in args.only or TARGETS:
        rows.append({"target": name, "reads": TARGETS[name].reads, **_fuzzed(name, args, folder)})
        print(_line(rows[-1]), flush=True)
    if args.save:
        from common import hardware, save

        found = {"minutes_each": args.minutes_each, "hardware": hardware(), "targets": rows}
        save(found, Path(args.save), "fuzz.json")
    return 1 if any(row["findings"] for row in rows) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes-each", type=float, default=2.0, help="for each reader (2)")
    parser.add_argument("--only", nargs="+", default=[], metavar="READER")
    parser.add_argument("--findings", default="runs/fuzz", help="where files are kept (runs/fuzz)")
    parser.add_argument("--corpus", help="keep the inputs here and go on from them next time")
    parser.add_argument("--seed", type=int, default=1, help="of the changes (1)")
    parser.add_argument("--save", metavar="FOLDER", help="write fuzz.json into this folder")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args(sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else None)


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['target']:<14} {row['executions']:>9,} files  {row['features']:>7,} features  "
        f"{row['seconds']:>5.0f} s  {len(row['findings'])} findings"
    )


def _fuzzed(name: str, args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Fuzz one target until its time is over; a process that dies is a finding, and another starts."""
    from fuzz_targets import TARGETS

    scratch = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))
    corpus = Path(args.corpus) / name if args.corpus else scratch / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(TARGETS[name].seeds()):
        (corpus / f"seed-{number:02d}").write_bytes(seed)
    started, executions, features, seed = time.monotonic(), 0, 0, args.seed
    while (left := 60 * args.minutes_each - (time.monotonic() - started)) > 1:
        words = [f"-max_total_time={left:.0f}", f"-max_len={LONGEST_INPUT}", f"-seed={seed}"]
        words += ["-timeout=0", "-rss_limit_mb=0", "-detect_leaks=0", "-print_final_stats=1"]
        log = scratch / "log.txt"
        code = _watched_child(name, folder, scratch, [*words, str(corpus)], log)
        text = log.read_text(encoding="utf-8", errors="replace")
        counts = re.findall(r"^#(\d+)\s.*?ft: (\d+)", text, flags=re.MULTILINE)
        done = re.findall(r"number_of_executed_units: (\d+)", text)
        executions += int(done[-1] if done else counts[-1][0] if counts else 0)
        features = max([features, *(int(each) for _, each in counts)])
        if code == 0:
            break
        if not (scratch / "current").is_file():
            raise SystemExit(f"{name} did not start:\n{text[-3000:]}")
        _keep(
            folder, name, (scratch / "current").read_bytes(), f"ended with {code}\n{text[-2000:]}"
        )
        seed += 1
    seconds = time.monotonic() - started
    shutil.rmtree(scratch)
    found = [
        each.read_text(encoding="utf-8").partition("\n")[0] for each in folder.glob(f"{name}-*.txt")
    ]
    return {"executions": executions, "features": features, "seconds": round(seconds),
            "findings": sorted(found)}  # fmt: skip


def _watched_child(name: str, folder: Path, scratch: Path, words: list[str], log: Path) -> int:
    """Run a child and return its exit code; end it if it hangs where no signal reaches it."""
    command = [sys.executable, __file__, "--child", name, "--findings", str(folder), "--"]
    with log.open("wb") as out:
        child = subprocess.Popen([*command, str(scratch), *words], stdout=out, stderr=out)
        try:
            while child.poll() is None:
                time.sleep(0.5)
                current = scratch / "current"
                if current.is_file() and time.time() - current.stat().st_mtime > SILENT:
                    child.kill()
        finally:
            child.kill()
            child.wait()
    return child.returncode


def _keep(folder: Path, name: str, data: bytes, what: str) -> None:
    """Keep a finding, one file for each kind of problem."""
    kind = re.sub(r"\d+", "0", what.partition(":")[0])
    place = folder / f"{name}-{hashlib.sha256(kind.encode()).hexdigest()[:8]}"
    known = place.with_suffix(".bin")
    if not known.exists() or known.stat().st_size > len(data):
        known.write_bytes(data)
        place.with_suffix(".txt").write_text(what + "\n", encoding="utf-8", errors="replace")


def _child(name: str, folder: Path, words: list[str]) -> int:
    """Fuzz in this process; the first word is a scratch folder, the others are libFuzzer's."""
    import atheris
    import sklearn.neighbors  # noqa: F401 - large packages come first: they are not instrumented
    from torch._weights_only_unpickler import Unpickler

    Unpickler.load = atheris.instrument_func(Unpickler.load)
    with atheris.instrument_imports(include=INSTRUMENTED):
        from fuzz_targets import TARGETS, prepare, problem
    scratch = Path(words[0])
    place = scratch / "files"
    place.mkdir(exist_ok=True)
    prepare(folder / "run")
    now = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (now + GIGABYTES * 2**30,) * 2)
    current = (scratch / "current").open("wb", buffering=0)

    def once(data: bytes) -> None:
        current.seek(0)
        current.write(data)
        current.truncate()
        if found := problem(TARGETS[name], data, place):
            _keep(folder, name, data, found)

    atheris.Setup(["fuzz", *words[1:]], once, enable_python_coverage=True)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
