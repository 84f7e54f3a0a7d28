"""The best network so far, for losses that look back at it."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn


class Best(nn.Module):
    """A network as it was when its score was highest; a frozen copy that survives a resume."""

    score: Tensor

    def __init__(self, classifier: nn.Module) -> None:
        super().__init__()
        self.network = copy.deepcopy(classifier).requires_grad_(False)
        self.register_buffer("score", torch.tensor(-math.inf))

    def offer(self, network: nn.Module, score: Tensor | None) -> bool:
        """Take over the weights of a network that does better, and return whether it does.

        Args:
            network: one of the same architecture.
            score: the higher the better; None if there is nothing to measure it on, and then the
                newest network is taken.
        """
        if score is not None and not score.to(self.score) > self.score:
            return False
        self.network.load_state_dict(network.state_dict())
        if score is not None:
            self.score.copy_(score)
        return True

    def restore(self, *networks: nn.Module) -> None:
        """Give its weights back to networks of the same architecture."""
        for network in networks:
            network.load_state_dict(self.network.state_dict())
