from __future__ import annotations

import math

import pytest

from unswayed import UsageError
from unswayed.recipe import Recipe
from unswayed.schedules import (
    SCHEDULES,
    Constant,
    Cosine,
    Ramp,
    Steps,
    Triangle,
    extremes,
    restart_epoch,
    value_at,
)


def test_a_plain_number_is_constant():
    assert value_at(3.0, 0.7) == value_at(Constant(3.0), 0.2) == 3.0


@pytest.mark.parametrize(("progress", "expected"), [(0, 1), (0.1, 2), (0.2, 3), (0.9, 3)])
def test_ramp(progress, expected):
    assert value_at(Ramp(1, 3, until=0.2), progress) == pytest.approx(expected)


def test_a_ramp_may_begin_late():
    ramp = Ramp(64, 1, since=0.3, until=0.45)
    numbers = [ramp(progress) for progress in (0, 0.3, 0.375, 0.45, 1)]
    assert numbers == pytest.approx([64, 64, 32.5, 1, 1])
    late = 'optimizer.bias_lr={name="ramp", start=1, end=2, since=0.5, until=0.5}'
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


def test_steps_are_taken_at_each_milestone_that_is_reached():
    steps = Steps(milestones=(0.25, 0.5), gamma=0.5, value=4.0)
    assert [steps(progress) for progress in (0, 0.24, 0.25, 0.49, 0.5, 1)] == [4, 4, 2, 2, 1, 1]
    assert Steps(milestones=(0.0,), gamma=0.5)(0) == 0.5


def test_a_triangle_has_straight_sides():
    triangle = Triangle(start=1.0, peak=0.5, end=0.0, top=3.0)
    numbers = [triangle(progress) for progress in (0, 0.25, 0.5, 0.75, 1)]
    assert numbers == pytest.approx([1, 2, 3, 1.5, 0])
    assert [Triangle(peak=0.0)(progress) for progress in (0, 1)] == pytest.approx([1, 0.05])
    assert Triangle(peak=1.0)(0.999) < 1


def test_extremes_are_those_of_the_whole_way():
    assert extremes(Triangle(start=0.2, peak=0.5, end=0.1, top=2.0)) == pytest.approx((0.1, 2.0))
    assert extremes(Ramp(5, 1, until=0.1)) == (1, 5)
    assert extremes(Steps(gamma=0.1)) == pytest.approx((0.01, 1))
    assert extremes(0.4) == (0.4, 0.4)


def test_a_range_holds_at_the_peak_of_a_triangle_too():
    high = 'regularizer.tau={name="triangle", start=0.0, end=0.0, top=3.0}'
    with pytest.raises(UsageError, match=r"'tau'.*from 0 to 2 throughout"):
        Recipe.load("digits", high)
    low = 'regularizer.weight={name="triangle", start=1.0, end=1.0, top=-1.0}'
    with pytest.raises(UsageError, match=r"'weight'.*at least 0 throughout"):
        Recipe.load("digits", low)


@pytest.mark.parametrize("name", [name for name in SCHEDULES.names() if name != "ramp"])
def test_every_schedule_can_stand_for_a_number_and_for_the_learning_rate(name):
    word = f'regularizer.weight={{name="{name}"}}'
    recipe = Recipe.load("digits", word, f"schedule.name={name}")
    assert recipe.build("regularizer").weight == recipe.build("schedule")


def test_a_schedule_that_contradicts_itself_is_an_error_of_its_section():
    words = ("schedule.name=ramp", "schedule.start=1", "schedule.end=0", "schedule.since=1")
    with pytest.raises(UsageError, match=r"\[schedule\] since \(1\) must be below until \(1\)"):
        Recipe.load("digits", *words)
