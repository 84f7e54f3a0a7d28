"""What every component promises: it can be listed, explained and checked."""

from __future__ import annotations

import pytest

from unswayed import UsageError
from unswayed.recipe import REGISTRIES

EVERY = [
    pytest.param(registry[name], id=f"{place}-{name}")
    for place, registry in REGISTRIES.items()
    for name in registry.names()
]
REQUIRED = {
    "npz": {"path": "x.npz"},
    "file": {"path": "x.npz"},
    "folder": {"path": "x"},
    "manifest": {"path": "x.csv"},
    "ramp": {"start": 0.0, "end": 1.0},
}


@pytest.mark.parametrize("component", EVERY)
def test_is_documented_and_every_option_is_explained(component):
    assert component.summary
    if component.name not in ("resnet34", "resnet50"):  # these point at resnet18
        assert set(component.help) == set(component.options)


@pytest.mark.parametrize("component", EVERY)
def test_defaults_are_valid_and_plain(component):
    resolved = component.resolve(REQUIRED.get(component.name, {}))
    assert component.resolve(resolved) == resolved


@pytest.mark.parametrize("component", EVERY)
def test_an_unknown_option_is_an_error_that_lists_the_valid_ones(component):
    with pytest.raises(UsageError, match="has no option 'nonsense'") as caught:
        component.resolve({**REQUIRED.get(component.name, {}), "nonsense": 1})
    assert all(option in str(caught.value) for option in component.options)
