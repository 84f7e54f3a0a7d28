"""Every batched operation against torchvision's, image by image."""

from __future__ import annotations

import pytest
import torch
import torchvision.transforms.v2.functional as tv
from hypothesis import given
from hypothesis import strategies as st
from torchvision.transforms import RandomResizedCrop

from unswayed.views import operations as ops
from unswayed.views.crops import BOX_DRAWS, random_boxes

B, H, W = 6, 12, 17


def batch(seed, channels=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(B, channels, H, W, generator=generator), generator


def per_image(operation, x, *parameters):
    return torch.stack(
        [operation(image, *(float(p[i]) for p in parameters)) for i, image in enumerate(x)]
    )


@given(seed=st.integers(0, 10**6), channels=st.sampled_from([1, 3]))
@pytest.mark.parametrize(
    ("ours", "theirs", "low", "high"),
    [
        (ops.adjust_brightness, tv.adjust_brightness, 0.0, 2.0),
        (ops.adjust_contrast, tv.adjust_contrast, 0.0, 2.0),
        (ops.adjust_saturation, tv.adjust_saturation, 0.0, 2.0),
        (ops.adjust_hue, tv.adjust_hue, -0.5, 0.5),
    ],
)
def test_colour(seed, channels, ours, theirs, low, high):
    x, generator = batch(seed, channels)
    factor = low + (high - low) * torch.rand(B, generator=generator, dtype=torch.float64)
    before = x.clone()
    assert torch.allclose(ours(x, factor), per_image(theirs, x, factor), atol=2e-5)
    assert torch.equal(x, before)


def test_hue_of_black_white_and_pure_colours():
    corners = torch.cartesian_prod(*[torch.tensor([0.0, 0.5, 1.0])] * 3).T.reshape(1, 3, 3, 9)
    for shift in (-0.5, -0.2, 0.0, 1 / 6, 0.5):
        found = ops.adjust_hue(corners, torch.tensor([shift]))
        assert torch.allclose(found[0], tv.adjust_hue(corners[0], shift), atol=1e-5)


@given(seed=st.integers(0, 10**6))
def test_grayscale(seed):
    x, _ = batch(seed)
    assert torch.allclose(ops.grayscale(x), tv.rgb_to_grayscale(x), atol=1e-6)


@given(seed=st.integers(0, 10**6), kernel=st.sampled_from([3, 5, 9]))
def test_gaussian_blur(seed, kernel):
    x, generator = batch(seed)
    sigma = 0.1 + 1.9 * torch.rand(B, generator=generator)
    theirs = per_image(lambda image, s: tv.gaussian_blur(image, [kernel, kernel], [s, s]), x, sigma)
    assert torch.allclose(ops.gaussian_blur(x, sigma, kernel), theirs, atol=1e-5)


@given(seed=st.integers(0, 10**6))
def test_resized_crop_and_flip(seed):
    x, generator = batch(seed)
    u = torch.rand(B, BOX_DRAWS, generator=generator, dtype=torch.float64)
    boxes = random_boxes(u, (H, W), (0.08, 1.0), (3 / 4, 4 / 3))
    flip = torch.rand(B, generator=generator) < 0.5
    theirs = []
    for i, image in enumerate(x):
        box = [int(part[i]) for part in boxes]
        seen = tv.resized_crop(image, *box, size=[H, W], antialias=True)
        theirs.append(tv.horizontal_flip(seen) if flip[i] else seen)
    assert torch.allclose(ops.resized_crop(x, *boxes, flip=flip), torch.stack(theirs), atol=1e-4)


@given(seed=st.integers(0, 10**6), padding=st.integers(0, 5))
def test_padded_crop_and_flip(seed, padding):
    x, generator = batch(seed)
    top, left = torch.randint(0, 2 * padding + 1, (2, B), generator=generator)
    flip = torch.rand(B, generator=generator) < 0.5
    theirs = []
    for i, image in enumerate(x):
        seen = tv.crop(tv.pad(image, [padding] * 4), int(top[i]), int(left[i]), H, W)
        theirs.append(tv.horizontal_flip(seen) if flip[i] else seen)
    assert torch.equal(ops.padded_crop(x, padding, top, left, flip), torch.stack(theirs))


@pytest.mark.parametrize(
    ("area", "ratio"), [((0.08, 1.0), (3 / 4, 4 / 3)), ((0.9, 1.0), (0.2, 5.0)), ((1, 1), (3, 4))]
)
def test_boxes_are_distributed_as_torchvisions(area, ratio):
    n = 4000
    generator = torch.Generator().manual_seed(1)
    u = torch.rand(n, BOX_DRAWS, generator=generator, dtype=torch.float64)
    ours = torch.stack(random_boxes(u, (H, W), area, ratio), dim=1)
    torch.manual_seed(2)
    image = torch.zeros(3, H, W)
    theirs = torch.tensor(
        [RandomResizedCrop.get_params(image, list(area), list(ratio)) for _ in range(n)],
        dtype=torch.float64,
    )
    assert (ours >= 0).all()
    assert (ours[:, 0] + ours[:, 2] <= H).all()
    assert (ours[:, 1] + ours[:, 3] <= W).all()
    for column in range(4):
        a, b = ours[:, column], theirs[:, column]
        grid = torch.arange(0, 20)[:, None]
        distance = ((a <= grid).double().mean(1) - (b <= grid).double().mean(1)).abs().max()
        assert distance < 1.95 * (2 / n) ** 0.5  # Kolmogorov–Smirnov, one in a thousand
