"""Numbers that others computed, each with its recipe. None of them is an output of this library."""

from __future__ import annotations

import lastiterate as li
from reference_by_mpmath import ADD, FIXED, INSTANCES, REMOVE, REPLACE, Instance

# δ(ε) as printed by `python tests/reference_by_mpmath.py` (mpmath 1.3, 30 digits), in the order of INSTANCES.
DELTAS_BY_MPMATH = (
    1.000000014306e-5,
    9.9999999991319e-6,
    9.9999992233377e-6,
    1.0178482632443e-14,
    1.254103727732e-30,
    1.042835605504e-5,
    9.6165487191042e-6,
    1.2385148000489e-5,
    1.1727577591999e-5,
    1.0008892244392e-6,
)

# ε at δ = 1e-5, noise multiplier 1, Poisson rate 0.01, add-or-remove, by mpmath in 30 digits.
# As printed by `python tests/reference_by_mpmath.py`.
EPSILONS_BY_MPMATH = {100: 0.71803566133882, 10_000: 6.1877123899715, 1_000_000: 139.03027257056}

# Bok2024 Table 1, "GDP composition" of NoisySGD at E = 50, 100, 200: C_p(G(2/3)), p = 0.025, 40·E steps, δ = 1e-5.
# The authors' script table_privacy_lr.py (an estimate by the PRV method); independent FFT in brackets there: 4.438138062.
BOK2024_TABLE_1_SGD = {50: 4.438137916045566, 100: 6.653814038969665, 200: 10.113130522876464}

# Bok2024 Table 1, ε of NoisyCGD by composition: GDP with μ = (2/3)·√E at δ = 1e-5, solved with mpmath in 40 digits
# (the authors' script agrees to 1e-9).
BOK2024_TABLE_1_CGD = {50: 30.50627999, 100: 49.88371241, 200: 83.83059061}

# Bok2024 Table 3, CLT estimates of μ for NoisySGD.
BOK2024_TABLE_3_CLT = {50: 1.025310996846567, 100: 1.4500087173906928, 200: 2.050621993693134}

# Bok2024 Table 1, "RDP" column: ρ·order with these ρ, and the ε of the authors' script at δ = 1e-5.
BOK2024_RDP = {
    0.7166791250155631: 5.822347608329297,
    1.130618184769374: 7.610315412776391,
    1.746985533477279: 9.87808223117322,
}

# Bok2024 Fig. 1 left: (type I error, type II error) of G(μ), μ = 0.1·√160, by plot_intro.py.
BOK2024_FIG_1_COMPOSITION = {0.0501002004008016: 0.6476455968341559}

SHAPES = {
    ADD: (li.notions.POISSON, li.ADD_OR_REMOVE_ONE),
    REMOVE: (li.notions.POISSON, li.ADD_OR_REMOVE_ONE),
    REPLACE: (li.notions.POISSON, li.REPLACE_ONE),
    FIXED: (li.notions.FIXED_SIZE, li.REPLACE_ONE),
}


def composed(instance: Instance) -> li.notions.SubsampledGaussians:
    """The library's object for an instance (both orders, where they differ)."""
    sampling, adjacency = SHAPES[instance.kind]
    step = li.notions.subsampled_gaussian(
        mu=float(instance.mu), inclusion=float(instance.inclusion), sampling=sampling, adjacency=adjacency
    )
    return step.compose(instance.steps)


INSTANCES_WITH_DELTA = tuple(zip(INSTANCES, DELTAS_BY_MPMATH, strict=True))
