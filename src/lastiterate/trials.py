"""`li.trials`: the distribution of the number of trials for `li.select`."""

from lastiterate.privacy.trials import Geometric, Logarithmic, NegativeBinomial
from lastiterate.privacy.trials import PoissonTrials as Poisson

__all__ = ["Geometric", "Logarithmic", "NegativeBinomial", "Poisson"]


def __dir__() -> list[str]:
    return __all__
