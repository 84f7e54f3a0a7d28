"""A compiled network trains like one that is not, also in several processes and after a resume."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("compiled.py")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
TOLERANCE = {"float32": 1e-4, "float64": 1e-12}
HEADS = "framework.projector_widths=[16,16] framework.predictor_hidden=8"
CASES = {
    "ce": "method=ce",
    "ctrr": f"method=ctrr {HEADS}",
    "byol": f"method=ctrr-byol {HEADS}",
    "coteaching": "method=coteaching learner.gradual=1",
    "average": "method=ce train.ema=0.9",
    "fast": "method=ce model.name=fast",
}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize("precision", list(TOLERANCE))
@pytest.mark.parametrize("processes", [1, 2])
def test_a_compiled_network_trains_alike(tmp_path, precision, processes):
    out = tmp_path / "found.json"
    start = [sys.executable] if processes == 1 else [*TORCHRUN, str(processes)]
    words = [str(SCRIPT), str(out), precision, *(f"{k}={v}" for k, v in CASES.items())]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}
    done = subprocess.run(
        [*start, *words], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(out.read_text())
    assert found.keys() == CASES.keys()
    for name, case in found.items():
        assert case["compiled"] > 0, name
        assert case["apart"] <= TOLERANCE[precision], (name, case)
        assert case["resumed apart"] <= TOLERANCE[precision], (name, case)
        assert case["same names"], name
