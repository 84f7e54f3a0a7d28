from __future__ import annotations

import time

import pytest

from unswayed import Recipe, UsageError
from unswayed.build import assemble
from unswayed.session import resume, train
from unswayed.training.cost import Budget, epoch_cost, epochs_within
from unswayed.training.settings import Settings
from unswayed.types import Step


@pytest.mark.parametrize(
    ("text", "kind", "amount"),
    [
        ("0.5 PFLOP", "flops", 5e14),
        ("20tflop", "flops", 2e13),
        ("2 EFLOP", "flops", 2e18),
        ("60 min", "seconds", 3600),
        (" 1.5 h ", "seconds", 5400),
        ("30 s", "seconds", 30),
    ],
)
def test_a_budget_is_computation_or_time(text, kind, amount):
    assert Budget.parse(text) == Budget(kind, pytest.approx(amount))


@pytest.mark.parametrize(
    "text", ["", "PFLOP", "0 min", "1", "1 day", "-1 h", "1.2.3 h", ".", "one h", "1e3 h"]
)
def test_what_is_no_budget_is_refused_with_examples(text):
    with pytest.raises(UsageError, match=r"0\.5 PFLOP"):
        Budget.parse(text)


def test_a_recipe_with_a_wrong_budget_is_refused_at_once():
    with pytest.raises(UsageError, match=r"train\.budget"):
        Settings(budget="plenty")


def test_budgets_are_told_in_a_fitting_unit():
    assert str(Budget("flops", 5e14)) == "500 TFLOP"
    assert str(Budget("seconds", 5400)) == "1.5 h"
    assert str(Budget("seconds", 0.02)) == "0.02 s"


def with_budget(tiny, amount, *words):
    return Recipe.from_dict(tiny.sections, f"train.budget={amount}", *words)


def test_a_training_spends_what_it_may_and_no_more(tiny, tmp_path):
    an_epoch = train(tiny, "train.epochs=1", run=tmp_path / "one").summary.flops
    allowed = 3.7 * an_epoch
    recipe = with_budget(tiny, f"{allowed / 1e12:.12f} TFLOP")
    run = train(recipe, run=tmp_path / "run")
    assert run.summary.epochs == 3
    assert run.summary.flops == pytest.approx(3 * an_epoch)
    assert run.provenance.resolved.model_dump(exclude_none=True) == {"epochs": 3}
    assert run.recipe.settings.budget.endswith("TFLOP")


def test_the_learning_rate_fits_the_budget(tiny):
    trainer, _ = assemble(tiny)
    budget = Budget("flops", 2 * epoch_cost(trainer, 0, timed=False).flops)
    fitted, _ = assemble(with_budget(tiny, f"{budget.amount / 1e12:.12f} TFLOP"))
    assert fitted.settings.epochs == 2
    rates = [event.metrics.lr for event in fitted.epochs()]
    assert len(rates) == 2
    assert rates[1] < 0.1 * rates[0]


def test_a_stopped_run_goes_on_to_the_epoch_that_was_agreed(tiny, tmp_path, monkeypatch):
    recipe = with_budget(tiny, "2 s")

    def stop(event):
        if isinstance(event, Step):
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        train(recipe, run=tmp_path / "run", watch=stop)
    import unswayed.build

    def never(*args):
        raise AssertionError("measured again")

    monkeypatch.setattr(unswayed.build, "epochs_within", never)
    run = resume(tmp_path / "run")
    assert run.summary.epochs == run.provenance.resolved.epochs >= 1
    assert train(recipe, run=tmp_path / "run").summary == run.summary


def test_too_small_a_budget_says_what_an_epoch_takes(tiny):
    with pytest.raises(UsageError, match=r"one epoch takes .* TFLOP.*allow more"):
        assemble(with_budget(tiny, "0.0000001 TFLOP"))


@pytest.mark.slow
def test_time_is_measured_with_its_evaluation(tiny, monkeypatch):
    trainer, _ = assemble(Recipe.from_dict(tiny.sections, "train.evaluate_every=2"))
    monkeypatch.setattr(trainer, "measure", lambda: time.sleep(4))
    cost = epoch_cost(trainer, 0, timed=True)
    assert cost.flops > 0
    assert 2 <= cost.seconds < 4


@pytest.mark.parametrize(
    "words",
    [
        ('train.side={name = "ramp", start = 0.5, end = 1.0, until = 0.8}', "data.size=16"),
        ("learner.correction={start = 0.5}",),
    ],
)
def test_a_budget_does_not_depend_on_the_epochs_that_it_replaces(tiny, words):
    words = ("method=ce", *words)
    plain, _ = assemble(Recipe.from_dict(tiny.sections, *words))
    allowed = 12 * epoch_cost(plain, plain.settings.epochs - 1, timed=False).flops
    budget = f"train.budget={allowed / 1e12:.12f} TFLOP"
    fitted = {
        assemble(Recipe.from_dict(tiny.sections, *words, budget, f"train.epochs={epochs}"))[
            0
        ].settings.epochs
        for epochs in (1, 2, 100)
    }
    assert len(fitted) == 1


def test_methods_that_cost_more_later_are_counted_at_their_dearest(tiny):
    words = ("method=ce", "learner.correction={start = 0.5}")
    plain, _ = assemble(Recipe.from_dict(tiny.sections, "method=ce"))
    late, _ = assemble(Recipe.from_dict(tiny.sections, *words))
    budget = Budget("flops", 100 * epoch_cost(plain, 0, timed=False).flops)
    assert epochs_within(budget, late) < epochs_within(budget, plain) == 100


@pytest.mark.slow
def test_epochs_that_are_cheap_at_first_leave_room_for_more(tiny):
    words = ("method=ce", "data.size=16", "model.name=fast", "model.width=4", "train.epochs=20")
    growing = 'train.side={name = "ramp", start = 0.5, end = 1.0, until = 0.8}'
    plain, _ = assemble(Recipe.from_dict(tiny.sections, *words))
    probe, _ = assemble(Recipe.from_dict(tiny.sections, *words, growing))
    budget = Budget("flops", 20 * epoch_cost(plain, 0, timed=False).flops)
    epochs = epochs_within(budget, probe)
    assert epochs > 24
    recipe = Recipe.from_dict(tiny.sections, *words, growing, f"train.epochs={epochs}")
    trainer, _ = assemble(recipe)
    *_, last = trainer.epochs()
    assert 0.85 * budget.amount < last.metrics.flops <= budget.amount
