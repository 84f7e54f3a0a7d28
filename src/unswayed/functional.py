"""The losses as plain functions, for your own loop."""

from unswayed.losses.gce import gce_loss
from unswayed.regularizers.ctrr import ctrr_loss

__all__ = ["ctrr_loss", "gce_loss"]
