"""Which records each step looks at."""

from lastiterate.runs.batches.balls_and_bins import BallsAndBins
from lastiterate.runs.batches.base import ONCE_AN_EPOCH, RARE, SECRET_PLACES, SHUFFLED, Batches, Sizes, Turns
from lastiterate.runs.batches.fixed_size import FixedSize
from lastiterate.runs.batches.full import FullBatch
from lastiterate.runs.batches.passes import Cyclic, Shuffled
from lastiterate.runs.batches.poisson import Poisson, PoissonMean

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
