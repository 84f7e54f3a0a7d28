"""Train image classifiers that wrong labels do not sway.

`train(recipe) -> Run` does the whole job; every part can be used in your own loop, and the losses
as plain functions are in `unswayed.functional`.
"""

__version__ = "0.1.0"

from unswayed import functional
from unswayed.build import evaluate, resume, train
from unswayed.data import Dataset, Splits
from unswayed.errors import InterruptedRunError, NonFiniteLossError, UsageError
from unswayed.recipe import Recipe
from unswayed.training.run import Run

__all__ = [
    "Dataset",
    "InterruptedRunError",
    "NonFiniteLossError",
    "Recipe",
    "Run",
    "Splits",
    "UsageError",
    "__version__",
    "evaluate",
    "functional",
    "resume",
    "train",
]
