from __future__ import annotations

import colorsys

import pytest
import torch
import torchvision.transforms.v2.functional as tv

from unswayed import UsageError
from unswayed.views import VIEWS
from unswayed.views import operations as ops


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


def test_colour_as_one_map_is_the_jitter_where_nothing_is_clamped(generator):
    """Without hue, and with colours far from black and white, both ways are the same."""
    options = {"area": (1.0, 1.0), "ratio": (1.0, 1.0), "jitter": (0.1, 0.2, 0.2, 0.0)}
    x = 0.4 + 0.2 * torch.rand(200, 3, 6, 6, generator=generator)
    exact, affine = (VIEWS.build("strong", colour=c, **options) for c in ("exact", "affine"))
    u = torch.rand(200, exact.draws, generator=generator)
    assert torch.allclose(exact(x, u), affine(x, u), atol=1e-5)
    assert (affine(x, u) - x).abs().max() > 0.05


def test_a_third_of_a_turn_of_the_hue_permutes_the_colours():
    third = torch.tensor([1 / 3])
    one = torch.ones(1)
    turned = ops.colour_maps(one, one, one, third)[0, 3]
    colours = torch.rand(3, 5)
    exact = ops.adjust_hue(colours.T[:, :, None, None], torch.full((5,), 1 / 3))[:, :, 0, 0].T
    assert torch.allclose(turned @ colours, exact, atol=1e-5)
    assert torch.allclose(turned @ colours, colours.roll(1, dims=0), atol=1e-5)


def test_a_small_turn_of_the_hue_is_about_the_exact_one_and_keeps_the_mean(generator):
    colours = 0.3 + 0.4 * torch.rand(500, 3, 1, 1, generator=generator)
    shift = 0.2 * torch.rand(500, generator=generator) - 0.1
    one = torch.ones(500)
    turned = ops.colour_maps(one, one, one, shift)[:, 3] @ colours[..., 0]
    exact = ops.adjust_hue(colours, shift)[..., 0]
    hues = [[colorsys.rgb_to_hsv(*c)[0] for c in each[..., 0].tolist()] for each in (turned, exact)]
    apart = (torch.tensor(hues[0]) - torch.tensor(hues[1]) + 0.5) % 1 - 0.5
    assert apart.abs().max() < 0.02
    assert torch.allclose(turned.mean(dim=1), colours[..., 0].mean(dim=1), atol=1e-6)


def test_gray_is_part_of_the_one_map(generator):
    view = VIEWS.build("strong", colour="affine", grayscale=1.0, area=(1.0, 1.0), ratio=(1.0, 1.0))
    x = torch.rand(50, 3, 6, 6, generator=generator)
    seen = view(x, torch.rand(50, view.draws, generator=generator))
    assert torch.allclose(seen[:, :1].expand_as(seen), seen, atol=1e-6)
