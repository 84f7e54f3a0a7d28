from __future__ import annotations

import math

import pytest

from unswayed import UsageError
from unswayed.recipe import Recipe
from unswayed.schedules import Constant, Cosine, Ramp, restart_epoch, value_at


def test_a_plain_number_is_constant():
    assert value_at(3.0, 0.7) == value_at(Constant(3.0), 0.2) == 3.0


@pytest.mark.parametrize(("progress", "expected"), [(0, 1), (0.1, 2), (0.2, 3), (0.9, 3)])
def test_ramp(progress, expected):
    assert value_at(Ramp(1, 3, until=0.2), progress) == pytest.approx(expected)


def test_a_ramp_may_begin_late():
    ramp = Ramp(64, 1, since=0.3, until=0.45)
    numbers = [ramp(progress) for progress in (0, 0.3, 0.375, 0.45, 1)]
    assert numbers == pytest.approx([64, 64, 32.5, 1, 1])
    late = 'train.bias_lr={name="ramp", start=1, end=2, since=0.5, until=0.5}'
    with pytest.raises(UsageError, match=r"'bias_lr'.*since \(0\.5\) must be below until"):
        Recipe.load("digits", late)


@pytest.mark.parametrize("progress", [0, 0.25, 0.5, 1])
def test_cosine(progress):
    expected = 2 + 6 * (1 + math.cos(math.pi * progress)) / 2
    assert value_at(Cosine(8, 2), progress) == pytest.approx(expected)


def test_a_restart_leaves_an_epoch_on_either_side():
    assert restart_epoch(0.0, 10) == 0
    assert [restart_epoch(0.5, epochs) for epochs in (10, 3, 2)] == [5, 2, 1]
    assert restart_epoch(0.01, 10) == 1
    assert restart_epoch(0.99, 10) == 9
