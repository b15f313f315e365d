"""Every exhibit of the five papers, written out. To be listed is to be tested."""

from __future__ import annotations

from lastiterate.reproduction import asoodeh2023, balle2019, bok2024, boninsegna2023, kong2025
from lastiterate.reproduction.exhibit import Exhibit

EXHIBITS: tuple[Exhibit, ...] = (
    *asoodeh2023.EXHIBITS,
    *boninsegna2023.EXHIBITS,
    *kong2025.EXHIBITS,
    *balle2019.EXHIBITS,
    *bok2024.EXHIBITS,
)


def exhibit_of(key: str) -> Exhibit:
    return next(one for one in EXHIBITS if one.key == key)
