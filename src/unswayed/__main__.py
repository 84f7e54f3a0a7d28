"""`python -m unswayed`."""

from unswayed.cli import entry

entry()
