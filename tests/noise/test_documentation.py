"""The numbers and the words of docs/noise.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unswayed import Recipe

PAGE = (Path(__file__).parents[2] / "docs" / "noise.md").read_text(encoding="utf-8")
WORDS = sorted(set(re.findall(r"`(noise\.name=[^`]*)`", PAGE)))


def test_the_table_is_what_its_code_prints(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (table,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "docs/noise.md", "exec"), {})
    assert capsys.readouterr().out == table


@pytest.mark.parametrize("words", WORDS)
def test_the_words_are_understood(words):
    assert Recipe.load("digits", *words.split()).sections["noise"]["name"] in words
