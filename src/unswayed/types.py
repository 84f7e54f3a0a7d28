"""The types that stages pass to each other.

Shapes, everywhere in this package: B batch, C channels, H and W pixels, K classes, F backbone
feature, D embedding, N samples of a data set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

if TYPE_CHECKING:  # the command line shows progress without waiting for PyTorch
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

MAX_SIDE = 2048
"""Pixels. A larger side is probably a mistake, and would fill memory or disk."""


def _not_too_large(side: int) -> int:
    if side > MAX_SIDE:
        size = f"one colour image of that side takes {3 * side**2 / 1e9:,.2f} GB of memory"
        raise PydanticCustomError("side", f"{size}; choose at most {MAX_SIDE}")
    return side


Fraction = Annotated[float, Ge(0), Le(1)]
BelowOne = Annotated[float, Ge(0), Lt(1)]
PositiveFraction = Annotated[float, Gt(0), Le(1)]
NonNegative = Annotated[float, Ge(0)]
Positive = Annotated[float, Gt(0)]
Count = Annotated[int, Ge(1)]
Whole = Annotated[int, Ge(0)]
Side = Annotated[int, Ge(1), AfterValidator(_not_too_large)]
SideOrZero = Annotated[int, Ge(0), AfterValidator(_not_too_large)]


def absolute(path: str) -> str:
    """Return a path that does not depend on the current folder."""
    return str(Path(path).expanduser().absolute())


AbsolutePath = Annotated[str, AfterValidator(absolute)]
"""A path that is stored as absolute, so that a run can be resumed from anywhere."""


ViewKind = Literal["weak", "strong"]


class Views(NamedTuple):
    """The views that a learner asked for, each (B, C, H, W), floats in [0, 1]."""

    weak: tuple[Tensor, ...] = ()
    strong: tuple[Tensor, ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """The input of a learner in one step."""

    views: Views
    labels: Tensor  # (B,) given labels
    index: Tensor  # (B,) rows of the data set, so that a loss may keep a memory by sample
    epoch: int
    progress: float  # share of the training that is done, in [0, 1)
    rows: NDArray[np.int64] | None = None  # the same as `index`, on the CPU

    def rows_on_cpu(self) -> NDArray[np.int64]:
        """Return the rows, for draws that depend on them; a GPU is not waited for."""
        return self.index.cpu().numpy() if self.rows is None else self.rows


@dataclass(frozen=True, slots=True)
class Overview:
    """What a learner may know of the whole training set between epochs, without true labels."""

    epoch: int  # the next one, from 0
    epochs: int
    given: Tensor  # (N,) given labels
    rows: Tensor  # rows that are trained on
    holdout: Tensor  # rows that are not
    network: nn.Module  # what is evaluated: the learner's classifier, or the average of its weights
    batches: Callable[[nn.Module, Tensor], Iterable[Tensor]]
    """Yield the probabilities (b, K) of a network for these rows, in order, a batch at a time.

    The images are not augmented. There is at least one batch.
    """

    def look(self, network: nn.Module, rows: Tensor) -> Tensor:
        """Return the probabilities (n, K) of a network for these rows.

        Of many rows and classes they take much memory: what needs a number of each row only should
        ask for it below.
        """
        return _together(self.batches(network, rows))

    def predicted(self, network: nn.Module, rows: Tensor) -> Tensor:
        """Return the most probable class (n,) of these rows."""
        return _together(p.argmax(dim=1) for p in self.batches(network, rows))

    def of_given(self, network: nn.Module, rows: Tensor) -> Tensor:
        """Return the probability (n,) of the given label of these rows."""
        labels, found, done = self.given[rows][:, None], [], 0
        for p in self.batches(network, rows):
            found.append(p.gather(1, labels[done : done + len(p)]).squeeze(1))
            done += len(p)
        return _together(found)

    def losses(self, network: nn.Module, rows: Tensor) -> Tensor:
        """Return the cross entropy (n,) of the given labels of these rows."""
        return -self.of_given(network, rows).clamp_min(1e-12).log()

    def first_epoch(self, share: float) -> int:
        """Return the epoch, from 0, that starts when this share of the training is done."""
        return round(share * self.epochs)


def _together(parts: Iterable[Tensor]) -> Tensor:
    import torch  # not at the top: see above

    return torch.cat(list(parts))


class Pairs(NamedTuple):
    """Queries of one view and keys of the other, not normalised: one direction of a contrast."""

    query: Tensor  # (B, D)
    key: Tensor  # (M, D), M may exceed B


class Beliefs(NamedTuple):
    """Class probabilities and given labels of some samples, without gradient."""

    p: Tensor  # (n, K) the classifier's probabilities
    labels: Tensor  # (n,) given labels


@dataclass(frozen=True, slots=True)
class Terms:
    """The output of a learner: the loss to minimise, its named parts, and numbers per sample."""

    total: Tensor  # ()
    parts: Mapping[str, Tensor]  # scalars, for the record
    losses: Tensor  # (B,) detached label loss per sample
    logits: Tensor  # (B, K) detached, of the weak view


class Records(NamedTuple):
    """What samples did: (N,) in one epoch, (epochs, N) in several.

    For a sample that was not trained on, floats are NaN and `predicted` is -1.
    """

    loss: Tensor  # float32, label loss
    margin: Tensor  # float32, logit of the given label less the largest other one
    probability: Tensor  # float32, of the predicted class
    given_probability: Tensor  # float32, of the given label
    predicted: Tensor  # int32


class Numbers(BaseModel):
    """The numbers of an epoch; None if unknown, for example without test images."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    epoch: int  # from 0
    train_accuracy: float | None = None  # on given labels, in the views that were trained on
    test_accuracy: float | None = None
    holdout_accuracy: float | None = None  # on the given labels of rows that are held out
    wrong_as_given: float | None = None  # of the wrong labels, those predicted as given: memorised
    wrong_as_true: float | None = None
    wrong_other: float | None = None


class Metrics(Numbers):
    """A row of metrics.jsonl: an epoch's numbers, its loss terms, and the cost so far."""

    lr: float
    terms: dict[str, float]
    flops: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Step:
    """One optimisation step is done."""

    epoch: int
    step: int  # 1 ... steps
    steps: int  # in this epoch
    epochs: int
    loss: float  # the total that was minimised


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch is trained and measured."""

    epoch: int
    epochs: int
    metrics: Metrics
    records: Records
