from __future__ import annotations

import hashlib
import io
import os
import struct
import tarfile
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from unswayed import UsageError
from unswayed.data import DATASETS
from unswayed.data.cifar import CIFAR10, CIFAR100, Source, load
from unswayed.data.locate import fetch

EVERY = [(cifar, form) for cifar in (CIFAR10, CIFAR100) for form in cifar.forms]
IDS = [f"{cifar.name}-{form.version}" for cifar, form in EVERY]


def python2(value):
    """Pickle as the official files were: protocol 2, by Python 2, so that text is bytes."""
    if isinstance(value, bytes):
        if len(value) < 256:
            return b"U" + bytes([len(value)]) + value
        return b"T" + struct.pack("<i", len(value)) + value
    if isinstance(value, int):
        return b"K" + bytes([value]) if value < 256 else b"M" + struct.pack("<H", value)
    if isinstance(value, list):
        return b"](" + b"".join(map(python2, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(python2(k) + python2(v) for k, v in value.items()) + b"u"
    shape = b"(" + b"".join(map(python2, value.shape)) + b"t"
    state = b"(K\x03U\x01|NNN" + 2 * b"J\xff\xff\xff\xff" + b"K\x00tb"
    kind = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R" + state
    empty = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
    return empty + b"(K\x01" + shape + kind + b"\x89" + python2(value.tobytes()) + b"tb"


def content(cifar, form, file, rows=5):
    """Return a small file in the official format, the same images in either version."""
    seed = [f.name for f in form.files].index(file.name)
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (rows, 3072)).astype(np.uint8)
    labels = [rng.integers(0, len(kind.classes), rows).astype(np.uint8) for kind in cifar.kinds]
    if form.version == "binary":
        return np.concatenate([*(x[:, None] for x in labels), pixels], axis=1).tobytes()
    names = [b"some_image_s_%06d.png" % row for row in range(rows)]
    batch = {b"filenames": names, b"batch_label": b"training batch 1 of 5", b"data": pixels}
    keyed = {k.key: x.tolist() for k, x in zip(cifar.kinds, labels, strict=True)}
    return b"\x80\x02" + python2({**batch, **keyed}) + b"."


def small(cifar, rows=5):
    """Return the data set as if its files had few images, and were published like that."""
    forms = []
    for form in cifar.forms:
        files = []
        for file in form.files:
            md5 = hashlib.md5(content(cifar, form, file, rows)).hexdigest()
            files.append(file._replace(images=rows, md5=md5))
        forms.append(replace(form, files=tuple(files)))
    return replace(cifar, forms=tuple(forms))


def write_folder(root, cifar, form, rows=5):
    (root / form.folder).mkdir(parents=True)
    for file in form.files:
        (root / form.folder / file.name).write_bytes(content(cifar, form, file, rows))
    return root / form.folder


def write_archive(root, cifar, form, rows=5, skip=(), extra=()):
    with tarfile.open(root / form.archive, "w:gz") as tar:
        for name, data in (
            ("readme.html", b"hello"),
            *extra,
            *((f.name, content(cifar, form, f, rows)) for f in reversed(form.files)),
        ):
            if name in skip:
                continue
            info = tarfile.TarInfo(f"{form.folder}/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return root / form.archive


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    monkeypatch.delenv("UNSWAYED_DATA", raising=False)


@pytest.mark.parametrize("write", [write_folder, write_archive])
@pytest.mark.parametrize(("cifar", "form"), EVERY, ids=IDS)
def test_every_version_and_packing_is_read(tmp_path, cifar, form, write):
    write(tmp_path, cifar, form)
    train, test = load(small(cifar), "fine", Source(str(tmp_path)))
    files = len(form.files)
    assert (len(train), len(test)) == (5 * (files - 1), 5)
    raw = content(cifar, cifar.forms[0], cifar.forms[0].files[0])
    record = np.frombuffer(raw, np.uint8).reshape(5, -1)[3]
    assert train.images[3].flatten().tolist() == record[-3072:].tolist()
    assert train.given[3] == record[len(cifar.kinds) - 1]
    assert train.given.tolist() == train.true.tolist()
    assert train.ids[3] == f"{cifar.name}/train/00003"
    assert test.ids[0] == f"{cifar.name}/test/00000"


@pytest.mark.parametrize("cifar", [CIFAR10, CIFAR100])
def test_the_two_versions_agree(tmp_path, cifar):
    found = []
    for form in cifar.forms:
        write_archive(tmp_path, cifar, form)
        found.append(load(small(cifar), "fine", Source(str(tmp_path), form.version)))
    for one, other in zip(*found, strict=True):
        assert one.fingerprint() == other.fingerprint()


@pytest.mark.parametrize("form", CIFAR100.forms)
def test_coarse_labels(tmp_path, form):
    write_folder(tmp_path, CIFAR100, form)
    coarse = load(small(CIFAR100), "coarse", Source(str(tmp_path))).train
    fine = load(small(CIFAR100), "fine", Source(str(tmp_path))).train
    assert (coarse.num_classes, fine.num_classes) == (20, 100)
    raw = content(CIFAR100, CIFAR100.forms[0], CIFAR100.forms[0].files[0])
    assert coarse.given.tolist() == list(raw[::3074])
    assert fine.given.tolist() == list(raw[1::3074])


@pytest.mark.parametrize("size", [16, 8])
def test_smaller_images_are_means_of_squares(tmp_path, monkeypatch, size):
    monkeypatch.setattr("unswayed.data.cifar.CIFAR10", small(CIFAR10))
    write_folder(tmp_path, CIFAR10, CIFAR10.forms[0])
    whole = DATASETS.build("cifar10", root=str(tmp_path))
    small_ones = DATASETS.build("cifar10", root=str(tmp_path), size=size)
    for one, other in zip(small_ones, whole, strict=True):
        assert one.images.shape == (len(other), 3, size, size)
        step = 32 // size
        square = other.images[4, 2, :step, step : 2 * step].double().mean()
        assert abs(float(one.images[4, 2, 0, 1]) - square) <= 0.5
        assert one.ids == other.ids


def test_class_names_are_complete():
    sizes = [len(set(kind.classes)) for cifar in (CIFAR10, CIFAR100) for kind in cifar.kinds]
    assert sizes == [10, 20, 100]
    fine = CIFAR100.kinds[1].classes
    assert list(fine) == sorted(fine)


@pytest.mark.parametrize(("cifar", "form"), EVERY, ids=IDS)
def test_a_wrong_sum_names_the_file_and_both_sums(tmp_path, cifar, form):
    folder = write_folder(tmp_path, cifar, form)
    spec = small(cifar)
    last = form.files[-1].name
    data = (folder / last).read_bytes()
    at = len(data) // 2  # a byte of pixels in either version
    changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    (folder / last).write_bytes(changed)
    was, now = (hashlib.md5(x).hexdigest() for x in (data, changed))
    message = f"{folder / last} has md5 {now}, expected {was}"
    with pytest.raises(UsageError, match=r"checksums=warn") as caught:
        load(spec, "fine", Source(str(tmp_path)))
    assert message in str(caught.value)
    assert str(caught.value).count("expected") == 1
    with pytest.warns(UserWarning, match="not the official") as warned:
        load(spec, "fine", Source(str(tmp_path), checksums="warn"))
    assert message in str(warned[0].message)
    load(spec, "fine", Source(str(tmp_path), checksums="ignore"))


def test_a_packed_archive_of_official_files_has_the_official_sums(tmp_path):
    """The sums are those of what is read: packing it again changes the archive's own."""
    write_archive(tmp_path, CIFAR10, CIFAR10.forms[1])
    load(small(CIFAR10), "fine", Source(str(tmp_path), checksums="check"))


@pytest.mark.parametrize(("cifar", "form"), EVERY, ids=IDS)
def test_an_incomplete_folder_or_archive_is_named(tmp_path, cifar, form):
    name = form.files[-1].name
    archive = write_archive(tmp_path, cifar, form, skip=[name])
    with pytest.raises(UsageError, match=rf"{archive.name} has no {form.folder}/{name}"):
        load(small(cifar), "fine", Source(str(tmp_path)))
    folder = write_folder(tmp_path, cifar, form)
    (folder / name).unlink()
    with pytest.raises(UsageError, match=rf"{folder / name} is missing"):
        load(small(cifar), "fine", Source(str(tmp_path)))


def test_a_damaged_archive_is_named(tmp_path):
    archive = write_archive(tmp_path, CIFAR10, CIFAR10.forms[0])
    data = archive.read_bytes()
    for damaged in (b"", b"not a tar", data[: len(data) // 2]):
        archive.write_bytes(damaged)
        with pytest.raises(UsageError, match=r"cifar-10-binary\.tar\.gz"):
            load(small(CIFAR10), "fine", Source(str(tmp_path)))


def test_an_archive_is_not_unpacked_and_links_are_not_followed(tmp_path):
    form = CIFAR10.forms[0]
    secret = tmp_path / "secret"
    secret.write_bytes(content(CIFAR10, form, form.files[0]))
    (tmp_path / "data").mkdir()
    archive = write_archive(
        tmp_path / "data", CIFAR10, form, skip=["data_batch_1.bin"], extra=[("../../evil", b"x")]
    )
    with tarfile.open(tmp_path / "plain.tar", "w") as plain, tarfile.open(archive) as tar:
        for member in tar:
            plain.addfile(member, tar.extractfile(member))
        link = tarfile.TarInfo(f"{form.folder}/data_batch_1.bin")
        link.type, link.linkname = tarfile.SYMTYPE, str(secret)
        plain.addfile(link)
    (tmp_path / "plain.tar").rename(archive)
    with pytest.raises(UsageError, match=r"has no cifar-10-batches-bin/data_batch_1\.bin"):
        load(small(CIFAR10), "fine", Source(str(tmp_path / "data")))
    assert [path.name for path in (tmp_path / "data").iterdir()] == [archive.name]
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("write", [write_folder, write_archive])
def test_a_file_that_is_far_too_large_is_not_read(tmp_path, write):
    write(tmp_path, CIFAR100, CIFAR100.forms[1], rows=40)
    with pytest.raises(UsageError, match="too large to hold 5 images"):
        load(small(CIFAR100), "fine", Source(str(tmp_path)))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("cifar-10-batches-bin/test_batch.bin", b"\0" * 3073 * 4, "expected 5 images"),
        ("cifar-10-batches-bin/test_batch.bin", b"\0" * 3072 * 5, "not records of 3,073"),
        ("cifar-10-batches-bin/test_batch.bin", b"\x0a" * 3073 * 5, "outside the range 0..9"),
        ("cifar-10-batches-py/test_batch", b"\x80\x02](e.", "no dictionary"),
        ("cifar-10-batches-py/test_batch", b"cos\nsystem\n(U\x04exittR.", "refused"),
        (
            "cifar-10-batches-py/test_batch",
            b"\x80\x02" + python2({b"data": b"x", b"labels": [1]}) + b".",
            "not an array of bytes",
        ),
        (
            "cifar-10-batches-py/test_batch",
            b"\x80\x02" + python2({b"data": np.zeros((5, 3072), "u1"), b"labels": [b"a"]}) + b".",
            "vector of integers",
        ),
        (
            "cifar-10-batches-py/test_batch",
            b"\x80\x02" + python2({b"data": np.zeros((5, 3072), "u1"), b"labels": [1]}) + b".",
            "expected 5 images",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path, name, data, message):
    for form in CIFAR10.forms:
        write_folder(tmp_path, CIFAR10, form)
    (tmp_path / name).write_bytes(data)
    version = "binary" if name.endswith(".bin") else "python"
    with pytest.raises(UsageError, match=message) as caught:
        load(small(CIFAR10), "fine", Source(str(tmp_path), version, "ignore"))
    assert name in str(caught.value)


def test_the_root_may_be_the_folder_or_the_archive_itself(tmp_path):
    folder = write_folder(tmp_path, CIFAR10, CIFAR10.forms[0])
    archive = write_archive(tmp_path, CIFAR10, CIFAR10.forms[1])
    one = load(small(CIFAR10), "fine", Source(str(folder)))
    other = load(small(CIFAR10), "fine", Source(str(archive)))
    assert one.train.fingerprint() == other.train.fingerprint()


def test_the_variable_names_folders_as_path_does(tmp_path, monkeypatch):
    write_folder(tmp_path / "second", CIFAR10, CIFAR10.forms[1])
    (tmp_path / "first").mkdir()
    places = [str(tmp_path / name) for name in ("first", "second", "third")]
    monkeypatch.setenv("UNSWAYED_DATA", os.pathsep.join(places))
    assert len(load(small(CIFAR10), "fine", Source()).test) == 5
    with pytest.raises(UsageError, match=r"first and .*second, which must hold"):
        load(small(CIFAR100), "fine", Source())


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_missing_data_say_what_to_put_where(tmp_path, name):
    cifar = {"cifar10": CIFAR10, "cifar100": CIFAR100}[name]
    with pytest.raises(UsageError, match=r"data\.root=.*UNSWAYED_DATA") as unnamed:
        DATASETS.build(name)
    with pytest.raises(UsageError, match=f"nothing was found in {tmp_path}") as empty:
        DATASETS.build(name, root=str(tmp_path))
    with pytest.raises(UsageError, match="there is no folder"):
        DATASETS.build(name, root=str(tmp_path / "nowhere"))
    for caught in (unnamed, empty):
        for form in cifar.forms:
            assert form.folder in str(caught.value)
            assert form.archive in str(caught.value)
        assert "data.download=true" in str(caught.value)


@pytest.fixture
def site(tmp_path):
    """Serve a folder over HTTP."""
    (tmp_path / "site").mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "site"))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield tmp_path / "site", f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_download_is_checked_kept_and_not_repeated(tmp_path, site, monkeypatch):
    folder, url = site
    archive = write_archive(folder, CIFAR10, CIFAR10.forms[0])
    spec = small(CIFAR10)
    md5 = hashlib.md5(archive.read_bytes()).hexdigest()
    spec = replace(spec, forms=(replace(spec.forms[0], md5=md5), spec.forms[1]))
    monkeypatch.setattr("unswayed.data.cifar.SITE", url)
    (tmp_path / "data").mkdir()
    source = Source(str(tmp_path / "data"), download=True)
    first = load(spec, "fine", source)
    archive.unlink()
    assert load(spec, "fine", source).train.fingerprint() == first.train.fingerprint()
    assert [path.name for path in (tmp_path / "data").iterdir()] == [archive.name]


def test_a_failed_download_says_so_and_leaves_nothing(tmp_path, site):
    folder, url = site
    (folder / "a.tar.gz").write_bytes(b"wrong")
    target = tmp_path / "data" / "a.tar.gz"
    with pytest.raises(UsageError, match="not the official file: its md5 is 2bda2998d9b0ee197da1"):
        fetch(f"{url}a.tar.gz", target, "0" * 32)
    with pytest.raises(UsageError, match=r"404.*by other means and put it at .*a\.tar\.gz"):
        fetch(f"{url}b.tar.gz", target, "0" * 32)
    with pytest.raises(UsageError, match="could not be downloaded"):
        fetch("http://127.0.0.1:1/a.tar.gz", target, "0" * 32)
    assert list(target.parent.iterdir()) == []
