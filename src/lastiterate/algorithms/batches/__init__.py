"""Which records each step looks at."""

from lastiterate.algorithms.batches.balls_and_bins import BallsAndBins
from lastiterate.algorithms.batches.base import ONCE_AN_EPOCH, RARE, SECRET_PLACES, SHUFFLED, Batches, Sizes, Turns
from lastiterate.algorithms.batches.fixed_size import FixedSize
from lastiterate.algorithms.batches.full import FullBatch
from lastiterate.algorithms.batches.passes import Cyclic, Shuffled
from lastiterate.algorithms.batches.poisson import Poisson, PoissonMean

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
