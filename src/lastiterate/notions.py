"""`li.notions`: what a guarantee can be, the arrows between them, and how they compose."""

from lastiterate.curves.adjacency import (
    ADD_OR_REMOVE_ONE,
    FIXED_SIZE,
    POISSON,
    REPLACE_ONE,
    ZERO_OUT,
    Adjacency,
    Sampling,
)
from lastiterate.curves.averaged import AveragedGaussianDP
from lastiterate.curves.balls_and_bins import BallsAndBinsDP
from lastiterate.curves.best import best
from lastiterate.curves.calibrate import largest_mu
from lastiterate.curves.compose import compose
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.hidden_place import HiddenPlaceDP
from lastiterate.curves.loss import PrivacyLoss
from lastiterate.curves.profile import Profile
from lastiterate.curves.renyi import RenyiDP
from lastiterate.curves.subsampled import SubsampledGaussians, subsampled_gaussian
from lastiterate.curves.tradeoff import TradeOff

__all__ = [
    "ADD_OR_REMOVE_ONE",
    "FIXED_SIZE",
    "POISSON",
    "REPLACE_ONE",
    "ZERO_OUT",
    "Adjacency",
    "AveragedGaussianDP",
    "BallsAndBinsDP",
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
