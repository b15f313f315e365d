"""Bok2024 on random batches, and window and tail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

import lastiterate as li
from lastiterate.auditing.sums import Pushed, RandomSum
from lastiterate.curves.compose import compose
from lastiterate.theorems.composition import RANDOM_COMPOSITION
from lastiterate.theorems.papers.bok2024 import RANDOM_BOUNDED, RANDOM_CONTRACTING
from lastiterate.theorems.window_tail import WINDOW_TAIL, window_of
from processes import process, reasons
from raising import raises

BATCHES = li.FixedSize(records=1000, batch_size=10)
DELTA = 1e-6


def sampled(mu: float, count: int) -> li.notions.SubsampledGaussians:
    one = li.notions.subsampled_gaussian(
        mu=mu, inclusion=0.01, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE
    )
    return one.compose(count)  # type: ignore[return-value]


@pytest.mark.parametrize("window", [10, 100, 300])
def test_4_9_with_the_split_of_the_paper_is_not_better(window: int) -> None:
    """α = β = √2, any window, with the roots where they belong (errata E4.4): the search may only improve on it."""
    steps, c, push = 2000, 0.98, 0.4
    given = process(BATCHES, steps, sensitivity=push, lipschitz=c)
    first = 2 * math.sqrt(2) * push * (c ** (window + 1) - c**steps) / (1 - c)
    printed = compose([li.notions.GaussianDP(first), sampled(2 * math.sqrt(2) * push, 1), sampled(2 * push, window)])
    found = RANDOM_CONTRACTING.apply(given)
    assert found.epsilon(DELTA) <= printed.epsilon(DELTA) * (1 + 1e-6)  # type: ignore[union-attr]
    assert WINDOW_TAIL.apply(given).epsilon(DELTA) < found.epsilon(DELTA) / 2  # type: ignore[union-attr]


@pytest.mark.parametrize("window", [100, 400, 1600])
def test_4_10_with_the_split_of_the_paper_is_not_better(window: int) -> None:
    push, diameter = 0.2, 5.0
    given = process(BATCHES, 5000, sensitivity=push, diameter=diameter)
    printed = compose(
        [li.notions.GaussianDP(math.sqrt(2 / window) * diameter), sampled(2 * math.sqrt(2) * push, window)]
    )
    found = RANDOM_BOUNDED.apply(given)
    assert found.epsilon(DELTA) <= printed.epsilon(DELTA) * (1 + 1e-3)  # type: ignore[union-attr]
    assert WINDOW_TAIL.apply(given).epsilon(DELTA) < found.epsilon(DELTA)  # type: ignore[union-attr]


def test_footnote_9_of_bok2024_holds() -> None:
    """Errata, footnote 9: T(VW + Z, VW' + Z) for W, W' of norm at most s: opposite constants are the worst."""
    source = np.random.default_rng(5)
    for _ in range(300):
        rate, push = float(source.uniform(0.01, 0.9)), float(source.uniform(0.1, 2.0))
        w, v = (push * source.uniform(-1, 1) for _ in range(2))
        epsilon = float(source.uniform(0, 1))
        assert _gap(rate, w, v, epsilon) <= _gap(rate, push, -push, epsilon) + 1e-9


def _gap(rate: float, one: float, two: float, epsilon: float) -> float:
    """δ(ε) of (1−p)N(0) + pN(one) against (1−p)N(0) + pN(two), from their distribution functions on a fine grid."""
    edges = np.linspace(-12, 12, 4001)
    p = np.diff((1 - rate) * ndtr(edges) + rate * ndtr(edges - one))
    q = np.diff((1 - rate) * ndtr(edges) + rate * ndtr(edges - two))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def one_in_a_hundred(factor: float, steps: int) -> RandomSum:
    """What is left of a push of 1 at each step, noise 1, the record in one batch of a hundred."""
    weights = factor ** np.arange(float(steps))[:, None]
    return RandomSum(weights, np.full(weights.shape, 0.01), math.sqrt(float(np.square(weights).sum())))


@pytest.mark.parametrize("batches", [BATCHES, li.Poisson(records=1000, rate=0.01)], ids=repr)
@pytest.mark.parametrize(("push", "factor"), [(0.5, 0.9), (0.2, 0.99), (1.0, 0.97)])
def test_window_and_tail_is_above_the_linear_chain_and_not_far(
    batches: li.FixedSize, push: float, factor: float
) -> None:
    steps = 5000
    given = process(batches, steps, sensitivity=push, lipschitz=factor)
    found = WINDOW_TAIL.apply(given).epsilon(DELTA)  # type: ignore[union-attr]
    sides = [(push / 2, -push / 2)] + ([(push, 0.0)] if isinstance(batches, li.FixedSize) else [])
    lower = max(Pushed(one_in_a_hundred(factor, steps), *pair).epsilon(DELTA) for pair in sides)
    assert lower <= found <= 4 * lower
    assert found <= RANDOM_COMPOSITION.apply(given).epsilon(DELTA) * (1 + 1e-9)  # type: ignore[union-attr]


def test_every_window_is_a_valid_bound_and_the_search_finds_nearly_the_best() -> None:
    given = process(BATCHES, 3000, sensitivity=0.5, lipschitz=0.97)
    every = [window_of(given, length).epsilon(DELTA) for length in range(20, 400, 20)]
    found = WINDOW_TAIL.apply(given).epsilon(DELTA)  # type: ignore[union-attr]
    assert found <= min(every) * 1.02
    assert min(every) >= Pushed(one_in_a_hundred(0.97, 3000), 0.5, 0.0).epsilon(DELTA)


def test_a_schedule_of_equal_steps_is_the_same_as_equal_steps() -> None:
    alike = process(BATCHES, 500, sensitivity=0.3, lipschitz=0.95)
    listed = process(BATCHES, 500, sensitivity=np.full(500, 0.3), lipschitz=np.full(500, 0.95), noise=np.ones(500))
    assert window_of(listed, 80).epsilon(DELTA) == pytest.approx(window_of(alike, 80).epsilon(DELTA), rel=1e-3)


def test_growing_noise_helps_and_the_last_steps_count_most() -> None:
    noise = np.linspace(1.0, 2.0, 2000)
    rising = WINDOW_TAIL.apply(process(BATCHES, 2000, sensitivity=0.3, lipschitz=0.98, noise=noise))
    level = WINDOW_TAIL.apply(process(BATCHES, 2000, sensitivity=0.3, lipschitz=0.98))
    falling = WINDOW_TAIL.apply(process(BATCHES, 2000, sensitivity=0.3, lipschitz=0.98, noise=noise[::-1].copy()))
    assert rising.epsilon(DELTA) < falling.epsilon(DELTA) < level.epsilon(DELTA)  # type: ignore[union-attr]


def test_poisson_steps_are_judged_by_batches_that_occur() -> None:
    """η·smoothness/rate is 20, so that the worst batch moves iterates apart; usual batches do not."""
    run = li.Run(
        li.losses.logistic(feature_norm=2.0, l2=0.05),
        li.Poisson(records=20_000, rate=0.05),
        1.0,
        li.OnMeanGradient(std=0.02),
        3000,
    )
    assert run.process.contraction > 1
    assert run.process.but_for(1e-20).contraction < 1
    report = li.account(run, delta=1e-5)
    assert report.best.theorem is WINDOW_TAIL
    assert report.epsilon < report.epsilon_all_released / 1.5
    assert li.verify(report.certificate).accepted


def test_means_over_the_actual_size_take_the_smallest_batch_that_occurs() -> None:
    run = li.Run(
        li.losses.network(clip=1.0), li.parts.PoissonMean(records=10_000, rate=0.1), 0.1, li.OnIterate(std=0.01), 100
    )
    fewest, most = run.batches.others(math.log(1e-8 / 100))  # type: ignore[attr-defined]
    assert 600 < fewest < 1000 < most < 1400
    assert run.process.sensitivity[0] == pytest.approx(0.2)
    assert run.process.but_for(1e-8).sensitivity[0] == pytest.approx(0.2 / (fewest + 1))
    fixed = li.Run(run.loss, li.FixedSize(records=10_000, batch_size=fewest + 1), 0.1, run.noise, 100)
    ours, theirs = (li.account(one, delta=1e-5).epsilon_all_released for one in (run, fixed))
    assert ours >= theirs * (1 - 1e-6)


@pytest.mark.parametrize("kind", [li.Poisson, li.parts.PoissonMean])
@pytest.mark.parametrize("exception", [1e-4, 1e-12, 500e-30])
def test_batches_are_of_unusual_size_no_more_often_than_is_said(kind: type[li.Poisson], exception: float) -> None:
    """Exact, from scipy's binomial law: at each of 500 steps a five-hundredth of it."""
    run = li.Run(li.losses.network(clip=1.0), kind(records=1000, rate=0.1), 0.1, li.OnIterate(std=0.1), 500)
    fewest, most = run.batches.others(math.log(exception) - math.log(500))  # type: ignore[attr-defined]
    outside = binom.cdf(fewest - 1, 999, 0.1) + binom.sf(most, 999, 0.1)
    assert 500 * outside <= exception
    given, sizes = run.process.but_for(exception), run.batches.usual_sizes(math.log(exception / 500))
    assert given.usual is None
    assert given.drift[0] == pytest.approx(0.2 * sizes.largest_share)
    assert given.sensitivity[0] == pytest.approx(0.2 / sizes.divisor)
    assert li.Run(run.loss, BATCHES, 0.1, run.noise, 500).process.usual is None


def test_the_probability_of_unusual_batches_is_added() -> None:
    """Whatever is chosen for the δ that is asked for: the bound of the same batches, and what is left out."""
    run = li.Run(
        li.losses.network(clip=1.0), li.parts.PoissonMean(records=1000, rate=0.1), 0.1, li.OnIterate(std=0.004), 500
    )
    for theorem in (RANDOM_COMPOSITION, WINDOW_TAIL):
        found = theorem.apply(run.process).notion  # type: ignore[union-attr]
        for delta, exception in ((1e-5, 1e-8), (1e-9, 1e-12), (0.01, 1e-6)):
            given = theorem.notion(run.process.but_for(exception))
            assert found.epsilon(delta) == pytest.approx(given.epsilon(delta - exception), rel=1e-9)
            assert found.delta(found.epsilon(delta)) <= delta * (1 + 1e-6)
        assert found.delta(600.0) > 0


def test_what_no_size_changes_needs_no_exception() -> None:
    """Sums over a constant, every iterate released: the law of sampling does not ask how large a batch is."""
    run = li.Run(li.losses.network(clip=1.0), li.Poisson(records=1000, rate=0.1), 0.1, li.OnIterate(std=0.1), 500)
    every = RANDOM_COMPOSITION.notion(run.process.but_for(0.0))
    for delta in (1e-2, 1e-5, 1e-12):
        assert RANDOM_COMPOSITION.notion(run.process).epsilon(delta) == every.epsilon(delta)


def test_sizes_that_are_narrower_are_never_looser() -> None:
    """Beside the range that batches leave with probability 1e-30: at every δ."""
    run = li.Run(
        li.losses.logistic(feature_norm=2.0, l2=0.05), li.Poisson(400, 0.1), 0.45, li.OnMeanGradient(std=0.1), 300
    )
    extreme = run.process.but_for(300e-30)
    for theorem in (WINDOW_TAIL, RANDOM_CONTRACTING):
        found, before = theorem.notion(run.process), theorem.notion(extreme)
        for delta in (1e-3, 1e-5, 1e-9, 1e-20):
            assert found.epsilon(delta) <= before.epsilon(delta - 300e-30) * (1 + 1e-9)
        epsilons = np.array([0.1, 1.0, 4.0])
        assert (found.delta(epsilons) <= (before.delta(epsilons) + 300e-30) * (1 + 1e-9)).all()


def test_assumptions_are_asked_of_batches_that_occur() -> None:
    """At step size 0.8 no batch of 1.9 times the mean contracts; at δ = 1e-60 batches of that size count, too."""
    run = li.Run(
        li.losses.logistic(feature_norm=2.0, l2=0.05), li.Poisson(400, 0.1), 0.8, li.OnMeanGradient(std=0.1), 300
    )
    assert run.process.but_for(1e-8).contraction < 1 < run.process.but_for(1e-60).contraction
    found = RANDOM_CONTRACTING.apply(run.process)
    assert math.isfinite(found.epsilon(1e-5))  # type: ignore[union-attr]
    assert found.epsilon(1e-60) == math.inf  # type: ignore[union-attr]
    larger = li.Run(run.loss, run.batches, 1.2, run.noise, 300)
    (reason,) = reasons(RANDOM_CONTRACTING, larger.process)
    share = larger.batches.usual_sizes(math.log(1e-8 / 300)).largest_share
    because = dict(reason.values)["because"]
    assert (reason.code, because.code) == ("not_contracting", "lipschitz_constant")  # type: ignore[union-attr]
    assert {"largest_share": share, "unusual_apart": True, "step_size": 1.2}.items() <= dict(because.values).items()  # type: ignore[union-attr]
    assert f"all but unusual batches of up to {share:.4g} times the expected size" in str(reason)


def test_noise_on_a_sum_that_is_divided_by_the_actual_size_is_refused() -> None:
    with raises("no_fixed_divisor", "noise", kind=li.errors.InvalidInput):
        li.Run(
            li.losses.network(clip=1.0),
            li.parts.PoissonMean(records=100, rate=0.1),
            0.1,
            li.OnGradientSum(multiplier=1.0, clip=1.0),
            10,
        )
