"""The only loop. It knows no method and no file.

A trainer is a generator of events: a `Step` after every optimisation step, an `Epoch` after every
evaluation. Whoever logs, draws a progress bar, saves or stops early writes an ordinary `for`.
At every event `state()` is complete: a trainer that loads it goes on to the same bits.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.flop_counter import FlopCounterMode

from unswayed.data import Dataset, Splits, stratified_split
from unswayed.data.stores import Store
from unswayed.errors import NonFiniteLossError, UsageError
from unswayed.learners import Learner, Network
from unswayed.optimizers import Optimizer
from unswayed.randomness import permutation
from unswayed.schedules import Schedule, value_at
from unswayed.training.evaluate import Rows, accuracy, memorisation, predictions, probabilities
from unswayed.training.optimization import Optimization
from unswayed.training.records import Records
from unswayed.training.settings import Settings
from unswayed.types import Batch, Epoch, Overview, Step, Terms, Views
from unswayed.views import Policy

WARM_UP, TIMED = 2, 5
"""Steps made before the clock is looked at, and steps that are timed, to tell an epoch's cost."""


class Cost(NamedTuple):
    """What something takes."""

    flops: int
    seconds: float


class Trainer:
    """Trains a learner on a data set, and measures it after every epoch."""

    def __init__(
        self,
        learner: Learner,
        policy: Policy,
        train: Dataset,
        test: Dataset | None,
        settings: Settings,
        optimizer: Optimizer,
        schedule: Schedule,
        device: torch.device | None = None,
    ) -> None:
        self.settings, self.policy, self.train, self.test = settings, policy, train, test
        self.device = device or torch.device("cpu")
        self.learner = learner.to(self.device).to(memory_format=torch.channels_last)
        if settings.compile != "off":
            for part in learner.classifier.parts:
                part.backbone.compile(mode=settings.compile)
        self.rows, self.holdout = stratified_split(
            train.given, train.keys, settings.holdout, settings.seed, "holdout"
        )
        self.steps = _steps(len(self.rows), settings)
        self.optimization = Optimization(self.learner, optimizer, schedule, settings, self.steps)
        self.average = (
            AveragedModel(
                learner.classifier,
                multi_avg_fn=get_ema_multi_avg_fn(settings.ema),  # type: ignore[no-untyped-call]
                use_buffers=True,
            )
            if settings.ema
            else None
        )
        self.given = torch.from_numpy(train.given).to(self.device)
        wrong = np.zeros(len(train), bool) if train.true is None else train.given != train.true
        self.wrong_rows = self.rows[wrong[self.rows]]
        self.epoch = self.step_in_epoch = 0
        self.seconds = 0.0
        self.flops = self.step_flops = 0
        self._start_epoch()

    @property
    def splits(self) -> Splits:
        """What is trained and tested on."""
        return Splits(self.train, self.test)

    @property
    def classifier(self) -> Network:
        """The network that is evaluated and shipped."""
        net = self.learner.classifier if self.average is None else self.average.module
        assert isinstance(net, Network)
        return net

    def events(self) -> Iterator[Step | Epoch]:
        """Train from where the state is to the last epoch."""
        clock = time.perf_counter()
        while self.epoch < self.settings.epochs:
            if self.step_in_epoch == 0:
                self._before_epoch()
            order = self._order()
            while self.step_in_epoch < self.steps:
                loss = self._step(order)
                self.seconds += time.perf_counter() - clock
                yield Step(self.epoch, self.step_in_epoch, self.steps, self.settings.epochs, loss)
                clock = time.perf_counter()
            done = self.epoch
            metrics, self.finished = self._metrics(), self.records
            self.epoch, self.step_in_epoch = done + 1, 0
            self._start_epoch()
            self.seconds += time.perf_counter() - clock
            metrics |= {"flops": self.flops, "seconds": round(self.seconds, 3)}
            yield Epoch(done, self.settings.epochs, metrics)
            clock = time.perf_counter()

    def epochs(self) -> Iterator[Epoch]:
        """Train, and yield epochs only."""
        return (event for event in self.events() if isinstance(event, Epoch))

    def epoch_cost(self, epoch: int, *, timed: bool) -> Cost:
        """Return what this epoch costs, from a few real steps; the trainer is of no use afterwards.

        Args:
            epoch: from 0.
            timed: whether to look at the clock, which takes more steps and an evaluation.
        """
        self.epoch, self.flops = epoch, 0
        started = time.perf_counter()
        self._before_epoch()
        before, seconds = self.flops, time.perf_counter() - started
        steps, warm_up = (TIMED, WARM_UP) if timed else (1, 0)
        order = self._order()
        for number in range(min(steps + warm_up, self.steps)):
            if number == min(warm_up, self.steps - 1):
                started = time.perf_counter()
            self._step(order)
        each = (time.perf_counter() - started) / max(1, min(steps, self.steps - warm_up))
        flops = before + self.step_flops * self.steps
        started = time.perf_counter()
        if timed:
            if self.settings.compile != "off":  # the first one compiles, and is none of an epoch
                self._evaluate()
                started = time.perf_counter()
            self._evaluate()
        evaluation = (time.perf_counter() - started) / self.settings.evaluate_every
        self.step_in_epoch = 0
        return Cost(flops, seconds + each * self.steps + evaluation)

    def _before_epoch(self) -> None:
        """Let the learner look at the whole training set; what it learns is in its state."""
        self.optimization.begin_epoch(self.epoch)
        to = self.device

        def look(net: nn.Module, rows: Tensor) -> Tensor:
            return probabilities(net, self.train, rows.cpu().numpy()).to(to)

        rows, holdout = (torch.from_numpy(rows).to(to) for rows in (self.rows, self.holdout))
        overview = Overview(
            self.epoch, self.settings.epochs, self.given, rows, holdout, self.classifier, look
        )
        with self._counter() as counter:
            self.learner.before_epoch(overview)
        self.flops += counter.get_total_flops()

    def _start_epoch(self) -> None:
        self.records = Records.empty(len(self.train), self.device)
        self.sums: dict[str, float] = defaultdict(float)

    def _order(self) -> Rows:
        keys = self.train.keys[self.rows]
        return self.rows[permutation(self.settings.seed, "order", keys, self.epoch)]

    def _prefetch(self, rows: Rows) -> None:
        if isinstance(self.train.images, Store):
            self.train.images.prefetch(torch.from_numpy(rows))

    def batch(self, rows: Rows) -> Batch:
        """Return these rows as the learner would see them now."""
        return self._batch(rows, rows[:0])

    def _batch(self, rows: Rows, following: Rows) -> Batch:
        index = torch.from_numpy(rows)
        images = self.train.images[index].to(self.device)
        self._prefetch(following)
        index = index.to(self.device)
        views = self.policy(
            images,
            self.train.keys[rows],
            self.epoch,
            weak=self.learner.views != "two strong",
            strong=self.learner.views in ("strong", "two strong"),
            again=self.learner.views == "two weak",
        )
        progress = self.settings.progress(self.epoch, self.step_in_epoch, self.steps)
        return Batch(views, self.given[index], index, self.epoch, progress)

    def _shrunk(self, batch: Batch) -> Batch:
        """Return the batch with its images at the size of this epoch."""
        share = value_at(self.settings.side, self.epoch / self.settings.epochs)
        views, whole = batch.views, batch.views.weak.shape[2:]
        size = [max(1, round(share * side)) for side in whole]
        if size == list(whole):
            return batch

        def smaller(x: Tensor) -> Tensor:
            return F.interpolate(x, size, mode="bilinear", antialias=True)

        strong, again = (tuple(map(smaller, those)) for those in (views.strong, views.again))
        return replace(batch, views=Views(smaller(views.weak), strong, again))

    def _step(self, order: Rows) -> float:
        size, number = self.settings.batch_size, self.step_in_epoch
        rows = order[number * size : (number + 1) * size]
        batch = self._batch(rows, order[(number + 1) * size : (number + 2) * size])
        if number == 0:
            self.step_flops = 0
        self.learner.train()
        self.learner.before_step(batch.progress)
        with self._counted(number):
            terms = self._backward(self._shrunk(batch))
        norm = self.optimization.clip()
        named = {"total": terms.total.detach(), "norm": norm, **terms.parts}
        # All numbers at once: each of them alone would let the CPU wait for a GPU.
        values = torch.stack([value.to(norm) for value in named.values()]).tolist()
        found = dict(zip(named, values, strict=True))
        self._check(terms, found, rows)
        with self._counted(number):
            self.optimization.step(self.epoch, number, batch.progress)
        if self.average is not None:
            self.average.update_parameters(self.learner.classifier)
        self.records.note(batch, terms)
        for name in ("total", *terms.parts):
            self.sums[name] += found[name]
        self.flops += self.step_flops
        self.step_in_epoch += 1
        self.policy.recycle(batch.views)
        return float(found["total"])

    def _backward(self, batch: Batch) -> Terms:
        """Return what the learner answers, with gradients."""
        self.optimization.zero_grad()
        with self._autocast():
            terms: Terms = self.learner(batch)
        terms.total.backward()  # type: ignore[no-untyped-call]
        return terms

    def _autocast(self) -> torch.autocast:
        return torch.autocast(
            self.device.type, torch.bfloat16, enabled=self.settings.precision == "bf16"
        )

    @contextmanager
    def _counted(self, step: int) -> Iterator[None]:
        """Count the operations inside, in the first step of an epoch for all of them."""
        if step > 0:
            yield
            return
        with self._counter() as counter:
            yield
        self.step_flops += counter.get_total_flops()

    @contextmanager
    def _counter(self) -> Iterator[FlopCounterMode]:
        """Count operations; what is compiled into one kernel is counted while it is not."""
        compiled = self.settings.compile != "off"
        stance = torch.compiler.set_stance("force_eager") if compiled else nullcontext()
        with FlopCounterMode(display=False) as counter, stance:
            yield counter

    def _check(self, terms: Terms, found: Mapping[str, float], rows: Rows) -> None:
        """Stop before an update that could only be regretted."""
        if not math.isfinite(found["total"]):
            bad = ~torch.isfinite(terms.losses).cpu().numpy()
            self._stop("loss", rows[bad] if bad.any() else rows)
        if not math.isfinite(found["norm"]):
            self._stop("gradient", rows)

    def _stop(self, what: str, rows: Rows) -> None:
        ids = [self.train.ids[row] for row in rows]
        raise NonFiniteLossError(what, self.epoch + 1, self.step_in_epoch + 1, ids)

    def _metrics(self) -> dict[str, Any]:
        last = self.epoch + 1 == self.settings.epochs
        seen = self.records.predicted[torch.from_numpy(self.rows)].cpu().numpy()
        known = seen >= 0
        metrics: dict[str, Any] = {
            "epoch": self.epoch,
            "lr": self.optimization.rate(self.epoch, self.steps - 1),
            "terms": {name: total / self.steps for name, total in self.sums.items()},
            "train_accuracy": accuracy(seen[known], self.train.given[self.rows][known]),
        }
        if last or (self.epoch + 1) % self.settings.evaluate_every == 0:
            metrics |= self._evaluate()
        return metrics

    def _evaluate(self) -> dict[str, float]:
        with self._autocast():  # which halves the time, and turns one prediction in thousands
            return self._measured()

    def _measured(self) -> dict[str, float]:
        net, train, found = self.classifier, self.train, {}
        if self.test is not None:
            found["test_accuracy"] = accuracy(predictions(net, self.test), self.test.given)
        if len(self.holdout):
            guess = predictions(net, train, self.holdout)
            found["holdout_accuracy"] = accuracy(guess, train.given[self.holdout])
        if len(self.wrong_rows) and train.true is not None:
            rows = self.wrong_rows
            split = memorisation(predictions(net, train, rows), train.given[rows], train.true[rows])
            found |= {f"wrong_{name}": share for name, share in split._asdict().items()}
        return found

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all tensors and all plain values that the rest of the training depends on.

        A state that could only be regretted is not returned: weights that are not finite raise.
        """
        if not all(bool(torch.isfinite(p).all()) for p in self.learner.parameters()):
            self._stop("network", self.rows)
        tensors = {f"learner.{k}": v for k, v in self.learner.state_dict().items()}
        tensors |= {f"optimizer.{k}": v for k, v in self.optimization.state().items()}
        tensors |= {f"records.{k}": v for k, v in self.records._asdict().items()}
        if self.average is not None:
            tensors |= {f"average.{k}": v for k, v in self.average.state_dict().items()}
        plain = {
            "epoch": self.epoch,
            "step": self.step_in_epoch,
            "seconds": self.seconds,
            "flops": self.flops,
            "step_flops": self.step_flops,
            "sums": dict(self.sums),
        }
        return tensors, plain

    def load_state(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Go on from what `state` returned."""

        def part(name: str) -> dict[str, Tensor]:
            return {k[len(name) + 1 :]: v for k, v in tensors.items() if k.startswith(f"{name}.")}

        self.learner.load_state_dict(part("learner"))
        self.optimization.load_state(part("optimizer"))
        if self.average is not None:
            self.average.load_state_dict(part("average"))
        self.epoch, self.step_in_epoch = plain["epoch"], plain["step"]
        self.seconds = plain["seconds"]
        self.flops, self.step_flops = plain.get("flops", 0), plain.get("step_flops", 0)
        self._start_epoch()
        self.records = Records(**{k: v.to(self.device).clone() for k, v in part("records").items()})
        self.sums.update(plain["sums"])


def _steps(num_rows: int, settings: Settings) -> int:
    size = settings.batch_size
    if num_rows < size and settings.drop_last:
        raise UsageError(
            f"there are fewer training samples ({num_rows}) than train.batch_size ({size}); "
            f"set train.batch_size={max(2, 2 ** (num_rows.bit_length() - 2))} or less"
        )
    if not settings.drop_last and num_rows % size == 1:
        raise UsageError(
            f"the last batch of {num_rows} samples would hold one image, too few for batch norm; "
            f"set train.drop_last=true or another train.batch_size than {size}"
        )
    return num_rows // size if settings.drop_last else -(-num_rows // size)
