"""Small trained and audited runs of every kind of data, with an audit made by hand."""

from __future__ import annotations

import hashlib
import os

import numpy as np

import unswayed
from unswayed.audits.result import Audit, NoiseEstimate
from unswayed.audits.storage import write_audit
from unswayed.review import Slot, open_review

QUICK = (
    "method=ce",
    "noise.name=none",
    "model.width=4",
    "train.epochs=1",
    "train.batch_size=4",
    "train.holdout=0.25",
    "train.threads=1",
)


def trained(folder, *words, data=None):
    """Train for a moment, and judge labels by hand: see `audited`."""
    return audited(unswayed.train("digits", *QUICK, *words, run=folder, data=data))


def audited(run):
    """Write an audit: row r is wrong with 0.99 - 0.1 r, and the next class is suggested."""
    samples, classes = run.samples(), run.provenance.data.classes
    n, k = len(samples.given), len(classes)
    p = np.maximum(0.99 - 0.1 * np.arange(n), 0.001)
    joint = np.eye(k) / k
    write_audit(
        Audit(
            ids=[str(name) for name in samples.ids],
            classes=classes,
            given=samples.given,
            suggested=(samples.given + 1) % k,
            p_wrong=p,
            p_suggested=p * 0.98,
            noise=NoiseEstimate(0.2, 0.1, 0.3, joint, joint, joint),
            evidence="network",
        ),
        run,
    )
    return run


def decide(run, row, decision, label=None, reviewer="ann"):
    """Decide about a sample; the label is a name."""
    review = open_review(run)
    number = None if label is None else run.provenance.data.classes.index(label)
    review.decide(Slot(row), decision, reviewer, label=number)


def digests(top):
    """Return the content of all files below a folder, and the targets of links."""
    found = {}
    for path in sorted(top.rglob("*")):
        name = os.fsencode(path.relative_to(top))
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def next_recipe(exported):
    """Return the recipe that the printed command would train."""
    import shlex

    from unswayed import Recipe

    program, verb, *words = shlex.split(exported.next)
    assert (program, verb) == ("unswayed", "train")
    return Recipe.load(*words[: words.index("--run")])
