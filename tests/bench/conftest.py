from __future__ import annotations

import pytest
from grids import write_grid


@pytest.fixture
def tiny_grid(tmp_path):
    """Write a grid that trains in seconds, changed as asked: `tiny_grid(epochs=500)`."""
    return lambda **changes: write_grid(tmp_path, **changes)
