"""Slow, literal transcriptions of the papers in plain loops; no code is shared with the package."""

from __future__ import annotations

import math

import numpy as np

LOW, HIGH = 1e-4, 1 - 1e-4


def ctrr(q, z, p, tau, form="log", clamp="similarity", pair_weight="soft"):
    """One direction of Yi et al. (CVPR 2022), eq. 6 or eq. 4, as the appendix minimises it."""
    b = len(q)
    q = [[x / math.sqrt(sum(y * y for y in row)) for x in row] for row in q]
    z = [[x / math.sqrt(sum(y * y for y in row)) for x in row] for row in z]
    if clamp == "coordinate":
        q = [[min(max(x, LOW), HIGH) for x in row] for row in q]
        z = [[min(max(x, LOW), HIGH) for x in row] for row in z]
    total = 0.0
    for i in range(b):
        weights, costs = [], []
        for j in range(b):
            s = sum(x * y for x, y in zip(q[i], z[j], strict=True))
            if i == j:
                weights.append(1.0)
                costs.append(-s)
                continue
            m = sum(x * y for x, y in zip(p[i], p[j], strict=True))
            chosen = m >= tau
            weights.append((m if pair_weight == "soft" else 1.0) if chosen else 0.0)
            costs.append(math.log(1 - min(s, HIGH)) if form == "log" else -s)
        total += sum(w * c for w, c in zip(weights, costs, strict=True)) / sum(weights)
    return total / b


def gce(logits, labels, q, floor=1e-4):
    """Zhang & Sabuncu (NeurIPS 2018), eq. 6, one number per sample."""
    out = []
    for a, y in zip(logits, labels, strict=True):
        top = max(a)
        e = [math.exp(x - top) for x in a]
        p = max(e[y] / sum(e), floor)
        out.append((1 - p**q) / q)
    return np.array(out)


def nt_xent_denominator(u1, u2, temperature):
    """The second half of NT-Xent: mean over views of the log of the sum over the others."""
    views = [np.asarray(v) / np.linalg.norm(v) for v in [*u1, *u2]]
    total = 0.0
    for a in range(len(views)):
        inner = 0.0
        for b in range(len(views)):
            if a != b:
                inner += math.exp(float(views[a] @ views[b]) / temperature)
        total += math.log(inner)
    return total / len(views)
