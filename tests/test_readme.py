"""The README is executed, and its numbers are those of results/."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from unswayed.cli.effect import ROWS
from unswayed.report.table import Spread

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("method", [row.label for row in ROWS])
def test_the_table_is_the_measured_one(method):
    runs = json.loads((ROOT / "results" / "demo.json").read_text(encoding="utf-8"))["runs"]
    summaries = [run["summary"] for run in runs if run["method"] == method]
    assert len(summaries) == 3
    numbers = [
        Spread.of([s["last"]["test_accuracy"] for s in summaries]),
        Spread.of([s["selected"]["test_accuracy"] for s in summaries]),
        Spread.of([s["last"]["wrong_as_given"] for s in summaries]),
    ]
    (row,) = [line for line in README.splitlines() if line.startswith(f"| {method} |")]
    assert [cell.strip() for cell in row.split("|")[2:5]] == [n.percent() for n in numbers]


def test_every_path_the_readme_names_is_there():
    for target in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (ROOT / target).exists(), target


def test_every_verb_and_make_target_the_readme_names_is_there():
    from unswayed.cli import VERBS

    used = set(re.findall(r"^(?:\$ )?unswayed ([a-z]+)", README, flags=re.MULTILINE))
    assert {"train", "resume"} <= used <= set(VERBS)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    names = re.findall(r"^    make ([a-z-]+)", README, flags=re.MULTILINE)
    assert {"demo", "test"} <= set(names)
    for name in names:
        assert re.search(rf"^{name}:", makefile, flags=re.MULTILINE), name
