"""Every exhibit of the five papers, written out. To be listed is to be tested."""

from __future__ import annotations

from lastiterate.papers import asoodeh2023, bok2024
from lastiterate.papers.exhibit import Exhibit

EXHIBITS: tuple[Exhibit, ...] = (*asoodeh2023.EXHIBITS, *bok2024.EXHIBITS)


def exhibit_of(key: str) -> Exhibit:
    return next(one for one in EXHIBITS if one.key == key)
