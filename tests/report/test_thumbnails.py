from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from unswayed.report.thumbnails import LARGE, SMALL, Thumbnails, data_uri


def opened(uri):
    head, _, data = uri.partition(",")
    assert head == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGB", "RGBA", "CMYK", "1", "I;16", "F"])
def test_any_kind_of_image_becomes_a_small_jpeg(mode):
    small = opened(data_uri(Image.new(mode, (300, 100)), 96))
    assert (small.size, small.mode) == ((96, 32), "RGB")


def test_a_small_image_is_not_enlarged():
    assert opened(data_uri(Image.new("L", (8, 8)), 96)).size == (8, 8)


def test_a_photo_that_lies_on_its_side_is_turned():
    photo = Image.new("RGB", (80, 40))
    photo.getexif()[0x0112] = 6
    assert opened(data_uri(photo, 96)).size == (40, 80)


def test_rows_are_made_once_in_the_size_they_are_shown():
    tried = []

    def image(row):
        tried.append(row)
        return Image.fromarray(np.full((200, 200), row, np.uint8)) if row else None

    made = Thumbnails(image, large={1})
    for row in (1, 2, 1, 0, 0):
        made.add(row)
    assert tried == [1, 2, 0]
    assert [opened(made.made[row]).width for row in (1, 2)] == [LARGE, SMALL]
    assert made.failed == {0: "there is no image"}
    assert made.spent == sum(map(len, made.made.values()))
