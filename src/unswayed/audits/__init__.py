"""Which labels are wrong: from a run, or from labels, logits and features of any origin."""

from __future__ import annotations

from unswayed.audits.result import Audit, NoiseEstimate
from unswayed.audits.search import audit, find_wrong_labels

__all__ = ["Audit", "NoiseEstimate", "audit", "find_wrong_labels"]
