from __future__ import annotations

import re
from pathlib import Path

import pytest

from reproduction.pages import load_results, pages, write
from unswayed import methods

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made():
    return pages()


def test_the_committed_pages_are_what_make_docs_makes():
    made = pages(load_results(ROOT / "results" / "digits-methods.json"))
    folder = ROOT / "docs" / "methods"
    assert {file.name for file in folder.iterdir()} == set(made)
    stale = [n for n, text in made.items() if (folder / n).read_text(encoding="utf-8") != text]
    assert not stale, "these pages are stale; run: make docs"


def test_every_method_has_a_page_that_the_index_links(made):
    assert set(made) == {"README.md", *(f"{name}.md" for name in methods.names())}
    for name in methods.names():
        assert f"({name}.md)" in made["README.md"]
        assert f"unswayed train digits method={name}" in made[f"{name}.md"]


def test_a_page_says_options_presets_and_cost(made):
    page = made["elr.md"]
    assert "Liu et al., NeurIPS 2020, eq. 6" in page
    assert "| `loss.beta` |" in page
    assert "| `elr/cifar100` | `loss.beta = 0.9`, `loss.weight = 7` |" in page
    assert "1.0 times the work of cross entropy" in page


def test_a_page_tells_what_the_method_sets_from_the_default(made):
    (line,) = [x for x in made["limit-laplace.md"].splitlines() if "`learner.distribution`" in x]
    assert [cell.strip() for cell in line.split("|")[2:4]] == ['`"gaussian"`', '`"laplace"`']


def test_every_source_a_page_links_is_there(made):
    for text in made.values():
        for target in re.findall(r"\]\((\.\./\.\./src[^)]+)\)", text):
            assert (ROOT / "docs" / "methods" / target).is_file(), target


def test_numbers_come_from_the_results(tmp_path):
    numbers = {"last": 0.9, "selected": 0.95, "memorised": None, "seconds": 3.0, "epochs": 3}
    results = {
        "grid": "g",
        "seeds": 1,
        "columns": [{"name": "sym 40"}],
        "methods": [{"key": "ce", "options": ["optimizer.lr=0.1"]}],
        "runs": [{"method": "ce", "column": "sym 40", "seed": 0, **numbers}],
    }
    write(tmp_path, results)
    page = (tmp_path / "ce.md").read_text(encoding="utf-8")
    assert "| test accuracy, last epoch | 90.0 |" in page
    assert "1.0 times as long as with cross entropy" in page
    assert "with `optimizer.lr=0.1`" in page
    assert "## Numbers" not in (tmp_path / "gce.md").read_text(encoding="utf-8")


def test_pages_of_methods_that_are_no_more_are_removed(tmp_path):
    (tmp_path / "old.md").write_text(pages(None)["ce.md"])
    (tmp_path / "own.md").write_text("A page by hand.")
    write(tmp_path)
    assert not (tmp_path / "old.md").exists()
    assert (tmp_path / "own.md").exists()
