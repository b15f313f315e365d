"""Reports are composed as their best guarantees."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lastiterate as li
from raising import raises

FULL = li.Run(
    li.losses.logistic(feature_norm=1.0, l2=0.01), li.FullBatch(1000), 0.5, li.OnMeanGradient(std=0.05), steps=100
)
POISSON = li.Run(li.losses.network(clip=1.0), li.Poisson(10_000, 0.01), 0.1, li.OnGradientSum(1.0, 1.0), steps=500)


def test_a_report_counts_as_its_best_guarantee() -> None:
    report = li.account(FULL, 1e-5)
    assert li.compose([report]).epsilon(1e-5) == report.epsilon
    both = li.compose([report, report.best, li.notions.GaussianDP(1.0)])
    assert both.epsilon(1e-5) == li.compose(
        [report.best.notion, report.best.notion, li.notions.GaussianDP(1.0)]
    ).epsilon(1e-5)


def test_reports_of_poisson_batches_compose_exactly() -> None:
    twice = li.account(replace(POISSON, steps=1000), 1e-5)
    report = li.account(POISSON, 1e-5)
    assert li.compose([report, report]).epsilon(1e-5) == pytest.approx(twice.epsilon, rel=1e-9)


def test_leaks_and_other_things_are_refused_in_a_sentence() -> None:
    report = li.account(FULL, 1e-5)
    with raises("guarantee_with_caveat", "guarantees", kind=li.errors.InvalidInput, caveat="leaked"):
        li.compose([replace(report, caveats=("leaked",))])
    with raises("not_a_guarantee", "guarantees", kind=li.errors.InvalidInput, got="1.0"):
        li.compose([1.0])  # type: ignore[list-item]
    with raises("no_guarantees", "guarantees", kind=li.errors.InvalidInput, function="compose") as refusal:
        li.compose(report)  # type: ignore[arg-type]
    assert len(str(refusal.value)) < 150
