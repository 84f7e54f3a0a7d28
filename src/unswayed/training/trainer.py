"""The only training loop. It knows no method and writes no file.

A trainer yields events: a `Step` after every optimisation step, an `Epoch` after every epoch. To
log, show progress, save or stop early, write an ordinary `for` loop over them. At every event
`state()` is complete: a trainer that loads it continues to the same bits.
"""

from __future__ import annotations

import inspect
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel

from unswayed import processes
from unswayed.data import Splits
from unswayed.device import sent
from unswayed.errors import NonFiniteLossError
from unswayed.learners import Learner, Network
from unswayed.models.norms import share_norms
from unswayed.optimizers import Optimizer
from unswayed.schedules import Schedule
from unswayed.training.batches import Batches, Rows
from unswayed.training.cost import Flops
from unswayed.training.measure import Measurement, accuracy, probability_batches
from unswayed.training.optimization import Optimization
from unswayed.training.records import Recorder
from unswayed.training.settings import Settings
from unswayed.types import Batch, Epoch, Metrics, Overview, Step, Terms
from unswayed.views.policy import Policy


class Trainer:
    """Trains a learner on a data set, and measures it after every epoch."""

    def __init__(
        self,
        learner: Learner,
        policy: Policy,
        splits: Splits,
        settings: Settings,
        optimizer: Optimizer,
        schedule: Schedule,
        device: torch.device | None = None,
    ) -> None:
        """Put the parts together; no step is made yet.

        Args:
            learner: what is trained.
            policy: makes the views that the learner asks for.
            splits: the training and test data.
            settings: the section `train` of a recipe.
            optimizer: makes the steps.
            schedule: multiplies the learning rate.
            device: the CPU if not given.
        """
        self.settings, self.splits = settings, splits
        self.train, self.test = splits
        self.device = device or torch.device("cpu")
        self.learner = learner.to(self.device).to(memory_format=torch.channels_last)
        if settings.compile != "off":
            for part in learner.classifier.parts:
                part.backbone.compile(mode=settings.compile)
        self.model: nn.Module = self.learner
        if processes.count() > 1:
            share_norms(learner)
            self.model = _shared(learner)
        self.batches = Batches(self.train, policy, learner.views, settings, self.device)
        self.rows, self.holdout = self.batches.rows, self.batches.holdout
        self.steps = self.batches.steps
        self.optimization = Optimization(self.learner, optimizer, schedule, settings, self.steps)
        self.average = _Average(learner.classifier, settings.ema) if settings.ema else None
        self.measurement = Measurement(self.train, self.test, self.rows, self.holdout)
        self.flops = Flops(compiled=settings.compile != "off")
        self.epoch = self.step = 0
        self.seconds = 0.0
        self._start_epoch()

    @property
    def classifier(self) -> Network:
        """The network that is evaluated and saved."""
        net = self.learner.classifier if self.average is None else self.average.module
        assert isinstance(net, Network)
        return net

    def events(self) -> Iterator[Step | Epoch]:
        """Train from the current state to the last epoch, and yield events."""
        clock = _Clock()
        while self.epoch < self.settings.epochs:
            if self.step == 0:
                self.before_epoch()
            while self.step < self.steps:
                loss = self.make_step()
                self.seconds += clock.passed()
                yield Step(self.epoch, self.step, self.steps, self.settings.epochs, loss)
                clock.passed()  # what is done with an event is not counted
            done, found, records = self.epoch, self._epoch_numbers(), self.recorder.records
            self.epoch, self.step = done + 1, 0
            self._start_epoch()
            self.seconds += clock.passed()
            seconds = round(self.seconds, 3)
            metrics = Metrics(epoch=done, flops=self.flops.total, seconds=seconds, **found)
            yield Epoch(done, self.settings.epochs, metrics, records)
            clock.passed()

    def epochs(self) -> Iterator[Epoch]:
        """Train, and yield epochs only."""
        return (event for event in self.events() if isinstance(event, Epoch))

    def before_epoch(self) -> None:
        """Let the learner evaluate the whole training set."""
        self.optimization.begin_epoch(self.epoch)
        to = self.device

        def batches(net: nn.Module, rows: Tensor) -> Iterator[Tensor]:
            for p in probability_batches(net, self.train, rows.cpu().numpy()):
                yield p.to(to)

        rows, holdout = (torch.from_numpy(rows).to(to) for rows in (self.rows, self.holdout))
        given, net = self.batches.given, self.classifier
        with self.flops.counted():
            self.learner.before_epoch(
                Overview(self.epoch, self.settings.epochs, given, rows, holdout, net, batches)
            )

    def make_step(self) -> float:
        """Make one step, and return the loss that it minimised."""
        batch = self.batches(self.epoch, self.step)
        if self.step == 0:
            self.flops.step = 0
        self.learner.train()
        self.learner.before_step(batch.progress)
        with self.flops.counted_in_step(self.step, shared=True):
            terms = self._backward(batch)
        found = self._checked(terms, batch)
        with self.flops.counted_in_step(self.step):
            self.optimization.step(self.epoch, self.step)
        if self.average is not None:
            self.average.update_parameters(self.learner.classifier)
        self.recorder.note(batch, terms)
        for name, value in found.items():
            self.sums[name] += value
        self.flops.total += self.flops.step
        self.step += 1
        self.batches.policy.recycle(batch.views)
        return found["total"]

    def _backward(self, batch: Batch) -> Terms:
        """Run the learner forward and backward, and return its terms."""
        self.optimization.zero_grad()
        seen = replace(batch, views=self.batches.shrunk(batch.views, self.epoch))
        with self.autocast(), processes.sharing(len(batch.index)):
            terms: Terms = self.model(seen)
        # Gradients of several processes are averaged; those of their rows must be added up.
        (terms.total * processes.count()).backward()  # type: ignore[no-untyped-call]
        return terms

    def _checked(self, terms: Terms, batch: Batch) -> dict[str, float]:
        """Return the named losses as numbers; raise if loss or gradient is not finite."""
        norm = self.optimization.clip()
        named = {"total": terms.total.detach(), **terms.parts, "norm": norm}
        # All numbers at once: each of them alone would let the CPU wait for a GPU.
        single = [sent(value, norm.device).to(norm.dtype) for value in named.values()]
        values = torch.stack(single).tolist()
        found: dict[str, float] = dict(zip(named, values, strict=True))
        finite = math.isfinite(found["total"])
        if not (finite and math.isfinite(found.pop("norm"))):
            rows = batch.index.cpu().numpy()  # only now: a GPU would be waited for in every step
            if finite:
                self._stop("gradient", rows)
            bad = ~torch.isfinite(terms.losses).cpu().numpy()
            self._stop("loss", rows[bad] if bad.any() else rows)
        return found

    def _stop(self, what: str, rows: Rows) -> None:
        ids = [self.train.ids[row] for row in rows]
        raise NonFiniteLossError(what, self.epoch + 1, self.step + 1, ids)

    def autocast(self) -> torch.autocast:
        """Return a context with the precision of the training."""
        return torch.autocast(
            self.device.type, torch.bfloat16, enabled=self.settings.precision == "bf16"
        )

    def measure(self) -> dict[str, float]:
        """Measure the current network."""
        with self.autocast():  # which halves the time, and turns one prediction in thousands
            return self.measurement(self.classifier)

    def _start_epoch(self) -> None:
        self.recorder = Recorder(len(self.train), self.device)
        self.sums: dict[str, float] = defaultdict(float)

    def _epoch_numbers(self) -> dict[str, Any]:
        last = self.epoch + 1 == self.settings.epochs
        seen = self.recorder.records.predicted[torch.from_numpy(self.rows)].cpu().numpy()
        known = seen >= 0
        due = last or (self.epoch + 1) % self.settings.evaluate_every == 0
        return {
            "lr": self.optimization.rate(self.epoch, self.steps - 1),
            "terms": {name: total / self.steps for name, total in self.sums.items()},
            "train_accuracy": accuracy(seen[known], self.train.given[self.rows][known]),
            **(self.measure() if due else {}),
        }

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all tensors and all plain values that the rest of the training depends on.

        Weights that are not finite raise an error, so that they are never saved.
        """
        if not all(bool(torch.isfinite(p).all()) for p in self.learner.parameters()):
            self._stop("network", self.rows)
        parts: dict[str, Mapping[str, Tensor]] = {
            "learner": self.learner.state_dict(),
            "optimizer": self.optimization.state(),
            "records": self.recorder.state_dict(),
            "average": {} if self.average is None else self.average.state_dict(),
        }
        tensors = {f"{part}.{k}": v for part, of in parts.items() for k, v in of.items()}
        plain = {
            "epoch": self.epoch,
            "step": self.step,
            "seconds": self.seconds,
            "flops": self.flops.total,
            "step_flops": self.flops.step,
            "sums": dict(self.sums),
        }
        return tensors, plain

    def load_state(self, tensors: Mapping[str, Tensor], plain: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""

        def part(name: str) -> dict[str, Tensor]:
            return {k[len(name) + 1 :]: v for k, v in tensors.items() if k.startswith(f"{name}.")}

        self._start_epoch()
        self.learner.load_state_dict(part("learner"))
        self.optimization.load_state(part("optimizer"))
        self.recorder.load_state_dict(part("records"))
        if self.average is not None:
            self.average.load_state_dict(part("average"))
        self.epoch, self.step, self.seconds = plain["epoch"], plain["step"], plain["seconds"]
        self.flops.total, self.flops.step = plain["flops"], plain["step_flops"]
        self.sums.update(plain["sums"])


class _Clock:
    """Tells how much time has passed since it was asked before; never less than none."""

    def __init__(self) -> None:
        self.before = time.perf_counter()

    def passed(self) -> float:
        now = time.perf_counter()
        self.before, seconds = now, max(0.0, now - self.before)
        return seconds


def _shared(learner: Learner) -> DistributedDataParallel:
    """Return a learner whose gradients are averaged over processes.

    If parameters may be unused, buckets of gradients are never arranged anew: a resumed training
    adds up in the same order. Buffers are equal in all processes already.
    """
    known = inspect.signature(DistributedDataParallel).parameters
    new = "forward_sync_buffers"  # its name since PyTorch 2.15
    sync: dict[str, Any] = {new if new in known else "broadcast_buffers": False}
    return DistributedDataParallel(learner, find_unused_parameters=True, **sync)


class _Average(AveragedModel):
    """A moving average of a network's weights and buffers; it begins with those of the first step.

    PyTorch's own sends the number of steps to a GPU in every step, and waits for it.
    """

    def __init__(self, network: Network, decay: float) -> None:
        super().__init__(network, use_buffers=True)
        self.decay = decay

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        """Move towards a network."""
        both = ([*net.parameters(), *net.buffers()] for net in (self.module, model))
        pairs: list[tuple[Tensor, Tensor]] = list(zip(*both, strict=True))
        real = [(moved, new) for moved, new in pairs if moved.is_floating_point()]
        counts = [(moved, new) for moved, new in pairs if not moved.is_floating_point()]
        if self.n_averaged == 0:
            for moved, new in pairs:
                moved.copy_(new)
        else:
            torch._foreach_lerp_([m for m, _ in real], [n for _, n in real], 1 - self.decay)
            for moved, new in counts:
                moved.copy_(moved * self.decay + new * (1 - self.decay))
        self.n_averaged += 1
