from __future__ import annotations

import numpy as np
import pytest
from example_audits import HOSTILE, made, noise_image
from PIL import Image, ImageColor

from unswayed import UsageError
from unswayed.report.contact_sheet import FRAME, GAP, HIT, MISS, SIDE, contact_sheet


def drawn(path, found, **options):
    contact_sheet(found, path / "s.png", **{"image": noise_image, **options})
    with Image.open(path / "s.png") as sheet:
        return sheet.copy()


def test_the_first_labels_are_drawn_in_rows_of_eight(tmp_path):
    sheet = drawn(tmp_path, made(), count=10)
    assert sheet.format is None
    assert sheet.width == GAP + 8 * (SIDE + GAP)
    assert drawn(tmp_path, made(), count=8).height < sheet.height


def test_names_of_any_kind_are_drawn(tmp_path):
    names = ["猫", "кот", *HOSTILE]
    drawn(tmp_path, made(40, len(names), classes=names))
    drawn(tmp_path, made(3, 3), image=lambda row: None)


def test_a_frame_tells_whether_the_label_was_really_wrong(tmp_path):
    found = made()
    true = found.given.copy()
    first, second = found.order[:2]
    true[first] = found.suggested[first]
    sheet = drawn(tmp_path, found, count=2, true=true)
    assert sheet.height > drawn(tmp_path, found, count=2).height  # room for the legend
    y = GAP + 24 + SIDE // 2
    colours = [sheet.getpixel((GAP + n * (SIDE + GAP) + FRAME // 2, y)) for n in range(2)]
    assert colours == [ImageColor.getrgb(HIT), ImageColor.getrgb(MISS)]
    assert first != second


def test_true_labels_of_other_data_are_refused(tmp_path):
    with pytest.raises(UsageError, match="300 labels and 7 true ones"):
        drawn(tmp_path, made(), true=np.zeros(7, dtype=int))
