"""Keep an audit in its run folder, so that reviewing and exporting need not judge again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unswayed.audits.result import FLAGS, Audit, Bin, NoiseEstimate
from unswayed.errors import DamagedFileError, UsageError
from unswayed.files import read_tensors, write_tensors
from unswayed.runs import Run

FILE = "audit.safetensors"
ARRAYS = ("given", "suggested", "p_wrong", "p_suggested", "top", "p_top", "nearest")
JOINTS = ("joint", "joint_low", "joint_high")


def write_audit(found: Audit, run: Run) -> None:
    """Write an audit of a run into its folder; ids and classes are there already."""
    noise = found.noise
    named = [(name, getattr(found, name)) for name in ARRAYS]
    named += [(name, getattr(noise, name)) for name in JOINTS]
    tensors = {name: _tensor(values) for name, values in named if values is not None}
    tensors["flags"] = torch.from_numpy(_bits(found))
    tensors["groups"] = torch.tensor([row for group in found.groups for row in group]).int()
    tensors["group_sizes"] = torch.tensor([len(group) for group in found.groups]).int()
    note = {
        "rate": [noise.rate, noise.low, noise.high],
        "evidence": found.evidence,
        "qualities": dict(found.qualities),
        "reliability": [list(each) for each in found.reliability],
        "warnings": list(found.warnings),
    }
    write_tensors(run.path / FILE, tensors, note)


def read_audit(run: Run) -> Audit:
    """Return the audit that was kept in a run folder; what each evidence says alone is not kept.

    >>> import unswayed
    >>> from unswayed.audits.storage import read_audit, write_audit
    >>> run = unswayed.train("digits", "train.epochs=1", "data.size=8", run="runs/short")
    >>> write_audit(unswayed.audit(run), run)
    >>> len(read_audit(run)) == run.provenance.data.samples
    True
    """
    file = run.path / FILE
    if not run.finished:
        raise UsageError(
            f"{run.path} is not finished; give the command that started it once more, or: unswayed "
            f"resume {shlex.quote(str(run.path))}, and then unswayed audit"
        )
    if not file.is_file():
        raise UsageError(
            f"{run.path} has no audit; make one with: unswayed audit {shlex.quote(str(run.path))}"
        )
    tensors, note = read_tensors(file)
    ids, classes = [str(name) for name in run.samples().ids], run.provenance.data.classes
    try:
        arrays = {name: tensors[name].numpy() for name in tensors}
        given = arrays["given"].astype(np.int64)
        if len(given) != len(ids):
            raise UsageError(f"{file} judges {len(given)} labels, the run has {len(ids)}; audit it")
        _check(arrays, len(ids), len(classes))
        joints = [arrays[name].astype(np.float64) for name in JOINTS]
        rate, low, high = map(float, note["rate"])
        return Audit(
            ids=ids,
            classes=classes,
            given=given,
            suggested=arrays["suggested"].astype(np.int64),
            p_wrong=arrays["p_wrong"],
            p_suggested=arrays["p_suggested"],
            noise=NoiseEstimate(rate, low, high, *joints),
            evidence=str(note["evidence"]),
            qualities={name: float(each) for name, each in dict(note["qualities"]).items()},
            flags=_words(arrays["flags"]),
            top=arrays.get("top"),
            p_top=arrays.get("p_top"),
            nearest=arrays.get("nearest"),
            groups=_groups(arrays["groups"], arrays["group_sizes"]),
            reliability=[Bin(float(x), float(y), int(n)) for x, y, n in note["reliability"]],
            warnings=[str(each) for each in note["warnings"]],
        )
    except UsageError:
        raise
    except KeyError as error:
        raise DamagedFileError(f"{file} is damaged: it has no {error}") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise DamagedFileError(f"{file} is damaged: {error}") from error


def _check(arrays: Mapping[str, NDArray[Any]], n: int, k: int) -> None:
    """Refuse arrays of another shape, rows and classes that are not there, and odd numbers."""
    joints = dict.fromkeys(JOINTS, (k, k))
    shapes = {"given": (n,), "suggested": (n,), "p_wrong": (n,), "p_suggested": (n,), "flags": (n,)}
    tops = {"given": k, "suggested": k, "top": k, "nearest": n, "groups": n}
    for name, values in arrays.items():
        long = values.shape[:1] == (n,) and values.ndim == 2
        right = values.shape == (shapes | joints)[name] if name in shapes | joints else long
        if name in ("groups", "group_sizes"):
            right = values.ndim == 1
        whole = name in tops or name in ("flags", "group_sizes")
        if not right or values.dtype.kind not in ("iu" if whole else "f"):
            raise ValueError(f"{name!r} is {values.dtype} of shape {values.shape}")
        low, high = values.min(initial=0), values.max(initial=0)
        top = tops[name] - 1 if name in tops else 255 if whole else 1
        if name != "group_sizes" and not 0 <= low <= high <= top:
            raise ValueError(f"{name!r} holds numbers outside the range 0..{top}")
    if arrays["group_sizes"].min(initial=0) < 0:
        raise ValueError("a group has less than no samples")


def _tensor(values: NDArray[Any]) -> Tensor:
    """Return rows and classes as 32-bit integers, joint shares in single precision."""
    if values.dtype.kind == "i":
        values = values.astype(np.int32)
    elif values.ndim == 2:
        values = values.astype(np.float32)
    return torch.from_numpy(np.ascontiguousarray(values))


def _bits(found: Audit) -> NDArray[np.uint8]:
    bits = np.zeros(len(found), dtype=np.uint8)
    place = {word: 1 << number for number, word in enumerate(FLAGS)}
    for row, words in found.flags.items():
        bits[row] = sum(place[word] for word in words.split())
    return bits


def _words(bits: NDArray[np.uint8]) -> dict[int, str]:
    words = [" ".join(w for n, w in enumerate(FLAGS) if value >> n & 1) for value in range(256)]
    return {row: words[bits[row]] for row in np.flatnonzero(bits).tolist()}


def _groups(rows: NDArray[np.int32], sizes: NDArray[np.int32]) -> list[list[int]]:
    ends = accumulate(sizes.tolist(), initial=0)
    return [rows[start:end].tolist() for start, end in pairwise(ends)]
