"""What every method promises: presets that load, records, and a resume that changes nothing."""

from __future__ import annotations

import pytest
import torch
from survival_children import words_for

from unswayed import Recipe, methods
from unswayed.build import assemble


def recipe(name):
    return Recipe.load(*words_for(name), "train.evaluate_every=4")


@pytest.mark.parametrize("name", methods.names())
def test_every_preset_is_a_valid_recipe(name):
    method = methods.get(name)
    for preset in method.presets:
        loaded = Recipe.load("digits", f"method={name}/{preset}").sections
        for key, value in method.presets[preset].items():
            section, option = key.split(".")
            found = loaded[section][option]
            if isinstance(value, dict):
                found = {k: found[k] for k in value}
            assert found == value
        if "train.epochs" in method.presets[preset]:  # a published schedule says all of it
            whole = {f"optimizer.{key}" for key in ("name", "momentum", "nesterov")}
            whole |= {"train.warmup_epochs", "train.clip_norm", "schedule.name"}
            assert whole <= method.presets[preset].keys()
    assert method.title
    assert method.formula
    assert method.about.endswith(".")


@pytest.mark.slow
@pytest.mark.parametrize("name", methods.names())
def test_going_on_from_any_state_gives_the_same_bits_and_a_record_of_every_sample(name):
    whole, _ = assemble(recipe(name))
    kept = {}
    for number, event in enumerate(whole.events(), start=1):
        record = getattr(event, "records", None)
        if number in (5, 10, 14):  # the end of an epoch, the end of another, inside one
            tensors, plain = whole.state()
            kept[number] = {k: v.clone() for k, v in tensors.items()}, dict(plain)
    assert len(kept) == 3
    expected = whole.state()[0]
    trained = torch.from_numpy(whole.rows)
    assert (record.predicted[trained] >= 0).all()
    assert torch.isfinite(record.loss[trained]).all()
    for state in kept.values():
        again, _ = assemble(recipe(name))
        again.load_state(*state)
        for _ in again.events():
            pass
        found = again.state()[0]
        assert found.keys() == expected.keys()
        for key, tensor in expected.items():
            a, b = (x.contiguous().reshape(-1).view(torch.uint8) for x in (tensor, found[key]))
            assert torch.equal(a, b), key
