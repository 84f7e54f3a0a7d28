"""Data sets: uint8 images with stable ids, given labels, and true labels if known."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from inspect import Parameter, getdoc, signature  # `inspect` is a module of this folder
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import AfterValidator

from unswayed.registry import Registry
from unswayed.types import absolute

if TYPE_CHECKING:
    from unswayed.data.adapters import from_huggingface as from_huggingface
    from unswayed.data.adapters import from_torch as from_torch
    from unswayed.data.dataset import Dataset as Dataset
    from unswayed.data.dataset import Splits as Splits
    from unswayed.data.dataset import stratified_split as stratified_split

DATASETS: Registry[Splits] = Registry("data set", __name__)
F = TypeVar("F", bound="Callable[..., Splits]")

CORRECTED = "corrected"
"""The option that every data set has."""

_FILE = Annotated[str | None, AfterValidator(lambda path: absolute(path) if path else None)]
_HELP = "a table of `unswayed export --as labels`, whose labels are used; empty for none."


def register(name: str, *, paper: str = "") -> Callable[[F], F]:
    """Give a data set its name, its paper and the option `corrected`."""

    def keep(make: F) -> F:
        DATASETS.register(name, paper=paper)(_correctable(make))
        return make

    return keep


def _correctable(make: F) -> Callable[..., Splits]:
    """Return a function with one more option, which its signature and docstring have too."""

    @functools.wraps(make)
    def made(*, corrected: str | None = None, **options: Any) -> Splits:
        if corrected is None:
            return make(**options)
        from unswayed.data.corrected import read_labels  # imports PyTorch

        table = read_labels(corrected)  # first: a mistake is noticed before images are decoded
        return table.applied_to(make(**options))

    option = Parameter(CORRECTED, Parameter.KEYWORD_ONLY, default=None, annotation=_FILE)
    own = signature(make)
    made.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[*own.parameters.values(), option]
    )
    made.__annotations__ = {**make.__annotations__, CORRECTED: _FILE}
    before, _, after = (getdoc(make) or "").partition("Args:\n")
    made.__doc__ = f"{before.rstrip()}\n\nArgs:\n    {CORRECTED}: {_HELP}\n{after}"
    return made


# Imported when first asked for: listing files does not need PyTorch.
_HOMES = {
    "Dataset": "unswayed.data.dataset",
    "Splits": "unswayed.data.dataset",
    "stratified_split": "unswayed.data.dataset",
    "from_torch": "unswayed.data.adapters",
    "from_huggingface": "unswayed.data.adapters",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
