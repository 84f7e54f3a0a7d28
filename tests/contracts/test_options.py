"""No option without effect: another valid value changes a number, a tensor or is an error.

A new component is tested here without a word. An option needs an entry in `OTHER` if no other value
can be guessed, and one in `CONTEXT` if it acts only beside other options.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import typing
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

import unswayed
from data.pictures import class_folders
from data.test_animal10n import write_files
from data.test_cifar import small, write_folder
from data.test_clothing1m import key, write_images, write_lists
from unswayed import Dataset, Recipe, Splits, UsageError
from unswayed.build import assemble, facts_of
from unswayed.data import DATASETS
from unswayed.data.cifar import CIFAR10, CIFAR100
from unswayed.data.cifarn import TEN
from unswayed.losses import LOSSES, Loss
from unswayed.methods import PLAIN
from unswayed.models import MODELS
from unswayed.noise import NOISES
from unswayed.recipe import REGISTRIES, TRAIN
from unswayed.registry import Component
from unswayed.training.trainer import Trainer
from unswayed.types import Epoch, Step

K = 3
IMAGES = np.random.default_rng(0).integers(0, 256, (48, 12, 12, 3), dtype=np.uint8)
TRUE = np.arange(48) % K
WIDTHS = [16, 12]

OTHER = {
    # where a bool, one of several words or another number will not do
    "noise.official_seed": "7",
    "noise.rows": [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "noise.path": "nowhere.npy",
    "loss.gamma": 2.0,
    "loss.q": 0.2,
    "loss.log_zero": -2.0,
    "loss.every": 1,
    "loss.start": 0.75,
    "loss.min_probability": 0.5,
    "loss.warmup": 0.25,
    "loss.teacher": 0.75,
    "loss.percentile": 50.0,
    "loss.r": -0.5,
    "learner.noise_rate": 0.2,
    "learner.precision": 0.1,
    "learner.threshold": 0.0,
    "learner.warmup": 0.75,
    "learner.ramp": 0.9,
    "learner.projector_widths": [8, 8],
    "learner.correction": {"start": 0.25},
    "framework.projector_widths": [8, 8],
    "regularizer.tau": 0.0,
    "model.weights": "none.safetensors",
    "views.area": [0.5, 0.6],
    "views.ratio": [1.0, 1.0],
    "views.jitter": [0.0, 0.0, 0.0, 0.5],
    "views.blur_sigma": [0.5, 0.6],
    "views.blur_kernel": 5,
    "optimizer.betas": [0.5, 0.9],
    "optimizer.filter_momentum": 0.1,
    "schedule.milestones": [0.1],
    "data.classes": ["b", "a"],
    "data.corrected": "nowhere.csv",
    "data.cache": "stream",
    "data.subset": 20,
    "data.subset_seed": 5,
    "data.max_bad": 0.0,
    "data.version": "python",
    "data.train_folders": ["a"],
    "train.budget": "1 GFLOP",
    "train.batch_size": 8,
    "train.warmup_epochs": 1.0,
    "train.clip_norm": 0.01,
    "train.checkpoint_minutes": 0.0,
    "train.device": "abacus",
    "train.precision": "bf16",
    "train.threads": 2,
}
CONTEXT = {
    # what an option needs beside it
    "symmetric.official_seed": {"inclusive": True},
    "matrix.rows": {"rows": np.eye(K).tolist()},
    "apl.gamma": {"active": "nfl"},
    "apl.q": {"active": "ngce"},
    "limit.precision": {"sample": True},
    "coteaching.exponent": {"gradual": 1},
    "jocor.exponent": {"gradual": 1},
    "strong.blur_sigma": {"blur": 1.0},
    "strong.blur_kernel": {"blur": 1.0},
    "cifar10.subset_seed": {"subset": 20},
    "cifar100.subset_seed": {"subset": 20, "labels": "coarse"},
    "cifar100.subset": {"labels": "coarse"},
    "cifar10n.subset_seed": {"subset": 20},
    "cifar100n.subset_seed": {"subset": 20, "labels": "coarse"},
    "cifar100n.subset": {"labels": "coarse"},
    "clothing1m.subset_seed": {"subset": 20},
}
NEEDED = {
    "file": {"path": "labels.npz"},
    "ramp": {"start": 0.5, "end": 1.0},
    "simsiam": {"projector_widths": WIDTHS, "predictor_hidden": 8},
    "byol": {"projector_widths": WIDTHS, "predictor_hidden": 8},
    "simclr": {"projector_widths": WIDTHS},
    "supcon": {"projector_widths": WIDTHS},
}
"""What a component needs to be built, or to be small."""


def cases():
    for section, registry in REGISTRIES.items():
        for name in registry.names():
            for option in options_of(registry[name]):
                yield pytest.param(section, name, option, id=f"{section}-{name}-{option}")


def options_of(component):
    """Yield options, and those in an option that is a table, as `correction.start`."""
    for option, annotation in component.annotations.items():
        yield option
        inner = tables(annotation)
        if len(inner) == 1:
            yield from (f"{option}.{field.name}" for field in dataclasses.fields(inner[0]))


def tables(annotation):
    """Return the kinds of tables that may stand for an option; several are schedules."""
    kinds = [kind for kind in typing.get_args(annotation) if isinstance(kind, type)]
    return [kind for kind in kinds if dataclasses.is_dataclass(kind)]


def other(annotation, value):
    """Return another value than this one, if one can be guessed."""
    kinds = [annotation, *typing.get_args(annotation)]
    for kind in [*kinds, *(inner for each in kinds for inner in typing.get_args(each))]:
        if typing.get_origin(kind) is typing.Literal:
            return next(word for word in typing.get_args(kind) if word != value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value / 2 if value else 0.5
    raise AssertionError(f"no other value than {value!r} can be guessed: add one to OTHER")


def changed(component, section, option, given, others):
    """Return options in which this one has another, valid value."""
    outer, _, inner = option.partition(".")
    now = component.resolve(given)[outer]
    known = f"{section.partition('.')[0]}.{option}"
    if inner:
        (kind,) = tables(component.annotations[outer])
        hints = typing.get_type_hints(kind, include_extras=True)
        value = {**now, inner: other(hints[inner], now[inner])}
    else:
        value = others[known] if known in others else other(component.annotations[option], now)
    assert value != now
    component.resolve({**given, outer: value})  # which is valid
    return {**given, outer: value}


def check(trace, component, section, option, given=None, others=OTHER):
    """Fail if an option changes nothing."""
    name, (outer, _, inner) = component.name, option.partition(".")
    given = {**(given or NEEDED.get(name, {})), **CONTEXT.get(f"{name}.{option}", {})}
    if inner:
        given[outer] = others[f"{section}.{outer}"]
    before = trace(section, name, given)
    after = trace(section, name, changed(component, section, option, given, others))
    assert before != after, f"{section}: {option} of {name} has no effect"


def digest(*parts):
    """Return a short text that differs where the parts do."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, torch.Tensor):
            found.update(part.detach().contiguous().reshape(-1).view(torch.uint8).numpy())
        else:
            found.update(repr(part).encode())
    return found.hexdigest()


def timeless(metrics):
    return metrics.model_copy(update={"seconds": 0.0})


def noisy():
    given = NOISES.build("symmetric", {"num_classes": K}).corrupt(TRUE, np.arange(48) * 7 + 1, 0)
    return Dataset.from_arrays(IMAGES, given, true=TRUE, classes=list("abc"))


def spoken(trace):
    """Let a trace be the words of an error where there is one; equal ones are made once."""
    known = {}

    @functools.wraps(trace)
    def traced(section, name, options):
        key = json.dumps([section, name, options], sort_keys=True)
        if key not in known or section in ("data", "train"):
            known[key] = made(section, name, options)
        return known[key]

    def made(section, name, options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return trace(section, name, options)
            except (UsageError, SystemExit) as error:
                return f"error: {error}"

    return traced


@spoken
def trained(section, name, options):
    """Return what becomes of a short training."""
    sections = {"data": {"name": "memory"}, "model": {"name": "small", "width": 4}}
    sections["train"] = {"epochs": 4, "batch_size": 16, "holdout": 0.25, "evaluate_every": 2}
    contrast = section in ("framework", "regularizer", "views.strong") or name == "regularized"
    names = {**PLAIN, "framework.name": "simsiam", "regularizer.name": "ctrr"}
    for place, component in (names if contrast else PLAIN).items():
        sections[place.partition(".")[0]] = {"name": component, **NEEDED.get(component, {})}
    sections[section] = {"name": name, **options} if section != "train" else options
    data = noisy()
    trainer, _ = assemble(Recipe.from_dict(sections), Splits(data, data))
    rows = [timeless(event.metrics) for event in trainer.epochs()]
    tensors, _ = trainer.state()
    return digest(*(tensors[key] for key in sorted(tensors)), rows, trainer.learner.findings())


@spoken
def drawn(section, name, options):
    """Return the labels that a noise gives, or what is wrong with it."""
    data = Dataset.from_arrays(IMAGES, TRUE, classes=list("abc"))
    noise = NOISES[name].build(options, facts_of(data))
    return noise.corrupt(data.given, data.keys, 0).tolist()


@spoken
def seen(section, name, options):
    """Return what a network makes of images outside training, and what of it is learnt."""
    torch.manual_seed(0)
    images = torch.from_numpy(IMAGES).permute(0, 3, 1, 2)
    net = MODELS[name].build(options, {"in_channels": 3, "images": images}).eval()
    with torch.no_grad():
        features = net(images[:4] / 255)
    return digest(features, [(tuple(p.shape), p.requires_grad) for p in net.parameters()])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with a few files of every data set, some of them broken."""
    top = tmp_path_factory.mktemp("data")
    for cifar in (CIFAR10, CIFAR100):
        write_folder(top, cifar, cifar.forms[0], 200)
    write_files(top / "animal10n")
    (top / "animal10n" / "training" / "1_broken.jpg").write_bytes(b"no image")
    write_images(top / "clothing1m")
    write_lists(top / "clothing1m")
    (top / "clothing1m" / key(0)).write_bytes(b"no image")
    class_folders(top / "folder", np.random.default_rng(0), {"a": 3, "b": 3})
    (top / "folder" / "a" / "broken.png").write_bytes(b"no image")
    paths = ("a/000.png", "a/broken.png", "b/000.png", "b/001.png")
    table = "".join(f"{path},{path[0]}\n" for path in paths)
    (top / "folder" / "table.csv").write_text(f"path,label\n{table}")
    np.savez(top / "data.npz", train_x=IMAGES, train_y=TRUE)
    for name in ("a", "b"):
        (top / "linked").mkdir(exist_ok=True)
        (top / "linked" / name).symlink_to(top / "folder" / name)
    (top / "nothing").mkdir()
    return top


@pytest.fixture
def few(place, monkeypatch):
    """Let CIFAR have few images, whose checksums are not the official ones, and human labels."""
    monkeypatch.setenv("UNSWAYED_DATA", str(place / "nothing"))
    monkeypatch.setattr("unswayed.data.cifar.fetch", lambda *_: exit("fetched"))
    for cifar, name in ((CIFAR10, "CIFAR10"), (CIFAR100, "CIFAR100")):
        forms = small(cifar, 200).forms
        files = [tuple(file._replace(md5="another") for file in form.files) for form in forms]
        forms = [replace(form, files=own) for form, own in zip(forms, files, strict=True)]
        for where in ("cifar", "cifarn"):
            published = replace(cifar, forms=tuple(forms))
            monkeypatch.setattr(f"unswayed.data.{where}.{name}", published)
    ignored = {"root": str(place), "checksums": "ignore"}
    ten, fine, coarse = (
        DATASETS.build(name, **ignored, **labels).train.given
        for name, labels in (
            ("cifar10", {}),
            ("cifar100", {}),
            ("cifar100", {"labels": "coarse"}),
        )
    )
    human = {column.human[0]: np.roll(ten, n) for n, column in enumerate(TEN.values(), start=1)}
    hundred = {"clean_label": fine, "noisy_label": (fine + 1) % 100}
    hundred |= {"clean_coarse_label": coarse, "noisy_coarse_label": (coarse + 1) % 20}
    (place / "labels").mkdir(exist_ok=True)
    for folder in (place, place / "labels"):
        torch.save({"clean_label": ten, **human}, folder / "CIFAR-10_human.pt")
        torch.save(hundred, folder / "CIFAR-100_human.pt")
    return place


@spoken
def read(section, name, options):
    """Return what a data set holds."""
    splits = DATASETS[name].build(options)
    return [
        each and (type(each.images), tuple(each.images.shape), each.classes, each.fingerprint())
        for each in splits
    ]


def data_options(place, name, option):
    """Return options with which a data set finds its files, and can show an effect of one."""
    paths = {"npz": "data.npz", "folder": "folder", "manifest": "folder/table.csv"}
    if option == "links":
        paths["folder"] = "linked"
    if option == "download":
        roots = {"root": str(place / "labels")}
    else:
        roots = {} if option == "root" or name == "manifest" else {"root": str(place)}
    wanted = {"path": str(place / paths.get(name, "")), **roots}
    wanted |= {"max_bad": 0.9, "checksums": "ignore"}
    wanted |= {"size": 16} if name == "clothing1m" else {}
    return {key: value for key, value in wanted.items() if key in DATASETS[name].options}


@pytest.mark.slow
@pytest.mark.parametrize(("section", "name", "option"), list(cases()))
def test_another_value_changes_something(section, name, option, request):
    component = REGISTRIES[section][name]
    if section != "data":
        check({"noise": drawn, "model": seen}.get(section, trained), component, section, option)
        return
    place = request.getfixturevalue("few")
    elsewhere = {"data.root": str(place), "data.path": str(place / "elsewhere")}
    given = data_options(place, name, option)
    check(read, component, section, option, given, {**OTHER, **elsewhere})


class Fake(Loss):
    """A loss with an option that nobody looks at."""

    def __init__(self, used: float = 1.0, ignored: float = 1.0) -> None:
        super().__init__()
        self.used = used

    def forward(self, logits, labels, index=None):
        return self.used * torch.nn.functional.cross_entropy(logits, labels, reduction="none")


def test_an_ignored_option_is_found(monkeypatch):
    fake = Component("loss", "fake", Fake, "")
    LOSSES.names()
    monkeypatch.setitem(LOSSES._components, "fake", fake)
    monkeypatch.setattr(Fake.__init__, "__annotations__", {"used": float, "ignored": float})
    check(trained, fake, "loss", "used")
    with pytest.raises(AssertionError, match="ignored of fake has no effect"):
        check(trained, fake, "loss", "ignored")


@pytest.mark.parametrize(
    ("section", "name", "options", "message"),
    [
        ("learner", "limit", {"precision": 2.0}, "needs learner.sample=true"),
        ("learner", "dividemix", {"penalty": True, "warmup": 0.0}, "needs learner.warmup above 0"),
        ("loss", "forward", {"matrix": "known", "percentile": 9.0}, "set loss.matrix=estimate"),
        ("loss", "backward", {"matrix": "known", "warmup": 0.5}, "set loss.matrix=estimate"),
        ("views.strong", "strong", {"blur_sigma": [1.0, 2.0]}, "nothing is blurred"),
        ("views.strong", "strong", {"blur_kernel": 3}, "nothing is blurred"),
    ],
)
def test_an_option_that_cannot_act_is_refused(section, name, options, message):
    assert message in trained(section, name, options)


@pytest.mark.slow
@pytest.mark.parametrize("option", list(TRAIN.options))
def test_another_value_of_train_changes_something(option, tmp_path, monkeypatch):
    def compile(self, *args, **options):
        raise UsageError("compiled")

    monkeypatch.setattr(torch.nn.Module, "compile", compile)
    saved, folders, plain = [], iter(range(9)), Trainer.state
    monkeypatch.setattr(Trainer, "state", lambda self: (saved.append(self.epoch), plain(self))[1])

    @spoken
    def trace(section, name, options):
        saved.clear()
        train = {"epochs": 4, "batch_size": 16, "holdout": 0.25, **options}
        sections = {"data": {"name": "memory"}, "model": {"width": 4}, "train": train}
        data, found = noisy(), []

        def watch(event):
            if isinstance(event, Epoch):
                found.append(timeless(event.metrics))
            if isinstance(event, Step):
                found.append((event.loss, torch.get_num_threads()))

        folder, recipe = tmp_path / str(next(folders)), Recipe.from_dict(sections, "method=ce")
        unswayed.train(recipe, data=Splits(data, data), run=folder, watch=watch)
        kept = {file.name: file.read_bytes() for file in sorted(folder.glob("*.safetensors"))}
        return digest(kept, found, saved)

    check(trace, TRAIN, "train", option)
