"""A short version of `benchmarks/survival.py`: real processes, real signals, real bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "survival.py"


def survived(*words: str) -> dict[str, int]:
    """Return the numbers of the benchmark, which fails if anything was lost."""
    done = subprocess.run(
        [sys.executable, BENCHMARK, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    return {f"{part} {what}": int(number.replace(",", "")) for part, number, what in rows}


def check_kills(found: dict[str, int], kills: int) -> None:
    assert found["kills kills"] == kills
    assert found["kills of them equal at the end, byte for byte"] == kills


@pytest.mark.skipif(sys.platform != "linux", reason="system calls are watched as on Linux")
def test_kills_lose_nothing() -> None:
    check_kills(survived("--only", "kills", "--kills", "5", "--methods", "elr"), 5)


@pytest.mark.slow
def test_neither_full_disks_nor_damage_lose_anything() -> None:
    found = survived("--only", "full", "damage", "--every", "100")
    failing = found["full failing calls of a training"]
    assert found["full of them stopped it with one line"] == failing == 4
    assert found["damage resumed with 2 damaged checkpoints"] == 1
    assert found["damage ranges overwritten"] > 300


@pytest.mark.slow
def test_neither_power_failures_nor_clocks_nor_two_writers_lose_anything() -> None:
    found = survived("--only", "power", "clock", "writers", "--states", "20", "--every", "4")
    assert found["power of them resumed to the same bytes"] == 20
    assert found["power finished commands that were all on the disk"] == 4
    assert found["clock checkpoints that were written at their time"] == 30
    assert found["writers pairs of processes on one folder"] == 6


@pytest.mark.slow
def test_what_a_method_remembers_survives_too() -> None:
    words = ("--methods", "elr", "coteaching", "dividemix", "sln-mo-lc")
    found = survived("--only", "kills", "--kills", "40", *words)
    check_kills(found, 40)
    assert found["kills kills one of two processes"] == 4


@pytest.mark.slow
def test_torchrun_leaves_no_process_behind() -> None:
    found = survived("--only", "torchrun", "--every", "5")
    assert found["torchrun process 1 stopped, longer than the patience"] == 1
