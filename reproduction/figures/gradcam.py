"""Fig. 2: where networks look, trained on clean and on noisy labels.

Grad-CAM is Selvaraju et al., ICCV 2017.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from reproduction.figures import Lab, Measured, drawing, need_noise, need_test, with_overrides
from reproduction.figures.probe import network
from unswayed.build import prepare
from unswayed.errors import UsageError
from unswayed.learners import Classifier
from unswayed.recipe import Recipe

LABELS = {"clean": ["noise.name=none"], "noisy": []}
IMAGES = 4


def gradcam(net: Classifier, images: Tensor, labels: Tensor, layer: nn.Module) -> Tensor:
    """Return a map in [0, 1] for each image, (B, H, W).

    ReLU(Σ_k α_k A^k), α_k the mean over places of ∂ logit_label / ∂ A^k, divided by its maximum.

    Args:
        net: in evaluation mode.
        images: (B, C, H, W) floats in [0, 1].
        labels: (B,) whose logits are asked about.
        layer: whose output is A, (B, k, h, w).
    """
    seen: list[Tensor] = []
    hook = layer.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    try:
        logits = net(images).gather(1, labels[:, None]).sum()
    finally:
        hook.remove()
    (gradient,) = torch.autograd.grad(logits, seen[0])
    alpha = gradient.mean(dim=(2, 3), keepdim=True)
    maps = F.relu((alpha * seen[0]).sum(dim=1, keepdim=True)).detach()
    maps = F.interpolate(maps, images.shape[2:], mode="bilinear", align_corners=False)[:, 0]
    return maps / maps.amax(dim=(1, 2), keepdim=True).clamp_min(1e-12)


def last_map(net: Classifier, images: Tensor, least: int = 4) -> nn.Module:
    """Return the last part whose output is a map with at least so many pixels on a side.

    A convolution or norm is taken only where there is nothing else: what it computes is not yet
    activated, nor added to what goes past it.
    """
    found: list[nn.Module] = []
    raw: list[nn.Module] = []

    def note(module: nn.Module, _inputs: object, output: object) -> None:
        if isinstance(output, Tensor) and output.ndim == 4 and min(output.shape[2:]) >= least:
            (raw if isinstance(module, nn.Conv2d | _BatchNorm) else found).append(module)

    hooks = [module.register_forward_hook(note) for module in net.backbone.modules()]
    with torch.no_grad():
        net(images[:1])
    for hook in hooks:
        hook.remove()
    if not found + raw:
        raise UsageError(f"this network has no map with {least}×{least} pixels or more")
    return (found or raw)[-1]


def measure(recipe: Recipe, lab: Lab) -> Measured:
    """Return images and maps of test images for both networks; of the first seed only."""
    need_noise(recipe)
    test = need_test(prepare(with_overrides(recipe, seed=0))[0])
    rows = torch.from_numpy(np.linspace(0, len(test) - 1, IMAGES).astype(np.int64))
    images = test.images[rows].float() / 255
    labels = torch.from_numpy(test.given[rows.numpy()])
    maps = {}
    for label, overrides in LABELS.items():
        _, run = lab.train(recipe, "method=ce", *overrides, seed=0, name=label)
        net = network(run).cpu().eval()  # a few images
        seen = gradcam(net, images, labels, last_map(net, images))
        maps[label] = np.round(seen.double().numpy(), 3).tolist()
    shown = images.permute(0, 2, 3, 1).squeeze(-1)
    return {"images": np.round(shown.double().numpy(), 3).tolist(), "maps": maps}


def draw(measured: Measured) -> Figure:
    """Draw the images, and below them what each network looks at."""
    images, maps = np.array(measured["images"]), measured["maps"]
    drawn, axes = drawing.panels(len(images), rows=1 + len(maps), side=1.7)
    for place, image in enumerate(images):
        axes[place].imshow(image, cmap="gray")
        for row, (label, seen) in enumerate(maps.items(), start=1):
            panel = axes[row * len(images) + place]
            panel.imshow(image, cmap="gray")
            panel.imshow(np.array(seen[place]), cmap="jet", alpha=0.5, vmin=0, vmax=1)
            if place == 0:
                panel.set_ylabel(f"{label} labels")
    for panel in axes:
        panel.set(xticks=[], yticks=[])
    return drawn
