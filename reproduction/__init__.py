"""What reproduces the paper with `unswayed`: grids, figures, claims and generated pages.

It runs from a clone of the repository and is no part of the package. Everything here is a command:
`python -m reproduction.figure NAME`, `.claims`, `.pages` and `.cifar`.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent
GRIDS, RECIPES, PUBLISHED, TEMPLATES = (
    FOLDER / name for name in ("grids", "recipes", "published", "templates")
)


def grid_file(name: str) -> Path:
    """Return the file of a grid such as "table1", as a user here would write it."""
    return _relative(GRIDS / f"{name}.toml")


def recipe_file(name: str) -> Path:
    """Return the file of a recipe such as "digits", as a user here would write it."""
    return _relative(RECIPES / f"{name}.toml")


def grid_names() -> list[str]:
    """Return the names of all grids."""
    return sorted(file.stem for file in GRIDS.glob("*.toml"))


def _relative(path: Path) -> Path:
    relative = Path(os.path.relpath(path))
    return path if relative.parts[:1] == ("..",) else relative
