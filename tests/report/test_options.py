from __future__ import annotations

import inspect

import pytest

from unswayed.report.options import default_words


@pytest.mark.parametrize(
    ("default", "words"),
    [
        (inspect.Parameter.empty, "(required)"),
        (None, "(none)"),
        (True, "true"),
        (0.7, "0.7"),
        (5e-4, "0.0005"),
        (1 / 3, "0.333333"),
        (3, "3"),
        ("both", '"both"'),
        ((1 / 3, 2 / 3), "[0.3333, 0.6667]"),
    ],
)
def test_a_default_is_written_as_a_recipe_would(default, words):
    kind = inspect.Parameter.KEYWORD_ONLY
    assert default_words(inspect.Parameter("x", kind, default=default)) == words
