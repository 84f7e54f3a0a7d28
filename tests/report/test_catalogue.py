from __future__ import annotations

import json

import pytest

from unswayed.losses import LOSSES, Loss
from unswayed.report import catalogue


def test_the_catalogue_is_fresh():
    fresh = catalogue.FILE.read_text(encoding="utf-8") == catalogue.text()
    assert fresh, "report/catalogue.json is stale; run: make docs"


def test_what_is_written_down_is_what_is_collected():
    assert catalogue.written() == catalogue.collected()


@pytest.fixture
def without_registry(monkeypatch):
    """As in a process that has loaded no component."""
    monkeypatch.delitem(catalogue.sys.modules, "unswayed.registry")


def test_what_is_written_down_is_listed(without_registry, monkeypatch):
    monkeypatch.setattr(catalogue, "collected", lambda: pytest.fail("it was not needed"))
    assert catalogue.catalogue() == catalogue.written()


def test_a_file_that_was_added_since_is_noticed(without_registry, monkeypatch, tmp_path):
    known = json.loads(catalogue.FILE.read_text(encoding="utf-8"))
    known["files"]["losses"].remove("gce.py")
    older = tmp_path / "catalogue.json"
    older.write_text(json.dumps(known))
    monkeypatch.setattr(catalogue, "FILE", older)
    monkeypatch.setattr(catalogue, "collected", lambda: ["collected"])
    assert catalogue.catalogue() == ["collected"]


def test_a_component_from_outside_is_listed(monkeypatch):
    monkeypatch.setattr(LOSSES, "_components", dict(LOSSES._components))

    @LOSSES.register("guest")
    class Guest(Loss):
        """A loss of somebody else."""

        def __init__(self, q: float = 0.5) -> None:
            """Store it.

            Args:
                q: what it is.
            """

    losses = next(kind for kind in catalogue.catalogue() if kind.name == "loss")
    guest = next(entry for entry in losses.entries if entry.name == "guest")
    assert guest.about == "A loss of somebody else"
    assert guest.options == [catalogue.Option("q", "0.5", "what it is")]
