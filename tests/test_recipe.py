from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unswayed import Recipe, UsageError, methods
from unswayed.recipe import SECTIONS, _flat, shipped
from unswayed.schedules import Ramp


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_recipe_is_valid_and_described(name):
    recipe = Recipe.load(name, "data.name=digits")
    assert recipe.description
    assert set(recipe.sections) == set(SECTIONS)


@pytest.mark.parametrize("name", shipped())
def test_a_recipe_survives_its_own_file(name, tmp_path):
    contrast = Recipe.load(name, "data.name=digits").sections["regularizer"]["name"] != "none"
    words = ['regularizer.weight={name="ramp", start=0, end=5}'] if contrast else []
    recipe = Recipe.load(name, "data.name=digits", *words)
    path = tmp_path / "again.toml"
    path.write_text(recipe.to_toml(), encoding="utf-8")
    again = Recipe.load(path)
    assert again.sections == recipe.sections
    assert again.to_toml() == recipe.to_toml()


def test_overrides_are_typed_by_what_they_set():
    recipe = Recipe.load(
        "digits",
        "noise.rate=0.25",
        "loss.name=gce",
        "framework.name=byol",
        "regularizer.tau=0.3",
        "train.epochs=7",
        "views.strong.flip=0.5",
        "optimizer.nesterov=true",
    )
    assert recipe.sections["noise"]["rate"] == 0.25
    assert recipe.component("loss")[0].name == "gce"
    assert recipe.sections["views.strong"]["flip"] == 0.5
    assert recipe.settings.epochs == 7
    assert recipe.build("optimizer").nesterov is True


def test_a_new_component_keeps_the_options_it_shares_with_the_old_one():
    framework = Recipe.load("digits", "framework.name=byol").sections["framework"]
    assert framework["projector_widths"] == [256, 256]
    simclr = Recipe.load("digits", "framework.name=simclr").sections["framework"]
    assert simclr["projector_widths"] == [256, 256]
    assert "predictor_hidden" not in simclr


def test_schedules_can_be_given_whole_or_by_part():
    whole = Recipe.load("digits", 'regularizer.weight={name="ramp", start=0.0, end=9.0}')
    part = Recipe.load(
        "digits",
        "regularizer.weight.name=ramp",
        "regularizer.weight.start=0",
        "regularizer.weight.end=9",
    )
    assert whole.sections == part.sections
    assert whole.build("regularizer").weight == Ramp(0.0, 9.0)


def test_framework_and_regularizer_leave_together():
    for word in ("framework.name=none", "regularizer.name=none"):
        sections = Recipe.load("digits", word).sections
        assert sections["framework"] == sections["regularizer"] == {"name": "none"}


def test_a_recipe_extends_another(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "digits"\n[noise]\nrate = 0.1\n[loss]\nname = "gce"\n')
    mine, base = Recipe.load(path), Recipe.load("digits")
    assert mine.difference(base) == ["loss.min_probability", "loss.name", "loss.q", "noise.rate"]
    assert mine.name == "mine"


def test_a_recipe_that_extends_itself_is_an_error(tmp_path):
    path = tmp_path / "loop.toml"
    path.write_text(f'extends = "{path}"\n')
    with pytest.raises(UsageError, match="extends itself"):
        Recipe.load(path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("digit",), "did you mean 'digits'"),
        (("nowhere.toml",), "cannot be read"),
        (("digits", "nose.rate=1"), "did you mean 'noise'"),
        (("digits", "noise.name=symetric"), "did you mean 'symmetric'"),
        (("digits", "noise.rat=1"), "did you mean 'rate'"),
        (("digits", "train.epoch=1"), "did you mean 'epochs'"),
        (("digits", "train.epochs=many"), "'epochs' is 'many'"),
        (("digits", "train.epochs=0"), "greater than or equal to 1"),
        (("digits", "views.weird.flip=1"), "views has no 'weird'"),
        (("digits", "views.strong.flap=1"), "did you mean 'flip'"),
        (("digits", "noise.num_classes=3"), "no option 'num_classes'"),
        (("digits", "optimizer.lr"), "write section.key=value"),
        (("digits", "train=3"), "write train.key=value"),
        (("digits", "optimizer.lr=nan"), "finite"),
        (("digits", "data.name=npz"), "needs the option 'path'"),
        (("safe",), "names no data"),
        (("digits", "loss.qq=0.5", "loss.name=gce"), "no option 'qq'"),
        (
            ("digits", "optimizer.nesterov=true", "optimizer.momentum=0"),
            "nesterov needs optimizer.momentum",
        ),
        (("digits", "train.epochs=100001"), "less than or equal to 100000"),
        (("digits", "views.weak=1"), "write views.weak.key=value"),
        (("digits", "views=1"), "write views.weak.key=value"),
        (("digits", "views.strog.flip=1"), "did you mean 'strong'"),
        (("digits", "trian.epochs=1"), "did you mean 'train'"),
        (("digits", "optimizer.name=sdg"), "did you mean 'sgd'"),
        (("digits", "optimizer.filter_lr=0.1"), "'sgd' has no option 'filter_lr'"),
        (("digits", "schedule.gamma=0.1"), "'cosine' has no option 'gamma'"),
        (("digits", "train.lr=0.1"), "train has no option 'lr'; it moved to optimizer.lr"),
        (("digits", "train.ends=[0, 1]"), "it moved to schedule.start and schedule.end"),
        (("digits", "noise.exact=false"), "it moved to noise.draw"),
        (("digits", "framework.name=none", "regularizer.tau=0.3"), "since framework.name=none"),
        (("digits-ce", "regularizer.name=ctrr", "regularizer.tau=0.3"), "framework.name=none"),
        (("digits", "train.threads=99999999"), "less than or equal"),
        (("digits", "regularizer.weight=-1"), "at least 0"),
        (("digits", "framework.name=byol", "framework.momentum=99"), "from 0 to 1"),
        (("digits", 'regularizer.weight={name="ramp", start=0.0, end=inf}'), "finite"),
        (("digits", "loss.name=gce", "loss.min_probability=7"), "less than 1"),
        (("digits", 'regularizer.tau={name="ramp", start=1}'), "ramp end"),
    ],
)
def test_a_mistake_is_named_with_what_would_be_right(words, message):
    with pytest.raises(UsageError, match=message):
        Recipe.load(*words)


@pytest.mark.parametrize("text", ["noise = 3", "[views]\nweak = 1", "[train\n", "\x00"])
def test_broken_files_are_said_plainly(tmp_path, text):
    path = tmp_path / "broken.toml"
    path.write_text(text)
    with pytest.raises(UsageError):
        Recipe.load(path)


def test_bytes_that_are_no_text_are_said_plainly(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_bytes(b"\xff\xfe\x80")
    with pytest.raises(UsageError, match="cannot be read"):
        Recipe.load(path)


KEYS = sorted(
    {
        key
        for recipe in ("digits", "safe")
        for key in _flat(Recipe.load(recipe, "data.name=digits").sections)
    }
    | {"train", "views.weak", "loss.nothing", "noise.rate.deeper", "regularizer.weight.name"}
)


@given(
    word=st.one_of(
        st.text(max_size=30),
        st.builds("{}={}".format, st.sampled_from(KEYS), st.text(max_size=12)),
        st.builds(
            "{}={}".format,
            st.sampled_from(KEYS),
            st.one_of(st.integers(), st.floats(), st.sampled_from(["[]", "{}", "true", "[1, 2]"])),
        ),
    )
)
@settings(max_examples=300)
def test_no_override_is_ever_a_traceback(word):
    with contextlib.suppress(UsageError):
        Recipe.load("digits", word)


def test_a_file_is_extended_from_beside_it_and_gives_its_name(tmp_path, monkeypatch):
    folder = tmp_path / "sub"
    folder.mkdir()
    (folder / "base.toml").write_text('extends = "digits"\n[noise]\nrate = 0.3\n')
    (folder / "mine").write_text('extends = "base.toml"\n')
    monkeypatch.chdir(tmp_path)
    mine = Recipe.load(folder / "mine")
    assert mine.sections["noise"]["rate"] == 0.3
    assert mine.name == "mine"


@pytest.mark.parametrize("text", ["extends = 3", 'extends = ["digits"]'])
def test_extending_no_name_is_an_error(tmp_path, text):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(UsageError, match="which is no name"):
        Recipe.load(tmp_path / "a.toml")


PAPER = {
    "model.name": "preact_resnet18",
    "train.epochs": 550,
    "train.batch_size": 256,
    "optimizer.lr": 0.02,
    "optimizer.momentum": 0.9,
    "optimizer.nesterov": False,
    "optimizer.weight_decay": 5e-4,
    "optimizer.decay_norms_and_biases": True,
    "train.schedule_unit": "epoch",
    "train.warmup_epochs": 0.0,
    "train.drop_last": True,
    "train.holdout": 0.0,
    "views.weak.name": "resized_crop",
    "views.weak.area": [0.08, 1.0],
    "views.strong.area": [0.2, 1.0],
    "views.strong.jitter": [0.4, 0.4, 0.4, 0.1],
    "views.strong.jitter_probability": 0.8,
    "views.strong.grayscale": 0.2,
    "regularizer.pair_weight": "soft",
}
PRESETS = {
    "paper-simsiam": {
        **PAPER,
        "framework.name": "simsiam",
        "framework.projector_widths": [2048, 2048, 2048],
        "framework.predictor_hidden": 512,
        "framework.heads": "simsiam",
        "framework.symmetric": True,
        "regularizer.clamp": "similarity",
    },
    "official-byol": {
        **PAPER,
        "framework.name": "byol",
        "framework.projector_widths": [2048, 128],
        "framework.predictor_hidden": 512,
        "framework.heads": "plain",
        "framework.symmetric": False,
        "framework.momentum": 0.99,
        "framework.bn_stats": "both",
        "regularizer.clamp": "coordinate",
        "views.strong.blur": 0.0,
    },
    "safe": {
        "framework.name": "simsiam",
        "framework.symmetric": True,
        "regularizer.clamp": "similarity",
        "train.holdout": 0.1,
    },
}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_what_its_publication_says(name):
    options = _flat(Recipe.load(name, "data.name=digits").sections)
    assert {key: options[key] for key in PRESETS[name]} == PRESETS[name]


def test_a_method_is_one_word_and_keeps_what_the_recipe_says_of_its_parts():
    ctrr = Recipe.load("digits", "method=ctrr").sections
    assert ctrr == Recipe.load("digits").sections
    byol = Recipe.load("digits", "method=ctrr-byol").sections
    assert byol["framework"]["name"] == "byol"
    assert byol["framework"]["projector_widths"] == [256, 256]
    assert byol["regularizer"]["weight"] == 10.0
    gce = Recipe.load("digits", "loss.q=0.4", "method=gce").sections
    assert gce["loss"] == {"name": "gce", "q": 0.4, "min_probability": 1e-4}
    assert gce["framework"] == gce["regularizer"] == {"name": "none"}


def test_a_preset_sets_what_the_literature_tuned():
    found = Recipe.load("digits", "method=elr/cifar100").sections["loss"]
    assert (found["beta"], found["weight"]) == (0.9, 7.0)


def test_a_file_may_name_a_method_and_say_more(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('extends = "digits"\nmethod = "coteaching"\n[learner]\ngradual = 3\n')
    recipe = Recipe.load(file)
    assert recipe.sections["learner"]["name"] == "coteaching"
    assert recipe.sections["learner"]["gradual"] == 3
    file.write_text('method = "gce"\n[data]\nname = "digits"\n')
    assert Recipe.load(file).sections["loss"]["name"] == "gce"
    again = tmp_path / "again.toml"
    again.write_text(recipe.to_toml())
    assert Recipe.load(again).sections == recipe.sections


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("method=cotteaching",), "did you mean 'coteaching'"),
        (("method=elr/cifar1000",), "did you mean 'cifar100'"),
        (("method=coteaching", "learner.noise_rate=1.5"), "noise_rate"),
        (("method=limit", "loss.name=gce"), "loss of its own"),
        (("method=gce", "loss.q=1.5"), "'q'"),
        (("method=ctrr", "regularizer.tau=7"), "tau"),
        (("method=coteaching", "learner.noise_rate=knwon"), "'estimate' or 'known'"),
        (("method=coteaching", "learner.noise_rate=1.5"), "less than 1"),
        (("method=coteaching", "regularizer.tau=0.3"), "has no regularizer"),
    ],
)
def test_a_mistake_in_a_method_is_named(words, message):
    with pytest.raises(UsageError, match=message):
        Recipe.load("digits", *words)


def test_the_last_method_is_the_only_one(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('extends = "digits"\nmethod = "sln-mo-lc"\n')
    assert Recipe.load(file).sections["train"]["ema"] == 0.999
    plain = Recipe.load(file, "method=ce")
    assert plain.sections == Recipe.load("digits", "method=ce").sections
    child = tmp_path / "child.toml"
    child.write_text('extends = "mine.toml"\nmethod = "limit"\n')
    assert Recipe.load(child).sections == Recipe.load("digits", "method=limit").sections


def test_options_of_another_loss_or_learner_do_not_stay():
    base = Recipe.load("digits", "method=limit-laplace").sections
    limit = Recipe.from_dict(base, "method=limit").sections
    assert limit["learner"]["distribution"] == "gaussian"
    bootstrap = Recipe.load("digits", "method=bootstrap-soft").sections
    elr = Recipe.from_dict(bootstrap, "method=elr").sections
    assert elr["loss"]["beta"] == 0.7


def test_a_method_with_a_contrast_can_follow_a_recipe_without_one():
    plain = Recipe.load("digits-ce")
    again = Recipe.from_dict(plain.sections, "method=ctrr")
    assert again.sections["framework"]["name"] == "simsiam"
    assert again.sections["regularizer"]["name"] == "ctrr"


def test_a_key_is_that_of_the_training_and_of_nothing_else(tiny):
    other = Recipe.from_dict(tiny.sections, "train.seed=1", name="another")
    assert tiny.key() == Recipe.from_dict(tiny.sections, name="another").key()
    assert tiny.key() != other.key()
    assert tiny.key(ignoring=("train.seed",)) == other.key(ignoring=("train.seed",))
    assert tiny.key() != Recipe.from_dict(tiny.sections, "views.strong.blur=0.1").key()


def test_a_section_in_a_file_and_an_override_mean_the_same(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('extends = "digits"\n[views.weak]\nname = "padded_crop"\nflip = 0.0\n')
    words = ("views.weak.name=padded_crop", "views.weak.flip=0")
    assert Recipe.load(file).sections == Recipe.load("digits", *words).sections
    file.write_text('extends = "digits"\nviews = { weak = { name = "padded_crop", flip = 0.0 } }\n')
    assert Recipe.load(file).sections == Recipe.load("digits", *words).sections
    assert "[views.weak]\n" in Recipe.load(file).to_toml()


def test_an_old_file_says_where_its_options_went(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('extends = "digits"\n[train]\nlr = 0.1\n')
    with pytest.raises(UsageError, match=r"'lr'; it moved to optimizer\.lr"):
        Recipe.load(file)


def test_the_method_is_kept_as_it_was_named(tmp_path):
    assert Recipe.load("digits").method == ""
    recipe = Recipe.load("digits", "method=ce", "method=elr/cifar100")
    assert recipe.method == "elr/cifar100"
    assert recipe.with_overrides("train.seed=3").method == "elr/cifar100"
    assert recipe.with_overrides("method=gce").method == "gce"
    file = tmp_path / "mine.toml"
    file.write_text(recipe.to_toml())
    again = Recipe.load(file)
    assert (again.method, again.sections) == (recipe.method, recipe.sections)
    child = tmp_path / "child.toml"
    child.write_text('extends = "mine.toml"\n[loss]\nweight = 2.0\n')
    assert Recipe.load(child).method == "elr/cifar100"
    assert Recipe.load(child).sections["loss"]["weight"] == 2.0


def test_the_method_is_no_part_of_the_key():
    named, plain = Recipe.load("digits", "method=ctrr"), Recipe.load("digits")
    assert named.method != plain.method
    assert named.key() == plain.key()
    assert named.difference(plain) == []


@pytest.mark.parametrize("name", methods.names())
def test_the_file_of_a_method_loads_to_the_same_recipe(name, tmp_path):
    recipe = Recipe.load("digits", f"method={name}")
    file = tmp_path / "mine.toml"
    file.write_text(recipe.to_toml())
    assert Recipe.load(file) == replace(recipe, name="mine")


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("coteaching", "coteaching"),
        ("ctrr-byol", "ce + ctrr (byol)"),
        ("ctrr-lc", "ce + label correction + ctrr (simsiam)"),
        ("sln", "sln"),
    ],
)
def test_a_method_is_named_by_its_parts(method, words):
    sections = Recipe.load("digits", f"method={method}").sections
    assert Recipe.from_dict(sections).label == words
    assert Recipe.load("digits-ce").label == "ce"
