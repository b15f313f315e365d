"""Differential privacy when only the last iterate is released.

The names below are loaded when they are first used, so that `import lastiterate` takes no time and Ctrl-C is answered early.
"""

TYPE_CHECKING = False  # as `typing` has it, which takes long to import

if TYPE_CHECKING:
    from lastiterate.accounting.account import account
    from lastiterate.accounting.calibrate import NOISE, STEPS, Free, calibrate
    from lastiterate.accounting.certificate import Verdict, verify
    from lastiterate.accounting.each import RecordReport, account_each
    from lastiterate.accounting.report import Report
    from lastiterate.accounting.sandwich import Sandwich, lower_bound
    from lastiterate.algorithms import losses
    from lastiterate.algorithms.arithmetic import Arithmetic
    from lastiterate.algorithms.batches import Cyclic, FixedSize, FullBatch, Poisson, PoissonMean, Shuffled
    from lastiterate.algorithms.domains import Ball, Box, ConvexSet, Unbounded
    from lastiterate.algorithms.files import read_run, write_run
    from lastiterate.algorithms.noise import Langevin, OnGradientSum, OnIterate, OnMeanGradient
    from lastiterate.algorithms.process import Process
    from lastiterate.algorithms.prox import L1, ConvexTerm, ElasticNet, NuclearNorm
    from lastiterate.algorithms.run import Epochs, Run, epochs
    from lastiterate.auditing.audit import Audit, audit
    from lastiterate.auditing.chain import Chain
    from lastiterate.auditing.lower import LowerBound
    from lastiterate.errors import Incompatible, InvalidInput, LastIterateError, PrivacyLeak, Unavailable
    from lastiterate.mechanisms.additive import GaussianAfterGaussian, LaplaceAfterLaplace, LipschitzThenGaussian
    from lastiterate.mechanisms.amplified import Amplified, Clause
    from lastiterate.mechanisms.diffusions import Brownian, Diffusion, OrnsteinUhlenbeck
    from lastiterate.mechanisms.kernels import FiniteKernel, GaussianKernel, LipschitzGaussianKernel
    from lastiterate.mechanisms.release import Release
    from lastiterate.mechanisms.sampling import Sample, exponential_mechanism, langevin
    from lastiterate.privacy.adjacency import ADD_OR_REMOVE_ONE, FIXED_SIZE, POISSON, REPLACE_ONE, Adjacency, Sampling
    from lastiterate.privacy.averaged import AveragedGaussianDP
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
    from lastiterate.theorems.catalogue import CATALOGUE
    from lastiterate.theorems.evidence import Evidence
    from lastiterate.theorems.theorem import Guarantee, Inapplicable, Theorem
    from lastiterate.training.train import Trained, train

    __version__: str

__all__ = [
    "ADD_OR_REMOVE_ONE",
    "CATALOGUE",
    "FIXED_SIZE",
    "L1",
    "NOISE",
    "POISSON",
    "REPLACE_ONE",
    "STEPS",
    "Adjacency",
    "Amplified",
    "Arithmetic",
    "Audit",
    "AveragedGaussianDP",
    "Ball",
    "Box",
    "Brownian",
    "Chain",
    "Clause",
    "ConvexSet",
    "ConvexTerm",
    "Cyclic",
    "Diffusion",
    "ElasticNet",
    "Epochs",
    "Evidence",
    "FiniteKernel",
    "FixedSize",
    "Free",
    "FullBatch",
    "GaussianAfterGaussian",
    "GaussianDP",
    "GaussianKernel",
    "Guarantee",
    "Inapplicable",
    "Incompatible",
    "InvalidInput",
    "Langevin",
    "LaplaceAfterLaplace",
    "LastIterateError",
    "LipschitzGaussianKernel",
    "LipschitzThenGaussian",
    "LowerBound",
    "NuclearNorm",
    "OnGradientSum",
    "OnIterate",
    "OnMeanGradient",
    "OrnsteinUhlenbeck",
    "Poisson",
    "PoissonMean",
    "PrivacyLeak",
    "PrivacyLoss",
    "Process",
    "Profile",
    "RecordReport",
    "Release",
    "RenyiDP",
    "Report",
    "Run",
    "Sample",
    "Sampling",
    "Sandwich",
    "Shuffled",
    "SubsampledGaussians",
    "Theorem",
    "TradeOff",
    "Trained",
    "Unavailable",
    "Unbounded",
    "Verdict",
    "__version__",
    "account",
    "account_each",
    "advanced_composition",
    "amplification_by_subsampling",
    "analytic_gaussian_noise",
    "audit",
    "best",
    "calibrate",
    "classical_gaussian_noise",
    "clt_mu_estimate",
    "compose",
    "epochs",
    "exponential_mechanism",
    "langevin",
    "largest_mu",
    "losses",
    "lower_bound",
    "moments_accountant",
    "read_run",
    "sampled_gaussian_rdp",
    "sampled_gaussian_rdp_closed_form",
    "subsampled_gaussian",
    "train",
    "verify",
    "write_run",
]

# Where each of them stands, as imported above for those who read and do not run; tests/test_surface.py compares the two.
_NAMES = {
    "accounting.account": "account",
    "accounting.calibrate": "NOISE STEPS Free calibrate",
    "accounting.certificate": "Verdict verify",
    "accounting.each": "RecordReport account_each",
    "accounting.report": "Report",
    "accounting.sandwich": "Sandwich lower_bound",
    "algorithms.arithmetic": "Arithmetic",
    "algorithms.batches": "Cyclic FixedSize FullBatch Poisson PoissonMean Shuffled",
    "algorithms.domains": "Ball Box ConvexSet Unbounded",
    "algorithms.files": "read_run write_run",
    "algorithms.noise": "Langevin OnGradientSum OnIterate OnMeanGradient",
    "algorithms.process": "Process",
    "algorithms.prox": "L1 ConvexTerm ElasticNet NuclearNorm",
    "algorithms.run": "Epochs Run epochs",
    "auditing.audit": "Audit audit",
    "auditing.chain": "Chain",
    "auditing.lower": "LowerBound",
    "errors": "Incompatible InvalidInput LastIterateError PrivacyLeak Unavailable",
    "mechanisms.additive": "GaussianAfterGaussian LaplaceAfterLaplace LipschitzThenGaussian",
    "mechanisms.amplified": "Amplified Clause",
    "mechanisms.diffusions": "Brownian Diffusion OrnsteinUhlenbeck",
    "mechanisms.kernels": "FiniteKernel GaussianKernel LipschitzGaussianKernel",
    "mechanisms.release": "Release",
    "mechanisms.sampling": "Sample exponential_mechanism langevin",
    "privacy.adjacency": "ADD_OR_REMOVE_ONE FIXED_SIZE POISSON REPLACE_ONE Adjacency Sampling",
    "privacy.averaged": "AveragedGaussianDP",
    "privacy.baselines": (
        "advanced_composition amplification_by_subsampling analytic_gaussian_noise classical_gaussian_noise "
        "clt_mu_estimate moments_accountant sampled_gaussian_rdp sampled_gaussian_rdp_closed_form"
    ),
    "privacy.best": "best",
    "privacy.calibrate": "largest_mu",
    "privacy.compose": "compose",
    "privacy.gaussian": "GaussianDP",
    "privacy.loss": "PrivacyLoss",
    "privacy.profile": "Profile",
    "privacy.renyi": "RenyiDP",
    "privacy.subsampled": "SubsampledGaussians subsampled_gaussian",
    "privacy.tradeoff": "TradeOff",
    "theorems.catalogue": "CATALOGUE",
    "theorems.evidence": "Evidence",
    "theorems.theorem": "Guarantee Inapplicable Theorem",
    "training.train": "Trained train",
}
_MODULES = {name: f"lastiterate.{module}" for module, names in _NAMES.items() for name in names.split()}


def _loaded(name: str) -> object:
    from importlib import import_module, metadata

    if name == "__version__":
        return metadata.version("lastiterate")
    if name == "losses":
        return import_module("lastiterate.algorithms.losses")
    return getattr(import_module(_MODULES[name]), name)


def _kind(name: str) -> object:
    """A kind of batches, noise, domain or proximal map that is listed, and not above."""
    from importlib import import_module

    if not name.startswith("_"):
        for listed in import_module("lastiterate.algorithms.kinds").SECTIONS.values():
            for kind in listed:
                if kind.make.__name__ == name:
                    return kind.make
    raise AttributeError(f"module 'lastiterate' has no attribute {name!r}")


if not TYPE_CHECKING:  # which would take every misspelt name for a name

    def __getattr__(name):
        found = _loaded(name) if name in __all__ else _kind(name)
        return globals().setdefault(name, found)


def __dir__() -> list[str]:
    return sorted(__all__)
