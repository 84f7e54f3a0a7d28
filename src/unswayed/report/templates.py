"""Make pages from Jinja2 templates. Values in HTML are escaped, values in Markdown are not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

FOLDER = Path(__file__).with_name("templates")


@cache
def environment(folder: Path = FOLDER) -> Environment:
    """Return the environment for a folder of templates; a missing value is an error."""
    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=select_autoescape(enabled_extensions=("html.j2",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["markdown_table"] = markdown_table
    return made


def fill(name: str, folder: Path = FOLDER, /, **values: Any) -> str:
    """Render a template of the folder, such as "grid.md.j2", with these values."""
    return environment(folder).get_template(name).render(values)


def markdown_table(rows: Sequence[Sequence[str]], text_columns: int = 1) -> str:
    """Return a Markdown table; columns after the text columns hold numbers, aligned right."""
    lines = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    numbers = len(rows[0]) - text_columns
    lines.insert(1, [*["---"] * text_columns, *["---:"] * numbers])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
