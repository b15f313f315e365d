"""`li.trials`: the law of the number of trials, of which `li.select` prices the best one."""

from lastiterate.privacy.trials import Geometric, Logarithmic, NegativeBinomial
from lastiterate.privacy.trials import PoissonTrials as Poisson

__all__ = ["Geometric", "Logarithmic", "NegativeBinomial", "Poisson"]


def __dir__() -> list[str]:
    return __all__
