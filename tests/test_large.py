"""What `make large` measures, at a size for tests: memory must not grow with images × classes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SIZES = 8_000, 48_000


@pytest.mark.slow
@pytest.mark.parametrize("images", ["disk", "stream"])
def test_memory_hardly_grows_with_the_images(tmp_path, images):
    script = Path(__file__).parents[1] / "benchmarks" / "large.py"
    words = ["--rows", *map(str, SIZES), "--caches", images, "--shared", "8000"]
    places = ["--folder", str(tmp_path / "data"), "--save", str(tmp_path)]
    subprocess.run([sys.executable, str(script), *words, *places], check=True)
    found = json.loads((tmp_path / "large.json").read_text())["cases"]
    few, shared, many = sorted(found, key=lambda case: (case["rows"], case["processes"]))
    more = (SIZES[1] - SIZES[0]) / 1e6  # megabytes for a byte of every image
    assert many["above_mb"] - few["above_mb"] < 500 * more
    assert many["checkpoint_mb"] - few["checkpoint_mb"] == pytest.approx(20 * more, rel=0.01)
    assert many["predictions_mb"] - few["predictions_mb"] > 2000 * more
    assert many["predicting_mb"] < 0.7 * many["predictions_mb"]
    assert shared["predictions_mb"] == few["predictions_mb"]
