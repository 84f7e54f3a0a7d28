"""Batched image operations with one parameter per image, equal to torchvision's one by one.

Images are floats in [0, 1], (B, C, H, W); parameters are (B,). Nothing here draws a number.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.device import sent

LUMA = (0.2989, 0.587, 0.114)


def resized_crop(
    x: Tensor, top: Tensor, left: Tensor, height: Tensor, width: Tensor, flip: Tensor
) -> Tensor:
    """Cut a box out of each image, bring it back to full size bilinearly, and mirror where asked.

    Interpolation stops at the edge of the box, as if it had been cut out first. Boxes are never
    larger than the image, so there is nothing to anti-alias.
    """
    rows = _source(x.shape[2], top, height)  # (B, H)
    cols = _source(x.shape[3], left, width)  # (B, W)
    cols = torch.where(flip[:, None], cols.flip(1), cols)
    grid = torch.stack(
        [
            _to_grid(cols, x.shape[3])[:, None, :].expand(-1, x.shape[2], -1),
            _to_grid(rows, x.shape[2])[:, :, None].expand(-1, -1, x.shape[3]),
        ],
        dim=-1,
    )  # (B, H, W, 2), x before y
    # No point lies outside; "border" only spares the test for it.
    return F.grid_sample(
        x, grid.to(x.dtype), mode="bilinear", padding_mode="border", align_corners=True
    )


def _source(size: int, start: Tensor, length: Tensor) -> Tensor:
    """Return where each output pixel lies in the input, (B, size), inside the box."""
    step = (length / size)[:, None]
    offset = (torch.arange(size, device=start.device, dtype=step.dtype) + 0.5) * step - 0.5
    return start[:, None] + offset.clamp_min(0).minimum((length - 1)[:, None])


def _to_grid(pixels: Tensor, size: int) -> Tensor:
    return pixels * (2 / max(size - 1, 1)) - 1


def padded_crop(
    x: Tensor,
    padding: int,
    top: Tensor,
    left: Tensor,
    flip: Tensor,
    edge: Literal["black", "reflect"] = "black",
) -> Tensor:
    """Pad with black or with reflections, cut out a window of the old size, mirror where asked."""
    batch, _, height, width = x.shape
    padded = F.pad(x, (padding,) * 4, mode="reflect" if edge == "reflect" else "constant")
    rows = top[:, None] + torch.arange(height, device=x.device)  # (B, H)
    cols = left[:, None] + torch.arange(width, device=x.device)  # (B, W)
    cols = torch.where(flip[:, None], cols.flip(1), cols)
    sample = torch.arange(batch, device=x.device)
    window = padded[sample[:, None, None], :, rows[:, :, None], cols[:, None, :]]  # (B, H, W, C)
    return window.permute(0, 3, 1, 2)


def grayscale(x: Tensor) -> Tensor:
    """Return the luma as (B, 1, H, W)."""
    if x.shape[1] == 1:
        return x
    r, g, b = x.unbind(1)
    return (r * LUMA[0]).add_(g, alpha=LUMA[1]).add_(b, alpha=LUMA[2])[:, None]


def adjust_brightness(x: Tensor, factor: Tensor) -> Tensor:
    """Blend with black."""
    return adjust_brightness_(x.clone(), factor)


def adjust_contrast(x: Tensor, factor: Tensor) -> Tensor:
    """Blend with the image's mean luma."""
    return adjust_contrast_(x.clone(), factor)


def adjust_saturation(x: Tensor, factor: Tensor) -> Tensor:
    """Blend with the image's luma; a gray image stays as it is."""
    return adjust_saturation_(x.clone(), factor)


def adjust_hue(x: Tensor, shift: Tensor) -> Tensor:
    """Turn the colour wheel by `shift` of a full turn; a gray image stays as it is."""
    return adjust_hue_(x.clone(), shift)


def adjust_brightness_(x: Tensor, factor: Tensor) -> Tensor:
    """Do `adjust_brightness` in place."""
    return x.mul_(_per_image(factor, x)).clamp_(0, 1)


def adjust_contrast_(x: Tensor, factor: Tensor) -> Tensor:
    """Do `adjust_contrast` in place."""
    return _blend_(x, grayscale(x).mean(dim=(1, 2, 3), keepdim=True), factor)


def adjust_saturation_(x: Tensor, factor: Tensor) -> Tensor:
    """Do `adjust_saturation` in place."""
    return x if x.shape[1] == 1 else _blend_(x, grayscale(x), factor)


def adjust_hue_(x: Tensor, shift: Tensor) -> Tensor:
    """Do `adjust_hue` in place.

    On the colour wheel, red to green to blue, the way from red is 1 + g + b - r sixths of a turn,
    with the colours stretched to [0, 1]; it goes backwards where there is more blue than green.
    """
    if x.shape[1] == 1:
        return x
    r, g, b = x.unbind(1)  # (B, H, W)
    low, high = x.amin(dim=1), x.amax(dim=1)
    chroma = high - low
    way = (g - low).add_(b).sub_(r).div_(chroma.clamp_min(torch.finfo(x.dtype).tiny))
    hue = way.add_(1).copysign_(g - b).div_(6).add_(_per_image(shift, x)[:, 0])  # in turns
    hue.sub_(hue.floor())
    # Green and blue rise from the lowest by a trapezoid around a third and two thirds of a turn;
    # red falls from the highest by one around a half.
    middle = constants((1 / 2, 1 / 3, 2 / 3), x)[:, None, None]
    torch.sub(hue[:, None], middle, out=x).abs_().mul_(-6).add_(2).clamp_(0, 1)
    x.mul_(chroma[:, None])
    torch.sub(high, r, out=r)
    x[:, 1:].add_(low[:, None])
    return x


def colour_maps(brightness: Tensor, contrast: Tensor, saturation: Tensor, hue: Tensor) -> Tensor:
    """Return what each adjustment does to a colour, as matrices (B, 5, 3, 3); the fifth: nothing.

    Contrast adds (1 - factor) · mean luma, which a matrix cannot. A turn of the hue is one around
    the gray axis. It keeps the mean of the channels where `adjust_hue` keeps the largest and the
    smallest; by thirds of a full turn both are the same, in between their hues differ by 1/50.
    """
    eye = torch.eye(3, dtype=brightness.dtype, device=brightness.device)
    b, c, s, h = (each[:, None, None] for each in (brightness, contrast, saturation, hue))
    luma = constants(LUMA, eye).expand(3, 3)
    axis = constants((0.0, -1, 1, 1, 0, -1, -1, 1, 0), eye).view(3, 3)
    cos, sin = torch.cos(2 * math.pi * h), torch.sin(2 * math.pi * h)
    turned = cos * eye + (1 - cos) / 3 + sin / math.sqrt(3) * axis
    return torch.stack(
        [b * eye, c * eye, s * eye + (1 - s) * luma, turned, eye.expand_as(turned)], dim=1
    )


def constants(values: tuple[float, ...], like: Tensor) -> Tensor:
    """Return numbers as a tensor of this kind, where it is."""
    return sent(torch.tensor(values, dtype=like.dtype), like.device)


def _blend_(x: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    f = _per_image(factor, x)
    return x.mul_(f).add_((1 - f) * other).clamp_(0, 1)


def _per_image(parameter: Tensor, x: Tensor) -> Tensor:
    return parameter.to(x.dtype)[:, None, None, None]


def gaussian_blur(x: Tensor, sigma: Tensor, kernel_size: int) -> Tensor:
    """Blur with a separable Gaussian of its own width for every image; edges are reflected."""
    half = kernel_size // 2
    offsets = torch.arange(-half, half + 1, device=x.device, dtype=x.dtype)
    kernel = torch.exp(-0.5 * (offsets / sigma.to(x.dtype)[:, None]) ** 2)  # (B, k)
    kernel = (kernel / kernel.sum(dim=1, keepdim=True))[:, :, None, None, None]
    height, width = x.shape[2:]
    padded = F.pad(x, (half,) * 4, mode="reflect")
    rows = torch.zeros_like(padded[:, :, :height])
    out = torch.zeros_like(x)
    for i in range(kernel_size):
        rows += kernel[:, i] * padded[:, :, i : i + height]
    for i in range(kernel_size):
        out += kernel[:, i] * rows[:, :, :, i : i + width]
    return out
