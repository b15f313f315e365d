"""Guarantees in order: the least ε first."""

from __future__ import annotations

from dataclasses import dataclass

from lastiterate.theorems.evidence import About, Grade
from lastiterate.theorems.own import of_the_library
from lastiterate.theorems.theorem import Guarantee


@dataclass(frozen=True)
class Ranked:
    """A guarantee and its ε."""

    epsilon: float
    guarantee: Guarantee

    def rank(self) -> tuple[float, bool, bool, bool, bool, str]:
        """Where nine digits agree: the library's, replayed ones, of every iterate, without pairs; then by name."""
        evidence = self.guarantee.evidence
        recomputed, last_alone = evidence.grade is not Grade.REPLAYED, evidence.about is not About.EVERY_ITERATE
        theorem = self.guarantee.theorem
        proof = not of_the_library(theorem), recomputed, last_alone, bool(evidence.pairs)
        return float(f"{self.epsilon:.9g}"), *proof, theorem.name
