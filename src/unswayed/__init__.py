"""Train image classifiers that wrong labels do not sway.

`train(recipe) -> Run` does the whole job; every part can be used in your own loop, and the losses
as plain functions are in `unswayed.functional`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from unswayed import data as data
    from unswayed import functional as functional
    from unswayed.audits import Audit as Audit
    from unswayed.audits import audit as audit
    from unswayed.audits import find_wrong_labels as find_wrong_labels
    from unswayed.data import Dataset as Dataset
    from unswayed.data import Splits as Splits
    from unswayed.errors import InterruptedRunError as InterruptedRunError
    from unswayed.errors import NonFiniteLossError as NonFiniteLossError
    from unswayed.errors import UsageError as UsageError
    from unswayed.exports import export as export
    from unswayed.recipe import Recipe as Recipe
    from unswayed.report.audit_page import write_report as write_report
    from unswayed.runs import Run as Run
    from unswayed.session import evaluate as evaluate
    from unswayed.session import resume as resume
    from unswayed.session import train as train

# What needs PyTorch is imported when it is first asked for: looking at data does not need it.
_HOMES = {
    "functional": "unswayed.functional",
    "data": "unswayed.data",
    "Audit": "unswayed.audits",
    "audit": "unswayed.audits",
    "find_wrong_labels": "unswayed.audits",
    "export": "unswayed.exports",
    "evaluate": "unswayed.session",
    "resume": "unswayed.session",
    "train": "unswayed.session",
    "Dataset": "unswayed.data",
    "Splits": "unswayed.data",
    "InterruptedRunError": "unswayed.errors",
    "NonFiniteLossError": "unswayed.errors",
    "UsageError": "unswayed.errors",
    "Recipe": "unswayed.recipe",
    "write_report": "unswayed.report.audit_page",
    "Run": "unswayed.runs",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(_HOMES[name])
    return home if name in ("functional", "data") else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
