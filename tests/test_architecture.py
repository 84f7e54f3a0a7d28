"""The tree of docs/architecture.md names every module once, in the order of the import contract."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "unswayed"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TREE = PAGE.partition("src/unswayed/\n")[2].partition("reproduction/ ")[0]
ENTRIES = {
    name.removesuffix(".py").removesuffix("/"): " ".join(text.split())
    for name, text in re.findall(r"^  (\w+(?:\.py|/)) +((?:.|\n {4})+)", TREE, flags=re.MULTILINE)
}


def test_the_order_is_that_of_the_contract():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (contract,) = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    assert [*ENTRIES] == [*reversed(contract["layers"]), "recipes"]


def test_every_module_is_named_once():
    for name, text in ENTRIES.items():
        words = re.findall(r"\w+", re.sub(r"\(.*?\)", "", text))
        for module in (PACKAGE / name).glob("[!_]*.py"):
            assert words.count(module.stem) == 1, f"{name}/{module.name} in docs/architecture.md"
