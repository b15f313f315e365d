"""Guarantees in order: the least ε first."""

from __future__ import annotations

from dataclasses import dataclass

from lastiterate.theorems.evidence import About, Grade
from lastiterate.theorems.theorem import Guarantee


@dataclass(frozen=True)
class Ranked:
    """A guarantee and its ε."""

    epsilon: float
    guarantee: Guarantee

    def rank(self) -> tuple[float, bool, bool, bool, str]:
        """Where nine digits agree: replayed first, every iterate before the last, without pairs; then by name."""
        evidence = self.guarantee.evidence
        recomputed, last_alone = evidence.grade is not Grade.REPLAYED, evidence.about is not About.EVERY_ITERATE
        return float(f"{self.epsilon:.9g}"), recomputed, last_alone, bool(evidence.pairs), self.guarantee.theorem.name
