"""What is committed of measured tables is what the code makes of the measured numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unswayed.bench import claims
from unswayed.bench.results import render

ROOT = Path(__file__).parents[2]
KNOWN = {
    file.stem: json.loads(file.read_text(encoding="utf-8"))
    for file in sorted((ROOT / "results").glob("*.json"))
}
TABLES = {name: found for name, found in KNOWN.items() if "grid" in found}


@pytest.mark.parametrize("name", TABLES)
def test_a_page_is_made_of_its_numbers(name):
    page = (ROOT / "results" / f"{name}.md").read_text(encoding="utf-8")
    assert page == render(TABLES[name]), f"{name}.md: make it anew from {name}.json"


def test_the_claims_are_tested_on_the_committed_numbers():
    made = claims.page(dict(claims.tables(ROOT / "results")))
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert page == made, "make claims"
