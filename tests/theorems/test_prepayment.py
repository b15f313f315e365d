"""Prepayment: against numbers that were computed independently, against exact runs, and where it must refuse."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import lastiterate as li
from lastiterate.facts import Fact, fact
from lastiterate.kernel.prepaid import Kept, Smooth, kept, longest, price
from lastiterate.kernel.steps import Refused, Steps
from lastiterate.shift.prepay import best_path, best_slopes, path_along
from lastiterate.theorems.composition import PASSES_COMPOSITION
from lastiterate.theorems.prepayment import PREPAID_HIDDEN_PLACE, PREPAID_ORDER, PREPAYMENT
from lastiterate.theorems.shift_engine import HIDDEN_PLACE, RANDOM_ORDER, SHIFT_ENGINE
from processes import reasons

DELTA = 1e-5


def logistic_run(batches: Any, step_size: Any, epochs: int, **others: Any) -> li.Run:
    loss = others.pop("loss", li.losses.logistic(feature_norm=1.0, l2=others.pop("l2", 0.0)))
    noise = others.pop("noise", li.OnGradientSum(multiplier=2.0, clip=1.0))
    return li.Run(loss, batches, step_size, noise, li.epochs(epochs), **others)


CYCLIC = li.Cyclic(records=4000, batch_size=200)
ONCE = li.Shuffled(records=4000, batch_size=200, each_epoch=False)
EACH = li.Shuffled(records=4000, batch_size=200)

# Computed in 40 digits with δ0 = 1e-8, payments replayed: primal and dual agree to 1e-11 (docs/proofs.md, "Prepayment").
EPSILONS = [
    (CYCLIC, 0.1, 1, 1.1662662270981021),
    (CYCLIC, 0.1, 3, 1.9341719791955214),
    (CYCLIC, 0.1, 10, 3.256636691990016),
    (CYCLIC, 0.1, 30, 5.754305170236957),
    (CYCLIC, 0.4, 1, 2.122449572427453),
    (CYCLIC, 0.4, 10, 3.7664130572468),
    (CYCLIC, 0.4, 30, 6.114738741964786),
    (CYCLIC, 2.0, 1, 4.147787270737782),
    (CYCLIC, 2.0, 10, 5.251875453204246),
    (ONCE, 0.1, 3, 1.7172458599727125),
    (ONCE, 0.1, 10, 3.066259083829502),
    (ONCE, 0.4, 10, 3.298055),
    (EACH, 0.1, 3, 1.796938875675347),
    (EACH, 0.1, 10, 3.1585897726208656),
    (EACH, 0.4, 1, 1.735178),
]


@pytest.mark.parametrize(("batches", "step_size", "epochs", "epsilon"), EPSILONS)
def test_reference_epsilons(batches: Any, step_size: float, epochs: int, epsilon: float) -> None:
    theorem = PREPAYMENT if batches is CYCLIC else PREPAID_ORDER
    found = theorem.notion(logistic_run(batches, step_size, epochs).process).epsilon(DELTA)
    assert found == pytest.approx(epsilon, rel=1e-6)


# The same for other losses: s/ν = 1, δ0 = 1e-8.
MUS = [
    (li.losses.logistic(feature_norm=1.0, l2=0.05), 1.0, 1, 0.346892),
    (li.losses.logistic(feature_norm=1.0, l2=0.05), 1.0, 10, 0.761838),
    (li.losses.softmax(feature_norm=1.0, classes=10), math.sqrt(2.0), 1, 0.392466),
    (li.losses.softmax(feature_norm=1.0, classes=10), math.sqrt(2.0), 3, 0.550681),
    (li.losses.huber(feature_norm=1.0), 1.0, 1, 0.528905),
]


@pytest.mark.parametrize(("loss", "bound", "epochs", "mu"), MUS)
def test_reference_mus_of_other_losses(loss: Any, bound: float, epochs: int, mu: float) -> None:
    run = logistic_run(CYCLIC, 0.1, epochs, loss=loss, noise=li.OnMeanGradient(std=2 * bound / 200))
    evidence = PREPAYMENT.bound(run.process).for_delta(DELTA)
    assert evidence.prepaying is not None
    assert evidence.prepaying.slack == 1e-8
    found = evidence.schedules[0].mu  # the reference takes the push itself for the largest payment
    assert mu * (1 - 2e-5) <= found <= mu * (1 + (2e-3 if loss.l2 else 2e-5))


def falling_steps(sizes: np.ndarray, per_epoch: int) -> tuple[Steps, Kept]:
    """ηM = 0.1·size, the push turns by 0.05·(size of the step before)."""
    turns = (np.arange(len(sizes)) + 1) % per_epoch == 0
    center, radius = 1 - 0.05 * sizes, 0.05 * sizes
    turned = 0.05 * np.append(0.0, sizes[:-1])
    return Steps(sizes * turns, sizes, np.ones(len(sizes))), Kept(center, radius + center * turned)


@pytest.mark.parametrize(("epochs", "unguarded", "repaired"), [(1, 0.063859, 0.086685), (10, None, 0.902212)])
def test_falling_step_sizes_are_repaired(epochs: int, unguarded: float | None, repaired: float) -> None:
    sizes = np.where(np.arange(20 * epochs) / (20 * epochs - 1) < 0.5, 1.0, 0.1)
    steps, keeping = falling_steps(sizes, 20)
    assert price(steps, keeping, path_along(steps, keeping, best_path(steps, keeping)))[0] == pytest.approx(
        repaired, rel=2e-5
    )
    slopes = best_slopes(steps.sensitivity, steps.noise, keeping.least, steps.lipschitz)
    value = math.sqrt(float(np.sum(2 * steps.sensitivity * slopes - np.square(steps.noise * slopes))))
    assert value <= repaired
    assert unguarded is None or value == pytest.approx(unguarded, rel=2e-5)


def test_the_value_of_the_dual_is_no_bound_when_noise_falls() -> None:
    """Noise 10, then 0.1; a push of 1 at the second step; slopes 0.3 and 1 alternate over lengths of 1."""
    steps = Steps(np.array([0.0, 1.0]), np.array([10.0, 0.1]), np.ones(2))
    keeping = Kept(np.full(2, 0.65), np.full(2, 0.35))
    slopes = best_slopes(steps.sensitivity, steps.noise, keeping.least, steps.lipschitz)
    value = math.sqrt(float(np.sum(2 * steps.sensitivity * slopes - np.square(steps.noise * slopes))))
    grid = np.arange(-80.0, 80.0, 0.005)
    density = np.exp(-np.square(grid / 10) / 2)
    period = 1 + 1 / 0.3  # of the map, whose image goes up by 2 in it: 1 at slope 1, 1 at slope 0.3
    inside = grid % period
    image = 2 * np.floor(grid / period) + np.where(inside < 1, inside, 1 + 0.3 * (inside - 1))
    edges = np.arange(-60.0, 60.0, 0.01)
    counts, _ = np.histogram(image, edges, weights=density / density.sum())
    places = (edges[:-1] + edges[1:]) / 2
    reach = np.arange(-1.0, 1.0, 0.01)
    noise = np.exp(-np.square(reach / 0.1) / 2)
    law = np.convolve(counts, noise / noise.sum(), mode="same")
    moved = np.interp(places - 1.0, places, law)
    total_variation = float(np.abs(law - moved).sum()) / 2
    assert total_variation == pytest.approx(0.4556, abs=0.01)
    assert 2 * ndtr(value / 2) - 1 < 0.14 < total_variation
    mu = price(steps, keeping, path_along(steps, keeping, best_path(steps, keeping)))[0]
    assert 2 * ndtr(mu / 2) - 1 > total_variation
    with pytest.raises(Refused, match="kept until the turn"):
        price(steps, keeping, np.array([-3.0, 0.0]))


def test_without_turning_the_bound_is_attained() -> None:
    """γ = 0 and steps alike: a linear chain whose slopes change over time is as easy to tell as the bound says."""
    source = np.random.default_rng(5)
    for _ in range(40):
        count, every = int(source.integers(5, 200)), int(source.integers(1, 12))
        high = float(source.choice([1.0, 0.97]))
        low = high * float(source.uniform(0.3, 0.999))
        pushes = np.where(np.arange(count) % every == int(source.integers(every)), 1.0, 0.0)
        if not pushes.any():
            continue
        steps = Steps(pushes, np.broadcast_to(1.7, count), np.broadcast_to(high, count))
        keeping = Kept(np.broadcast_to((high + low) / 2, count), np.broadcast_to((high - low) / 2, count))
        slopes = best_slopes(pushes, steps.noise, keeping.least, steps.lipschitz)
        kept_of = slopes / slopes[-1]  # the chain x ← λx + noise with λ = r_{t−1}/r_t
        exact = float(np.sum(pushes * kept_of)) / math.sqrt(float(np.sum(np.square(1.7 * kept_of))))
        mu = price(steps, keeping, path_along(steps, keeping, best_path(steps, keeping)))[0]
        assert exact * (1 - 1e-9) <= mu <= exact * (1 + 1e-8)


def test_it_is_never_above_the_engine_but_for_its_exception() -> None:
    for batches in (CYCLIC, EACH, ONCE):
        for step_size in (0.05, 1.0, 6.0):
            process = logistic_run(batches, step_size, 4).process
            engine = SHIFT_ENGINE if batches is CYCLIC else RANDOM_ORDER
            theorem = PREPAYMENT if batches is CYCLIC else PREPAID_ORDER
            assert theorem.notion(process).epsilon(DELTA) <= engine.notion(process).epsilon(DELTA) * (1 + 2e-3)


REFUSED = [
    ({"domain": li.Ball(radius=1.0)}, fact("not_covered", feature="projection")),
    ({"prox": li.parts.L1(weight=0.1)}, fact("not_covered", feature="prox")),
    (
        {"loss": li.losses.general(gradient_sensitivity=1.0, smoothness=1.0, strong_convexity=0.0)},
        fact("lacks", what="clipped_gradients"),
    ),
    ({"loss": li.losses.network(clip=1.0)}, fact("not_prepayable", because=fact("loss_not_smooth"))),
    ({"loss": li.losses.network(clip=1.0, smoothness=1.0)}, fact("not_prepayable", because=fact("dimension_unknown"))),
    ({"loss": li.losses.softmax(feature_norm=1.0)}, fact("not_prepayable", because=fact("dimension_unknown"))),
    (
        {"loss": li.losses.ridge(feature_norm=1.0, clip=(1.0,) * 20)},
        fact("not_prepayable", because=fact("clip_changes")),
    ),
    ({"step_size": 9.0}, fact("not_prepayable", because=fact("step_size_too_large", step_size=9.0))),
]


@pytest.mark.parametrize(("change", "reason"), REFUSED)
def test_it_says_why_it_does_not_apply(change: dict[str, Any], reason: Fact) -> None:
    given = {"step_size": 0.1, "noise": li.OnMeanGradient(std=0.02), **change}
    run = logistic_run(CYCLIC, given.pop("step_size"), 1, **given)
    assert reasons(PREPAYMENT, run.process) == (reason,)


def test_losses_with_parameters_and_clipped_networks() -> None:
    """The more parameters the push may see, the more it may turn."""
    found = []
    for dimension in (1, 10, 1000):
        loss = li.losses.network(clip=1.0, smoothness=1.0)
        domain = li.Unbounded(dimension=dimension)
        run = logistic_run(CYCLIC, 0.01, 3, loss=loss, noise=li.OnMeanGradient(std=0.01), domain=domain)
        found.append(PREPAYMENT.notion(run.process).epsilon(DELTA))
    assert found == sorted(found)
    assert found[0] < 0.5 * SHIFT_ENGINE.notion(run.process).epsilon(DELTA)


def test_pushes_whose_squares_underflow_still_cost_something() -> None:
    noise = li.OnIterate(std=1e99)
    process = logistic_run(CYCLIC, 1e-90, 2, noise=noise).process
    assert 0 < process.step_mu < 1e-180
    (found,) = PREPAYMENT.bound(process).for_delta(1e-250).schedules
    assert process.step_mu < found.mu < 1e-149
    assert PREPAYMENT.notion(process).epsilon(1e-250) > 0


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_one_loud_step_prepays_for_many_turns(decay: float) -> None:
    """A hundred turns are prepaid at once, with a payment far above a push; without curvature it would be μ = 0.2."""
    std = np.append(1000.0, np.ones(399))
    batches = li.Cyclic(records=4, batch_size=1)
    noise, loss = li.OnMeanGradient(std=std), li.losses.huber(feature_norm=1.0)
    run = logistic_run(batches, 1e-6, 100, loss=loss, noise=noise, weight_decay=decay)
    report = li.account(run, 1e-5)
    assert report.certificate["proof"]["prepaid"]["largest"] > 50 * run.process.sensitivity[0]
    assert li.verify(report.certificate, run).accepted
    assert (
        li.notions.GaussianDP(0.2).epsilon(1e-5) < report.epsilon < 0.1 * SHIFT_ENGINE.notion(run.process).epsilon(1e-5)
    )
    assert li.account_each(run, 1e-5).worst <= report.epsilon


def test_schedules_releases_and_each_record() -> None:
    sizes = 0.2 / (1 + np.arange(80) / 20)
    run = logistic_run(CYCLIC, sizes, 4)
    report = li.account(run, DELTA, releases=[30])
    assert report.best.theorem.name == "prepayment"
    assert li.verify(report.certificate, run).accepted
    assert report.epsilon > li.account(run, DELTA).epsilon
    each = li.account_each(run, DELTA)
    assert each.worst == pytest.approx(li.account(run, DELTA).epsilon, rel=1e-9)
    assert each.batch_epsilons.min() < each.worst


def tampered(certificate: dict[str, Any], **changes: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(json.dumps(certificate))
    content["proof"]["prepaid"].update(changes)
    return content


def test_certificates_are_replayed_and_tampered_ones_refused() -> None:
    run = logistic_run(CYCLIC, 0.1, 3)
    certificate = li.account(run, DELTA).certificate
    assert certificate["grade"] == "replayed"
    assert li.verify(certificate).accepted
    for changes in (
        {"turning": 0.0},
        {"radius": [[0.0, 60]]},
        {"rank": 1},
        {"functions": 0},
        {"movement": [[0.0, 60]]},
        {"slack": 1e-30},
        {"slack": DELTA},
        {"largest": 1e-12},
    ):
        assert not li.verify(tampered(certificate, **changes)).accepted, changes
    without = json.loads(json.dumps(certificate))
    del without["proof"]["prepaid"]
    assert not li.verify(without).accepted
    smaller = json.loads(json.dumps(certificate))
    smaller["claim"]["epsilon"] *= 1 - 1e-6
    assert not li.verify(smaller).accepted


def test_payments_that_move_the_iterate_farther_than_assumed_are_refused() -> None:
    run = logistic_run(CYCLIC, 0.1, 3)
    content = tampered(li.account(run, DELTA).certificate, largest=run.process.sensitivity[0] / 100)
    assert "larger than the largest" in li.verify(content).reason


@pytest.mark.parametrize("rank", [1, 2, 3, 18, 1000])
@pytest.mark.parametrize("probability", [1e-3, 1e-12, 1e-40, 1e-200])
def test_no_longer_noise_is_more_likely(rank: int, probability: float) -> None:
    from mpmath import gammainc, mp, mpf

    with mp.workdps(60):
        length = mpf(longest(rank, probability))
        tail = gammainc(mpf(rank) / 2, length * length / 2, regularized=True)
        assert tail <= mpf(probability)
        assert longest(rank, probability) <= math.sqrt(rank) + math.sqrt(-2 * math.log(probability)) + 1e-6


def smooth(count: int, **changes: Any) -> Smooth:
    arrays = {"center": 0.9, "radius": 0.05, "movement": 2.0, "decay": 0.0, "rough": 0.0}
    arrays |= {name: changes.pop(name) for name in list(changes) if name in arrays}
    spread = {name: np.broadcast_to(np.asarray(value, float), count) for name, value in arrays.items()}
    return Smooth(**spread, **{"turning": 0.01, "rank": 2, "start": 0.0, **changes})


def test_what_is_kept_is_written_out() -> None:
    """c − ω − c·ℓ·(way + largest payment + ν·κ), κ = √(2·ln(T·N/δ0)) in two dimensions; decay adds the way back."""
    noise = np.broadcast_to(0.5, 100)
    farthest = math.sqrt(2 * math.log(100 * 3 / 1e-9))
    found = kept(smooth(100), noise, 0.3, 1e-9, functions=3).least
    assert found[50] == pytest.approx(0.9 - 0.05 - 0.9 * 0.01 * (2.0 + 0.3 + 0.5 * farthest), rel=1e-8)
    decaying = kept(smooth(100, decay=0.1, start=4.0), noise, 0.3, 1e-9, functions=3).least
    way = 2 * (2.0 + 0.3) + 0.1 * 4.0 + 0.5 * farthest * math.sqrt(2 / 1.9)
    assert decaying[50] == pytest.approx(0.9 - 0.05 - 0.9 * 0.01 * way, rel=1e-8)


def test_an_exception_that_is_shared_among_epochs_is_not_too_small() -> None:
    """At the smallest δ that are asked for: an answer, if only ∞."""
    loss, domain = li.losses.network(clip=1.0, smoothness=0.5), li.Unbounded(dimension=5)
    run = logistic_run(li.Shuffled(40, 10), 0.01, 3, loss=loss, noise=li.OnMeanGradient(std=1.0), domain=domain)
    report = li.account(run, 1e-300)
    assert "prepayment/epoch-by-epoch" in {one.theorem.name for one in report.guarantees}
    assert 0 < report.epsilon < math.inf


def test_what_decay_leaves_is_not_rounded_down() -> None:
    """A decay just below 1 is rounded up to 1, but what it leaves of a start far away still moves."""
    noise, start = np.full(3, 1.0), 1e14
    facts = smooth(3, decay=1.0, start=start, movement=0.0, radius=0.0, turning=1e-9)
    turned = kept(facts, noise, 0.0, 1e-9, functions=1).lost / facts.center
    assert turned[1] == pytest.approx(1e-9 * start, rel=1e-6)
    assert turned[2] > 1e-9 * start * 1e-12


def test_a_decay_just_below_one_is_accounted_for() -> None:
    loss, domain = li.losses.network(clip=1.0, smoothness=1e-3), li.Unbounded(dimension=2)
    noise = li.OnMeanGradient(std=1.0)
    run = logistic_run(CYCLIC, 1.0, 1, loss=loss, noise=noise, domain=domain, weight_decay=1 - 1e-13)
    assert isinstance(run.process.smooth, Smooth)
    assert run.process.smooth.decay[0] == 1.0
    assert 0 < li.account(run, DELTA).epsilon < 1


def test_decay_step_by_step_is_no_worse_than_its_closed_form() -> None:
    noise = np.full(200, 0.5)
    facts = smooth(200, decay=0.1, start=4.0)
    one_by_one = kept(facts, noise, 0.3, 1e-9, functions=1).least
    at_once = kept(facts, np.broadcast_to(0.5, 200), 0.3, 1e-9, functions=1).least
    assert (one_by_one >= at_once * (1 - 1e-9)).all()
    assert one_by_one[-1] == pytest.approx(at_once[-1], rel=1e-2)


def test_a_hidden_place_has_three_pushes() -> None:
    """The record against its neighbour, and either against the record that is exchanged: each of them may turn."""
    run = logistic_run(EACH, 0.4, 3)
    evidence = PREPAID_HIDDEN_PLACE.bound(run.process).for_delta(DELTA)
    assert evidence.prepaying is not None
    assert evidence.prepaying.functions == 3
    assert li.verify(li.account(run, DELTA).certificate).accepted
    theorems = (PREPAID_HIDDEN_PLACE, PREPAID_ORDER, HIDDEN_PLACE)
    both, prepaid, hidden = (theorem.notion(run.process).epsilon(DELTA) for theorem in theorems)
    assert both < prepaid * 1.002
    assert both < hidden


def test_steps_without_a_lipschitz_constant_leave_other_theorems_in_peace() -> None:
    """Nothing is proved then, and nothing fails."""
    process = logistic_run(EACH, 0.1, 2).process
    unknown = replace(process, lipschitz=np.broadcast_to(math.inf, len(process)))
    for theorem in (PREPAYMENT, PREPAID_ORDER, PREPAID_HIDDEN_PLACE):
        assert theorem.notion(unknown).epsilon(DELTA) == math.inf
    assert math.isfinite(PASSES_COMPOSITION.notion(unknown).epsilon(DELTA))
