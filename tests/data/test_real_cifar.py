"""The real files, where the variable UNSWAYED_DATA says that both versions are there."""

from __future__ import annotations

import hashlib
import os
import tarfile
from functools import cache

import numpy as np
import pytest
import torch
import torchvision

from unswayed import UsageError
from unswayed.build import facts_of
from unswayed.data import DATASETS
from unswayed.data.cifar import CIFAR10, CIFAR100, Source, choose
from unswayed.data.unpickle import unpickle
from unswayed.noise import NOISES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("UNSWAYED_DATA"), reason="needs the real CIFAR files"),
]
EVERY = {"cifar10": CIFAR10, "cifar100": CIFAR100}


def located(name, version):
    """Return the folder or archive and what is known of it."""
    try:
        return choose(EVERY[name], Source(version=version))
    except UsageError as error:
        pytest.skip(str(error))


@cache
def build(name, version, **options):
    located(name, version)
    return DATASETS.build(name, version=version, checksums="ignore", **options)


@pytest.mark.parametrize("name", EVERY)
def test_both_versions_agree_in_every_pixel_and_label(name):
    for one, other in zip(build(name, "binary"), build(name, "python"), strict=True):
        assert torch.equal(one.images, other.images)
        assert one.given.tolist() == other.given.tolist()
        assert one.fingerprint() == other.fingerprint()


def test_coarse_labels_agree_and_group_the_fine_ones():
    splits = [build("cifar100", version, labels="coarse") for version in ("binary", "python")]
    assert splits[0].train.fingerprint() == splits[1].train.fingerprint()
    assert splits[0].test.fingerprint() == splits[1].test.fingerprint()
    fine, coarse = build("cifar100", "binary").train.given, splits[0].train.given
    assert len(np.unique(100 * coarse + fine)) == 100


@pytest.mark.parametrize("name", EVERY)
def test_counts(name):
    train, test = build(name, "binary")
    assert train.images.shape == (50_000, 3, 32, 32)
    assert test.images.shape == (10_000, 3, 32, 32)
    for data in (train, test):
        assert set(np.bincount(data.given).tolist()) == {len(data) // data.num_classes}


def test_channel_means_are_the_known_ones():
    mean, std = build("cifar10", "binary").train.channel_statistics()
    assert np.round(mean, 4).tolist() == [0.4914, 0.4822, 0.4465]
    assert np.round(std, 4).tolist() == [0.2470, 0.2435, 0.2616]


@pytest.mark.parametrize(
    ("name", "version"), [("cifar10", "binary"), ("cifar100", "binary"), ("cifar100", "python")]
)
def test_official_sums(name, version):
    located(name, version)
    DATASETS.build(name, version=version, checksums="check")


def test_copies_without_file_names_are_told_apart_from_the_official_files():
    """Copies of CIFAR-10's pickles that lack `filenames` have the right pixels and other sums."""
    place, form = located("cifar10", "python")
    if place.is_file() or b"filenames" in (place / "test_batch").read_bytes():
        DATASETS.build("cifar10", version="python", checksums="check")
        return
    with pytest.raises(UsageError, match="not the official files") as caught:
        DATASETS.build("cifar10", version="python", checksums="check")
    for file in form.files:
        found = hashlib.md5((place / file.name).read_bytes()).hexdigest()
        assert f"{place / file.name} has md5 {found}, expected {file.md5}" in str(caught.value)


def test_class_names_are_those_of_the_files():
    for cifar, meta, keys in (
        (CIFAR10, "batches.meta", [b"label_names"]),
        (CIFAR100, "meta", [b"coarse_label_names", b"fine_label_names"]),
    ):
        place, _ = located(cifar.name, "python")
        known = unpickle((place / meta).read_bytes(), place / meta)
        for kind, key in zip(cifar.kinds, keys, strict=True):
            assert list(kind.classes) == [name.decode() for name in known[key]]


def test_torchvision_reads_the_same():
    place, _ = located("cifar100", "python")
    theirs = torchvision.datasets.CIFAR100(place.parent, train=True)
    ours = build("cifar100", "python").train
    assert np.array_equal(ours.images.numpy(), theirs.data.transpose(0, 3, 1, 2))
    assert ours.given.tolist() == theirs.targets
    assert list(ours.classes) == theirs.classes


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("version", ["binary", "python"])
def test_an_archive_gives_the_same_as_its_folder(tmp_path, name, version):
    place, form = located(name, version)
    if place.is_file():
        pytest.skip("the archive is what the other tests have read")
    archive = tmp_path / form.archive
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(place, form.folder)
    packed = DATASETS.build(name, root=str(tmp_path), version=version, checksums="ignore")
    archive.unlink()
    folder = build(name, version)
    assert packed.train.fingerprint() == folder.train.fingerprint()
    assert packed.test.fingerprint() == folder.test.fingerprint()


def test_a_subset_has_as_many_images_of_each_class_and_all_test_images():
    train, test = DATASETS.build("cifar10", subset=5000)
    assert np.bincount(train.given).tolist() == [500] * 10
    assert len(test) == 10_000


def gathered(true, given):
    """Return by class which share of its errors goes to one other class."""
    counts = np.zeros((10, 10), dtype=int)
    np.add.at(counts, (true[true != given], given[true != given]), 1)
    return counts.max(axis=1) / counts.sum(axis=1)


def test_instance_noise_is_nearly_noise_by_class_and_that_of_people_is_not():
    """What docs/noise.md says of both."""
    train = build("cifar10", "binary").train
    noise = NOISES.build("instance", facts_of(train), rate=0.4)
    drawn = gathered(train.given, noise.corrupt(train.given, train.keys, 0))
    assert (round(drawn.min(), 2), round(drawn.max(), 2)) == (0.61, 1.0)
    try:
        people = DATASETS.build("cifar10n", labels="random1").train
    except UsageError as error:
        pytest.skip(str(error))
    found = gathered(people.true, people.given)
    assert (round(found.min(), 2), round(found.max(), 2)) == (0.17, 0.68)
