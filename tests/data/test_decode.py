from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from unswayed import UsageError
from unswayed.data.decode import decode


def test_orientation_mode_and_size(tmp_path):
    pixels = np.zeros((10, 20, 3), np.uint8)
    pixels[:, :10] = (255, 0, 0)  # the left half is red
    image = Image.fromarray(pixels)
    exif = image.getexif()
    exif[0x0112] = 6  # to be shown after a quarter turn clockwise
    image.save(tmp_path / "a.png", exif=exif)
    seen = decode(tmp_path / "a.png", 3, (20, 10))
    assert seen.shape == (3, 20, 10)
    assert seen[0, :9].min() == 255  # red is on top
    assert seen[0, 11:].max() == 0
    assert decode(tmp_path / "a.png", 1, (5, 7)).shape == (1, 5, 7)


def test_sixteen_bits_are_scaled_and_transparency_is_laid_on_white(tmp_path):
    deep = np.array([[0, 300], [20000, 65535]], np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    assert decode(tmp_path / "deep.png", 1, (2, 2)).flatten().tolist() == [0, 1, 78, 255]
    clear = np.zeros((2, 2, 4), np.uint8)
    clear[0, :, 3] = 255  # the first row is black, the second transparent
    Image.fromarray(clear).save(tmp_path / "clear.png")
    assert decode(tmp_path / "clear.png", 3, (2, 2))[0].tolist() == [[0, 0], [255, 255]]


def test_what_cannot_be_read_is_named(tmp_path):
    (tmp_path / "b.jpg").write_bytes(b"\xff\xd8 not a jpeg")
    with pytest.raises(UsageError, match=r"b\.jpg is not a readable image"):
        decode(tmp_path / "b.jpg", 3, (8, 8))
    with pytest.raises(UsageError, match="no file"):
        decode(tmp_path / "c.jpg", 3, (8, 8))
