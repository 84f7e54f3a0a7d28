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


def softmax(a):
    """One row of logits -> probabilities."""
    top = max(a)
    e = [math.exp(x - top) for x in a]
    return [x / sum(e) for x in e]


def soft_cross_entropy(logits, targets):
    """-Σ_k t_k log p_k for any targets."""
    return np.array(
        [
            -sum(t * math.log(p) for t, p in zip(row, softmax(a), strict=True))
            for a, row in zip(logits, targets, strict=True)
        ]
    )


def mae(logits, labels):
    """Ghosh et al. (AAAI 2017): half the sum of |p_k - e_k|."""
    out = []
    for a, y in zip(logits, labels, strict=True):
        out.append(sum(abs(p - (k == y)) for k, p in enumerate(softmax(a))) / 2)
    return np.array(out)


def rce(logits, labels, low=1e-4):
    """Wang et al. (ICCV 2019): -Σ_k p_k log e_k, the one-hot label clamped from below."""
    out = []
    for a, y in zip(logits, labels, strict=True):
        out.append(-sum(p * math.log(max(float(k == y), low)) for k, p in enumerate(softmax(a))))
    return np.array(out)


def normalised(logits, labels, term):
    """Ma et al. (ICML 2020): a loss of p_y over the sum of the same loss of every p_k."""
    out = []
    for a, y in zip(logits, labels, strict=True):
        p = softmax(a)
        out.append(term(p[y]) / sum(term(x) for x in p))
    return np.array(out)


def forward_correction(logits, labels, t):
    """Patrini et al. (CVPR 2017), theorem 2."""
    out = []
    for a, y in zip(logits, labels, strict=True):
        out.append(-math.log(sum(p * t[i][y] for i, p in enumerate(softmax(a)))))
    return np.array(out)


def backward_correction(logits, labels, t):
    """Patrini et al. (CVPR 2017), theorem 1."""
    inverse = np.linalg.inv(t)
    out = []
    for a, y in zip(logits, labels, strict=True):
        out.append(sum(inverse[y][j] * -math.log(p) for j, p in enumerate(softmax(a))))
    return np.array(out)


def anchor_matrix(p, percentile):
    """Patrini et al. (CVPR 2017): a row of T is the prediction at its class's anchor."""
    rows = []
    for i in range(len(p[0])):
        column = [row[i] for row in p]
        # The smallest value that at least this share of the values, less one, stays below.
        limit = sorted(column)[math.ceil(percentile / 100 * (len(column) - 1))]
        allowed = [n for n, x in enumerate(column) if x < limit]
        anchor = max(allowed, key=lambda n: column[n])
        rows.append([x / sum(p[anchor]) for x in p[anchor]])
    return np.array(rows)


def elr(steps, num_samples, num_classes, beta, weight):
    """Liu et al. (NeurIPS 2020), eq. 6, over steps of (logits, labels, index); the last one's."""
    t = [[0.0] * num_classes for _ in range(num_samples)]
    for logits, labels, index in steps:
        out = []
        for a, y, i in zip(logits, labels, index, strict=True):
            p = softmax(a)
            clamped = [min(max(x, LOW), HIGH) for x in p]
            t[i] = [
                beta * old + (1 - beta) * x / sum(clamped)
                for old, x in zip(t[i], clamped, strict=True)
            ]
            aligned = sum(x * z for x, z in zip(t[i], p, strict=True))
            out.append(-math.log(p[y]) + weight * math.log(1 - aligned))
    return np.array(out), np.array(t)
