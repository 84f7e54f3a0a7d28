"""The `train` section of a recipe: how long, how fast, on what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from unswayed.errors import UsageError
from unswayed.types import BelowOne, Count, Fraction, NonNegative, Positive, PositiveFraction


@dataclass(frozen=True)
class Settings:
    """Options of the loop.

    Args:
        epochs: passes over the training rows.
        batch_size: images in a step; pairs are formed inside a batch.
        optimizer: SGD, or Adam as some published codes use.
        lr: peak learning rate.
        momentum: of SGD; Adam's first decay rate.
        nesterov: Nesterov's form of momentum.
        weight_decay: on every parameter, as published.
        decay_norms_and_biases: false spares batch-norm parameters and biases the weight decay.
        schedule: half a cosine to zero, a constant learning rate, or drops at milestones.
        milestones: shares of the training after which "steps" multiplies the rate by gamma.
        gamma: factor of each drop of "steps".
        schedule_unit: move the learning rate every step, or every epoch as in the published code.
        warmup_epochs: the learning rate rises linearly over these.
        clip_norm: largest gradient norm of all parameters together, also of two networks; 0 does
            not clip.
        drop_last: leave out the last, smaller batch of an epoch.
        ema: decay of a moving average of the weights that is evaluated and saved; 0 is none.
        holdout: share of the noisy training rows held out for selection, stratified by label.
        evaluate_every: epochs between evaluations; the last epoch is always evaluated.
        checkpoint_minutes: longest time inside an epoch without a checkpoint.
        seed: of everything random in the run.
        device: auto, cpu, cuda, cuda:1, mps.
        precision: fp32, or bf16 autocast where the hardware has it.
        threads: CPU threads; 0 leaves the choice to PyTorch.
    """

    epochs: Count = 100
    batch_size: Annotated[int, Ge(2)] = 256
    optimizer: Literal["sgd", "adam"] = "sgd"
    lr: Positive = 0.02
    momentum: BelowOne = 0.9
    nesterov: bool = False
    weight_decay: NonNegative = 5e-4
    decay_norms_and_biases: bool = True
    schedule: Literal["cosine", "constant", "steps"] = "cosine"
    milestones: tuple[Fraction, ...] = (1 / 3, 2 / 3)
    gamma: PositiveFraction = 0.1
    schedule_unit: Literal["step", "epoch"] = "step"
    warmup_epochs: NonNegative = 0.0
    clip_norm: NonNegative = 0.0
    drop_last: bool = True
    ema: BelowOne = 0.0
    holdout: BelowOne = 0.1
    evaluate_every: Count = 1
    checkpoint_minutes: NonNegative = 5.0
    seed: Annotated[int, Ge(0)] = 0
    device: str = "auto"
    precision: Literal["fp32", "bf16"] = "fp32"
    threads: Annotated[int, Ge(0), Le(1024)] = 0

    def __post_init__(self) -> None:
        if self.nesterov and (not self.momentum or self.optimizer != "sgd"):
            raise UsageError("train.nesterov needs train.optimizer=sgd and a momentum above 0")
        if self.warmup_epochs >= self.epochs:
            raise UsageError(
                f"train.warmup_epochs ({self.warmup_epochs:g}) must be fewer than train.epochs "
                f"({self.epochs})"
            )
