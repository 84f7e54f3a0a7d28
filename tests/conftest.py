from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run in parallel processes

import numpy as np
import pytest
import torch
from hypothesis import settings

from browsing import browser_or_skip  # noqa: F401 - a fixture of all folders
from unswayed import Recipe

settings.register_profile("default", deadline=None, max_examples=40)
settings.load_profile("default")
torch.set_num_threads(1)

TINY = (
    "data.size=8",
    "model.width=4",
    "framework.projector_widths=[16, 16]",
    "framework.predictor_hidden=8",
    "train.epochs=2",
    "train.batch_size=128",
    "train.threads=1",
)


def pytest_terminal_summary(terminalreporter):
    """Say in one line that tests in a browser were left out, and how to have them run."""
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum("needs playwright and Chromium" in str(each.longrepr) for each in skipped)
    if count:
        terminalreporter.write_line(
            f"{count} tests in a browser were left out: install Chromium to run them"
        )


@pytest.fixture
def tiny() -> Recipe:
    """A real recipe that trains in about a second."""
    return Recipe.load("digits", *TINY)


@pytest.fixture
def tiny_words() -> tuple[str, ...]:
    return TINY


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
