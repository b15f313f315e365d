"""`li.notions`: what a guarantee can be, the arrows between them, and how they compose."""

from lastiterate.privacy.adjacency import (
    ADD_OR_REMOVE_ONE,
    FIXED_SIZE,
    POISSON,
    REPLACE_ONE,
    ZERO_OUT,
    Adjacency,
    Sampling,
)
from lastiterate.privacy.averaged import AveragedGaussianDP
from lastiterate.privacy.best import best
from lastiterate.privacy.calibrate import largest_mu
from lastiterate.privacy.compose import compose
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.privacy.hidden_place import HiddenPlaceDP
from lastiterate.privacy.loss import PrivacyLoss
from lastiterate.privacy.profile import Profile
from lastiterate.privacy.renyi import RenyiDP
from lastiterate.privacy.subsampled import SubsampledGaussians, subsampled_gaussian
from lastiterate.privacy.tradeoff import TradeOff

__all__ = [
    "ADD_OR_REMOVE_ONE",
    "FIXED_SIZE",
    "POISSON",
    "REPLACE_ONE",
    "ZERO_OUT",
    "Adjacency",
    "AveragedGaussianDP",
    "GaussianDP",
    "HiddenPlaceDP",
    "PrivacyLoss",
    "Profile",
    "RenyiDP",
    "Sampling",
    "SubsampledGaussians",
    "TradeOff",
    "best",
    "compose",
    "largest_mu",
    "subsampled_gaussian",
]


def __dir__() -> list[str]:
    return __all__
