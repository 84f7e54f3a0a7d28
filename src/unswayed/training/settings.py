"""The `train` section of a recipe: how long, how fast, on what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from unswayed.errors import UsageError
from unswayed.schedules import NonNegativeSchedule, PositiveFractionSchedule, PositiveSchedule
from unswayed.training.cost import Budget
from unswayed.types import BelowOne, Count, Fraction, NonNegative, Positive, PositiveFraction


@dataclass(frozen=True)
class Settings:
    """Options of the loop.

    Args:
        epochs: passes over the training rows.
        budget: as many epochs as fit, in place of `epochs`: "0.5 PFLOP" of computation, counted on
            real steps, or "60 min", measured on this machine.
        batch_size: images in a step; pairs are formed inside a batch.
        optimizer: SGD; Adam, as some published codes use; or Muon for the filters of convolutions
            with SGD for the rest, which learns in few epochs (see training/muon.py).
        lr: peak learning rate.
        momentum: of SGD; Adam's first decay rate.
        nesterov: Nesterov's form of momentum.
        filter_lr: learning rate of filters under Muon, about the angle of a step. A number is the
            peak on the schedule of `lr`, a table a schedule of its own. They have no weight decay:
            their norm is fixed.
        filter_momentum: of filters under Muon.
        weight_decay: on every parameter, as published.
        decay_norms_and_biases: false spares batch-norm parameters and biases the weight decay.
        schedule: half a cosine to zero, a constant learning rate, drops at milestones, or a
            triangle: a straight rise and a straight fall.
        milestones: shares of the training after which "steps" multiplies the rate by gamma.
        gamma: factor of each drop of "steps".
        peak: share of the training after which a "triangle" has its highest rate; from 0 on it only
            falls.
        ends: what part of the highest rate a "triangle" begins and ends with.
        schedule_unit: move the learning rate every step, or every epoch as in the published code.
        bias_lr: how many times the learning rate norms and biases of the backbone have; their
            weight decay is divided by it, so that they shrink as quickly as the rest.
        warmup_epochs: the learning rate rises linearly over these.
        clip_norm: largest gradient norm of all parameters together, also of two networks; 0 does
            not clip.
        drop_last: leave out the last, smaller batch of an epoch.
        ema: decay of a moving average of the weights that is evaluated and saved; 0 is none.
        holdout: share of the noisy training rows held out for selection, stratified by label.
        side: share of the images' side that is trained on, the same throughout an epoch. A ramp
            from 0.75 to 1 makes early epochs cheaper; evaluation always sees whole images.
        evaluate_every: epochs between evaluations; the last epoch is always evaluated.
        predictions: what the run keeps of every sample at the end, in half precision: class
            probabilities and features, 2 N (K + F) bytes; probabilities alone, 2 N K; or none.
        checkpoint_minutes: longest time inside an epoch without a checkpoint.
        seed: of everything random in the run.
        device: auto, cpu, cuda, cuda:1, mps.
        precision: fp32; bf16 autocast where the hardware has it; or auto, which asks the hardware.
        compile: let torch.compile make one kernel of several operations of the network; needs a C++
            compiler, and a minute or more at the start. "reduce-overhead" records CUDA graphs.
        threads: CPU threads; 0 leaves the choice to PyTorch.
    """

    epochs: Count = 100
    budget: str = ""
    batch_size: Annotated[int, Ge(2)] = 256
    optimizer: Literal["sgd", "adam", "muon"] = "sgd"
    lr: Positive = 0.02
    momentum: BelowOne = 0.9
    nesterov: bool = False
    filter_lr: NonNegativeSchedule = 0.12
    filter_momentum: BelowOne = 0.6
    weight_decay: NonNegative = 5e-4
    decay_norms_and_biases: bool = True
    schedule: Literal["cosine", "constant", "steps", "triangle"] = "cosine"
    milestones: tuple[Fraction, ...] = (1 / 3, 2 / 3)
    gamma: PositiveFraction = 0.1
    peak: Fraction = 0.25
    ends: tuple[Fraction, Fraction] = (0.2, 0.05)
    schedule_unit: Literal["step", "epoch"] = "step"
    bias_lr: PositiveSchedule = 1.0
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
    compile: Literal["off", "default", "reduce-overhead", "max-autotune"] = "off"
    threads: Annotated[int, Ge(0), Le(1024)] = 0

    def __post_init__(self) -> None:
        if self.nesterov and (not self.momentum or self.optimizer == "adam"):
            raise UsageError(
                "train.nesterov needs train.optimizer=sgd or muon, and a momentum above 0"
            )
        if self.budget:
            Budget.parse(self.budget)
        if self.schedule == "triangle" and self.warmup_epochs:
            raise UsageError("train.warmup_epochs: a triangle rises by itself; see train.peak")
        if self.warmup_epochs >= self.epochs:
            raise UsageError(
                f"train.warmup_epochs ({self.warmup_epochs:g}) must be fewer than train.epochs "
                f"({self.epochs})"
            )
