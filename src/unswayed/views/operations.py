"""Batched image operations with one parameter per image, equal to torchvision's one by one.

Images are floats in [0, 1], (B, C, H, W); parameters are (B,). Nothing here draws a number.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

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
    return F.grid_sample(x, grid.to(x.dtype), mode="bilinear", align_corners=True)


def _source(size: int, start: Tensor, length: Tensor) -> Tensor:
    """Return where each output pixel lies in the input, (B, size), inside the box."""
    step = (length / size)[:, None]
    offset = (torch.arange(size, device=start.device, dtype=step.dtype) + 0.5) * step - 0.5
    return start[:, None] + offset.clamp_min(0).minimum((length - 1)[:, None])


def _to_grid(pixels: Tensor, size: int) -> Tensor:
    return pixels * (2 / max(size - 1, 1)) - 1


def padded_crop(x: Tensor, padding: int, top: Tensor, left: Tensor, flip: Tensor) -> Tensor:
    """Pad with black, cut a window of the old size at (top, left), and mirror where asked."""
    batch, _, height, width = x.shape
    padded = F.pad(x, (padding,) * 4)
    rows = top[:, None] + torch.arange(height, device=x.device)  # (B, H)
    cols = left[:, None] + torch.arange(width, device=x.device)  # (B, W)
    cols = torch.where(flip[:, None], cols.flip(1), cols)
    sample = torch.arange(batch, device=x.device)
    window = padded[sample[:, None, None], :, rows[:, :, None], cols[:, None, :]]  # (B, H, W, C)
    return window.permute(0, 3, 1, 2)


def _blend(x: Tensor, other: Tensor | float, factor: Tensor) -> Tensor:
    f = factor.to(x.dtype)[:, None, None, None]
    return (x * f).add_((1 - f) * other).clamp_(0, 1)


def grayscale(x: Tensor) -> Tensor:
    """Return the luma as (B, 1, H, W)."""
    if x.shape[1] == 1:
        return x
    r, g, b = x.unbind(1)
    return (LUMA[0] * r + LUMA[1] * g + LUMA[2] * b)[:, None]


def adjust_brightness(x: Tensor, factor: Tensor) -> Tensor:
    """Blend with black."""
    return _blend(x, 0.0, factor)


def adjust_contrast(x: Tensor, factor: Tensor) -> Tensor:
    """Blend with the image's mean luma."""
    return _blend(x, grayscale(x).mean(dim=(1, 2, 3), keepdim=True), factor)


def adjust_saturation(x: Tensor, factor: Tensor) -> Tensor:
    """Blend with the image's luma; a gray image stays as it is."""
    return x if x.shape[1] == 1 else _blend(x, grayscale(x), factor)


def adjust_hue(x: Tensor, shift: Tensor) -> Tensor:
    """Turn the colour wheel by `shift` of a full turn; a gray image stays as it is."""
    if x.shape[1] == 1:
        return x
    r, g, b = x.unbind(1)  # (B, H, W)
    value = torch.maximum(torch.maximum(r, g), b)
    chroma = value - torch.minimum(torch.minimum(r, g), b)
    per_chroma = torch.where(chroma == 0, 1, chroma).reciprocal_()
    sector = torch.where(
        value == r,
        (g - b).mul_(per_chroma),
        torch.where(value == g, (b - r).mul_(per_chroma).add_(2), (r - g).mul_(per_chroma).add_(4)),
    )  # in sixths of a turn
    turned = sector.add_(6 * shift.to(x.dtype)[:, None, None])
    # Each channel is the value less a trapezoid of the chroma, shifted by a third of a turn.
    start = torch.tensor([5.0, 3.0, 1.0], dtype=x.dtype, device=x.device)[:, None, None]
    k = turned[:, None] + start  # (B, 3, H, W)
    k.sub_((k / 6).floor_(), alpha=6)  # the remainder, much faster than torch.remainder
    fall = torch.minimum(k, 4 - k).clamp_(0, 1).mul_(chroma[:, None])
    return torch.sub(value[:, None], fall, out=fall)


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
