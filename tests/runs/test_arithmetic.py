"""How much more a record can move a computed sum: the bound beside its formula in exact fractions, and its limits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

import lastiterate as li
from lastiterate.runs.noise import (
    EXACT,
    IN_DOUBLE_PRECISION,
    IN_SINGLE_PRECISION,
    MOST_FACTOR,
    STRAYING,
    STRAYING_OF_NETWORKS,
    UNBOUNDED,
    Arithmetic,
    Sums,
    expected_arithmetic,
    lost_by_networks,
)


@pytest.mark.parametrize("batch", [1, 256, 10**5])
@pytest.mark.parametrize("processes", [1, 64])
def test_what_networks_lose_is_its_formula(batch: int, processes: int) -> None:
    """Terms up to 2¹⁰ clips for each record: 2¹² of them in one product, an addition for each record and each process."""
    exact = Fraction(2**10 * batch, 2**53) * (2**12 + processes + Fraction(102, 100) * batch)
    assert lost_by_networks(batch, processes) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("sums", [IN_SINGLE_PRECISION, IN_DOUBLE_PRECISION, Sums(8, 2.0**-11)])
@pytest.mark.parametrize("batch", [1, 7, 8, 9, 64, 65, 1000, 1025, 10**6])
@pytest.mark.parametrize("random", [False, True])
def test_the_factor_is_its_formula(sums: Sums, batch: int, random: bool) -> None:
    """A block's roundings for each record it can touch, one double rounding for each block, 32 of the record alone."""
    rows = min(sums.block, batch)
    blocks = (batch + sums.block - 1) // sums.block
    inside = rows * (batch if random else rows) * Fraction(sums.unit)
    exact = Fraction(102, 100) * (inside + Fraction(blocks * batch, 2**53)) + 32 * Fraction(sums.unit)
    assert sums.factor(batch, random) - 1 == pytest.approx(float(exact), rel=1e-9, abs=5e-16)


def test_blocks_and_units_are_those_of_the_precisions() -> None:
    assert (IN_SINGLE_PRECISION.block, IN_SINGLE_PRECISION.unit) == (64, 2.0**-24)
    assert (IN_DOUBLE_PRECISION.block, IN_DOUBLE_PRECISION.unit) == (1024, 2.0**-53)


@pytest.mark.parametrize(
    ("factor", "displacement"), [(1 - 1e-9, 0.0), (1.0010001, 0.0), (1.0, -1e-9), (1.0, 1.0001e-3)]
)
def test_what_no_machine_does_is_refused(factor: float, displacement: float) -> None:
    with pytest.raises(li.errors.InvalidInput):
        Arithmetic(factor, displacement)


def test_the_limits_are_within() -> None:
    assert Arithmetic(MOST_FACTOR, 1e-3) == Arithmetic(1.001, 1e-3)
    assert Arithmetic() == EXACT == Arithmetic(1.0, 0.0)


def test_of_two_the_worse_counts_in_each_respect() -> None:
    one, other = Arithmetic(1.0001, 1e-5), Arithmetic(1.0002, 1e-6)
    assert one.and_also(other) == other.and_also(one) == Arithmetic(1.0002, 1e-5)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("random", [False, True])
def test_calibration_expects_the_sums_that_training_takes(linear: bool, random: bool) -> None:
    """Only fixed batches of linear models are added up in single precision; more than the most there may be is cut."""
    sums = IN_SINGLE_PRECISION if linear and not random else IN_DOUBLE_PRECISION
    straying = STRAYING if linear else STRAYING_OF_NETWORKS
    for batch in (1, 100, 30_000):
        beyond = sums.factor(batch, random) - 1 + (0.0 if linear else lost_by_networks(batch))
        assert expected_arithmetic(batch, random, linear, bounded=True) == Arithmetic(1 + beyond, straying)
        zeroed = expected_arithmetic(batch, random, linear, bounded=True, replaces=False)
        assert zeroed.factor - 1 == pytest.approx(2 * beyond, rel=1e-6)
    assert expected_arithmetic(10**12, random, linear, bounded=True).factor == MOST_FACTOR
    assert expected_arithmetic(5, random, linear, bounded=False) == UNBOUNDED == Arithmetic(1 + 2.0**-17, 2.0**-19)
    assert replace(UNBOUNDED, factor=1.0).displacement == STRAYING
