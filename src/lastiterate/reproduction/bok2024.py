"""Bok, Su and Altschuler 2024: Tables 1 to 12 and Fig. 1 to 10."""

from __future__ import annotations

from lastiterate.reproduction.bok2024_accuracy import ACCURACIES
from lastiterate.reproduction.bok2024_figures import EXHIBITS_OF_FIGURES
from lastiterate.reproduction.bok2024_illustrations import ILLUSTRATIONS
from lastiterate.reproduction.bok2024_mnist import TABLE_1_EXHIBIT, TABLE_3_EXHIBIT, TABLE_4_EXHIBIT
from lastiterate.reproduction.bok2024_random import FIGURE_10_EXHIBIT
from lastiterate.reproduction.bok2024_tables import EXHIBITS_OF_TABLES

EXHIBITS = (
    TABLE_1_EXHIBIT,
    ACCURACIES[0],
    TABLE_3_EXHIBIT,
    TABLE_4_EXHIBIT,
    *ACCURACIES[1:],
    *EXHIBITS_OF_TABLES,
    EXHIBITS_OF_FIGURES[0],
    *ILLUSTRATIONS,
    *EXHIBITS_OF_FIGURES[1:],
    FIGURE_10_EXHIBIT,
)
