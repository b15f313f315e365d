"""Kinds of batches: which records each step looks at."""

from lastiterate.runs.batches.base import ONCE_AN_EPOCH, RARE, SECRET_PLACES, SHUFFLED, Batches, Sizes, Turns
from lastiterate.runs.batches.passes import Cyclic, FixedSize, FullBatch, Shuffled
from lastiterate.runs.batches.poisson import BallsAndBins, Poisson, PoissonMean

__all__ = [
    "ONCE_AN_EPOCH",
    "RARE",
    "SECRET_PLACES",
    "SHUFFLED",
    "BallsAndBins",
    "Batches",
    "Cyclic",
    "FixedSize",
    "FullBatch",
    "Poisson",
    "PoissonMean",
    "Shuffled",
    "Sizes",
    "Turns",
]
