"""Two and three processes train what one does: losses, gradients, weights after 20 steps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from unswayed import methods
from unswayed.files import read_tensors

TRACE = Path(__file__).with_name("trace.py")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
SMALL = "framework.projector_widths=[16,16]"
HEADS = f"{SMALL} framework.predictor_hidden=8"
FRAMEWORKS = {"simsiam": HEADS, "byol": HEADS, "simclr": SMALL}
# With a small τ, pairs are selected from the first step on.
FORMS = {
    "eq1": "supervised",
    "eq4": "inner_product regularizer.tau=0.05",
    "eq6": "ctrr regularizer.tau=0.05",
}

PAIRS = {
    f"{framework}-{form}": f"framework.name={framework} {heads} regularizer.name={regularizer} "
    "regularizer.weight=2.0"
    for framework, heads in FRAMEWORKS.items()
    for form, regularizer in FORMS.items()
}
JOINED = {
    "joined": f"{PAIRS['simsiam-eq6']} learner.joined=true",
    "label-on-strong": f"{PAIRS['simclr-eq6']} learner.label_view=strong",
}
TOLERANCE = {"frozen": 1e-12, "shared": 1e-10}


def heads_of(method: str) -> str:
    framework = methods.get(method).options.get("framework.name")
    return FRAMEWORKS.get(framework, "")


EVERY_METHOD = {name: f"method={name} {heads_of(name)}" for name in methods.names()}


def traced(folder: Path, cases: dict[str, str], processes: int = 1):
    """Return what each case, MODE/NAME, did in so many processes."""
    out = folder / str(processes)
    out.mkdir()
    words = [str(TRACE), str(out), *(f"{k}={v}" for k, v in cases.items())]
    start = [sys.executable] if processes == 1 else [*TORCHRUN, str(processes)]
    done = subprocess.run([*start, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return {name: read_tensors(out / f"{name}.safetensors")[0] for name in cases}


def furthest(one, many) -> float:
    """Return the largest difference, as a share of the largest number of its kind or of 1.

    Compared in groups: a bias before a batch norm has a gradient of 0 but for rounding.
    """
    assert one.keys() == many.keys()
    scale: dict[str, float] = {}
    for name, value in one.items():
        kind = name.split()[0]
        size = float(value.double().nan_to_num().abs().max()) if value.numel() else 0.0
        scale[kind] = max(scale.get(kind, 0.0), min(size, 1.0))
    worst = 0.0
    for name, value in one.items():
        a, b = value.double(), many[name].double()
        assert a.isnan().equal(b.isnan()), name
        if value.numel():
            apart = float((a - b).nan_to_num().abs().max())
            worst = max(worst, apart / max(scale[name.split()[0]], 1e-6))
    return worst


def check(folder, mode, cases, numbers):
    named = {f"{mode}/{name}": overrides for name, overrides in cases.items()}
    one = traced(folder, named)
    for number in numbers:
        many = traced(folder, named, number)
        apart = {name: furthest(one[name], many[name]) for name in named}
        assert max(apart.values()) <= TOLERANCE[mode], (number, apart)


@pytest.fixture(scope="module")
def one_and_two(tmp_path_factory):
    """What some cases do in one process and in two; the last one does it as most code does."""
    some = {"simsiam-eq6": PAIRS["simsiam-eq6"], "simclr-eq6": PAIRS["simclr-eq6"]}
    some["coteaching"] = EVERY_METHOD["coteaching"]
    cases = {f"shared/{name}": overrides for name, overrides in some.items()}
    cases |= {f"{mode}/alone": PAIRS["simsiam-eq6"] for mode in ("frozen", "naive")}
    folder = tmp_path_factory.mktemp("traces")
    return traced(folder, cases), traced(folder, cases, 2)


def test_two_processes_train_what_one_does(one_and_two):
    one, two = one_and_two
    for mode, tolerance in TOLERANCE.items():
        apart = {name: furthest(one[name], two[name]) for name in one if name.startswith(mode)}
        assert max(apart.values()) <= tolerance, apart


def test_pairs_of_a_process_alone_are_not_enough(one_and_two):
    """The usual way: this test shows that the others could fail."""
    right, wrong = one_and_two[0]["frozen/alone"], one_and_two[1]["naive/alone"]
    gradients = [
        {k: v for k, v in each.items() if k.startswith("gradient")} for each in (right, wrong)
    ]
    assert furthest(*gradients) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["frozen", "shared"])
def test_every_framework_and_regularizer(tmp_path, mode):
    check(tmp_path, mode, {**PAIRS, **JOINED}, (2, 3))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["frozen", "shared"])
def test_every_method(tmp_path, mode):
    check(tmp_path, mode, EVERY_METHOD, (2, 3))
