"""CIFAR-10 and CIFAR-100 from their official files.

Both published versions are read, from the archive or from its folder. An archive is not unpacked:
only members with known names are read, up to their known size.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from unswayed.data import Dataset, Splits, register
from unswayed.data.dataset import balanced, check_labels, check_subset
from unswayed.data.locate import fetch, find, folders, look
from unswayed.data.unpickle import unpickle, vector
from unswayed.errors import UsageError
from unswayed.types import AbsolutePath, Whole

Version = Literal["auto", "binary", "python"]
Checksums = Literal["check", "warn", "ignore"]
Labels = Literal["fine", "coarse"]
Size = Literal[32, 16, 8]

SITE = "https://www.cs.toronto.edu/~kriz/"
SIDE = 32
PIXELS = 3 * SIDE**2
OVERHEAD = 128
"""Bytes per image that a pickle may need for its label and file name; the official ones need 34."""


class File(NamedTuple):
    """A file of a version, with the number of its images and its official md5."""

    name: str
    split: Literal["train", "test"]
    images: int
    md5: str


@dataclass(frozen=True)
class Form:
    """One of the two published versions."""

    version: Literal["binary", "python"]
    archive: str
    md5: str
    folder: str
    files: tuple[File, ...]


class Kind(NamedTuple):
    """One way of labelling: its key in the pickles, and the class names in official order."""

    name: Labels
    key: bytes
    classes: tuple[str, ...]


@dataclass(frozen=True)
class Cifar:
    """The description of a data set; `kinds` is in the order of a record's label bytes."""

    name: str
    forms: tuple[Form, ...]
    kinds: tuple[Kind, ...]


@dataclass(frozen=True)
class Source:
    """Where to look, and how much to trust what is found."""

    root: str | None = None
    version: Version = "auto"
    checksums: Checksums = "check"
    download: bool = False


class Part(NamedTuple):
    """The content of one file."""

    pixels: NDArray[np.uint8]  # (N, 3072)
    labels: NDArray[np.int64]  # (N,)


@register("cifar10", paper="Krizhevsky, technical report, University of Toronto, 2009")
def cifar10(
    root: AbsolutePath | None = None,
    version: Version = "auto",
    checksums: Checksums = "check",
    download: bool = False,
    subset: Whole = 0,
    subset_seed: int | None = None,
    size: Size = 32,
) -> Splits:
    """CIFAR-10: 50,000 training and 10,000 test images of 32×32 pixels in ten classes.

    Args:
        root: the folder with cifar-10-batches-bin/, cifar-10-batches-py/ or one of the archives
            cifar-10-binary.tar.gz and cifar-10-python.tar.gz; by default $UNSWAYED_DATA.
        version: binary, python, or auto for what is there, folders and binary files first.
        checksums: check refuses files whose md5 is not the official one; warn and ignore read them.
        download: fetch the archive (170 MB) into the root if nothing is there.
        subset: train on this many images, equally many of each class; 0 takes all. All test images
            are always used.
        subset_seed: chooses them, 0 if not given; the subset does not change with train.seed.
        size: side in pixels; 16 and 8 are means of 2×2 and 4×4 pixels, for quick trials.
    """
    splits = load(CIFAR10, "fine", Source(root, version, checksums, download), size)
    return part_of(splits, subset, subset_seed)


@register("cifar100", paper="Krizhevsky, technical report, University of Toronto, 2009")
def cifar100(
    root: AbsolutePath | None = None,
    labels: Labels = "fine",
    version: Version = "auto",
    checksums: Checksums = "check",
    download: bool = False,
    subset: Whole = 0,
    subset_seed: int | None = None,
    size: Size = 32,
) -> Splits:
    """CIFAR-100: 50,000 training and 10,000 test images in 100 classes or 20 groups of them.

    Args:
        root: the folder with cifar-100-binary/, cifar-100-python/ or one of the archives
            cifar-100-binary.tar.gz and cifar-100-python.tar.gz; by default $UNSWAYED_DATA.
        labels: fine for the 100 classes, coarse for the 20 groups.
        version: binary, python, or auto for what is there, folders and binary files first.
        checksums: check refuses files whose md5 is not the official one; warn and ignore read them.
        download: fetch the archive (169 MB) into the root if nothing is there.
        subset: train on this many images, equally many of each class; 0 takes all. All test images
            are always used.
        subset_seed: chooses them, 0 if not given; the subset does not change with train.seed.
        size: side in pixels; 16 and 8 are means of 2×2 and 4×4 pixels, for quick trials.
    """
    splits = load(CIFAR100, labels, Source(root, version, checksums, download), size)
    return part_of(splits, subset, subset_seed)


def part_of(splits: Splits, subset: int, seed: int | None) -> Splits:
    """Return `subset` training images, equally many of each given label; all if it is 0."""
    train, test = splits
    check_subset(subset, seed)
    if not subset:
        return splits
    rows = balanced(train.given, train.keys, subset, seed or 0, "cifar/subset", train.classes)
    return Splits(train.select(rows), test)


def load(cifar: Cifar, labels: Labels, source: Source, size: Size = 32) -> Splits:
    """Find, check and read the files of a data set."""
    place, form = choose(cifar, source)
    contents = _from_archive(place, form) if place.is_file() else _from_folder(place, form)
    _check_sums(place, form, contents, source.checksums)
    kind = next(each for each in cifar.kinds if each.name == labels)
    parts: dict[str, list[Part]] = {"train": [], "test": []}
    for file in form.files:
        data, where = contents.pop(file.name), place / file.name
        if form.version == "binary":
            part = _from_records(data, where, len(cifar.kinds), cifar.kinds.index(kind))
        else:
            part = _from_pickle(data, where, kind)
        _check_part(part, where, file.images, len(kind.classes))
        parts[file.split].append(part)
    return Splits(*(_join(parts[split], f"{cifar.name}/{split}", kind, size) for split in parts))


def choose(cifar: Cifar, source: Source) -> tuple[Path, Form]:
    """Return the folder or archive to read; download it if asked to."""
    forms = [form for form in cifar.forms if source.version in ("auto", form.version)]
    names = [form.folder for form in forms] + [form.archive for form in forms]
    choices = ", ".join(f"{f.folder}/ or {f.archive} ({f.version} version)" for f in forms)
    needs = (
        f"one of: {choices}, from {SITE}cifar.html; data.download=true fetches {forms[0].archive}"
    )
    place = look(source.root, names, needs) if source.download else find(source.root, names, needs)
    if place is None:
        place = folders(source.root, needs)[0] / forms[0].archive
        fetch(SITE + place.name, place, forms[0].md5)
    return place, next(form for form in forms if place.name in (form.folder, form.archive))


def _from_folder(folder: Path, form: Form) -> dict[str, bytes]:
    contents = {}
    for file in form.files:
        path = folder / file.name
        if not path.is_file():
            raise UsageError(f"{path} is missing: unpack {form.archive} again, or remove {folder}")
        _check_size(path, path.stat().st_size, file)
        contents[file.name] = path.read_bytes()
    return contents


def _from_archive(archive: Path, form: Form) -> dict[str, bytes]:
    wanted = {f"{form.folder}/{file.name}": file for file in form.files}
    contents: dict[str, bytes] = {}
    try:
        with archive.open("rb") as packed, _unpacked(packed, form) as tar:
            for member in tar:
                file = wanted.get(member.name.removeprefix("./"))
                stream = tar.extractfile(member) if file and member.isreg() else None
                if file and stream:
                    _check_size(archive / file.name, member.size, file)
                    contents[file.name] = stream.read()
                if len(contents) == len(wanted):
                    break
    except UsageError:
        raise
    except Exception as error:  # tar, gzip and zlib each have their own for a damaged file
        raise UsageError(f"{archive} is not a readable archive: {error}; fetch it again") from error
    for file in form.files:
        if file.name not in contents:
            raise UsageError(f"{archive} has no {form.folder}/{file.name}; fetch it again")
    return contents


class _Limited(gzip.GzipFile):
    """A file that is unpacked up to a limit: a small archive can hold terabytes of zeros."""

    limit = 0

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes."""
        self._check(self.tell() + (size or 0))
        return super().read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place, unpacking all before it."""
        self._check(offset)
        return super().seek(offset, whence)

    def _check(self, end: int) -> None:
        if end > self.limit:
            raise tarfile.ReadError("it holds more than the official one")


def _unpacked(file: BinaryIO, form: Form) -> tarfile.TarFile:
    """Return the archive in a file, packed or not; no more than twice the official is unpacked."""
    packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    if not packed:
        return tarfile.open(fileobj=file, mode="r:")
    stream = _Limited(fileobj=file, mode="rb")
    stream.limit = 2 * sum(each.images for each in form.files) * (PIXELS + OVERHEAD) + 2**20
    return tarfile.open(fileobj=stream, mode="r:")


def _check_size(path: Path, size: int, file: File) -> None:
    """Refuse a file that is too large before it fills the memory."""
    if size > file.images * (PIXELS + OVERHEAD) + 2**16:
        raise UsageError(f"{path} is too large to hold {file.images:,} images: {size:,} bytes")


def _check_sums(place: Path, form: Form, contents: dict[str, bytes], checksums: Checksums) -> None:
    """Compare the md5 of the members, not of the archive, which may have been packed again."""
    if checksums == "ignore":
        return
    wrong = []
    for file in form.files:
        md5 = hashlib.md5(contents[file.name], usedforsecurity=False).hexdigest()
        if md5 != file.md5:
            wrong.append(f"{place / file.name} has md5 {md5}, expected {file.md5}")
    if not wrong:
        return
    if checksums == "check":
        raise UsageError(
            "these are not the official files; fetch them again, or set data.checksums=warn to "
            "read them all the same:",
            *wrong,
        )
    warnings.warn(
        f"these are not the official files, and are read all the same: {'; '.join(wrong)}",
        stacklevel=4,
    )


def _from_records(data: bytes, where: Path, kinds: int, column: int) -> Part:
    """Read records of one byte per kind of label and 3,072 of red, green and blue planes."""
    if len(data) % (kinds + PIXELS):
        raise UsageError(f"{where}: {len(data):,} bytes are not records of {kinds + PIXELS:,}")
    records = np.frombuffer(data, np.uint8).reshape(-1, kinds + PIXELS)
    return Part(records[:, kinds:], records[:, column].astype(np.int64))


def _from_pickle(data: bytes, where: Path, kind: Kind) -> Part:
    """Read the dictionary that Python 2 wrote, whose keys are bytes."""
    batch = unpickle(data, where)
    if not isinstance(batch, dict) or not {b"data", kind.key} <= batch.keys():
        raise UsageError(f"{where} holds no dictionary with 'data' and {kind.key.decode()!r}")
    pixels = batch[b"data"]
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2:
        raise UsageError(f"{where}: 'data' is not an array of bytes with one row per image")
    try:
        return Part(pixels, check_labels(vector(batch[kind.key]), "labels"))
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{where}: {error}") from error


def _check_part(part: Part, where: Path, images: int, classes: int) -> None:
    if part.pixels.shape != (images, PIXELS) or len(part.labels) != images:
        raise UsageError(
            f"{where} holds pixels of shape {part.pixels.shape} and {len(part.labels):,} labels; "
            f"expected {images:,} images of {PIXELS:,}"
        )
    if part.labels.min() < 0 or part.labels.max() >= classes:
        raise UsageError(f"{where} has labels outside the range 0..{classes - 1}")


def _join(parts: Sequence[Part], name: str, kind: Kind, size: Size) -> Dataset:
    pixels = np.concatenate([_shrunk(part.pixels, size) for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    return Dataset(
        images=torch.from_numpy(pixels.reshape(-1, 3, size, size)),
        given=labels,
        classes=kind.classes,
        ids=tuple(f"{name}/{i:05d}" for i in range(len(labels))),
        true=labels,
    )


def _shrunk(pixels: NDArray[np.uint8], size: Size) -> NDArray[np.uint8]:
    """Return the images with every square of pixels replaced by its rounded mean."""
    if size == SIDE:
        return pixels
    step = SIDE // size
    squares = pixels.reshape(-1, 3, size, step, size, step)
    means: NDArray[np.float32] = squares.mean((3, 5), dtype=np.float32)
    return np.rint(means).astype(np.uint8)


_TEN = "airplane automobile bird cat deer dog frog horse ship truck"
_FINE = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile
cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp
lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree
orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum
rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider
squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train
trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
_COARSE = """
aquatic_mammals fish flowers food_containers fruit_and_vegetables household_electrical_devices
household_furniture insects large_carnivores large_man-made_outdoor_things
large_natural_outdoor_scenes large_omnivores_and_herbivores medium_mammals
non-insect_invertebrates people reptiles small_mammals trees vehicles_1 vehicles_2
"""

CIFAR10 = Cifar(
    name="cifar10",
    forms=(
        Form(
            "binary",
            "cifar-10-binary.tar.gz",
            "c32a1d4ab5d03f1284b67883e8d87530",
            "cifar-10-batches-bin",
            (
                File("data_batch_1.bin", "train", 10_000, "5dd7e06a14cb22eb9f671a540d1b7c25"),
                File("data_batch_2.bin", "train", 10_000, "5ea93a67294ea407fff1d09f752e9692"),
                File("data_batch_3.bin", "train", 10_000, "942cd6a4bcdd0dd3c604fbe906cb4421"),
                File("data_batch_4.bin", "train", 10_000, "ae636b3ba5c66a11e91e8cb52e771fcb"),
                File("data_batch_5.bin", "train", 10_000, "53f37980c15c3d472c316c40844f3f0d"),
                File("test_batch.bin", "test", 10_000, "803d5f7f4d78ea53de84dbe85f74fb6d"),
            ),
        ),
        Form(
            "python",
            "cifar-10-python.tar.gz",
            "c58f30108f718f92721af3b95e74349a",
            "cifar-10-batches-py",
            (
                File("data_batch_1", "train", 10_000, "c99cafc152244af753f735de768cd75f"),
                File("data_batch_2", "train", 10_000, "d4bba439e000b95fd0a9bffe97cbabec"),
                File("data_batch_3", "train", 10_000, "54ebc095f3ab1f0389bbae665268c751"),
                File("data_batch_4", "train", 10_000, "634d18415352ddfa80567beed471001a"),
                File("data_batch_5", "train", 10_000, "482c414d41f54cd18b22e5b47cb7c3cb"),
                File("test_batch", "test", 10_000, "40351d587109b95175f43aff81a1287e"),
            ),
        ),
    ),
    kinds=(Kind("fine", b"labels", tuple(_TEN.split())),),
)

CIFAR100 = Cifar(
    name="cifar100",
    forms=(
        Form(
            "binary",
            "cifar-100-binary.tar.gz",
            "03b5dce01913d631647c71ecec9e9cb8",
            "cifar-100-binary",
            (
                File("train.bin", "train", 50_000, "6172c7755cfe09b2fe270c85cebc1b15"),
                File("test.bin", "test", 10_000, "4499cfba6c016c1be1438163640a0898"),
            ),
        ),
        Form(
            "python",
            "cifar-100-python.tar.gz",
            "eb9058c3a382ffc7106e4002c42a8d85",
            "cifar-100-python",
            (
                File("train", "train", 50_000, "16019d7e3df5f24257cddd939b257f8d"),
                File("test", "test", 10_000, "f0ef6b0ae62326f3e7ffdfab6717acfc"),
            ),
        ),
    ),
    kinds=(
        Kind("coarse", b"coarse_labels", tuple(_COARSE.split())),
        Kind("fine", b"fine_labels", tuple(_FINE.split())),
    ),
)
