"""The installed command, from outside."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from conftest import TINY
from unswayed import Run

COMMAND = [sys.executable, "-m", "unswayed"]


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_signal_stops_it_politely_and_resume_finishes(tmp_path, number):
    path = tmp_path / "run"
    words = [*TINY, "train.epochs=500"]
    process = subprocess.Popen(
        [*COMMAND, "train", *words, "--run", path], stderr=subprocess.PIPE, text=True
    )
    while not (path / "metrics.jsonl").exists():  # it trains
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert f"unswayed resume {path}" in err
    assert "Traceback" not in err
    assert err.count("press Ctrl-C again to stop now") == (number == signal.SIGINT)
    before = len(Run(path).metrics)
    recipe = path / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("epochs = 500", f"epochs = {before + 2}"))
    done = subprocess.run([*COMMAND, "resume", path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(Run(path).metrics) == before + 2
    assert Run(path).finished


def test_python_runs_the_same_command(tmp_path):
    done = subprocess.run([*COMMAND, "train", "digitz"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "did you mean 'digits'" in done.stderr
    found = subprocess.run(
        [*COMMAND, "list", "recipes"], capture_output=True, text=True, timeout=60
    )
    assert "digits-ce" in found.stdout
