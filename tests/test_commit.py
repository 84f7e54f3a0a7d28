"""The commit that a run names."""

from __future__ import annotations

import subprocess

import pytest

import unswayed
from unswayed.runs import provenance


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return the folder of a package in a repository of its own, with a file of results beside."""
    package = tmp_path / "src" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("first", encoding="utf-8")
    (tmp_path / "results.json").write_text("1", encoding="utf-8")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message=first")
    monkeypatch.setattr(unswayed, "__file__", str(package / "__init__.py"))
    return package


def git(folder, *words):
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def found():
    return provenance.commit.__wrapped__()


def test_changes_of_the_package_are_marked_and_saved_results_are_not(package):
    head = git(package, "rev-parse", "HEAD")
    assert found() == head
    (package.parents[1] / "results.json").write_text("2", encoding="utf-8")
    assert found() == head
    (package / "__init__.py").write_text("second", encoding="utf-8")
    assert found() == f"{head}-dirty"
    git(package, "checkout", "--quiet", ".")
    (package / "new.py").touch()
    assert found() == f"{head}-dirty"


def test_the_repository_of_somebody_else_is_not_ours(package, monkeypatch):
    environment = package.parents[1] / ".venv" / "package"
    environment.mkdir(parents=True)
    (environment / "__init__.py").touch()
    monkeypatch.setattr(unswayed, "__file__", str(environment / "__init__.py"))
    assert found() is None


def test_without_a_repository_there_is_no_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(unswayed, "__file__", str(tmp_path / "__init__.py"))
    assert found() is None
