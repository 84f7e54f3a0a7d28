"""The losses as plain functions, for your own loop."""

from unswayed.losses.apl import normalized_ce, normalized_focal, normalized_gce
from unswayed.losses.backward import backward_correction
from unswayed.losses.bootstrap import bootstrap_loss
from unswayed.losses.forward import forward_correction
from unswayed.losses.gce import gce_loss
from unswayed.losses.label_smoothing import label_smoothing_loss
from unswayed.losses.mae import mae_loss
from unswayed.losses.posterior import label_posterior, unmixed
from unswayed.losses.sl import rce_loss, sl_loss
from unswayed.regularizers.ctrr import ctrr_loss

__all__ = [
    "backward_correction",
    "bootstrap_loss",
    "ctrr_loss",
    "forward_correction",
    "gce_loss",
    "label_posterior",
    "label_smoothing_loss",
    "mae_loss",
    "normalized_ce",
    "normalized_focal",
    "normalized_gce",
    "rce_loss",
    "sl_loss",
    "unmixed",
]
