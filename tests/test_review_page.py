"""The numbers of docs/review.md are those of results/review-load.json."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_page_has_the_measured_numbers():
    found = json.loads((ROOT / "results" / "review-load.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "review.md").read_text(encoding="utf-8")
    paint = found["key_to_paint_ms"]
    wanted = (
        f"{found['command_start_seconds']} s",
        f"{found['first_screen_seconds']} s",
        f"{paint['median']:.0f} / {paint['99th percentile']:.0f} / {paint['largest']:.0f} ms",
        f"{100 * found['picture_there_at_once']:.0f} %",
        " / ".join(map(str, found["server_mb"])) + " MB",
        " / ".join(map(str, found["page_heap_mb"])) + " MB",
        f"{found['at_once']['slowest']} s",
    )
    for words in wanted:
        assert f"| {words} |" in page
    assert (found["rows"], found["classes"]) == (100_000, 1000)


def test_what_is_promised_of_large_data_holds():
    found = json.loads((ROOT / "results" / "review-load.json").read_text(encoding="utf-8"))
    assert found["first_screen_seconds"] < 2
    assert found["key_to_paint_ms"]["largest"] < 100
