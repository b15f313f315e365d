"""Our guarantees as its privacy-loss distributions, on the safe side."""

from __future__ import annotations

from typing import Any

import numpy as np
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as distributions

from lastiterate.accounting.report import Report
from lastiterate.adapters.dp_accounting.dots import dotted
from lastiterate.adapters.dp_accounting.exported import best_notion
from lastiterate.curves.compose import largest_loss, profile_to_masses
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import Profile
from lastiterate.curves.subsampled import SubsampledGaussians
from lastiterate.errors import POSITIVE, checked_number, must_be
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.lattice import Masses
from lastiterate.numerics.rounding import ULP

_MOST_CELLS = 3_000_000


def privacy_loss_distribution(
    guarantee: Notion | Report, value_discretization_interval: float = 1e-4
) -> distributions.PrivacyLossDistribution:
    """A `PrivacyLossDistribution` of dp-accounting that dominates the guarantee, in both orders of the data sets.

    Its ε and δ are at least those of the guarantee, alone and after composition. It connects the dots of the privacy
    profile, which is convex in e^ε, at multiples of `value_discretization_interval`; a loss whose excess has δ below 1e-16
    counts as infinite. It has no neighboring relation: compose it only with distributions under the same relation as the
    guarantee.
    """
    interval = checked_number("value_discretization_interval", value_discretization_interval, POSITIVE)
    notion = best_notion(guarantee)
    notion = guarantee.notion if isinstance(guarantee, Report) else notion
    quick = notion if _is_quick(notion) else dotted(notion)
    largest = largest_loss(quick)
    if largest / interval > _MOST_CELLS:
        raise must_be(
            "value_discretization_interval",
            f"at least {largest / _MOST_CELLS:.3g}",
            f"{interval:g}",
        )
    return distributions.PrivacyLossDistribution(_pmf(profile_to_masses(quick, interval), interval))


def _is_quick(notion: Notion) -> bool:
    formula = isinstance(notion, SubsampledGaussians) and notion.is_a_formula
    return formula or isinstance(notion, GaussianDP | Profile)


def _pmf(masses: Masses, interval: float) -> Any:
    cells = len(masses.masses) // 2
    return pld_pmf.DensePLDPmf(interval, -cells, _raised(masses.masses, interval), masses.infinite, True)


def _raised(masses: Floats, interval: float) -> Floats:
    """A part of every mass one cell higher: more than what its sums over all cells, and its losses, which it reaches by
    adding up the interval, may lose by rounding.
    """
    count = len(masses)
    part = min(1e-6 + ULP * count * (count + 2 / interval), 1.0)
    return np.append((1 - part) * masses, 0.0) + np.append(0.0, part * masses)
