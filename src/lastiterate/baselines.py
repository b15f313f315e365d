"""`li.baselines`: what others compute, to compare with."""

from lastiterate.curves.baselines import (
    advanced_composition,
    amplification_by_subsampling,
    analytic_gaussian_noise,
    classical_gaussian_noise,
    clt_mu_estimate,
    moments_accountant,
    sampled_gaussian_rdp,
    sampled_gaussian_rdp_closed_form,
)

__all__ = [
    "advanced_composition",
    "amplification_by_subsampling",
    "analytic_gaussian_noise",
    "classical_gaussian_noise",
    "clt_mu_estimate",
    "moments_accountant",
    "sampled_gaussian_rdp",
    "sampled_gaussian_rdp_closed_form",
]


def __dir__() -> list[str]:
    return __all__
