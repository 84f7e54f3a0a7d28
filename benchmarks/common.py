"""What several benchmarks do alike."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any


def hardware() -> dict[str, Any]:
    """Return what numbers depend on besides the software."""
    return {"cores": os.cpu_count(), "platform": platform.platform()}


def save(found: Any, folder: Path, name: str) -> None:
    """Write what was found as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def resident() -> float:
    """Return the megabytes of memory that this process holds (Linux only)."""
    return _status("VmRSS") / 1024


class PeakMemory:
    """The most memory this process holds from here on, above what it holds now (Linux only)."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak so far
        self.before = _status("VmRSS")

    def megabytes(self) -> float:
        """Return the peak so far."""
        return (_status("VmHWM") - self.before) / 1024


def _status(name: str) -> int:
    """Return a number of kB from what Linux knows of this process."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
