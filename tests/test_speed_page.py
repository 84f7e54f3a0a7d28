"""The tables of docs/speed.md that are copied are those that were measured."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_ladder_and_ablation_are_the_measured_ones():
    page = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    measured = (ROOT / "results" / "cifar.md").read_text(encoding="utf-8")
    ladder = measured.partition("The ladder:")[2]
    rows = [line for line in ladder.splitlines() if line.startswith("| ") and line[2] != "-"]
    assert len(rows) > 20
    named = {"| change | sym40 | difference |": "| change | mean ± deviation (n) |"}
    for row in rows:
        assert named.get(row, row) in page, f"docs/speed.md lacks {row}"
