"""The examples in docstrings run, and what users call has one."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = (
    "data.adapters",
    "data.dataset",
    "exports.formats",
    "losses.gce",
    "recipe",
    "regularizers.ctrr",
    "report.audit_page",
    "report.contact_sheet",
    "runs.run",
    "session",
)
EXAMPLES = {
    test.name.removeprefix("unswayed."): test
    for name in MODULES
    for test in doctest.DocTestFinder().find(importlib.import_module(f"unswayed.{name}"))
    if test.examples
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All examples share `runs/short`, which is trained once."""
    return tmp_path_factory.mktemp("docstrings")


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_it_says(name, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    failed, _ = doctest.DocTestRunner().run(EXAMPLES[name], clear_globs=False)
    assert not failed, capsys.readouterr().out


def test_what_users_call_has_an_example():
    assert EXAMPLES.keys() >= {
        "data.adapters.from_torch",
        "data.dataset.Dataset.from_arrays",
        "exports.formats.export",
        "losses.gce.gce_loss",
        "recipe.Recipe.load",
        "regularizers.ctrr.ctrr_loss",
        "report.audit_page.write_report",
        "runs.run.Run",
        "runs.run.Run.predictions",
        "runs.run.Run.records",
        "session.evaluate",
        "session.resume",
        "session.train",
    }
