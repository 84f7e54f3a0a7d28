"""Read a table of published numbers, to compare ours with."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError, model_validator

from unswayed.errors import UsageError
from unswayed.registry import explain
from unswayed.report.table import Spread

Percentages = dict[str, list[list[float]]]
"""For each row, an entry per column: mean and deviation, or all runs, or nothing."""


class PublishedFile(BaseModel):
    """The content of the TOML file: accuracies in percent."""

    model_config = ConfigDict(extra="forbid")

    title: str
    source: str
    note: str = ""
    runs: PositiveInt  # that a mean and its deviation are over
    columns: tuple[str, ...]
    oracle_best: Percentages = {}
    last: Percentages = {}

    @model_validator(mode="after")
    def _one_entry_for_each_column(self) -> PublishedFile:
        for row, entries in {**self.oracle_best, **self.last}.items():
            if len(entries) != len(self.columns):
                raise ValueError(f"{row!r} has {len(entries)} entries, not {len(self.columns)}")
        return self


@dataclass(frozen=True)
class Published:
    """A published table; accuracies are fractions here, as everywhere in the package."""

    title: str
    source: str
    note: str
    columns: tuple[str, ...]
    numbers: Mapping[str, Mapping[tuple[str, str], Spread]]  # by kind, then by row and column

    @classmethod
    def load(cls, path: Path) -> Published:
        """Read a TOML file."""
        where = f"the published table {path}"
        try:
            file = PublishedFile(**tomllib.loads(path.read_text(encoding="utf-8")))
        except ValidationError as error:
            if not error.errors()[0]["loc"]:
                raise UsageError(f"{where}: {error.errors()[0]['msg']}") from error
            raise UsageError(explain(error, where, PublishedFile.model_fields)) from error
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(f"{where} cannot be read: {error}") from error
        kinds = {"oracle_best": file.oracle_best, "last": file.last}
        numbers = {
            kind: {
                (row, column): _spread(entry, file.runs)
                for row, entries in table.items()
                for column, entry in zip(file.columns, entries, strict=True)
                if entry
            }
            for kind, table in kinds.items()
            if table
        }
        return cls(file.title, file.source, file.note, file.columns, numbers)

    def get(self, number: str, row: str, column: str) -> Spread | None:
        """Return a number such as `("oracle_best", "ctrr", "sym 80")`; None if there is none."""
        return self.numbers.get(number, {}).get((row, column))


def _spread(entry: list[float], runs: int) -> Spread:
    """Return the spread of an entry: two numbers are mean and deviation, others are runs."""
    if len(entry) == 2:
        return Spread(entry[0] / 100, entry[1] / 100, runs)
    return Spread.of([each / 100 for each in entry])
