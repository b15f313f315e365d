"""Adaptive composition of any guarantees with one adjacency."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from lastiterate.curves.adjacency import POISSON, REPLACE_ONE, Adjacency, common_adjacency
from lastiterate.curves.gaussian import GaussianDP, composed_mu
from lastiterate.curves.notion import Notion
from lastiterate.curves.renyi import DEFAULT_ORDERS, RenyiDP
from lastiterate.curves.sampled_steps import SampledStep
from lastiterate.curves.subsampled import SubsampledGaussians, merged
from lastiterate.errors import (
    NON_NEGATIVE,
    POSITIVE,
    UNIT,
    Interval,
    InvalidInput,
    checked_array,
    checked_choice,
    checked_number,
    must_be,
    shown,
)
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.cumulant import LONGEST_EXTRAPOLATION
from lastiterate.numerics.lattice import LatticeSum, Masses, TiltedSum
from lastiterate.numerics.roots import decreasing_crossing
from lastiterate.numerics.rounding import up

Counted = Sequence[tuple[Notion, int]]

# What is beyond counts as +∞, and adds so much to δ for each part; less asks for more cells.
_LOG_TAIL = math.log(1e-16)
_MOST_CELLS = 200_000  # of one part: fewer are coarser, and so looser, where losses are large; more are slower


def compose(guarantees: Iterable[Notion]) -> Notion:
    """The guarantee of all these releases together; exact for Gaussian and subsampled Gaussian mechanisms.

    A report of `li.account` counts as its best guarantee.
    """
    return compose_counted([(part, 1) for part in checked_notions("compose", guarantees)])


def compose_counted(parts: Counted) -> Notion:
    """Return the guarantee of all these releases, each as often as its count says."""
    adjacency = common_adjacency(part.adjacency for part, _ in parts)
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    if all(isinstance(part, GaussianDP) for part, _ in parts):
        return GaussianDP(composed_mu([p.mu for p, _ in parts], [n for _, n in parts]), adjacency)  # type: ignore[attr-defined]
    if all(isinstance(part, GaussianDP | SubsampledGaussians) for part, _ in parts):
        return merged([(_as_subsampled(part), n) for part, n in parts if not _is_perfect(part)], adjacency)
    if any(isinstance(part, RenyiDP) for part, _ in parts) and all(_has_rdp(part) for part, _ in parts):
        return _composed_renyi(parts, adjacency)
    return _composed_losses(parts, adjacency)


def checked_notions(name: str, guarantees: Iterable[Notion]) -> list[Notion]:
    """Return the guarantees as a list of at least one. What is not one may say which it stands for by `as_notion`."""
    try:
        listed = [one.as_notion() if hasattr(one, "as_notion") else one for one in guarantees]
    except TypeError:
        listed = []
    if not listed:
        raise InvalidInput("no_guarantees", field="guarantees", function=name, got=f"{shown(guarantees):.60}")
    for guarantee in listed:
        if not isinstance(guarantee, Notion):
            raise InvalidInput("not_a_guarantee", field="guarantees", function=name, got=f"{shown(guarantee):.60}")
    return listed


def _is_perfect(part: Notion) -> bool:
    return isinstance(part, GaussianDP) and part.mu == 0


def _as_subsampled(part: Notion) -> SubsampledGaussians:
    if isinstance(part, GaussianDP):
        return SubsampledGaussians(((SampledStep(part.mu, 1.0, POISSON), 1),), part.adjacency)
    return part  # type: ignore[return-value]


def _has_rdp(part: Notion) -> bool:
    return isinstance(part, GaussianDP | SubsampledGaussians | RenyiDP)


def _composed_renyi(parts: Counted, adjacency: Adjacency) -> RenyiDP:
    """Add divergences. Linear ones stay linear; else the orders are those that every curve knows."""
    if all(isinstance(part, GaussianDP) or (isinstance(part, RenyiDP) and part.rho is not None) for part, _ in parts):
        rho = math.fsum(n * float(part.rdp(2.0)) / 2 for part, n in parts)
        return RenyiDP(rho=up(rho, operations=5), adjacency=adjacency)
    curves = [part.orders for part, _ in parts if isinstance(part, RenyiDP) and part.rho is None]
    orders = np.unique(np.concatenate([*curves])) if curves else DEFAULT_ORDERS
    for curve in curves:
        orders = orders[orders <= curve[-1]]
    divergences = np.zeros_like(orders)
    for part, times in parts:
        divergences = divergences + times * np.asarray(part.rdp(orders))
    return RenyiDP(orders=orders, divergences=up(divergences, operations=5), adjacency=adjacency)


def _composed_losses(parts: Counted, adjacency: Adjacency) -> PrivacyLoss:
    """Compose on one lattice: that of the discretised losses among the parts, or one fine enough for all."""
    known = [part.total.spacing for part, _ in parts if isinstance(part, PrivacyLoss)]
    spacing = min(known) if known else spacing_for([part for part, _ in parts])
    masses: list[Masses] = []
    counts: list[int] = []
    for part, times in parts:
        lattice = part.total if isinstance(part, PrivacyLoss) and part.total.spacing == spacing else None
        if lattice is None:
            lattice = LatticeSum((profile_to_masses(part, spacing),), (1,))
        masses.extend(lattice.parts)
        counts.extend(times * count for count in lattice.counts)
    return PrivacyLoss.of_sum(LatticeSum(tuple(masses), tuple(counts)), adjacency)


def spacing_for(parts: list[Notion]) -> float:
    """Return the spacing of a lattice: a thousandth of the typical loss, or more if that would need too many cells."""
    typical = [float(part.epsilon(1e-6)) for part in parts]
    finite = [x for x in typical if math.isfinite(x) and x > 0] or [1.0]
    largest = max(largest_loss(part) for part in parts)
    return max(1e-3 * math.sqrt(float(np.mean(np.square(finite)))), 2 * largest / _MOST_CELLS)


def largest_loss(part: Notion) -> float:
    """Return the ε beyond which the profile is so flat that the rest is counted as +∞."""
    largest = float(part.epsilon_at_log(np.array([_LOG_TAIL]))[0])
    if math.isfinite(largest):
        return min(largest, 500.0)
    floor = float(part.delta(500.0))
    candidate = float(part.epsilon_at_log(np.array([math.log(up(floor, by=1e-9) + 1e-16)]))[0])
    return min(candidate, 500.0)


def profile_to_masses(part: Notion, spacing: float) -> Masses:
    """Return the loss of the symmetric pair whose profile connects the dots (ε_i, δ(ε_i)): it dominates the guarantee.

    In y = e^ε the slopes s_i of the profile are −Q(L > ε_i); a kink at y_i is a Q-mass, y_i times it a P-mass. The mirror
    image of a P-mass m at ε is e^{−ε}·m at −ε; the rest sits at 0.
    """
    cells = max(2, math.ceil(largest_loss(part) / spacing))
    epsilons = spacing * np.arange(cells + 1)
    deltas = np.minimum.accumulate(np.asarray(part.delta(epsilons)))
    slopes = np.append(np.diff(deltas) / np.diff(np.exp(epsilons)), 0.0)
    # Rounding may bend the chain; drawn from the right with slopes that only steepen, it is convex and lies above.
    slopes = np.minimum.accumulate(slopes[::-1])[::-1]
    raised = deltas[-1] - np.append(np.cumsum((slopes[:-1] * np.diff(np.exp(epsilons)))[::-1])[::-1], 0.0)
    infinite = float(deltas[-1] + max(np.max(deltas - raised), 0.0))
    above = np.diff(slopes) * np.exp(epsilons[1:])
    below = above * np.exp(-epsilons[1:])
    middle = max(1.0 - infinite - math.fsum(above) - math.fsum(below), 0.0)
    return Masses(-spacing * cells, spacing, up(np.concatenate([below[::-1], [middle], above]), by=1e-10), infinite)


# Discretised privacy-loss distributions.


_REAL = Interval(-math.inf, math.inf)
_MOST_LOSS_CELLS = (
    20_000  # of a Gaussian mechanism on the lattice of another loss: more are slow, and a table is as sharp
)


@dataclass(frozen=True, init=False, eq=False)
class PrivacyLoss(Notion):
    """Mass masses[i] at the privacy loss first + i·spacing, `infinite` at +∞: the law of log dP/dQ under P, for a pair
    (P, Q) that dominates the mechanism in both orders. Composition is a lattice sum, evaluated on demand.
    """

    adjacency: Adjacency
    _total: LatticeSum = field(repr=False)
    _tilted: list[tuple[float, TiltedSum]] = field(repr=False)

    def __init__(
        self,
        *,
        first: float,
        spacing: float,
        masses: ArrayLike,
        infinite: float = 0.0,
        adjacency: Adjacency = REPLACE_ONE,
    ) -> None:
        first, spacing = checked_number("first", first, _REAL), checked_number("spacing", spacing, POSITIVE)
        infinite = checked_number("infinite", infinite, UNIT)
        mass_array = np.atleast_1d(checked_array("masses", masses, NON_NEGATIVE))
        if mass_array.ndim != 1 or mass_array.size == 0:
            raise must_be("masses", "a list of floats", f"an array of shape {mass_array.shape}")
        total = math.fsum(mass_array) + infinite
        if abs(total - 1) > 1e-9:
            raise must_be("masses", "of sum 1", f"{total:.12g}", called="masses with infinite")
        points = first + spacing * np.arange(mass_array.size)
        with np.errstate(over="ignore"):
            mirrored = float((mass_array * np.exp(-points)).sum())
        if mirrored > 1 + 1e-9:
            raise InvalidInput("not_a_privacy_loss", field="masses", got=f"{mirrored:.6g}")
        self._fill(LatticeSum((Masses(first, spacing, mass_array, infinite),), (1,)), adjacency)

    def _fill(self, total: LatticeSum, adjacency: Adjacency) -> None:
        object.__setattr__(self, "adjacency", checked_choice("adjacency", adjacency, Adjacency))
        object.__setattr__(self, "_total", total)
        object.__setattr__(self, "_tilted", [])

    @classmethod
    def of_sum(cls, total: LatticeSum, adjacency: Adjacency) -> PrivacyLoss:
        """Return the loss whose law is `total`."""
        loss = cls.__new__(cls)
        loss._fill(total, adjacency)
        return loss

    @property
    def total(self) -> LatticeSum:
        return self._total

    def log_delta(self, epsilons: Floats) -> Floats:
        return np.array([self._log_delta_at(epsilon) for epsilon in epsilons.tolist()])

    def _log_delta_at(self, epsilon: float) -> float:
        if epsilon >= self._total.last:
            return math.log(self._total.infinite) if self._total.infinite else -math.inf
        return self._sharp_at(epsilon).log_upper(epsilon)

    def _sharp_at(self, epsilon: float) -> TiltedSum:
        for drawn_at, tilted in self._tilted:
            if abs(epsilon - drawn_at) * tilted.abscissa <= LONGEST_EXTRAPOLATION:
                return tilted
        self._tilted.append((epsilon, self._total.tilt_for(epsilon)))
        return self._tilted[-1][1]

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        return np.array([self._epsilon_at(log_delta) for log_delta in log_deltas.tolist()])

    def _epsilon_at(self, log_delta: float) -> float:
        if self._total.infinite and math.log(self._total.infinite) > log_delta:
            return math.inf
        last = max(self._total.last, 0.0)
        if last == 0:
            return 0.0
        guess = min(max(self._total.mean, 0.0), 0.5 * last)
        return decreasing_crossing(lambda t: self._log_delta_at(t) - log_delta, 0.0, last, guess, 0.05 * last, 1e-9)

    def _after(self, mu: float) -> Notion:
        """Compose on the lattice of this loss, unless that is far too fine for the Gaussian mechanism."""
        from lastiterate.curves.gaussian import GaussianDP

        before = GaussianDP(mu, self.adjacency)
        if largest_loss(before) > _MOST_LOSS_CELLS * self._total.spacing:
            return super()._after(mu)
        return compose([self, before])

    def _rdp(self, orders: Floats) -> Floats:
        if self._total.infinite:
            return np.full_like(orders, np.inf)
        values = np.array([self._total.cumulant(order - 1)[0] / (order - 1) for order in orders.tolist()])
        return up(np.maximum(values, 0.0)) + 1e-13 * sum(self._total.counts)
