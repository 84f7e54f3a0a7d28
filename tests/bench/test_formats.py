from __future__ import annotations

import csv
import io
from html.parser import HTMLParser

import pytest

from unswayed.bench.formats import FORMATS, to_csv, to_html, to_latex
from unswayed.bench.results import render, save
from unswayed.bench.tables import beside


def run(method, column, seed, last, best):
    return {
        "method": method,
        "column": column,
        "seed": seed,
        "last": last,
        "selected": None,
        "oracle_best": best,
        "method_used": f"{method}/cifar10",
        "commit": "abc",
        "seconds": 1.0,
        "epochs": 3,
    }


@pytest.fixture
def results():
    methods = [
        {"key": "a", "label": "A & <b>", "method": "a", "options": []},
        {"key": "c", "label": "C", "method": "c", "options": []},
    ]
    return {
        "grid": "small",
        "description": "By hand.",
        "seeds": 2,
        "columns": [{"name": name, "overrides": [], "noise": ""} for name in ("clean", "sym 40")],
        "command": "unswayed bench small",
        "origin": {},
        "epochs": [3],
        "failures": {},
        "methods": methods,
        "published": {
            "source": "Somebody, table 1",
            "note": "They say so.",
            "numbers": {
                "oracle_best": {
                    "a": {"clean": [0.9, 0.01, 3], "sym 40": [0.5, 0.01, 3]},
                    "c": {"clean": [0.5, 0.01, 3]},
                }
            },
        },
        "runs": [
            run("a", "clean", 0, 0.90, 0.905),
            run("a", "clean", 1, 0.91, 0.915),
            run("a", "sym 40", 0, 0.60, 0.70),
            run("a", "sym 40", 1, 0.60, 0.70),
            run("c", "clean", 0, 0.80, 0.80),
        ],
    }


def test_the_published_number_stands_beside_ours_with_the_difference(results):
    assert beside(results, "oracle_best") == [
        ["method", "clean", "sym 40"],
        [
            "A & <b>",
            "91.00 ± 0.71 / 90.00 ± 1.00 / +1.00",
            "70.00 ± 0.00 / 50.00 ± 1.00 / +20.00 ▲",
        ],
        ["C", "80.00 (n = 1) / 50.00 ± 1.00 / +30.00", "–"],
    ]


def test_csv_has_a_line_for_every_number_and_cell(results):
    rows = list(csv.DictReader(io.StringIO(to_csv(results))))
    assert len(rows) == 3 * 2 * 2
    first = next(row for row in rows if row["number"] == "oracle_best")
    assert (first["method"], first["column"], first["preset"]) == ("a", "clean", "a/cifar10")
    assert float(first["mean"]) == pytest.approx(0.91)
    assert float(first["deviation"]) == pytest.approx(0.0070711, abs=1e-6)
    assert (first["published_mean"], first["source"]) == ("0.900000", "Somebody, table 1")
    assert float(first["difference"]) == pytest.approx(0.01)
    assert (first["n"], first["seeds"], first["commits"]) == ("2", "0 | 1", "abc")
    last = rows[-1]
    assert (last["mean"], last["n"]) == ("", "0")


def test_latex_escapes_and_shows_both(results):
    text = to_latex(results)
    assert text.count(r"\begin{tabular}{lrr}") == text.count(r"\end{tabular}") == 3
    assert r"A \& <b> & 91.00 $\pm$ 0.71 & 70.00 $\pm$ 0.00 \\" in text
    assert r"\textcolor{gray}{90.00 $\pm$ 1.00} \textcolor{gray}{+1.00}" in text
    assert r"\textcolor{green!45!black}{+20.00}" in text
    assert (
        "% Mean $\\pm$ sample standard deviation over 2 seeds. Below ours: Somebody, table 1"
        in text
    )
    body = text.split(r"\midrule")[1].split(r"\bottomrule")[0]
    assert all(line.count(" & ") == 2 for line in body.strip().splitlines())


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.classes, self.titles, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag == "span":
            self.classes.append(found["class"])
        if tag == "td" and "title" in found:
            self.titles.append(found["title"])
        if tag in ("table", "tr", "td", "th", "small", "span", "h2"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in ("table", "tr", "td", "th", "small", "span", "h2"):
            assert self.open.pop() == tag


def test_html_is_well_formed_escaped_coloured_and_names_its_runs(results):
    page = Cells()
    page.feed(to_html(results))
    assert page.open == []
    assert page.classes == ["near", "above", "unknown"]
    assert "A &amp; &lt;b&gt;" in to_html(results)
    assert "seed 1: a/cifar10, commit abc" in page.titles[0]


def test_all_formats_are_written_beside_each_other(results, tmp_path):
    files = save(results, tmp_path, FORMATS)
    assert [file.suffix for file in files] == [".json", ".md", ".csv", ".tex", ".html"]
    assert all(file.read_text(encoding="utf-8") for file in files)


def test_the_page_has_a_section_for_each_published_kind(results):
    text = render(results)
    assert "## Beside the published numbers: best epoch on the test set (an oracle), %" in text
    assert "| 91.00 ± 0.71 / 90.00 ± 1.00 / +1.00 |" in text
    assert "They say so." in text
    assert "Nothing was held out" in text
