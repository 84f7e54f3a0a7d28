from __future__ import annotations

import io
import shutil

import numpy as np
import pytest
from PIL import Image

from audited import audited_run, write_digits
from unswayed.errors import UsageError
from unswayed.review.pictures import SIDES, Pictures, encoded, pictures_of


def opened(picture):
    return Image.open(io.BytesIO(picture.content))


def test_tiny_images_keep_every_pixel_and_others_become_jpeg(rng):
    pixels = rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)
    made = encoded(Image.fromarray(pixels))
    assert made.kind == "image/png"
    assert (np.asarray(opened(made)) == pixels).all()
    assert encoded(Image.new("RGB", (65, 3))).kind == "image/jpeg"


@pytest.mark.parametrize("size", ["thumb", "full"])
def test_pictures_are_no_larger_than_they_need_to_be(size):
    pictures = Pictures(lambda row, side: Image.new("RGB", (5000, 100)))
    assert opened(pictures.get(0, size)).size[0] == SIDES[size]


def test_memory_for_pictures_is_bounded(rng):
    noise = rng.integers(0, 256, (48, 48, 3), dtype=np.uint8)
    asked = []

    def image(row, side):
        asked.append(row)
        return Image.fromarray(noise)

    size = len(encoded(Image.fromarray(noise)).content)
    pictures = Pictures(image, kept=3 * size)
    for row in (0, 1, 2, 0, 3, 0, 1):
        pictures.get(row, "thumb")
    assert asked == [0, 1, 2, 3, 1]  # 1 was the oldest when 3 came
    assert sum(len(each.content) for each in pictures._made.values()) <= 3 * size


def test_a_picture_that_cannot_be_read_says_so():
    def image(row, side):
        raise OSError("truncated")

    with pytest.raises(UsageError, match="truncated"):
        Pictures(image).get(0, "thumb")


def test_pictures_of_a_run_are_its_files(run):
    made = opened(pictures_of(run).get(0, "full"))
    assert made.size == (64, 64)


def test_data_that_moved_are_said_before_anything_is_shown(tmp_path):
    run = audited_run(write_digits(tmp_path / "digits", 20, 2), tmp_path / "run", "train.epochs=1")
    shutil.move(tmp_path / "digits", tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="digits, which is not there any more"):
        pictures_of(run)
