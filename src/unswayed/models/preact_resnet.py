"""PreAct ResNet-18 for 32 px, as CTRR and DivideMix use it. He et al., ECCV 2016.

It departs from He et al. in one place: there is no batch norm and ReLU after the last stage.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from unswayed.models import Backbone, register


class PreActBlock(nn.Module):
    """BN, ReLU, conv, BN, ReLU, conv; the shortcut leaves after the first activation."""

    def __init__(self, in_width: int, width: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(in_width)
        self.conv1 = nn.Conv2d(in_width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.shortcut = (
            nn.Conv2d(in_width, width, 1, stride, bias=False)
            if stride != 1 or in_width != width
            else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, width, H / stride, W / stride)."""
        a = F.relu(self.bn1(x))
        kept = x if self.shortcut is None else self.shortcut(a)
        out: Tensor = self.conv2(F.relu(self.bn2(self.conv1(a)))) + kept
        return out


@register("preact_resnet18", paper="He et al., ECCV 2016; Yi et al., CVPR 2022")
class PreActResNet18(Backbone):
    """The paper's CIFAR network: 11.2 million parameters, 512 features, a 3×3 stem."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.feature_dim = 512
        self.conv1 = nn.Conv2d(in_channels, 64, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        blocks: list[nn.Module] = []
        in_width = 64
        for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [PreActBlock(in_width, width, stride), PreActBlock(width, width, 1)]
            in_width = width
        self.blocks = nn.Sequential(*blocks)
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, 512)."""
        out: Tensor = self.blocks(F.relu(self.bn1(self.conv1(x))))
        return out.mean(dim=(2, 3))


def initialise(net: nn.Module) -> None:
    """He-normal (fan-out) convolutions; batch norms already start at 1 and 0."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
