from __future__ import annotations

import pytest
import torch
import torchvision.transforms.v2.functional as tv

from unswayed import UsageError
from unswayed.views import VIEWS


def draws(view, n, generator):
    return torch.rand(n, view.draws, generator=generator)


def test_jitter_applies_torchvisions_operations_in_the_order_drawn(generator):
    view = VIEWS.build(
        "strong", area=(1.0, 1.0), ratio=(1.0, 1.0), flip=0.0, grayscale=0.0, jitter_probability=1.0
    )
    x = torch.rand(20, 3, 8, 8, generator=generator)
    u = draws(view, 20, generator)
    operations = [
        (tv.adjust_brightness, 0.6, 0.8),
        (tv.adjust_contrast, 0.6, 0.8),
        (tv.adjust_saturation, 0.6, 0.8),
        (tv.adjust_hue, -0.1, 0.2),
    ]
    expected = []
    for image, row in zip(x, u, strict=True):
        for number in row[2:6].argsort().tolist():
            operation, low, span = operations[number]
            image = operation(image, low + span * float(row[6 + number]))
        expected.append(image)
    assert torch.allclose(view(x, u), torch.stack(expected), atol=5e-5)


@pytest.mark.parametrize("option", ["flip", "jitter_probability", "grayscale", "blur"])
def test_a_probability_is_the_share_of_images_touched(option, generator):
    off = {"flip": 0.0, "jitter_probability": 0.0, "grayscale": 0.0, "blur": 0.0}
    view = VIEWS.build("strong", area=(1.0, 1.0), ratio=(1.0, 1.0), **{**off, option: 0.3})
    x = torch.rand(1500, 3, 6, 6, generator=generator)
    changed = (view(x, draws(view, 1500, generator)) - x).abs().amax(dim=(1, 2, 3)) > 1e-4
    assert changed.double().mean().item() == pytest.approx(0.3, abs=0.05)


def test_everything_off_is_the_identity(generator):
    view = VIEWS.build(
        "strong", area=(1, 1), ratio=(1, 1), flip=0, jitter_probability=0, grayscale=0, blur=0
    )
    x = torch.rand(5, 3, 9, 9, generator=generator)
    assert torch.allclose(view(x, draws(view, 5, generator)), x, atol=1e-6)


def test_an_even_blur_kernel_is_an_error():
    with pytest.raises(UsageError, match="odd"):
        VIEWS.build("strong", blur_kernel=4)
