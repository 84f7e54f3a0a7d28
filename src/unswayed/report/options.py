"""The options of a component, as text."""

from __future__ import annotations

import inspect
import json


def default_words(parameter: inspect.Parameter) -> str:
    """Return the default of an option as text."""
    if parameter.default is inspect.Parameter.empty:
        return "(required)"
    value = parameter.default
    if isinstance(value, tuple):
        return "[" + ", ".join(f"{part:.4g}" for part in value) + "]"
    if value is None:
        return "(none)"
    if isinstance(value, float) and len(repr(value)) > 8:  # a third, for one
        return f"{value:.6g}"
    return json.dumps(value) if isinstance(value, bool | str) else repr(value)
