from __future__ import annotations

import pytest

from unswayed import UsageError
from unswayed.losses import LOSSES, Loss
from unswayed.losses.ce import CE
from unswayed.registry import Registry


def test_an_outside_loss_registers_with_the_same_decorator():
    @LOSSES.register("outside", paper="nobody, 2026")
    class Outside(CE):
        """A loss from somebody else's code."""

    try:
        assert "outside" in LOSSES.names()
        assert isinstance(LOSSES.build("outside"), Loss)
        assert LOSSES["outside"].paper == "nobody, 2026"
    finally:
        del LOSSES._components["outside"]


def test_two_components_of_one_name_are_an_error():
    registry: Registry[object] = Registry("thing", "unswayed.losses")
    registry.register("a")(int)
    with pytest.raises(ValueError, match="two components"):
        registry.register("a")(float)


def test_facts_are_handed_to_those_who_ask():
    registry: Registry[tuple[int, int]] = Registry("thing", "unswayed.losses")

    @registry.register("pair")
    def pair(num_classes: int, size: int = 3) -> tuple[int, int]:
        return num_classes, size

    assert registry.build("pair", {"num_classes": 10, "in_channels": 3}, size=4) == (10, 4)
    with pytest.raises(UsageError, match="no option 'num_classes'"):
        registry.build("pair", num_classes=10)
