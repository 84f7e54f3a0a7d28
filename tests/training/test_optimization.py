from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import nn

from unswayed import Recipe, UsageError
from unswayed.build import assemble
from unswayed.optimizers import OPTIMIZERS
from unswayed.schedules import Constant, Cosine, Ramp, Steps, Triangle
from unswayed.training.optimization import Optimization
from unswayed.training.settings import Settings
from unswayed.types import Step


class Line(nn.Linear):
    """What an optimization asks of a learner."""

    restart = 0.0


def make(schedule=None, lr=1.0, steps=1, restart=0.0, **settings):
    line = Line(2, 2)
    line.restart = restart
    sgd = OPTIMIZERS.build("sgd", lr=lr)
    return Optimization(line, sgd, schedule or Cosine(), Settings(**settings), steps)


def every(made):
    epochs = made.settings.epochs
    return [made.rate(epoch, step) for epoch in range(epochs) for step in range(made.steps)]


def test_the_published_schedule_is_a_cosine_by_epoch():
    made = make(lr=0.02, steps=195, epochs=550, schedule_unit="epoch")
    for epoch in (0, 1, 137, 549):
        expected = 0.02 * 0.5 * (1 + math.cos(math.pi * epoch / 550))
        for step in (0, 100, 194):
            assert made.rate(epoch, step) == pytest.approx(expected, rel=1e-12)


def test_by_step_it_falls_at_every_step_to_almost_nothing():
    rates = every(make(steps=10, epochs=3))
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == 1.0
    assert rates[-1] == pytest.approx(0.5 * (1 + math.cos(math.pi * 29 / 30)))


def test_warm_up_rises_linearly_and_then_the_cosine_starts_at_the_peak():
    rates = every(make(steps=4, epochs=5, warmup_epochs=2))
    assert rates[:8] == pytest.approx([(i + 1) / 8 for i in range(8)])
    assert rates[8] == 1.0
    assert rates[9] < 1.0


def test_a_warm_up_takes_half_of_a_short_training():
    rates = every(make(steps=4, epochs=2, warmup_epochs=2))
    assert rates[:4] == pytest.approx([(i + 1) / 4 for i in range(4)])
    assert rates[4] == 1.0
    assert rates[4:] == sorted(rates[4:], reverse=True)
    short = every(make(steps=4, epochs=1, warmup_epochs=60))
    assert short[:2] == pytest.approx([1 / 2, 1])
    assert short[2:] == sorted(short[2:], reverse=True)


def test_constant_stays():
    assert make(Constant(), lr=0.3, steps=2).rate(57, 1) == 0.3


def test_steps_drop_the_rate_at_shares_of_the_training():
    made = make(Steps(milestones=(1 / 3, 2 / 3), gamma=0.1), epochs=120)
    rates = [made.rate(epoch, 0) for epoch in (0, 39, 40, 79, 80, 119)]
    assert rates == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])
    rounded = make(Steps(milestones=(0.333333, 0.666667)), epochs=120)
    assert every(rounded) == every(made)
    assert make(Steps(), epochs=1).rate(0, 0) == 1.0  # the first epoch is never dropped


def test_a_schedule_can_be_shorter_than_the_training():
    made = make(epochs=10, restart=0.4)
    assert made.rate(2, 0) == pytest.approx(0.5)
    assert (made.rate(0, 0), made.rate(4, 0), made.rate(7, 0)) == (1.0, 1.0, pytest.approx(0.5))


def test_a_triangle_rises_to_its_peak_and_falls_to_its_end():
    rates = every(make(Triangle(start=0.5, peak=0.2, end=0.1), lr=2.0, steps=10, epochs=10))
    assert rates[0] == 1.0
    assert max(rates) == rates[20] == pytest.approx(2.0)
    assert rates[10] == pytest.approx(1.5)
    assert rates[60] == pytest.approx(1.1)
    assert rates[-1] == pytest.approx(2.0 * (0.1 + 0.9 / 80))
    differences = [b - a for a, b in itertools.pairwise(rates)]
    assert differences[:20] == pytest.approx([0.05] * 20)
    assert differences[20:] == pytest.approx([-1.8 / 80] * 79)


def test_a_warm_up_goes_before_every_schedule():
    triangle = Triangle(start=0.5, peak=0.5, end=0.0)
    rates = every(make(triangle, steps=4, epochs=5, warmup_epochs=1))
    assert rates[:4] == pytest.approx([(i + 1) / 4 for i in range(4)])
    assert rates[4:] == pytest.approx([triangle(i / 16) for i in range(16)])


def test_a_schedule_by_epoch_is_by_epoch_whatever_its_kind(tiny):
    for name in ("cosine", "triangle", "steps"):
        words = (f"schedule.name={name}", "train.schedule_unit=epoch", "method=ce")
        optimization = assemble(tiny.with_overrides(*words))[0].optimization
        for epoch in range(2):
            assert len({optimization.rate(epoch, step) for step in range(optimization.steps)}) == 1


def test_by_epoch_all_that_is_scheduled_moves_by_epoch(tiny):
    trainer, _ = assemble(tiny.with_overrides("train.schedule_unit=epoch"))
    seen = []
    trainer.learner.register_forward_pre_hook(lambda _, args: seen.append(args[0].progress))
    steps = [event for event in trainer.events() if isinstance(event, Step)]
    assert seen == [event.epoch / 2 for event in steps]


def test_a_learning_rate_is_never_negative():
    with pytest.raises(UsageError, match="at least 0 throughout"):
        make(Ramp(start=1.0, end=-0.1))


def test_a_restart_needs_two_epochs():
    with pytest.raises(UsageError, match="begins anew halfway"):
        make(restart=0.5, epochs=1)


def test_a_restart_forgets_the_momentum_and_no_other_epoch_does():
    made = make(epochs=4, restart=0.5)
    kept = []
    for epoch in range(4):
        made.begin_epoch(epoch)
        kept.append(len(made.state()))
        made.zero_grad()
        made.learner(torch.ones(3, 2)).sum().backward()
        made.step(epoch, 0)
    assert kept == [0, 2, 0, 2]


def test_rates_with_a_schedule_of_their_own_begin_anew_too():
    made = make(epochs=5, restart=0.4)
    found = [made.progress(epoch, step) for epoch in range(5) for step in (0, made.steps // 2)]
    half = made.steps // 2 / made.steps
    first = [(epoch + part) / 2 for epoch in range(2) for part in (0, half)]
    second = [(epoch + part) / 3 for epoch in range(3) for part in (0, half)]
    assert found == pytest.approx(first + second)


def test_a_gradient_is_clipped_to_the_norm_or_only_measured():
    for clip_norm, expected in ((0.0, math.sqrt(2 * 9 + 4 * 9)), (0.5, 0.5)):
        made = make(clip_norm=clip_norm)
        made.learner(torch.ones(3, 2)).sum().backward()
        assert made.clip() == pytest.approx(math.sqrt(2 * 9 + 4 * 9))
        gradients = [p.grad for p in made.learner.parameters()]
        assert torch.nn.utils.get_total_norm(gradients) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("epochs", [1, 2])
def test_the_safe_recipe_trains_for_an_epoch_or_two(tiny, epochs):
    recipe = Recipe.load("safe", "data.name=digits", f"train.epochs={epochs}")
    assert recipe.settings.warmup_epochs == 2
    words = (f"train.epochs={epochs}", "train.warmup_epochs=2")
    *_, last = assemble(tiny.with_overrides(*words))[0].epochs()
    assert last.epoch == epochs - 1
