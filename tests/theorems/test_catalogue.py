"""Laws that every theorem of the catalogue obeys: to be listed is to be tested."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import lastiterate as li
from lastiterate.algorithms.process import Process
from lastiterate.shift.amplification import amplification
from lastiterate.theorems import balle2019, feldman2018
from lastiterate.theorems.shift_engine import SHIFT_ENGINE, own_mus
from processes import exact_mu_of_quadratics, process

DELTA = 1e-5
# Bounds on profiles: they may lie below every Gaussian one.
OF_PROFILES = ("block-mixing", "regularised-mixing", "nonlinear-contraction", "asoodeh2023")
# Batches that are random, and known to be.
OF_SAMPLING = (*OF_PROFILES, "window-tail", "bok2024/random", "random-order", "ye2022/random")
# Searched on grids: a little more noise may end on a grid that is a little worse.
SEARCHED = (*OF_PROFILES, "window-tail", "bok2024/random")
BATCHES = (
    li.FullBatch(records=120),
    li.Cyclic(records=120, batch_size=30),
    li.Shuffled(records=120, batch_size=30, each_epoch=False),
    li.Shuffled(records=120, batch_size=30),
    li.FixedSize(records=120, batch_size=30),
    li.Poisson(records=120, rate=0.25),
)


def random_process(source: np.random.Generator, batches: object, alike: bool) -> Process:
    steps = int(source.integers(1, source.choice([5, 60, 60])))
    size = 1 if alike else steps
    lipschitz = source.uniform(0.8, source.choice([1.0, 1.0, 1.15]), size)
    numbers = {
        "sensitivity": source.uniform(0.05, 0.5, size),
        "noise": source.uniform(0.5, 2.0, size),
        "lipschitz": np.where(source.random(size) < 0.3, 1.0, lipschitz),
        "drift": source.uniform(0.5, 3.0, size),
        "retain": np.full(size, source.choice([1.0, 0.7])),
    }
    values = {name: value[0] if alike else value for name, value in numbers.items()}
    diameter, dimension = float(source.choice([math.inf, 0.3, 2.0, 10.0])), source.choice([None, 3])
    return process(batches, steps, diameter=diameter, dimension=dimension, **values)


def count_for(batches: object) -> int:
    """Random batches take a second or two for every run and every theorem together."""
    return 4 if isinstance(batches, li.FixedSize | li.Poisson) else 10


def guarantees(given: Process) -> list[li.Guarantee]:
    return [answer for theorem in li.CATALOGUE if isinstance(answer := theorem.apply(given), li.Guarantee)]


@pytest.mark.parametrize("batches", BATCHES[:2], ids=repr)
def test_the_engine_is_never_above_a_closed_form(batches: object) -> None:
    """A thousand runs, with steps alike and not, contracting and expanding; all bounds as deltas at one epsilon."""
    source = np.random.default_rng(8)
    seen: set[str] = set()
    for _ in range(500):
        given = random_process(source, batches, alike=bool(source.random() < 0.7))
        if source.random() < 0.2:
            given = random_process(
                source, li.Cyclic(records=600, batch_size=10), alike=True
            )  # long enough for one pass
        given = replace(given, drift=np.broadcast_to(np.inf, len(given)))  # which the engine does not use
        engine, *others = guarantees(given)
        assert engine.theorem is SHIFT_ENGINE
        for other in others:
            if other.theorem.name.startswith(OF_PROFILES):
                continue
            seen.add(other.theorem.name)
            for epsilon in (0.1, 1.0, 4.0):
                assert engine.notion.delta(epsilon) <= other.notion.delta(epsilon) * (1 + 1e-9), other.theorem.name
    assert len(seen) >= (4 if isinstance(batches, li.FullBatch) else 6)


@pytest.mark.parametrize("batches", BATCHES[:4], ids=repr)
def test_every_guarantee_is_above_the_quadratic_that_attains_it(batches: object) -> None:
    """The record that the last step sees, in one order; only an average over orders may lie below it."""
    source = np.random.default_rng(9)
    in_order = li.Cyclic(records=120, batch_size=30) if isinstance(batches, li.Shuffled) else batches
    for _ in range(60):
        drawn = random_process(source, batches, alike=bool(source.random() < 0.5))
        # A quadratic has gradients of any size, and needs room.
        given = replace(drawn, diameter=math.inf, drift=np.broadcast_to(np.inf, len(drawn)))
        exact = li.GaussianDP(exact_mu_of_quadratics(replace(given, batches=in_order)))
        for one in guarantees(given):
            if not one.theorem.name.startswith("random-order"):
                assert one.notion.delta(1.0) >= exact.delta(1.0) * (1 - 1e-9), one.theorem.name


@pytest.mark.parametrize("batches", BATCHES, ids=repr)
def test_one_step_is_the_gaussian_mechanism_or_its_sampled_form(batches: object) -> None:
    given = process(batches, 1, sensitivity=0.7, noise=1.4, lipschitz=0.9)
    plain = li.GaussianDP(0.5).epsilon(DELTA)
    for one in guarantees(given):
        if not one.theorem.name.startswith(OF_SAMPLING):
            assert one.epsilon(DELTA) >= plain * (1 - 1e-9), one.theorem.name
    engine = SHIFT_ENGINE.apply(given)
    assert isinstance(engine, li.Guarantee)
    assert engine.epsilon(DELTA) == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("batches", BATCHES, ids=repr)
def test_units_do_not_matter(batches: object) -> None:
    source = np.random.default_rng(10)
    for _ in range(count_for(batches)):
        given = random_process(source, batches, alike=bool(source.random() < 0.5))
        scaled = replace(
            given,
            sensitivity=given.sensitivity * 1e5,
            noise=given.noise * 1e5,
            drift=given.drift * 1e5,
            sampled=given.sampled * 1e5,
            diameter=given.diameter * 1e5,
        )
        # Products of stored-once arrays are arrays: the same numbers, no longer known to be alike.
        for one in guarantees(scaled):
            twin = one.theorem.apply(given)
            assert isinstance(twin, li.Guarantee)
            assert one.epsilon(DELTA) == pytest.approx(twin.epsilon(DELTA), rel=1e-6)


@pytest.mark.parametrize("batches", BATCHES, ids=repr)
def test_more_noise_never_hurts_and_more_diameter_never_helps(batches: object) -> None:
    source = np.random.default_rng(11)
    for _ in range(count_for(batches)):
        given = random_process(source, batches, alike=True)
        quieter = replace(given, noise=np.broadcast_to(given.noise[0] * 1.1, len(given)))
        wider = replace(given, diameter=given.diameter * 1.1)
        for one in guarantees(given):
            slack = 1e-2 if one.theorem.name.startswith(SEARCHED) else 1e-9
            assert one.theorem.apply(quieter).epsilon(DELTA) <= one.epsilon(DELTA) * (1 + slack)  # type: ignore[union-attr]
            if isinstance(other := one.theorem.apply(wider), li.Guarantee):
                assert other.epsilon(DELTA) >= one.epsilon(DELTA) * (1 - slack)


def test_each_theorem_applies_somewhere_and_refuses_elsewhere_with_a_number() -> None:
    applied: set[str] = set()
    refused: dict[str, str] = {}
    source = np.random.default_rng(12)
    for _ in range(900):
        batches = BATCHES[int(source.integers(len(BATCHES)))]
        given = random_process(source, batches, alike=bool(source.random() < 0.6))
        if source.random() < 0.3:
            given = replace(given, releases=(1,) if len(given) > 1 else ())
        for theorem in li.CATALOGUE:
            answer = theorem.apply(given)
            if isinstance(answer, li.Guarantee):
                applied.add(theorem.name)
            else:
                refused[theorem.name] = str(answer)
                assert answer.reasons
                assert str(answer).startswith(f"{theorem.name} does not apply: ")
    assert applied == {theorem.name for theorem in li.CATALOGUE}
    assert set(refused) >= applied - {"shift-engine"}


@pytest.mark.parametrize(
    ("theorem", "change", "number"),
    [
        ("bok2024/full-batch/strongly-convex", {"lipschitz": 1.0}, "lipschitz < 1"),
        ("bok2024/full-batch/constrained", {"lipschitz": 1.0 + 1e-12}, "lipschitz <= 1"),
        ("bok2024/full-batch/constrained", {"diameter": math.inf}, "diameter is inf"),
        ("bok2024/full-batch/constrained", {"diameter": 5.1}, "51"),
        ("bok2024/full-batch/constrained", {"noise": np.linspace(1, 2, 50)}, "noise runs from 1 to 2"),
        ("bok2024/full-batch/constrained", {"releases": (3,)}, "others leave as well: 1"),
        ("kong2025/bounded-domain", {"lipschitz": math.inf}, "inf"),
    ],
)
def test_refusals_just_outside_the_assumptions(theorem: str, change: dict[str, object], number: str) -> None:
    chosen = next(one for one in li.CATALOGUE if one.name == theorem)
    inside = {"sensitivity": 0.1, "lipschitz": 0.99, "diameter": 5.0}
    assert isinstance(chosen.apply(process(li.FullBatch(records=10), 50, **inside)), li.Guarantee)
    answer = chosen.apply(process(li.FullBatch(records=10), 50, **{**inside, **change}))
    assert isinstance(answer, li.Inapplicable)
    assert number in str(answer)


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
