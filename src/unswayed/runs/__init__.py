"""Run folders, and typed access to what they hold."""

from __future__ import annotations

from unswayed.runs.predictions import Predictions
from unswayed.runs.provenance import Provenance
from unswayed.runs.run import (
    Config,
    Run,
    Samples,
    find_runs,
    finished_runs,
    remove_leftovers,
    runs_by_key,
)
from unswayed.runs.summary import Summary

__all__ = [
    "Config",
    "Predictions",
    "Provenance",
    "Run",
    "Samples",
    "Summary",
    "find_runs",
    "finished_runs",
    "remove_leftovers",
    "runs_by_key",
]
