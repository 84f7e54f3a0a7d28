"""Audits made by hand, for the tests of what is drawn from them."""

from __future__ import annotations

import numpy as np
from PIL import Image

from unswayed.audits.result import Audit, Bin, NoiseEstimate

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>window.hit=1</script>",
    "\"' onmouseover=hit() x='",
    "line\nbreak\r\u2028\u202eevil\x00",
    "</style><svg onload=hit()>",
    "ab" * 5000,
    "\udcff broken",
    "{{ 7 * 7 }}",
)


def made(n=300, k=4, *, wrong=0.2, classes=None, ids=None, full=True, seed=0):
    """Return an audit of n labels and k classes, with every optional field if it is full."""
    rng = np.random.default_rng(seed)
    given = rng.integers(k, size=n)
    suggested = (given + rng.integers(1, k, size=n)) % k
    p_wrong = rng.beta(0.3, 0.3 * (1 - wrong) / wrong, size=n) if wrong else np.full(n, 1e-4)
    joint = np.zeros((k, k))
    np.add.at(joint, (given, given), (1 - p_wrong) / n)
    np.add.at(joint, (given, suggested), p_wrong / n)
    rate = float(p_wrong.mean())
    noise = NoiseEstimate(rate, 0.8 * rate, 1.2 * rate, joint, 0.7 * joint, 1.3 * joint)
    extra = {}
    if full:
        near = (np.arange(n)[:, None] + np.arange(1, 6)) % n
        top = np.stack([suggested, given, given], axis=1)
        p_top = np.stack([p_wrong, (1 - p_wrong) * 0.9, (1 - p_wrong) * 0.1], axis=1)
        extra = {
            "flags": {0: "ambiguous outlier", 1: "duplicate", 2: "conflict", 3: "leak"},
            "groups": groups(given),
            "reliability": [Bin(0.1, 0.12, 900), Bin(0.6, 0.5, 40), Bin(0.95, 0.97, 7)],
            "warnings": ["the samples are <few>"],
            "nearest": near.astype(np.int32),
            "top": top,
            "p_top": p_top,
        }
    return Audit(
        ids=ids or [f"photos/{row}.jpg" for row in range(n)],
        classes=classes or [f"class {i}" for i in range(k)],
        given=given,
        suggested=suggested,
        p_wrong=p_wrong,
        p_suggested=0.9 * p_wrong,
        noise=noise,
        evidence="network",
        qualities={"network": 0.98},
        **extra,
    )


def groups(given):
    """Return one group with a label, and one with several."""
    same = np.flatnonzero(given == given[1])[:3].tolist()
    other = int(np.flatnonzero(given != given[2])[0])
    return [sorted({1, *same}), sorted({2, other})]


def noise_image(row):
    """Return an image that no JPEG can make small."""
    rng = np.random.default_rng(row)
    return Image.fromarray(rng.integers(0, 256, (100, 120, 3), dtype=np.uint8))
