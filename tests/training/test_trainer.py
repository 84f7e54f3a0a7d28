from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from unswayed import Dataset, NonFiniteLossError, Recipe, Splits, UsageError
from unswayed.build import assemble
from unswayed.device import has_bf16
from unswayed.training.measure import predictions, probabilities
from unswayed.types import Epoch, Step

TRACED = (
    "train.epochs=3",
    "views.weak.name=resized_crop",
    "optimizer.lr=0.005",
    "regularizer.tau=0.15",
)
GOLDEN = Path(__file__).parent / "golden_trace.json"


def same(a, b):
    return all(
        torch.equal(x.view(torch.uint8), y.view(torch.uint8)) for x, y in zip(a, b, strict=True)
    )


def tensors_of(trainer):
    tensors, _ = trainer.state()
    return [tensors[name].contiguous().reshape(-1) for name in sorted(tensors)]


def test_twenty_steps_give_the_stored_losses(tiny):
    """A change here changes everybody's numbers: argue for it, then store the new trace."""
    trainer, _ = assemble(Recipe.from_dict(tiny.sections, *TRACED))
    events = (event for event in trainer.events() if isinstance(event, Step))
    losses = [event.loss for event, _ in zip(events, range(20), strict=False)]
    assert len(losses) == 20
    assert losses == pytest.approx(json.loads(GOLDEN.read_text())["losses"], rel=1e-3)


@pytest.mark.parametrize("stop", [1, 5, 8, 11])
@pytest.mark.parametrize("words", [(), ("framework.name=byol", "train.ema=0.9", "loss.name=gce")])
def test_going_on_from_a_state_gives_the_same_bits(tiny, stop, words):
    recipe = Recipe.from_dict(tiny.sections, *words)
    whole, _ = assemble(recipe)
    first, _ = assemble(recipe)
    for number, event in enumerate(first.events(), start=1):
        if number == stop:
            state = first.state()
            assert event is not None
            break
    second, _ = assemble(recipe)
    second.load_state(*state)
    rows = [[e.metrics for e in trainer.epochs()] for trainer in (whole, second)]
    assert same(tensors_of(whole), tensors_of(second))
    first, second = (each[-1].model_dump(exclude={"seconds"}) for each in rows)
    assert first == second


def test_two_trainings_of_one_recipe_are_equal_and_another_seed_is_not(tiny):
    def weights(*words):
        trainer, _ = assemble(Recipe.from_dict(tiny.sections, "train.epochs=1", *words))
        list(trainer.events())
        return tensors_of(trainer)

    assert same(weights(), weights())
    assert not same(weights(), weights("train.seed=1"))


def test_overfits_a_handful_of_samples():
    recipe = Recipe.load(
        "digits-ce",
        "noise.name=none",
        "views.weak.name=none",
        "train.epochs=40",
        "train.batch_size=16",
        "optimizer.lr=0.05",
        "train.holdout=0",
        "model.width=8",
        "data.size=8",
    )
    whole = recipe.build("data").train
    rows = np.arange(32)
    few = Dataset.from_arrays(whole.images[rows].numpy(), whole.given[rows], classes=whole.classes)
    trainer, _ = assemble(recipe, Splits(few, None))
    *_, last = trainer.epochs()
    assert last.metrics.train_accuracy == 1.0


def test_events_come_in_order_and_count_every_step(tiny):
    trainer, _ = assemble(tiny)
    events = list(trainer.events())
    kinds = "".join("E" if isinstance(event, Epoch) else "s" for event in events)
    assert kinds == ("s" * trainer.steps + "E") * 2
    assert trainer.steps == len(trainer.rows) // 128


def test_an_epoch_sees_every_row_once_and_never_the_holdout(tiny):
    recipe = Recipe.from_dict(tiny.sections, "train.epochs=1", "train.drop_last=false")
    trainer, _ = assemble(recipe)
    *_, last = trainer.events()
    seen = last.records.predicted.numpy() >= 0
    assert seen[trainer.rows].all()
    assert not seen[trainer.holdout].any()
    assert np.isnan(last.records.loss.numpy()[trainer.holdout]).all()


def test_metrics_hold_what_a_reader_needs(tiny):
    trainer, _ = assemble(tiny)
    rows = [event.metrics for event in trainer.epochs()]
    for row in rows:
        for name in ("test_accuracy", "holdout_accuracy", "train_accuracy", "lr", "seconds"):
            assert getattr(row, name) is not None
        assert set(row.terms) == {"total", "label", "contrast"}
        shares = [getattr(row, f"wrong_{name}") for name in ("as_given", "as_true", "other")]
        assert sum(shares) == pytest.approx(1)


def test_evaluation_can_be_thinned_but_the_last_epoch_is_always_tested(tiny):
    recipe = Recipe.from_dict(tiny.sections, "train.epochs=3", "train.evaluate_every=2")
    trainer, _ = assemble(recipe)
    assert [e.metrics.test_accuracy is not None for e in trainer.epochs()] == [False, True, True]


def test_a_nan_stops_before_the_update_and_names_the_samples(tiny):
    trainer, _ = assemble(Recipe.from_dict(tiny.sections, "regularizer.name=none"))
    events = trainer.events()
    next(events)
    with torch.no_grad():
        trainer.learner.classifier.head.bias[0] = torch.nan
    before = [p.clone() for p in trainer.learner.parameters()]
    with pytest.raises(NonFiniteLossError, match="epoch 1, step 2") as caught:
        next(events)
    after = list(trainer.learner.parameters())
    assert same([p.detach().reshape(-1) for p in before], [p.detach().reshape(-1) for p in after])
    assert len(caught.value.ids) == 128
    assert caught.value.ids[0].startswith("digits/")


def test_only_the_guilty_samples_are_named(tiny):
    trainer, _ = assemble(Recipe.from_dict(tiny.sections, "regularizer.name=none"))
    loss = trainer.learner.loss
    guilty = int(trainer.batches.order(0)[3])
    broken = loss.forward
    loss.forward = lambda logits, labels, index: broken(logits, labels).masked_fill(
        index == guilty, torch.inf
    )
    with pytest.raises(NonFiniteLossError) as caught:
        next(trainer.events())
    assert caught.value.ids == [trainer.train.ids[guilty]]


def test_a_gradient_that_is_not_finite_stops_too(tiny):
    trainer, _ = assemble(tiny)
    trainer.learner.classifier.head.weight.register_hook(lambda g: g * torch.inf)
    with pytest.raises(NonFiniteLossError, match="gradient"):
        next(trainer.events())


def test_a_clipped_gradient_is_no_longer_than_asked(tiny):
    trainer, _ = assemble(Recipe.from_dict(tiny.sections, "train.clip_norm=0.01"))
    next(trainer.events())
    gradients = [p.grad for p in trainer.learner.parameters() if p.grad is not None]
    assert torch.nn.utils.get_total_norm(gradients) <= 0.0101


def test_the_average_follows_the_weights_and_is_what_is_tested(tiny):
    trainer, _ = assemble(Recipe.from_dict(tiny.sections, "train.ema=0.5"))
    events = trainer.events()
    next(events)
    first = trainer.learner.classifier.head.weight.detach().clone()
    next(events)
    second = trainer.learner.classifier.head.weight.detach()
    assert torch.allclose(trainer.classifier.head.weight, 0.5 * first + 0.5 * second, atol=1e-6)
    assert trainer.classifier is not trainer.learner.classifier


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train.batch_size=2000",), "fewer training samples"),
        (("train.drop_last=false", "train.batch_size=1131"), "would hold one image"),
    ],
)
def test_batches_that_cannot_be_are_refused(tiny, words, message):
    recipe = Recipe.from_dict(tiny.sections, *words)
    with pytest.raises(UsageError, match=message):
        assemble(recipe)


def test_the_holdout_does_not_look_at_true_labels(tiny):
    train, test = tiny.build("data")
    trainer, _ = assemble(tiny, Splits(train, test))
    shuffled = Dataset(
        train.images, train.given, train.classes, train.ids, train.given[::-1].copy()
    )
    other, _ = assemble(tiny, Splits(shuffled, test))
    assert np.array_equal(trainer.holdout, other.holdout)


def test_byols_target_moves_before_every_step_from_the_weights_before_the_update(tiny):
    words = ("framework.name=byol", "framework.momentum=0.8")
    trainer, _ = assemble(Recipe.from_dict(tiny.sections, *words))
    online = trainer.learner.classifier.backbone.convs[0].weight
    target = trainer.learner.framework.target_backbone.convs[0].weight
    expected = online.detach().clone()
    events = trainer.events()
    for _ in range(4):
        before = online.detach().clone()
        next(events)
        expected = 0.8 * expected + 0.2 * before
        assert torch.allclose(target, expected, atol=1e-6)
    assert not torch.allclose(target, online, atol=1e-4)


def test_progress_rises_from_zero_by_equal_steps_to_just_below_one(tiny):
    trainer, _ = assemble(tiny)
    seen = []
    trainer.learner.register_forward_pre_hook(lambda _, args: seen.append(args[0].progress))
    list(trainer.events())
    total = trainer.steps * 2
    assert seen == pytest.approx([step / total for step in range(total)])


def test_weights_that_are_not_finite_are_never_saved(tiny):
    trainer, _ = assemble(tiny)
    next(trainer.events())
    with torch.no_grad():
        trainer.learner.classifier.head.weight[0, 0] = torch.inf
    with pytest.raises(NonFiniteLossError, match="network"):
        trainer.state()


def test_between_epochs_the_learner_sees_the_training_set_and_no_true_label(tiny):
    trainer, _ = assemble(tiny)
    seen = []
    trainer.learner.before_epoch = seen.append
    list(trainer.events())
    assert [each.epoch for each in seen] == [0, 1]
    assert seen[0].epochs == 2
    assert np.array_equal(seen[0].given.numpy(), trainer.train.given)
    assert np.array_equal(seen[0].rows.numpy(), trainer.rows)
    assert np.array_equal(seen[0].holdout.numpy(), trainer.holdout)
    assert seen[1].network is trainer.classifier
    net, rows, held = trainer.classifier, trainer.holdout, seen[1].holdout
    p = seen[1].look(net, held)
    assert torch.equal(p, probabilities(net, trainer.train, rows))
    assert torch.equal(seen[1].of_given(net, held), p[torch.arange(len(p)), seen[1].given[held]])
    assert np.array_equal(seen[1].predicted(net, held), predictions(net, trainer.train, rows))
    assert not any("true" in name for name in seen[0].__slots__)


def test_a_restart_clears_the_momentum_and_begins_the_schedule_anew(tiny):
    recipe = Recipe.from_dict(tiny.sections, "method=ce", "train.epochs=4")
    trainer, _ = assemble(recipe)
    trainer.learner.restart = 0.5
    rates, momenta = [], []
    plain = trainer.learner.before_epoch

    def look(overview):
        momenta.append(len(trainer.optimization.optimizer.state))
        plain(overview)

    trainer.learner.before_epoch = look
    for event in trainer.events():
        if isinstance(event, Step) and event.step == 1:
            rates.append(trainer.optimization.optimizer.param_groups[0]["lr"])
    assert rates[2] == rates[0] == pytest.approx(0.02)
    assert rates[3] == rates[1] == pytest.approx(0.01)
    assert momenta[0] == momenta[2] == 0
    assert momenta[1] > 0
    assert momenta[3] > 0


def test_forward_correction_goes_back_to_its_best_network_and_trains_on(tiny):
    recipe = Recipe.from_dict(tiny.sections, "method=forward", "train.epochs=4")
    trainer, _ = assemble(recipe)
    for event in trainer.epochs():
        estimated = bool(trainer.learner.loss.estimated)
        assert estimated == (event.epoch >= 2)
    matrix = trainer.learner.loss.matrix
    assert trainer.learner.findings() == {"matrix": matrix.tolist()}
    assert torch.allclose(matrix.sum(1), torch.ones(10))
    assert not torch.equal(matrix, torch.eye(10))


def test_a_training_that_begins_anew_needs_two_epochs(tiny):
    recipe = Recipe.from_dict(tiny.sections, "method=forward", "train.epochs=1")
    with pytest.raises(UsageError, match="begins anew"):
        assemble(recipe)


@pytest.mark.slow
def test_a_compiled_network_trains_alike(tiny):
    words = ("model.name=fast", "model.width=4", "train.epochs=1")
    plain, _ = assemble(Recipe.from_dict(tiny.sections, *words))
    compiled, _ = assemble(Recipe.from_dict(tiny.sections, *words, "train.compile=default"))
    for one, other in zip(plain.events(), compiled.events(), strict=True):
        if isinstance(one, Step):
            assert one.loss == pytest.approx(other.loss, rel=1e-3)
    assert plain.flops.total == compiled.flops.total > 0
    assert plain.state()[0].keys() == compiled.state()[0].keys()


def test_the_counted_operations_are_those_of_the_layers(tiny):
    """Cross entropy, fast network: forward, and both backwards of all layers but the first two."""
    words = ("method=ce", "model.name=fast", "model.width=4", "train.epochs=1", "data.size=16")
    trainer, _ = assemble(Recipe.from_dict(tiny.sections, *words))
    event = next(iter(trainer.events()))
    batch, classes = trainer.settings.batch_size, trainer.train.num_classes
    pairs = ((15, 8, 4), (7, 4, 16), (3, 16, 16))  # side of the image, channels in and out
    first = 15**2 * 4 * 1 * 8
    layers = 16 * classes
    for side, inputs, outputs in pairs:
        pooled = side // 2
        layers += (2 * pooled) ** 2 * 9 * inputs * outputs + pooled**2 * 9 * outputs**2
    # The frozen layer's weights need no gradient, nor do its outputs.
    side, inputs, outputs = pairs[0]
    expected = 2 * batch * (first + 3 * layers - (side - 1) ** 2 * 9 * inputs * outputs)
    assert event.step == 1
    assert trainer.flops.step == pytest.approx(expected, rel=0.02)


def test_images_can_grow_from_epoch_to_epoch(tiny):
    side = 'train.side={name = "ramp", start = 0.5, end = 1.0, until = 0.5}'
    recipe = Recipe.from_dict(tiny.sections, "data.size=16", "train.epochs=4", side)
    trainer, _ = assemble(recipe)
    seen = []
    trainer.learner.register_forward_pre_hook(
        lambda _, inputs: seen.append((inputs[0].epoch, inputs[0].views))
    )
    list(trainer.events())
    for epoch, views in seen:
        expected = {0: 8, 1: 12, 2: 16, 3: 16}[epoch]
        for view in (*views.weak, *views.strong):
            assert view.shape[2:] == (expected, expected)
    assert len(trainer.batches.policy.spare) == 3


def test_a_shrunk_image_is_the_mean_of_its_pixels(tiny):
    recipe = Recipe.from_dict(tiny.sections, "data.size=16", "train.side=0.5", "method=ce")
    trainer, _ = assemble(Recipe.from_dict(recipe.sections, "views.weak.name=none"))
    batch = trainer.batches.of_rows(trainer.rows[:4], 0, 0)
    (seen,) = trainer.batches.shrunk(batch.views, 0).weak
    assert seen.shape[2:] == (8, 8)
    whole = trainer.train.images[torch.from_numpy(trainer.rows[:4])].float() / 255
    assert seen.mean() == pytest.approx(whole.mean().item(), abs=0.01)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_epoch_is_measured_in_the_precision_it_was_trained_in(tiny, precision):
    if precision == "bf16" and not has_bf16(torch.device("cpu")):
        pytest.skip("this processor has no bf16")
    trainer, _ = assemble(Recipe.from_dict(tiny.sections, f"train.precision={precision}"))
    seen = set()
    first = next(m for m in trainer.classifier.modules() if isinstance(m, torch.nn.Conv2d))
    first.register_forward_hook(lambda module, inputs, output: seen.add(output.dtype))
    trainer.measure()
    assert seen == {torch.bfloat16 if precision == "bf16" else torch.float32}
