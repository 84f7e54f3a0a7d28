"""Whole trainings on a device other than the CPU: same numbers, and when the CPU waits for it.

No GPU is needed: `pretend.py` is a device to PyTorch. It refuses what CUDA refuses.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from unswayed import methods
from unswayed.models import MODELS
from unswayed.optimizers import OPTIMIZERS

SCRIPT = Path(__file__).with_name("trained.py")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
SMALL = "framework.projector_widths=[16,16]"
HEADS = f"{SMALL} framework.predictor_hidden=8"
FRAMEWORKS = {"simsiam": HEADS, "byol": HEADS, "simclr": SMALL}
REGULARIZERS = ("ctrr", "inner_product", "supervised")

EARLY = {
    "coteaching": "learner.gradual=1",
    "ctrr-lc": "learner.correction.start=0.5",
    "dividemix": "learner.warmup=0.5 learner.history=2",
    "jocor": "learner.gradual=1",
    "limit": "learner.sample=true",
    "limit-laplace": "learner.sample=true",
    "negative-label-smoothing": "loss.start=0.5",
    "sln-mo-lc": "learner.correction.start=0.5",
    "supcon": "learner.projector_widths=[16,16]",
    "truncated-gce": "loss.start=0.5 loss.every=1",
}
"""So that everything a method does happens within four epochs of two steps."""


def of_method(name: str) -> str:
    framework = methods.get(name).options.get("framework.name")
    return f"method={name} {FRAMEWORKS.get(framework, '')} {EARLY.get(name, '')}"


CTRR = of_method("ctrr")
METHODS = {name: of_method(name) for name in methods.names()}
PAIRS = {
    f"{framework} {regularizer}": f"method=ctrr framework.name={framework} {heads} "
    f"regularizer.name={regularizer} regularizer.weight=2.0"
    for framework, heads in FRAMEWORKS.items()
    for regularizer in REGULARIZERS
}
OPTIONS = {
    "joined views": f"{CTRR} learner.joined=true",
    "labels on strong views": f"{CTRR} learner.label_view=strong",
    "affine colours and blur": f"{CTRR} views.strong.colour=affine views.strong.blur=0.5",
    "blur": f"{CTRR} views.strong.blur=0.5",
    "padded crops": "method=ce views.weak.name=padded_crop views.weak.edge=reflect",
    "one-sided": f"{CTRR} framework.symmetric=false framework.bn_stats=weak",
    "smaller images": f"{CTRR} train.side=0.5",
    "average of weights": "method=ce train.ema=0.9",
    "clipping": "method=ce train.clip_norm=0.5",
    "no hold-out": "method=coteaching learner.gradual=1 train.holdout=0.0",
    "a ramp of q": 'method=gce loss.q={name="ramp",start=0.1,end=0.7}',
    "a known matrix": "method=backward loss.matrix=known",
    **{f"optimizer {name}": f"{CTRR} optimizer.name={name}" for name in OPTIMIZERS.names()},
    **{f"model {name}": f"method=ce model.name={name}" for name in MODELS.names()},
}
HALF = {f"{name} in bf16": f"{words} train.precision=bf16" for name, words in METHODS.items()}

WAITS = defaultdict(lambda: [1], {"sln": [2], "sln-mo": [2], "sln-mo-lc": [1, 2]})
"""How often the CPU waits for the device in the steps; once for the losses as numbers."""

WRONG = ("left_behind", "kept_behind", "curious", "choosy")


def traced(folder: Path, cases: dict[str, str], processes: int = 1):
    """Return what each case did, by name."""
    out = folder / f"{processes}.json"
    start = [sys.executable] if processes == 1 else [*TORCHRUN, str(processes)]
    words = [str(SCRIPT), str(out), *(f"{name}={words}" for name, words in cases.items())]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}
    done = subprocess.run(
        [*start, *words], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(out.read_text())


def check(found):
    for name, case in found.items():
        assert "error" not in case, f"{name}: {case['error']}"
        method, _, half = name.partition(" in ")
        # What a method learns between epochs is looked up in single precision.
        assert ("torch.bfloat16" in case["convolved"]) == bool(half), name
        here, there = case["first"]
        assert abs(here - there) <= (0.001 * abs(here) if half else 0), name
        # The device's numbers are the CPU's, but its autocast is that of CUDA.
        assert case["same"] or half, name
        assert case["resumed"], name
        assert sorted({*case["waits"]}) == WAITS[method], (name, case["waits"], case["places"])


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    words = {name: f"method=ce loss.name={name} train.epochs=2" for name in WRONG}
    words |= {"ctrr-posterior": METHODS["ctrr-posterior"], "ce in bf16": HALF["ce in bf16"]}
    return traced(tmp_path_factory.mktemp("traced"), words)


def test_a_step_on_a_device_waits_for_it_once_and_makes_the_same_numbers(some):
    check({name: case for name, case in some.items() if name not in WRONG})


def test_what_is_wrong_on_a_device_is_found(some):
    """Losses that make the mistakes: this shows that the other tests could fail."""
    here_and_there = "aten.mul.Tensor: tensors on the device and on the CPU"
    assert here_and_there in some["left_behind"]["error"]
    assert "an index on the device for a tensor on the CPU" in some["kept_behind"]["error"]
    assert set(some["curious"]["waits"]) == {2}
    assert set(some["choosy"]["waits"]) == {3}


def in_parts(cases, number=4):
    names = list(cases)
    return [{name: cases[name] for name in names[part::number]} for part in range(number)]


@pytest.mark.slow
@pytest.mark.parametrize("cases", in_parts(METHODS), ids=range(4))
def test_every_method(tmp_path, cases):
    check(traced(tmp_path, cases))


@pytest.mark.slow
@pytest.mark.parametrize("cases", in_parts(HALF), ids=range(4))
def test_every_method_in_half_precision(tmp_path, cases):
    check(traced(tmp_path, cases))


@pytest.mark.slow
@pytest.mark.parametrize("cases", in_parts({**PAIRS, **OPTIONS}), ids=range(4))
def test_every_framework_regularizer_optimizer_model_and_option(tmp_path, cases):
    check(traced(tmp_path, cases))


@pytest.mark.slow
@pytest.mark.parametrize("cases", in_parts(METHODS), ids=range(4))
def test_every_method_in_two_processes(tmp_path, cases):
    check(traced(tmp_path, cases, 2))
