"""Differential privacy when only the last iterate is released."""

from importlib.metadata import version as _version

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

__version__ = _version("lastiterate")

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
