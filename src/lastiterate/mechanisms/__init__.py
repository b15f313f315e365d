"""Mechanisms other than training: Markov kernels, couplings, diffusions, the exponential mechanism; to analyse and run."""

from lastiterate.mechanisms.additive import GaussianAfterGaussian, LaplaceAfterLaplace, LipschitzThenGaussian, Release
from lastiterate.mechanisms.diffusions import Brownian, Diffusion, OrnsteinUhlenbeck
from lastiterate.mechanisms.kernels import Amplified, Clause, FiniteKernel, GaussianKernel, LipschitzGaussianKernel
from lastiterate.mechanisms.sampling import Sample, exponential_mechanism, langevin

__all__ = [
    "Amplified",
    "Brownian",
    "Clause",
    "Diffusion",
    "FiniteKernel",
    "GaussianAfterGaussian",
    "GaussianKernel",
    "LaplaceAfterLaplace",
    "LipschitzGaussianKernel",
    "LipschitzThenGaussian",
    "OrnsteinUhlenbeck",
    "Release",
    "Sample",
    "exponential_mechanism",
    "langevin",
]


def __dir__() -> list[str]:
    return __all__
