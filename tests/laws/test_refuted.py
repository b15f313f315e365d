"""What papers print and instances refute (errata E1.1, E1.2, E2.5, E3.1, E3.4, E4.6): the catalogue has it corrected."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import lastiterate as li
from drawn import guarantees
from lastiterate.shift.distance_bounds import amplification
from lastiterate.theorems.papers import balle2019, feldman2018
from lastiterate.theorems.shift_engine import SHIFT_ENGINE, own_mus
from processes import exact_mu_of_quadratics, process


def test_one_pass_bounds_are_per_index_and_above_the_engine() -> None:
    for factor in (0.9, 1.0):
        given = process(li.Cyclic(records=50, batch_size=1), 50, sensitivity=0.3, lipschitz=factor)
        rhos = np.square(own_mus(given)) / 2
        assert (rhos <= balle2019.rho_of_each(given) * (1 + 1e-9)).all()
        if factor == 1.0:
            assert feldman2018.rho_of_each(given) == pytest.approx(rhos, rel=1e-9)


@pytest.mark.parametrize(("factor", "steps"), list(itertools.product((0.5, 0.99, 1.0, 1.01, 2.0), (1, 2, 40))))
def test_amplification_of_a_single_shift(factor: float, steps: int) -> None:
    exact = factor ** (2 * steps - 2) / math.fsum(factor ** (2 * place) for place in range(steps))
    assert amplification(factor, steps) == pytest.approx(exact, rel=1e-12)


def test_kong_2_3_is_the_engine_when_nothing_contracts() -> None:
    """Errata E2.5: with 2 for 4 and E − 1 for E the closed form is the optimum, for L ≥ 1."""
    for factor in (1.0, 1.02, 1.3):
        given = process(li.Cyclic(records=60, batch_size=10), 60, sensitivity=0.3, lipschitz=factor)
        mu = next(one for one in guarantees(given) if one.theorem.name == "kong2025/cyclic").notion.mu  # type: ignore[attr-defined]
        engine = SHIFT_ENGINE.apply(given)
        assert engine.notion.mu == pytest.approx(mu, rel=1e-9)  # type: ignore[union-attr]


def test_the_closed_form_4_2_is_false_above_one_and_is_not_used() -> None:
    """Errata E4.6: linear losses attain composition, which the formula at c > 1 would undercut."""
    factor, steps = 1.1, 20
    given = process(li.FullBatch(records=10), steps, sensitivity=0.1, lipschitz=factor)
    power = factor**steps
    formula = 0.1 * math.sqrt((power - 1) / (power + 1) * (factor + 1) / (factor - 1))
    linear = exact_mu_of_quadratics(replace(given, lipschitz=np.ones(steps)))
    assert formula < linear * (1 - 1e-3)
    assert min(one.notion.mu for one in guarantees(given)) >= linear  # type: ignore[attr-defined]


def test_boninsegna_as_printed_is_too_small() -> None:
    """Errata E1.1: one epoch, last batch, whose map is constant: a Gaussian mechanism, for which α/(2σ²Q) is printed."""
    given = process(li.Cyclic(records=40, batch_size=10), 4, sensitivity=1.0, noise=2.0)
    exact = exact_mu_of_quadratics(replace(given, lipschitz=np.array([1.0, 1.0, 1.0, 0.0]))) ** 2 / 2
    assert exact == pytest.approx(1 / 8)
    printed = exact / 4
    corrected = next(one for one in guarantees(given) if one.theorem.name == "boninsegna2023/fixed-batches").notion.rho  # type: ignore[attr-defined]
    assert printed < exact <= corrected
