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
from lastiterate.curves.balls_and_bins import BallsAndBinsDP
from lastiterate.curves.compose import PrivacyLoss, compose
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.gaussian_cover import largest_mu
from lastiterate.curves.hidden_participation import AveragedGaussianDP
from lastiterate.curves.hidden_place import HiddenPlaceDP
from lastiterate.curves.minimum import best
from lastiterate.curves.profile import Profile, TradeOff
from lastiterate.curves.renyi import RenyiDP
from lastiterate.curves.subsampled import SubsampledGaussians, subsampled_gaussian

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
