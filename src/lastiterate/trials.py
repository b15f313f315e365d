"""`li.trials`: the distribution of the number of trials, for `li.select`, and what each trial may spend."""

from lastiterate.curves.selected import largest_mu_per_trial as largest_mu
from lastiterate.curves.trials import Geometric, Logarithmic, NegativeBinomial
from lastiterate.curves.trials import PoissonTrials as Poisson

__all__ = ["Geometric", "Logarithmic", "NegativeBinomial", "Poisson", "largest_mu"]


def __dir__() -> list[str]:
    return __all__
