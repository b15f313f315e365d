"""Windows, blocks and contractions beside the same formulas written once more, plainly: equal, and never below.

θ_ε(r) = Q(ε/r − r/2) − e^ε·Q(ε/r + r/2), by mpmath where digits matter and by scipy where a search is long.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

import lastiterate as li
from lastiterate.mixing.contraction import contracted, curved_contraction, linear_contraction
from lastiterate.mixing.recursion import Block, for_ever, from_common_start, mixed_profile
from lastiterate.mixing.table import Quick, Tabled
from lastiterate.mixing.window import Ends, Tail, WindowTail, joined


def theta(epsilon: np.ndarray | float, r: float) -> np.ndarray:
    epsilon = np.asarray(epsilon, float)
    return ndtr(r / 2 - epsilon / r) - np.exp(epsilon) * ndtr(-r / 2 - epsilon / r)


def exact_theta(epsilon: float, r: float) -> mpmath.mpf:
    with mpmath.workdps(40):
        e, r = mpmath.mpf(epsilon), mpmath.mpf(r)
        return mpmath.ncdf(r / 2 - e / r) - mpmath.exp(e) * mpmath.ncdf(-r / 2 - e / r)


# Window and tail


@pytest.mark.parametrize("mus", [(0.3,), (0.05, 0.4), (0.01, 0.2, 1.5)])
@pytest.mark.parametrize("window_mu", [0.2, 1.0])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_window_and_tail_is_the_best_split(mus: tuple[float, ...], window_mu: float, epsilon: float) -> None:
    """min over a of Σ w·θ_a(μ) + e^a·d(ε − a): over ten thousand a, and as many around the best, a little less."""
    weights = np.array([1.0, 1e-2, 1e-4])[: len(mus)]

    def at(splits: np.ndarray) -> np.ndarray:
        tail = sum(w * theta(splits, mu) for w, mu in zip(weights, mus, strict=True))
        return np.asarray(tail + np.exp(splits) * theta(epsilon - splits, window_mu))

    splits = np.linspace(0.0, epsilon, 10_001)
    near = splits[int(at(splits).argmin())] + np.linspace(-1e-4, 1e-4, 10_001) * epsilon
    best = min(float(at(np.clip(near, 0.0, epsilon)).min()), 1.0)
    given = WindowTail(Tail(np.array(mus), weights), li.notions.GaussianDP(window_mu))
    found = float(given.delta(epsilon))
    assert best * (1 - 1e-9) <= found <= best * (1.06 if best > 1e-7 else 4.0)
    if 1e-12 < found < 0.1:
        needed = float(given.epsilon(found))
        assert needed <= 1.25 * epsilon
        # No split has less than this at the ε that is returned for δ.
        finer = np.linspace(0.0, needed, 10_001)
        tails = sum(w * theta(finer, mu) for w, mu in zip(weights, mus, strict=True))
        assert float((tails + np.exp(finer) * theta(needed - finer, window_mu)).min()) <= found * (1 + 1e-9)


@pytest.mark.parametrize(
    ("log_tail", "split", "log_window"), [(-5.0, 0.7, -6.0), (-40.0, 2.0, -30.0), (-3.0, 0.0, -9.0)]
)
def test_what_is_joined_is_the_sum(log_tail: float, split: float, log_window: float) -> None:
    """E_a + e^a·E_b, to 1e-12, and not below."""
    exact = mpmath.log(mpmath.exp(log_tail) + mpmath.exp(split) * mpmath.exp(log_window))
    found = float(joined(np.array([log_tail]), np.array([split]), np.array([log_window]))[0])
    assert exact <= found <= exact + 1e-11
    assert joined(np.array([0.0]), np.array([1.0]), np.array([-1.0]))[0] == 0


def test_a_tail_is_a_weighted_sum_and_its_epsilon_the_least() -> None:
    tail = Tail(np.array([0.2, 0.9]), np.array([1.0, 1e-3]))
    for epsilon in (0.0, 0.4, 2.0, 6.0):
        exact = mpmath.log(exact_theta(epsilon, 0.2) + mpmath.mpf("1e-3") * exact_theta(epsilon, 0.9))
        found = float(tail.log_delta(np.array([epsilon]))[0])
        assert exact <= found <= exact + 1e-9
    for log_delta in (-3.0, -10.0, -40.0):
        epsilon = float(tail.epsilon(np.array([log_delta]))[0])
        assert tail.log_delta(np.array([epsilon]))[0] <= log_delta
        assert tail.log_delta(np.array([epsilon * (1 - 1e-6)]))[0] > log_delta
    nothing = Tail(np.zeros(1), np.ones(1))
    assert np.isneginf(nothing.log_delta(np.array([0.0, 1.0]))).all()
    assert (nothing.epsilon(np.array([-3.0, -300.0])) == 0).all()


def test_without_a_tail_a_window_is_itself() -> None:
    window = li.notions.GaussianDP(0.8)
    given = WindowTail(Tail(np.zeros(1), np.ones(1)), window)
    assert given.delta(1.0) == pytest.approx(float(window.delta(1.0)), rel=1e-12)
    assert given.epsilon(1e-5) == pytest.approx(float(window.epsilon(1e-5)), rel=1e-12)


def test_the_share_of_delta_is_searched_on_both_sides() -> None:
    """Whatever the share, the bound holds; the third that is tried lies beyond the better of the first two."""
    window = li.notions.Profile(function=li.notions.GaussianDP(1.0).delta)  # without an estimate
    given = WindowTail(Tail(np.array([0.5]), np.ones(1)), window)
    found = {share: (one.value, split) for share, (one, split) in given.split_for(math.log(1e-6)).items()}
    assert len(found) == 3
    for share, (epsilon, split) in found.items():
        assert 0 < share < 1
        assert 0 < split < epsilon
        assert theta(split, 0.5) == pytest.approx(share * 1e-6, rel=1e-6)
        left = math.exp(split) * float(theta(epsilon - split, 1.0))
        assert left == pytest.approx((1 - share) * 1e-6, rel=1e-5)
        assert theta(split, 0.5) + left <= 1e-6 * (1 + 1e-9)
    first, second, third = sorted(found)
    assert (third > 0.2) == (found[0.2][0] < found[0.03][0]) or first < 0.03
    assert given.epsilon(1e-6) == min(epsilon for epsilon, _ in found.values())
    assert second in (0.03, 0.2)


# The profile recursion


def recursion_by_hand(
    epsilons: np.ndarray, before: np.ndarray, common: float, apart: float
) -> tuple[np.ndarray, set[str], np.ndarray]:
    """For each ε the least over e0 of max{d(ε − e0), (1 − x)·d(ε − e0) + x·M(ε̃)}; which of the two it was; and the
    least without the maximum, which proves nothing."""
    after, branches, unproved = np.ones_like(epsilons), set(), np.ones_like(epsilons)
    for at, epsilon in enumerate(epsilons):
        found = []
        for e0, x in zip(epsilons[: at + 1].tolist(), before[: at + 1].tolist(), strict=True):
            d = mixed = float(theta(epsilon - e0, common))
            if x > 0:
                lifted = epsilon - e0 + math.log1p(math.expm1(e0) / x)
                mixed = (1 - x) * d + x * float(chord(lifted, apart))
            found.append((max(d, mixed), "mixed" if mixed > d else "common", mixed))
        after[at], branch, _ = min(found)
        unproved[at] = min(mixed for *_, mixed in found)
        branches.add(branch)
    return after, branches, unproved


APART = np.linspace(0.0, 30.0, 3001)


def chord(epsilon: float, apart: float) -> float:
    """M between the points of a table: a profile is convex in e^ε."""
    return float(np.interp(math.exp(min(epsilon, 700.0)), np.exp(APART), np.maximum(theta(APART, apart), 0.0)))


def block_of(common: float, apart: float, epsilons: np.ndarray) -> Block:
    return Block(epsilons, theta(epsilons, common), APART, np.maximum(theta(APART, apart), 0.0))


@pytest.mark.parametrize(
    ("common", "apart", "largest", "branches"),
    [
        (0.3, 1.0, 3.0, {"mixed"}),
        (0.1, 3.0, 3.0, {"mixed"}),
        (0.85, 0.915, 6.14, {"mixed", "common"}),
        (0.4332, 0.4792, 6.3, {"mixed", "common"}),
    ],
)
def test_the_recursion_is_its_formula_and_each_case_of_the_maximum_occurs(
    common: float, apart: float, largest: float, branches: set[str]
) -> None:
    epsilons = np.linspace(0.0, largest, 41)
    block, before, seen, gap = block_of(common, apart, epsilons), np.zeros(41), set(), 1.0
    for blocks in range(1, 4):
        by_hand, which, unproved = recursion_by_hand(epsilons, before, common, apart)
        clear = by_hand > 1e-12
        gap = max(gap, float((by_hand[clear] / unproved[clear]).max()))
        seen |= which if blocks > 1 else set()
        found = block.after(before)
        assert (found[clear] >= by_hand[clear] * (1 - 1e-12)).all()
        assert found[clear] == pytest.approx(by_hand[clear], rel=1e-9)
        assert (found >= theta(epsilons, common) * (1 - 1e-12)).all()
        assert (found >= before).all()
        before = found
        assert from_common_start(block, blocks) == pytest.approx(found, rel=1e-12)
    assert branches <= seen
    assert (gap > 1.1) == ("common" in branches)  # without the maximum a tenth less would be claimed


@pytest.mark.parametrize(("common", "apart"), [(0.3, 1.0), (1.0, 1.5), (0.1, 3.0)])
def test_the_bound_for_ever_is_above_any_number_of_blocks_and_not_far(common: float, apart: float) -> None:
    epsilons = np.linspace(0.0, 4.0, 41)
    block = block_of(common, apart, epsilons)
    ever = for_ever(block, np.ones(41), 400)
    many = from_common_start(block, 300)
    assert (ever >= many * (1 - 1e-9)).all()
    assert ever == pytest.approx(many, rel=0.05)
    assert (for_ever(block, np.ones(41), 2) >= ever).all()
    assert (for_ever(block, np.full(41, 1e-3), 0) == 1e-3).all()


def test_a_profile_that_rises_counts_as_what_it_was_before() -> None:
    """A bound on δ at a smaller ε is one at a larger."""
    epsilons = np.linspace(0.0, 2.0, 21)
    block, falling = block_of(0.5, 1.5, epsilons), theta(np.linspace(0.0, 2.0, 21), 0.9)
    rising = falling.copy()
    rising[10:] = falling[9] * 1.5
    level = np.append(falling[:10], np.full(11, falling[9]))
    assert block.after(rising) == pytest.approx(block.after(level), rel=1e-12)
    assert block.after(np.full(21, 7.0)) == pytest.approx(block.after(np.ones(21)), rel=1e-12)


@pytest.mark.parametrize(("common", "apart", "blocks"), [(0.3, 1.0, 1), (0.3, 1.0, 4), (1.0, 1.5, 3), (0.2, 2.5, 1000)])
def test_blocks_on_their_grid_are_near_a_fine_grid(common: float, apart: float, blocks: int) -> None:
    fine = np.linspace(0.0, 6.0, 401)
    block = block_of(common, apart, fine)
    best = from_common_start(block, min(blocks, 60))
    found = mixed_profile(lambda e: theta(e, common), lambda e: np.maximum(theta(e, apart), 1e-300), blocks).delta(fine)
    clear = best > 1e-10
    assert (found[clear] >= best[clear] * (1 - 2e-2 * (blocks <= 60) - 0.2 * (blocks > 60))).all()
    assert (found[clear] <= best[clear] * 1.5).all()
    assert (found >= theta(fine, common) * (1 - 1e-9)).all()


# What a block reveals


@pytest.mark.parametrize(("common", "apart", "same"), [(0.4, 2.0, 1.2), (0.4, 2.0, math.inf), (0.4, math.inf, 1.2)])
def test_the_ends_of_a_block_are_the_better_of_two_bounds(common: float, apart: float, same: float) -> None:
    epsilons = np.array([0.0, 0.2, 0.7, 1.5, 3.0])
    ends = Ends(li.notions.GaussianDP(common), common, apart, same)
    direct = theta(epsilons, apart) if math.isfinite(apart) else np.ones(5)
    joined_best = np.ones(5)
    if math.isfinite(same):
        for at, epsilon in enumerate(epsilons):
            splits = np.linspace(0.0, epsilon, 4001)
            both = theta(splits, same) + np.exp(splits) * theta(epsilon - splits, common)
            joined_best[at] = min(float(both.min()), 1.0)
    best = np.minimum(direct, joined_best)
    found = ends.apart_delta(epsilons)
    assert (found >= best * (1 - 1e-9)).all()
    assert (found <= best * 1.25).all()
    assert ends.common_delta(epsilons) == pytest.approx(theta(epsilons, common), rel=1e-9)


def test_a_record_in_every_batch_bounds_a_block_from_a_common_state_too() -> None:
    weaker = Ends(li.notions.GaussianDP(0.9), 0.4, 2.0, 1.2)
    epsilons = np.array([0.0, 0.5, 2.0])
    assert weaker.common_delta(epsilons) == pytest.approx(theta(epsilons, 0.4), rel=1e-9)
    unknown = Ends(li.notions.GaussianDP(0.9), math.inf, math.inf, math.inf)
    assert unknown.common_delta(epsilons) == pytest.approx(theta(epsilons, 0.9), rel=1e-9)
    assert (unknown.apart_delta(epsilons) >= 1.0).all()


# Contractions


@pytest.mark.parametrize("rate", [0.01, 0.4, 1.0])
@pytest.mark.parametrize("ratio", [0.5, 2.5])
@pytest.mark.parametrize("steps", [0, 1, 7, 300])
def test_linear_contraction_is_its_recursion(rate: float, ratio: float, steps: int) -> None:
    """δ_t = (1 − p)·θ·δ_{t−1} + p·θ, in 40 digits."""
    epsilons = np.array([0.0, 0.3, 1.0, 4.0])
    found = linear_contraction(epsilons, ratio, rate, steps)
    for epsilon, one in zip(epsilons, found, strict=True):
        delta, factor = mpmath.mpf(0), exact_theta(epsilon, ratio)
        for _ in range(steps):
            delta = (1 - mpmath.mpf(rate)) * factor * delta + mpmath.mpf(rate) * factor
        assert delta <= one <= delta * (1 + mpmath.mpf("1e-9"))


def curve(x: mpmath.mpf, epsilon: float, ratio: float) -> mpmath.mpf:
    """g(x) = x·θ_{ε(x)}(r), ε(x) = log(1 + (e^ε − 1)/x)."""
    return x * exact_theta(mpmath.log1p(mpmath.expm1(epsilon) / x), ratio) if x else mpmath.mpf(0)


@pytest.mark.parametrize("rate", [0.01, 0.4, 1.0])
@pytest.mark.parametrize("ratio", [0.5, 2.5])
@pytest.mark.parametrize("steps", [1, 2, 9, 100, 101, 5000])
def test_curved_contraction_is_its_recursion(rate: float, ratio: float, steps: int) -> None:
    """δ_t = (1 − p)·g(δ_{t−1}) + p·g(1); beyond a hundred steps the fixed point, which a few hundred steps reach."""
    epsilons = np.array([0.0, 0.3, 2.0])
    found = curved_contraction(epsilons, ratio, rate, steps)
    assert (found <= linear_contraction(epsilons, ratio, rate, steps) * (1 + 1e-9) + (steps > 100) * 1e-9).all()
    for epsilon, one in zip(epsilons, found, strict=True):
        delta, fresh = mpmath.mpf(0), curve(mpmath.mpf(1), epsilon, ratio)
        for _ in range(min(steps, 200)):
            delta = (1 - mpmath.mpf(rate)) * curve(delta, epsilon, ratio) + mpmath.mpf(rate) * fresh
        assert delta <= one <= delta * (1 + mpmath.mpf("1e-7"))


@pytest.mark.parametrize("distance", [1e-200, 1e-5, 0.3, 1.0])
@pytest.mark.parametrize(("epsilon", "ratio"), [(1e-9, 30.0), (705.0, 50.0), (1e4, 150.0)])
def test_the_curve_has_no_limit_of_its_range(distance: float, epsilon: float, ratio: float) -> None:
    """e^ε and what is divided by x may be beyond all floats, where what is left is not."""
    with mpmath.workdps(60):
        x, e, r = mpmath.mpf(distance), mpmath.mpf(epsilon), mpmath.mpf(ratio)
        lifted = mpmath.log1p(mpmath.expm1(e) / x)
        exact = x * (mpmath.ncdf(r / 2 - lifted / r) - mpmath.exp(lifted) * mpmath.ncdf(-r / 2 - lifted / r))
    found = float(contracted(np.array([distance]), np.array([epsilon]), ratio)[0])
    assert exact <= found <= exact * (1 + mpmath.mpf("1e-8"))


def test_the_curve_is_convex_and_nothing_comes_of_nothing() -> None:
    xs = np.linspace(0.0, 1.0, 21)
    values = contracted(xs, np.full(21, 0.7), 1.3)
    assert values[0] == 0
    assert values[-1] == pytest.approx(float(exact_theta(0.7, 1.3)), rel=1e-11)
    assert (np.diff(values, 2) >= -1e-12).all()
    assert (contracted(np.array([0.5]), np.array([900.0]), 1.3) < 1e-12).all()


# Tables


@pytest.mark.parametrize("times", [3, 400])
def test_a_table_is_above_what_it_stands_for_and_near(times: int) -> None:
    notion = li.notions.subsampled_gaussian(
        mu=0.6, inclusion=0.1, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE
    ).compose(times)
    tabled, quick = Tabled(notion), Quick(notion)
    epsilons = np.array([0.01, 0.1, 0.3, 0.6, 1.1])
    exact = np.asarray(notion.delta(epsilons))
    lower = np.asarray(notion.delta_bracket(epsilons)[0])
    found = tabled.delta(epsilons)
    assert (found >= lower).all()
    assert (found <= exact * 1.05).all()
    assert tabled.log_delta(epsilons) == pytest.approx(np.log(found), rel=1e-12)
    assert quick.delta(epsilons) == pytest.approx(found, rel=1e-9)
    assert quick.delta(0.3) == notion.delta(0.3)
    for delta in (1e-3, 1e-8):
        asked, needed = tabled.epsilon(math.log(delta)).value, float(notion.bracket(delta)[0])
        assert needed * (1 - 1e-9) <= asked <= needed * 1.05
        assert quick.epsilon(delta) == pytest.approx(asked, rel=1e-9)
    assert quick.adjacency is li.REPLACE_ONE
    far = tabled.epsilon(math.log(1e-60)).value
    assert far >= float(notion.bracket(1e-60)[0])
    assert (tabled.delta(np.array([30.0, 700.0])) >= 0).all()


def test_a_formula_needs_no_table() -> None:
    tabled = Tabled(li.notions.GaussianDP(0.7))
    assert tabled.delta(np.array([0.4])) == pytest.approx(theta(0.4, 0.7), rel=1e-9)
    assert tabled.epsilon(math.log(1e-5)).value == pytest.approx(
        float(li.notions.GaussianDP(0.7).epsilon(1e-5)), rel=1e-12
    )
    assert li.notions.GaussianDP(0.7).delta(tabled.reach) <= 1e-19 * (1 + 1e-9)
