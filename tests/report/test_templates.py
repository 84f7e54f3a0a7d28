from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from unswayed.report.templates import environment, fill, markdown_table

NAME = "<b>\"&'"


@pytest.fixture
def folder(tmp_path):
    for ending in ("html", "md"):
        (tmp_path / f"page.{ending}.j2").write_text("{{ name }}\n", encoding="utf-8")
    return tmp_path


def test_html_is_escaped_and_markdown_is_not(folder):
    assert fill("page.html.j2", folder, name=NAME) == "&lt;b&gt;&#34;&amp;&#39;\n"
    assert fill("page.md.j2", folder, name=NAME) == f"{NAME}\n"


def test_every_html_template_of_the_package_is_escaped():
    made = environment()
    names = made.list_templates(filter_func=lambda name: name.endswith(".html.j2"))
    assert names
    for name in names:
        assert made.autoescape(name) is True, name


def test_a_missing_value_is_an_error(folder):
    with pytest.raises(UndefinedError, match="name"):
        fill("page.md.j2", folder)


def test_a_markdown_table_keeps_its_columns_apart():
    rows = [["method", "clean"], ["A | B", "91.0"]]
    assert markdown_table(rows) == "| method | clean |\n| --- | ---: |\n| A \\| B | 91.0 |"
    assert markdown_table(rows, 2).splitlines()[1] == "| --- | --- |"
