"""Plan a training for this machine and a given time: resolution, width, batches and epochs.

Candidates are measured with a few real steps, the cheapest first. `choose` then takes the best one
that gets enough epochs in the time. Which is better, and what is enough, was measured on photos
with wrong labels; see the lab notebook.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from unswayed.build import make_trainer, resolve, settled
from unswayed.data import Dataset, Splits
from unswayed.data.cache import open_images
from unswayed.data.inspect import Findings
from unswayed.data.progress import tell
from unswayed.device import has_bf16, pick_device, threads
from unswayed.errors import UsageError
from unswayed.recipe import Recipe
from unswayed.recipes import AUTO
from unswayed.training.cost import epoch_cost


class Candidate(NamedTuple):
    """A resolution and a width of the network."""

    side: int
    width: int


SIDES, NARROW, WIDE = (16, 32, 48, 64, 96), 16, 32
MANY = 10_000
"""From so many images on, the wider network is tried too. With fewer it memorises wrong labels."""

ENOUGH_STEPS, LEAST, MOST = 800, 5, 30
"""A candidate needs so many steps, but no fewer than `LEAST` and no more than `MOST` epochs. Beyond
`MOST` epochs wrong labels are memorised, and fewer of them are found."""

FEW_SHIFT, MANY_SHIFT = 1 / 8, 1 / 16
"""Views are shifted by up to this share of the side. Of few images, more has to be made."""

ENLARGED = 1.25
"""Images are enlarged by no more, unless they are smaller than the smallest candidate."""

STEPS, SMALLEST_BATCH, LARGEST_BATCH = 40, 32, 512
"""An epoch should have about so many steps, with batches between these sizes."""

MEASURED_STEPS, DECODED = 4, 100
"""Real steps with which a candidate is measured, and files whose decoding is timed."""

FEWEST = 20
"""Fewer images are not worth a training."""

GRAY = {"1", "L", "LA", "I;16"}
"""Modes of images without colour."""

MARGIN = 0.95
"""The share of the time that is planned for; the rest is for what was not measured."""


@dataclass(frozen=True)
class Material:
    """What a plan has to know of the data, before they are loaded."""

    kind: str  # folder, manifest or npz
    path: Path
    images: int  # for training
    tests: int
    classes: int
    channels: int
    side: int  # the shorter one of the median image
    examples: Sequence[Path] = ()  # files, if images have to be decoded and may be resized

    @classmethod
    def of_findings(cls, found: Findings) -> Material:
        """Take from an inspection what a plan needs; refuse data that nothing can learn from."""
        counts = {name: sum(part.values()) for name, part in found.counts.items()}
        classes = len(found.counts.get("train", ()))
        if not found.examples:
            raise UsageError(
                f"none of the {sum(counts.values())} images in {found.path} is readable"
            )
        if classes < 2:
            raise UsageError(
                f"{found.path} has {classes} class of training images: nothing to tell apart"
            )
        sides = np.repeat([min(size) for size in found.sizes], [*found.sizes.values()])
        return cls(
            found.kind,
            found.path,
            counts["train"],
            counts.get("test", 0),
            classes,
            1 if set(found.modes) <= GRAY else 3,
            int(np.median(sides)),
            found.examples,
        )

    @classmethod
    def of_arrays(cls, path: Path, splits: Splits) -> Material:
        """Take from arrays what a plan needs."""
        train, test = splits
        tests = len(test) if test is not None else 0
        side = min(train.image_size)
        return cls("npz", path, len(train), tests, train.num_classes, train.channels, side)


class Measured(NamedTuple):
    """What a candidate costs on this machine, in seconds."""

    candidate: Candidate
    epoch: float
    reading: float  # all images, once


class Choice(NamedTuple):
    """The candidate to train, and for how long."""

    measured: Measured
    epochs: int


@dataclass(frozen=True)
class Plan:
    """A training that fits into the given time."""

    material: Material
    choice: Choice
    recipe: Recipe
    minutes: float  # that were given
    spent: float  # seconds before the training

    @property
    def seconds(self) -> dict[str, float]:
        """What each part will take."""
        _, epoch, reading = self.choice.measured
        return {
            "preparation": self.spent,
            "reading": reading,
            "training": self.choice.epochs * epoch,
            "audit and report": epoch + audit_seconds(self.material.images),
        }

    def __str__(self) -> str:
        """Return the plan in a few lines."""
        material, side = self.material, self.choice.measured.candidate.side
        settings = self.recipe.settings
        device = pick_device(settings.device)
        where = _cores(settings.threads) if device.type == "cpu" else f"a {device.type} device"
        numbers = "bf16" if settings.precision != "fp32" and has_bf16(device) else "fp32"
        model, data = self.recipe.sections["model"], self.recipe.sections["data"]
        shown = f"{model['name']}, width {model['width']}" if "width" in model else model["name"]
        tested = f", {material.tests:,} more are for testing" if material.tests else ""
        parts = ", ".join(f"{what} {_minutes(s)}" for what, s in self.seconds.items())
        capped = settings.epochs == MOST
        less = "; more epochs would not find more" if capped else ""
        return "\n".join(
            (
                f"the plan for {self.minutes:g} minutes on {where} ({numbers}):",
                f"  data      {material.images:,} images in {material.classes} classes, "
                f"{100 * settings.holdout:.0f} % of them held out{tested}",
                f"  network   {shown}, at {data.get('size', side)} pixels",
                f"  training  {settings.epochs} epochs in batches of {settings.batch_size}{less}",
                f"  time      {parts}: about {_minutes(sum(self.seconds.values()))} in all",
            )
        )


def make_plan(
    material: Material, minutes: float, overrides: Sequence[str] = (), spent: float = 0.0
) -> Plan:
    """Measure candidates on this machine, and plan a training that fits into the time.

    Args:
        material: what is known of the data.
        minutes: for everything, from the inspection to the report.
        overrides: options that the user chose; the plan leaves them alone.
        spent: seconds that are gone already.
    """
    if material.images < FEWEST:
        raise UsageError(f"{material.images} images are too few to learn from")
    began = time.perf_counter() - spent
    candidates = candidates_for(material, overrides)
    settings = _recipe(material, candidates[0], MOST, overrides).settings
    least, most = enough_epochs(material.images, settings.batch_size), MOST
    if _is_set("train.epochs", overrides):
        least = most = settings.epochs
    limit = MARGIN * 60 * minutes - audit_seconds(material.images)
    measured: list[Measured] = []
    for number, candidate in enumerate(candidates):
        tell("measuring networks on this machine", number, len(candidates))
        measured.append(measure(_recipe(material, candidate, MOST, overrides), candidate, material))
        left = limit - (time.perf_counter() - began)
        if epochs_within(left, measured[-1]) < least:
            break
    left = limit - (time.perf_counter() - began)
    choice = choose(measured, left, least, most)
    if choice is None:
        short = needed(measured[0], least) + MARGIN * 60 * minutes - left
        raise UsageError(
            f"{minutes:g} minutes are too short: {material.images:,} images need about "
            f"{math.ceil(short / 60 / MARGIN)} on this machine ({least} epochs of "
            f"{_minutes(measured[0].epoch)}); allow them with --minutes, or take fewer images"
        )
    recipe = _recipe(material, choice.measured.candidate, choice.epochs, overrides)
    return Plan(material, choice, recipe, minutes, time.perf_counter() - began)


def candidates_for(material: Material, overrides: Sequence[str] = ()) -> list[Candidate]:
    """Return the candidates that suit the images, the cheapest first."""
    widths = (NARROW, WIDE) if material.images >= MANY else (NARROW,)
    size = next((word[10:] for word in reversed(overrides) if word.startswith("data.size=")), "")
    if size.isdigit() and int(size):
        sides = [int(size)]
    elif not material.examples:
        sides = [material.side]
    else:
        sides = [side for side in SIDES if side <= ENLARGED * material.side] or [SIDES[0]]
    found = [Candidate(side, width) for side in sides for width in widths]
    found.sort(key=lambda each: each.side**2 * each.width)
    # What the user chose makes some of them the same.
    made = {_recipe(material, each, MOST, overrides).key(): each for each in reversed(found)}
    return list(reversed(made.values()))


def enough_epochs(images: int, batch: int) -> int:
    """Return the epochs with which a candidate is better than a cheaper one with more."""
    return min(max(math.ceil(ENOUGH_STEPS * batch / images), LEAST), MOST)


def choose(measured: Sequence[Measured], seconds: float, least: int, most: int) -> Choice | None:
    """Return the best candidate that gets at least so many epochs; None if there is none.

    Args:
        measured: from the cheapest to the best.
        seconds: for reading the images, training, and looking at all of them once more.
        least: epochs that are enough.
        most: epochs beyond which nothing is gained.
    """
    for each in reversed(measured):
        epochs = epochs_within(seconds, each)
        if epochs >= least:
            return Choice(each, min(epochs, most))
    return None


def epochs_within(seconds: float, measured: Measured) -> int:
    """Return how many epochs fit, beside reading and a last look at all images."""
    return max(0, int((seconds - measured.reading) / measured.epoch) - 1)


def needed(measured: Measured, epochs: int) -> float:
    """Return the seconds of so many epochs, with reading and a last look."""
    return measured.reading + (epochs + 1) * measured.epoch


def measure(recipe: Recipe, candidate: Candidate, material: Material) -> Measured:
    """Time a few steps and an evaluation on a small copy of the data, and the decoding of files."""
    settings = recipe.settings
    kinds = min(8, material.classes)
    count = math.ceil(MEASURED_STEPS * settings.batch_size / (1 - settings.holdout)) + kinds
    tests = round(count * material.tests / material.images)
    size = int(recipe.sections["data"].get("size") or candidate.side)
    images, reading = _images(material, size, count + tests)
    labels = np.arange(len(images)) % kinds
    names = [str(number) for number in range(material.classes)]
    rows = np.arange(len(images))
    whole = Dataset.from_arrays(images, labels, true=labels, classes=names)
    test = whole.select(rows[count:]) if tests else None
    splits = Splits(whole.select(rows[:count]), test)
    with threads(settings.threads):
        probe = make_trainer(settled(recipe, resolve(recipe, splits)), splits)
        epoch = epoch_cost(probe, settings.epochs - 1, timed=True).seconds
    return Measured(candidate, epoch * material.images / count, reading)


def audit_seconds(images: int) -> float:
    """Return what audit and report take at the most, on one core."""
    return 10 + 5e-4 * images + 5e-9 * images**2


def _images(material: Material, size: int, count: int) -> tuple[np.ndarray, float]:
    """Return as many real images, some of them often, and the seconds of decoding all files."""
    if not material.examples:
        rng = np.random.default_rng(0)
        shape = (count, material.channels, material.side, material.side)
        return rng.integers(0, 256, shape, dtype=np.uint8), 0.0
    files = material.examples[:: max(1, len(material.examples) // DECODED)]
    began = time.perf_counter()
    decoded = open_images(files, material.channels, (size, size), cache="memory").images
    each = (time.perf_counter() - began) / len(files)
    pixels = decoded[torch.arange(count) % len(decoded)].numpy()
    return pixels, each * (material.images + material.tests)


def _recipe(
    material: Material, candidate: Candidate, epochs: int, overrides: Sequence[str]
) -> Recipe:
    """Return the recipe of a candidate; what the user chose wins."""
    side = candidate.side
    shift = MANY_SHIFT if material.images >= MANY else FEW_SHIFT
    data = [f"data.name={material.kind}", f"data.path={material.path.absolute()}"]
    planned = [
        f"model.width={candidate.width}",
        f"views.weak.padding={max(1, round(shift * side))}",
        f"train.epochs={epochs}",
        f"train.batch_size={batch_size(material.images)}",
    ]
    if material.examples:
        data += [f"data.size={side}", f"data.mode={'gray' if material.channels == 1 else 'rgb'}"]
    if material.channels == 1:
        # Characters and scans: a mirrored one is another character, or none.
        planned += ["model.mirror=false", "views.weak.flip=0.0"]
    free = [word for word in planned if not _is_set(word.partition("=")[0], overrides)]
    return Recipe.load(AUTO, *data, *free, *overrides)


def _is_set(key: str, overrides: Sequence[str]) -> bool:
    """Return whether the user set an option, or named the component that it belongs to."""
    named = f"{key.rpartition('.')[0]}.name"
    return any(word.partition("=")[0] in (key, named) for word in overrides)


def batch_size(images: int) -> int:
    """Return a power of two that divides the images into about `STEPS` steps, and two at least."""
    size = 1 << max(0, round(math.log2(images / STEPS)))
    most = 1 << int(math.log2(images / 3))
    return min(max(size, SMALLEST_BATCH), LARGEST_BATCH, most)


def _cores(count: int) -> str:
    used = count or torch.get_num_threads()
    there = os.cpu_count() or used
    return f"{used} of {there} cores" if used != there else f"{used} cores"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
