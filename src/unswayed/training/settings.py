"""The `train` section of a recipe: options of every training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from unswayed.schedules import PositiveFractionSchedule
from unswayed.training.cost import LONGEST, Budget
from unswayed.types import BelowOne, Count, NonNegative


@dataclass(frozen=True)
class Settings:
    """Options of the loop.

    Args:
        epochs: passes over the training samples.
        budget: in place of `epochs`, as many as fit into "0.5 PFLOP" of computation, counted on
            real steps, or into "60 min", measured on this machine.
        batch_size: images in a step; pairs are formed inside a batch.
        schedule_unit: schedules move every step, or every epoch as in the published code.
        warmup_epochs: the learning rate rises linearly over these epochs, at most over half of the
            training.
        clip_norm: largest norm of the gradient of all parameters together, also of two networks; 0
            does not clip.
        drop_last: leave out the last, smaller batch of an epoch.
        ema: decay of a moving average of the weights that is evaluated and saved; 0 is none.
        holdout: share of the training samples held out for selection, stratified by given label.
        side: images are shrunk to this share of their side, the same throughout an epoch. A ramp
            from 0.75 to 1 makes early epochs cheaper. Evaluation uses full size.
        evaluate_every: epochs between evaluations; the last epoch is always evaluated.
        predictions: what the run keeps of every training sample at the end, in half precision:
            "features" keeps logits and features, 2 N (K + F) bytes; "probabilities" keeps logits
            only, 2 N K bytes; or "none".
        checkpoint_minutes: longest time inside an epoch without a checkpoint.
        seed: the seed of everything random in the run.
        device: auto, cpu, cuda, cuda:1, mps.
        precision: fp32, bf16 (autocast), or auto, which uses bf16 if the hardware has it.
        compile: fuse operations of the network with torch.compile. It needs a C++ compiler, and a
            minute or more at the start. "reduce-overhead" records CUDA graphs.
        threads: CPU threads; 0 leaves the choice to PyTorch.
    """

    epochs: Annotated[int, Ge(1), Le(LONGEST)] = 100
    budget: str = ""
    batch_size: Annotated[int, Ge(2)] = 256
    schedule_unit: Literal["step", "epoch"] = "step"
    warmup_epochs: NonNegative = 0.0
    clip_norm: NonNegative = 0.0
    drop_last: bool = True
    ema: BelowOne = 0.0
    holdout: BelowOne = 0.1
    side: PositiveFractionSchedule = 1.0
    evaluate_every: Count = 1
    predictions: Literal["features", "probabilities", "none"] = "features"
    checkpoint_minutes: NonNegative = 5.0
    seed: Annotated[int, Ge(0)] = 0
    device: str = "auto"
    precision: Literal["fp32", "bf16", "auto"] = "fp32"
    compile: Literal["off", "default", "reduce-overhead"] = "off"
    threads: Annotated[int, Ge(0), Le(1024)] = 0

    def __post_init__(self) -> None:
        if self.budget:
            Budget.parse(self.budget)

    def progress(self, epoch: int, step: int, steps: int) -> float:
        """Return the progress by which schedules move: the share of the training that is done.

        Args:
            epoch: from 0.
            step: from 0.
            steps: in an epoch.
        """
        whole = self.schedule_unit == "epoch"
        return (epoch if whole else epoch + step / steps) / self.epochs
