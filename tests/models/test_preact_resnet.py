from __future__ import annotations

import torch
import torch.nn.functional as F

from unswayed.learners import Classifier
from unswayed.models import MODELS


def test_has_the_papers_number_of_parameters():
    net = MODELS.build("preact_resnet18", {"in_channels": 3})
    assert sum(p.numel() for p in net.parameters()) == 11_166_144
    head = Classifier(net, 10, [0.5] * 3, [0.2] * 3).head
    assert sum(p.numel() for p in head.parameters()) == 5_130


def test_a_block_with_a_stride_sends_the_activation_through_its_shortcut(generator):
    block = MODELS.build("preact_resnet18", {"in_channels": 3}).blocks[2].eval()
    x = torch.randn(2, 64, 8, 8, generator=generator)
    a = F.relu(block.bn1(x))
    main = block.conv2(F.relu(block.bn2(block.conv1(a))))
    expected = main + F.conv2d(a, block.shortcut.weight, stride=2)
    assert torch.allclose(block(x), expected, atol=1e-6)


def test_the_feature_is_a_plain_average_so_it_can_be_negative(generator):
    net = MODELS.build("preact_resnet18", {"in_channels": 3})
    assert (net(torch.randn(8, 3, 32, 32, generator=generator)) < 0).any()


def test_the_map_before_pooling_is_four_by_four_at_32_pixels():
    net = MODELS.build("preact_resnet18", {"in_channels": 3})
    assert net.blocks(torch.zeros(1, 64, 32, 32)).shape == (1, 512, 4, 4)
