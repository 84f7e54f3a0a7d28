from __future__ import annotations

import shutil

import pytest

from audited import audited_run, write_digits
from unswayed import Run


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory):
    top = tmp_path_factory.mktemp("audited")
    return audited_run(write_digits(top / "digits"), top / "run")


@pytest.fixture
def run(trained_run, tmp_path):
    """A copy of an audited run that a test may write to; its images are shared."""
    return Run(shutil.copytree(trained_run.path, tmp_path / "run"))
