"""Differential privacy when only the last iterate is released."""

from importlib.metadata import version as _version

from lastiterate.errors import Incompatible, InvalidInput, LastIterateError, Unavailable
from lastiterate.privacy.adjacency import ADD_OR_REMOVE_ONE, FIXED_SIZE, POISSON, REPLACE_ONE, Adjacency, Sampling
from lastiterate.privacy.baselines import (
    advanced_composition,
    amplification_by_subsampling,
    analytic_gaussian_noise,
    classical_gaussian_noise,
    clt_mu_estimate,
    moments_accountant,
    sampled_gaussian_rdp,
    sampled_gaussian_rdp_closed_form,
)
from lastiterate.privacy.best import best
from lastiterate.privacy.calibrate import largest_mu
from lastiterate.privacy.compose import compose
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.privacy.loss import PrivacyLoss
from lastiterate.privacy.profile import Profile
from lastiterate.privacy.renyi import RenyiDP
from lastiterate.privacy.subsampled import SubsampledGaussians, subsampled_gaussian
from lastiterate.privacy.tradeoff import TradeOff

__version__ = _version("lastiterate")

__all__ = [
    "ADD_OR_REMOVE_ONE",
    "FIXED_SIZE",
    "POISSON",
    "REPLACE_ONE",
    "Adjacency",
    "GaussianDP",
    "Incompatible",
    "InvalidInput",
    "LastIterateError",
    "PrivacyLoss",
    "Profile",
    "RenyiDP",
    "Sampling",
    "SubsampledGaussians",
    "TradeOff",
    "Unavailable",
    "__version__",
    "advanced_composition",
    "amplification_by_subsampling",
    "analytic_gaussian_noise",
    "best",
    "classical_gaussian_noise",
    "clt_mu_estimate",
    "compose",
    "largest_mu",
    "moments_accountant",
    "sampled_gaussian_rdp",
    "sampled_gaussian_rdp_closed_form",
    "subsampled_gaussian",
]
