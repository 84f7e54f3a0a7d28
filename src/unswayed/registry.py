"""Components by name, and error messages for wrong names and options.

A component is any callable, and its signature is its schema: a recipe may set exactly the
keywords the constructor has, and their annotations say what is valid. A folder of components is
scanned, so adding one never edits a list.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from unswayed.errors import UsageError

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

FACTS = frozenset(
    {
        "num_classes",
        "num_samples",
        "in_channels",
        "image_size",
        "images",
        "feature_dim",
        "backbone",
        "classifier",
        "new_classifier",
        "loss",
        "framework",
        "regularizer",
        "known_rate",
        "known_matrix",
        "run_seed",
    }
)
"""Values that are known only once data and model are. They are passed to constructors that name
them, and cannot be set by a recipe."""


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """Return `did you mean 'x'? There are: ...` for a word that is not among the valid ones."""
    names = sorted(valid)
    close = difflib.get_close_matches(word, names, n=3, cutoff=0.5)
    known = ", ".join(names) or "none"
    if not close:
        return f"there are: {known}"
    return f"did you mean {' or '.join(map(repr, close))}? There are: {known}"


def explain(error: ValidationError, where: str, valid: Iterable[str]) -> str:
    """Return one line for the first thing pydantic found wrong."""
    # A table in the place of a number fails as a number too: then the last, deepest complaint is
    # the apt one. For anything else it is the first.
    errors = error.errors()
    worst = max(reversed(errors), key=lambda each: len(each["loc"]))
    if len(worst["loc"]) == 2 and not isinstance(worst["input"], dict):
        # Of a word or a number, the complaint that is about words or about numbers.
        word = isinstance(worst["input"], str)
        apt = [each for each in errors if (each["type"] == "literal_error") == word]
        worst = (apt or errors)[0]
    if not worst["loc"]:  # a name that is no text, for one
        return f"{where}: {worst['msg'][:1].lower()}{worst['msg'][1:]}"
    option = str(worst["loc"][0])
    kinds = ("float", "constrained-float")
    inner = [str(part) for part in worst["loc"][1:] if "[" not in str(part) and part not in kinds]
    if worst["type"] == "extra_forbidden" and not inner:
        return f"{where} has no option {option!r}; {did_you_mean(option, valid)}"
    if worst["type"] == "missing" and not inner:
        return f"{where} needs the option {option!r}"
    message = f"{worst['msg'][:1].lower()}{worst['msg'][1:]}"
    within = f" ({' '.join(inner)})" if inner else ""
    return f"{where}: option {option!r}{within} is {worst['input']!r}; {message}"


@dataclass(frozen=True)
class Component(Generic[T]):
    """A named callable with the options its signature declares."""

    kind: str
    name: str
    make: Callable[..., T]
    paper: str

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return (inspect.getdoc(self.make) or "").partition("\n")[0]

    @cached_property
    def options(self) -> Mapping[str, inspect.Parameter]:
        """Keywords a recipe may set; `name` is how it chooses the component itself."""
        parameters = inspect.signature(self.make).parameters
        open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return {
            name: p
            for name, p in parameters.items()
            if name not in FACTS and name != "name" and p.kind not in open_ended
        }

    @property
    def facts(self) -> frozenset[str]:
        """Facts that the signature asks for."""
        return FACTS & inspect.signature(self.make).parameters.keys()

    @cached_property
    def help(self) -> Mapping[str, str]:
        """What the docstring's `Args` say of each option."""
        documented = [self.make.__init__] if inspect.isclass(self.make) else []
        found: dict[str, str] = {}
        for target in (self.make, *documented):
            name = ""
            for line in (inspect.getdoc(target) or "").partition("Args:")[2].splitlines():
                head, colon, text = line.strip().partition(": ")
                if colon and line.startswith("    ") and not line.startswith("     "):
                    name = head
                    found[name] = text
                elif name and line.startswith("     "):
                    found[name] += f" {line.strip()}"
        return {name: text for name, text in found.items() if name in self.options}

    @cached_property
    def annotations(self) -> Mapping[str, Any]:
        """Resolved type of each option."""
        target = self.make.__init__ if inspect.isclass(self.make) else self.make
        hints = typing.get_type_hints(target, include_extras=True)
        return {name: hints.get(name, Any) for name in self.options}

    @cached_property
    def schema(self) -> type[BaseModel]:
        """The signature as a pydantic model that forbids anything else."""
        fields: dict[str, Any] = {
            name: (self.annotations[name], ... if p.default is p.empty else p.default)
            for name, p in self.options.items()
        }
        config = ConfigDict(
            extra="forbid",
            allow_inf_nan=False,
            coerce_numbers_to_str=True,
            validate_default=True,
            protected_namespaces=(),
        )
        return create_model(self.name, __config__=config, **fields)

    def _checked(self, options: Mapping[str, Any]) -> BaseModel:
        try:
            return self.schema(**options)
        except ValidationError as error:
            raise UsageError(explain(error, f"{self.kind} {self.name!r}", self.options)) from error

    def resolve(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return every option, checked, as plain values that a recipe file can hold."""
        return self._checked(options).model_dump(mode="json")

    def build(self, options: Mapping[str, Any], facts: Mapping[str, Any] | None = None) -> T:
        """Call the component with checked options and the facts its signature names."""
        checked = self._checked(options)
        named = inspect.signature(self.make).parameters.keys()
        known = {name: value for name, value in (facts or {}).items() if name in named}
        return self.make(**{name: getattr(checked, name) for name in self.options}, **known)


class Registry(Generic[T]):
    """The components of one kind, found by scanning their package or by importing their module."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._components: dict[str, Component[T]] = {}
        self._scanned = False

    def register(self, name: str, *, paper: str = "") -> Callable[[F], F]:
        """Give a class or function its short name and the paper it comes from."""

        def keep(make: F) -> F:
            known = self._components.get(name)
            if known is not None and known.make.__qualname__ != make.__qualname__:
                raise ValueError(f"two components called {name!r}: {known.make} and {make}")
            self._components[name] = Component(self.kind, name, make, paper)
            return make

        return keep

    def _scan(self) -> None:
        if not self._scanned:
            self._scanned = True
            folder = getattr(importlib.import_module(self._package), "__path__", [])
            for module in pkgutil.iter_modules(folder):
                importlib.import_module(f"{self._package}.{module.name}")

    def names(self) -> list[str]:
        """Return all names, sorted."""
        self._scan()
        return sorted(self._components)

    def __getitem__(self, name: str) -> Component[T]:
        self._scan()
        if name not in self._components:
            raise UsageError(f"no {self.kind} called {name!r}; {did_you_mean(name, self.names())}")
        return self._components[name]

    def build(self, name: str, facts: Mapping[str, Any] | None = None, /, **options: Any) -> T:
        """Build a component by name, for example `LOSSES.build("gce", q=0.7)`."""
        return self[name].build(options, facts)
