from __future__ import annotations

from audited import run, trained_run  # noqa: F401 - fixtures of this folder
