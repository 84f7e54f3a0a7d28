from __future__ import annotations

import warnings

import numpy as np
import pytest
from PIL import Image

from unswayed import UsageError
from unswayed.data import DATASETS

LABELS = [3, 0, 9, 1]


def pixels(labels, size=64):
    """Return one flat colour per label, so that JPEG keeps it."""
    colours = np.array([[20 * label, 100, 255 - 20 * label] for label in labels], np.uint8)
    return np.broadcast_to(colours[:, :, None, None], (len(labels), 3, size, size))


def write_files(root, names=("3_b.jpg", "0_img_2.jpg", "9_x.jpg", "1_a.jpg")):
    for folder in ("training", "testing"):
        (root / folder).mkdir(parents=True)
        for name, image in zip(names, pixels(LABELS), strict=True):
            Image.fromarray(image.transpose(1, 2, 0)).save(root / folder / name, quality=95)


def write_records(root, order="<", labels=LABELS, names=("data_batch_1.bin", "test_batch.bin")):
    root.mkdir(parents=True, exist_ok=True)
    for name in names:
        with (root / name).open("wb") as file:
            for row, (label, image) in enumerate(zip(labels, pixels(labels), strict=True)):
                file.write(np.array([70_000 + row, label], f"{order}u4").tobytes())
                file.write(image.tobytes())


def build(root, **options):
    """Build without the warning about few images, which one test is about."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not the official")
        return DATASETS.build("animal10n", root=str(root), **options)


def test_files_are_read_in_the_order_of_their_names(tmp_path):
    write_files(tmp_path)
    (tmp_path / "training" / ".DS_Store").touch()
    train, test = build(tmp_path)
    assert train.given.tolist() == [0, 1, 3, 9]
    assert train.ids[0] == "animal10n/train/0_img_2"
    assert [train.classes[k] for k in (0, 9)] == ["cat", "guinea pig"]
    assert train.true is None
    assert test.true.tolist() == test.given.tolist()
    error = train.images.int().numpy() - pixels([0, 1, 3, 9])
    assert np.abs(error).max() <= 3


@pytest.mark.parametrize("order", ["<", ">"])
def test_records_are_read_in_either_byte_order(tmp_path, order):
    write_records(tmp_path, order)
    train, test = build(tmp_path)
    assert train.given.tolist() == LABELS == test.given.tolist()
    np.testing.assert_array_equal(train.images.numpy(), pixels(LABELS))
    assert train.ids[1] == "animal10n/train/00001"


def test_batches_come_in_the_order_of_their_numbers(tmp_path):
    write_records(tmp_path)
    write_records(tmp_path, labels=[7, 7], names=["data_batch_2.bin"])
    write_records(tmp_path, labels=[8], names=["data_batch_10.bin"])
    assert build(tmp_path).train.given.tolist() == [*LABELS, 7, 7, 8]


@pytest.mark.parametrize("write", [write_files, write_records])
def test_another_size(tmp_path, write):
    write(tmp_path / "animal10n")
    train, _ = build(tmp_path, size=32)
    assert train.images.shape == (4, 3, 32, 32)
    order = sorted(LABELS) if write is write_files else LABELS
    assert np.abs(train.images.int().numpy() - pixels(order, 32)).max() <= 3


def test_a_number_of_images_that_is_not_official_warns(tmp_path):
    write_records(tmp_path)
    with pytest.warns(UserWarning, match="not the official") as caught:
        DATASETS.build("animal10n", root=str(tmp_path))
    words = [str(warning.message) for warning in caught]
    assert "the train set has 4 images, not the official 50,000" in words[0]
    assert "the test set has 4 images, not the official 5,000" in words[1]


def test_what_is_wrong_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"training/ and testing/ .* data_batch_1\.bin"):
        build(tmp_path)
    write_files(tmp_path / "a", ["cat_1.jpg", "0_a.jpg", "1_a.jpg", "2_a.jpg"])
    with pytest.raises(UsageError, match=r"cat_1\.jpg: the name does not begin with a label"):
        build(tmp_path / "a")
    write_files(tmp_path / "b")
    (tmp_path / "b" / "testing" / "3_b.jpg").write_bytes(b"broken")
    with pytest.raises(UsageError, match=r"3_b\.jpg is not a readable image"):
        build(tmp_path / "b")
    (tmp_path / "c" / "training").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"training holds no \.jpg files"):
        build(tmp_path / "c")


def test_what_is_wrong_in_records_is_named(tmp_path):
    write_records(tmp_path)
    data = (tmp_path / "test_batch.bin").read_bytes()
    (tmp_path / "test_batch.bin").write_bytes(data[:-1])
    with pytest.raises(UsageError, match=r"test_batch\.bin: .* not records of 12,296"):
        build(tmp_path)
    (tmp_path / "test_batch.bin").unlink()
    with pytest.raises(UsageError, match=r"test_batch\.bin cannot be read"):
        build(tmp_path)
    (tmp_path / "data_batch_1.bin").write_bytes(b"\xff" * len(data))
    with pytest.raises(UsageError, match="in either byte order"):
        build(tmp_path)
