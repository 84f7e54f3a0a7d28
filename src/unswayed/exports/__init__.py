"""Write the data of a run with corrected labels; the original is never touched."""

from __future__ import annotations

from unswayed.exports.corrections import Correction, Corrections, correct
from unswayed.exports.formats import Exported, export
from unswayed.exports.huggingface import corrected

__all__ = ["Correction", "Corrections", "Exported", "correct", "corrected", "export"]
