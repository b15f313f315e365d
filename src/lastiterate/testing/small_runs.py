"""The exact law of what a small run releases, in one dimension, on two neighbouring data sets.

A second computation beside the theorems: it reads the plain fields of a run and shares no code with the quantities that
theorems see. Every order and every choice of batches is enumerated. Where the update is affine, each of them gives a joint
Gaussian of all that is released, whatever the optimiser; otherwise the density of the iterate is carried from step to step
by Gauss-Legendre quadrature. What is released is then cut into cells. A cell is an event, so the δ of the cells is at most
the exact one, and comes near it where cells are narrow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from lastiterate.numerics.arrays import Floats
from lastiterate.runs.run import Run

QUADRATURE_ERROR = 1e-8  # relative; measured 2.2e-9 beside joint Gaussians, on cells of probability above 1e-12
_FAR = 9.0  # standard deviations: what lies beyond has a probability below 1e-18
_MOST_COMPONENTS, _MOST_IN_A_PLANE = 1500, 80
_LEAST_FLOOR = 1e12  # times gradients: then the squares of Adam do not matter
_PANEL = 0.5  # standard deviations
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)

Batch = tuple[int, int]  # how many of the records that differ are in it, and how many others
Pattern = tuple[Batch, ...]
Stretch = dict[Pattern, float]  # the batches of steps that are drawn together, with their probabilities
Masses = tuple[Floats, Floats]  # probabilities of the same cells on both data sets


class NoExactLaw(Exception):
    """This run is not small enough, or its state has too many dimensions for steps that are not affine."""


@dataclass(frozen=True)
class Gradient:
    """base·x, and offset + slope·(x − center) clipped to a bound that may change from step to step."""

    offset: float = 0.0
    slope: float = 0.0
    center: float = 0.0
    base: float = 0.0

    def at(self, x: Any, one: Any, bound: float) -> Any:
        """The gradient at x: a number, several, or the coefficients of an affine function, where `one` is the constant 1."""
        if self.slope == 0:
            return self.base * x + float(np.clip(self.offset, -bound, bound)) * one
        return self.base * x + np.clip(self.offset + self.slope * (x - self.center), -bound, bound)

    def kinks(self, bound: float) -> list[float]:
        if self.slope == 0:
            return []
        return [self.center + (side * bound - self.offset) / self.slope for side in (-1, 1)]


@dataclass(frozen=True)
class ExactLaw:
    """Probabilities of cells on both data sets; of several pairs, each is a lower bound. `error`: the relative one of δ."""

    cells: tuple[Masses, ...]
    error: float

    def delta(self, epsilons: Floats, swapped: bool) -> Floats:
        """δ(ε) = Σ (P − e^ε·Q)₊ of the first data set beside the second, or the other way round."""
        return np.max([_hockey_stick(*(one[::-1] if swapped else one), epsilons) for one in self.cells], axis=0)


def _hockey_stick(one: Floats, two: Floats, epsilons: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.where(one > 0, np.log(one) - np.log(two), -np.inf)
    order = np.argsort(-losses)
    counts = np.searchsorted(-losses[order], -epsilons)
    first, second = (np.append(0.0, np.cumsum(values[order]))[counts] for values in (one, two))
    return np.maximum(first - np.exp(np.minimum(epsilons, 700.0)) * second, 0.0)  # beyond, e^ε is no float


@dataclass(frozen=True)
class SmallRun:
    """A run on two data sets: the gradient of the records `user` is `record` on the first and `neighbour` on the second.

    There are so many `others`, with the gradient `other` on both; `bounds` are those of the clipped parts, one per step. At
    the steps `releases` a checkpoint is released.
    """

    run: Run
    releases: tuple[int, ...]
    start: float
    user: tuple[int, ...]
    others: int
    record: Gradient
    neighbour: Gradient
    other: Gradient
    bounds: tuple[float, ...]

    @cached_property
    def law(self) -> ExactLaw:
        """The law of all that is released, the last iterate, checkpoints, and what was released before training."""
        run = self.run
        turning = any(one.slope for one in (self.record, self.neighbour, self.other))
        bent = math.isfinite(_radius(run)) or _terms(run)[0] > 0
        if turning or (self.one_dimensional and (bent or self.releases)):
            return ExactLaw((self._with_beforehand(DensityChain(self).masses),), QUADRATURE_ERROR)
        return ExactLaw(tuple(self._with_beforehand(one) for one in _gaussian_cells(self)), 0.0)

    @property
    def one_dimensional(self) -> bool:
        """Whether the iterate is all that a step depends on, and at most one checkpoint is released beside the last."""
        return _plain(self.run) and self.run.released.kind == "last" and len(self.releases) <= 1

    def mean_gradient(self, step: int, x: Any, one: Any, batch: Batch, mine: Gradient) -> Any:
        """Σ gradients of the batch, over what it is divided by, and (l2 + weight_decay)·x."""
        run, bound = self.run, self.bounds[step]
        total = batch[1] * self.other.at(x, one, bound) + run.arithmetic.factor * batch[0] * mine.at(x, one, bound)
        return total / _divisor(run, sum(batch)) + (run.loss.l2 + run.weight_decay) * x

    @cached_property
    def stretches(self) -> list[Stretch]:
        """Independent distributions of batches; others without gradient count only where a divisor counts them."""
        found = _stretches(self.run.batches, self.run.steps, self.user, self.others)
        if self.other != Gradient() or self.run.batches.kind not in ("poisson", "balls_and_bins"):
            return found
        return [_added((tuple((k, 0) for k, _ in one), p) for one, p in patterns.items()) for patterns in found]

    def _with_beforehand(self, cells: Masses) -> Masses:
        """Return cell masses together with an independent Gaussian mechanism of mu `prior_mu` per record."""
        mu = self.run.prior_mu * len(self.user)
        if mu == 0:
            return cells
        edges = np.linspace(-_FAR, mu + _FAR, 120)
        return np.outer(cells[0], between(edges - mu)).ravel(), np.outer(cells[1], between(edges)).ravel()


def _at(value: Any, step: int) -> float:
    return float(value[step] if isinstance(value, tuple) else value)


def _plain(run: Run) -> bool:
    """Whether steps are x ← x − step_size·(noisy gradient), as an optimiser known only by its name may do."""
    return run.optimizer.kind == "other" or getattr(run.optimizer, "momentum", 1) == 0


def _radius(run: Run) -> float:
    domain: Any = run.domain
    return float(domain.diameter / 2 if domain.kind != "box" else domain.side / 2)


def _terms(run: Run) -> tuple[float, float]:
    """The weights of |x| and of x²/2 in the proximal map."""
    prox: Any = run.prox
    if prox is None:
        return 0.0, 0.0
    if prox.kind == "elastic_net":
        return prox.l1, prox.l2
    return (0.0, prox.modulus) if prox.kind == "convex_term" else (prox.weight, 0.0)


def _divisor(run: Run, size: int) -> float:
    batches: Any = run.batches
    match batches.kind:
        case "full":
            return float(batches.records)
        case "cyclic" | "shuffled":
            return float(batches.batch_size if run.noise.kind == "on_gradient_sum" else size)
        case "fixed_size":
            return float(batches.batch_size)
        case "poisson":
            return float(batches.rate * batches.records)
        case "poisson_mean":
            return float(max(size, 1))
        case "balls_and_bins":
            return float(batches.records / batches.batches)
    raise NoExactLaw(f"unknown batches: {batches.kind}")


def _noise(run: Run, step: int) -> float:
    """Standard deviation of the noise on the iterate of a plain step, by the update as it is written."""
    noise, size = run.noise, _at(run.step_size, step)
    given: Any = noise
    match noise.kind:
        case "on_iterate":
            return _at(given.std, step)
        case "on_mean_gradient":
            return size * _at(given.std, step)
        case "on_gradient_sum":
            return size * _at(given.multiplier, step) * _at(given.clip, step) / _divisor(run, 0)
        case "langevin":
            return math.sqrt(2 * size) * _at(given.std, step)
    raise NoExactLaw(f"unknown noise: {noise.kind}")


def _stretches(batches: Any, steps: int, user: tuple[int, ...], others: int) -> list[Stretch]:
    """Distribution of the batches of each epoch, of each step if drawn afresh, or of all steps in one order."""
    count, kind = len(user), batches.kind
    if kind == "full":
        return [{((count, others),) * steps: 1.0}]
    if kind in ("poisson", "poisson_mean"):
        rate = batches.rate
        chances = [
            [math.comb(of, k) * rate**k * (1 - rate) ** (of - k) for k in range(of + 1)] for of in (count, others)
        ]
        pairs = product(enumerate(chances[0]), enumerate(chances[1]))
        return [{((k, m),): p * q for (k, p), (m, q) in pairs if p * q > 0}] * steps
    if kind == "balls_and_bins":
        every = batches.batches
        places = [_counted(one[:count], one[count:], every) for one in product(range(every), repeat=count + others)]
        return _epochs(places, every, steps)
    size = batches.batch_size
    orders = [user] if kind == "cyclic" else list(permutations(range(batches.records), count))
    if kind == "fixed_size":
        drawn = [sum(place < size for place in order) for order in orders]
        return [_added((((k, size - k),), 1 / len(drawn)) for k in drawn)] * steps
    whole, left = divmod(batches.records, size)
    sizes = [size] * whole + [left] * (left > 0 and batches.last == "smaller")
    present = [[sum(one // size == place for one in order) for place in range(len(sizes))] for order in orders]
    epochs = [tuple((k, of - k) for k, of in zip(counts, sizes, strict=True)) for counts in present]
    if kind == "shuffled" and batches.each_epoch:
        return _epochs(epochs, len(sizes), steps)
    return [_added(((one * steps)[:steps], 1 / len(epochs)) for one in epochs)]


def _counted(user: tuple[int, ...], others: tuple[int, ...], places: int) -> Pattern:
    return tuple((user.count(place), others.count(place)) for place in range(places))


def _epochs(patterns: list[Pattern], every: int, steps: int) -> list[Stretch]:
    """Distributions of each epoch's pattern, equally likely; the last epoch may be cut short."""
    lengths = [every] * (steps // every) + [steps % every] * (steps % every > 0)
    return [_added((one[:length], 1 / len(patterns)) for one in patterns) for length in lengths]


def _added(shares: Iterable[tuple[Pattern, float]]) -> Stretch:
    found: Stretch = {}
    for pattern, probability in shares:
        found[pattern] = found.get(pattern, 0.0) + probability
    return found


def between(edges: Floats) -> Floats:
    """The probabilities of the intervals between these numbers under N(0, 1), those of tails to all digits."""
    tails = ndtr(-np.abs(edges))
    low, high = edges[:-1] > 0, edges[1:] > 0
    first, last = np.where(low, tails[:-1], -tails[:-1]), np.where(high, -tails[1:], tails[1:])
    return np.asarray(first + last + (low < high))


def _released(small: SmallRun, pattern: Pattern, mine: Gradient) -> Floats:
    """All that is released, each as its mean and its coefficients of the noises, by the update as it is written."""
    run = small.run
    one = np.eye(1, run.steps + 1)[0]
    x, velocity, kept = small.start * one, 0 * one, small.start * one
    optimizer: Any = run.optimizer
    released: Any = run.released
    if optimizer.kind == "adam" and (small.start or optimizer.eps < _LEAST_FLOOR):
        raise NoExactLaw("Adam is affine only with a large floor, and its steps are then lost beside a start")
    found, widest = [], 0.0
    for step, batch in enumerate(pattern):
        size = _at(run.step_size, step)
        noisy = small.mean_gradient(step, x, one, batch, mine)
        noisy[step + 1] -= _noise(run, step) / size
        if _plain(run):
            x = x - size * noisy
        elif optimizer.kind == "sgd":
            velocity = optimizer.momentum * velocity + (1 - optimizer.dampening) * noisy
            x = x - size * (noisy + optimizer.momentum * velocity if optimizer.nesterov else velocity)
        else:
            velocity = optimizer.betas[0] * velocity + (1 - optimizer.betas[0]) * noisy
            x = x - size / optimizer.eps * velocity / (1 - optimizer.betas[0] ** (step + 1))
        x = x / (1 + size * _terms(run)[1])
        widest = max(widest, abs(x[0]) + _FAR * float(np.linalg.norm(x[1:])))
        match released.kind:
            case "last":
                kept = x
            case "ema":
                kept = released.decay * kept + (1 - released.decay) * x
            case "average":
                averaged = step + 1 - (0 if released.last is None else max(run.steps - released.last, 0))
                kept = kept + (x - kept) / max(averaged, 1)
        if step + 1 in (*small.releases, run.steps):
            found.append(kept)
    if widest > _radius(run) or _terms(run)[0] > 0:
        raise NoExactLaw("a projection or a threshold with a state of several dimensions")
    return np.array(found)


def components(small: SmallRun, mine: Gradient) -> Iterator[tuple[float, Floats]]:
    """Yield, for each choice of batches, its probability and the joint Gaussian of what is released."""
    if math.prod(len(patterns) for patterns in small.stretches) > _MOST_COMPONENTS:
        raise NoExactLaw("too many choices of batches")
    for parts in product(*(patterns.items() for patterns in small.stretches)):
        pattern = tuple(batch for one, _ in parts for batch in one)
        yield math.prod(probability for _, probability in parts), _released(small, pattern, mine)


def _gaussian_cells(small: SmallRun) -> Iterator[Masses]:
    """Yield cell masses of both Gaussian mixtures: in one dimension, in a plane, or along directions."""
    mixtures = [list(components(small, mine)) for mine in (small.record, small.neighbour)]
    shares = np.array([share for share, _ in mixtures[0]])
    sides = [np.array([rows for _, rows in mixture]) for mixture in mixtures]
    count = sides[0].shape[1]
    if count == 1:
        yield _on_a_line(shares, *(side[:, 0] for side in sides))
        return
    if count == 2 and len(shares) <= _MOST_IN_A_PLANE and (cells := _in_a_plane(shares, *sides)) is not None:
        yield cells
        return
    for direction in _directions(shares, *sides):
        yield _on_a_line(shares, *(np.einsum("d,pdn->pn", direction, side) for side in sides))


def _on_a_line(shares: Floats, one: Floats, two: Floats) -> Masses:
    """Cell masses of two Gaussian mixtures on a line; rows are a mean and the coefficients of the noises."""
    both = np.concatenate([one, two])
    spread = np.linalg.norm(both[:, 1:], axis=1)
    cells = 5000 if len(both) <= 100 else 1500
    edges = np.linspace((both[:, 0] - _FAR * spread).min(), (both[:, 0] + _FAR * spread).max(), cells)
    scaled = (edges[:, None] - both[:, 0]) / spread
    masses = between(scaled)
    return masses[:, : len(one)] @ shares, masses[:, len(one) :] @ shares


def _in_a_plane(shares: Floats, one: Floats, two: Floats) -> Masses | None:
    """Cells of two released numbers: exact in the second, given the first, and by quadrature in the first."""
    both = np.concatenate([one, two])
    spreads = np.linalg.norm(both[:, :, 1:], axis=2)
    low, high = ((both[:, :, 0] + side * _FAR * spreads) for side in (-1, 1))
    low, high = low.min(axis=0), high.max(axis=0)
    panels = math.ceil((high[0] - low[0]) / (_PANEL * spreads[:, 0].min()))
    if panels > 200:
        return None
    nodes, weights = _panels(np.linspace(low[0], high[0], panels + 1))
    edges = np.linspace(low[1], high[1], 240)
    found = []
    for side in (one, two):
        total = np.zeros((len(edges) - 1, panels))
        for share, ((mean, *first), (later, *second)) in zip(shares, side, strict=True):
            spread, slope = np.linalg.norm(first), np.dot(first, second) / np.dot(first, first)
            rest = float(np.linalg.norm(np.array(second) - slope * np.array(first)))
            density = np.exp(-(((nodes - mean) / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi))
            given = between((edges[:, None] - (later + slope * (nodes - mean))) / rest)
            total += share * (given * density * weights).reshape(len(edges) - 1, panels, -1).sum(axis=2)
        found.append(total.ravel())
    return found[0], found[1]


def _directions(shares: Floats, one: Floats, two: Floats) -> list[Floats]:
    """Directions in which the means lie farthest apart relative to their spread."""
    gaps = one[:, :, 0] - two[:, :, 0]
    likely = np.argsort(-shares * np.linalg.norm(gaps, axis=1))[:5]
    asked = [(gaps[place], one[place, :, 1:]) for place in likely] + [(shares @ gaps, one[likely[0], :, 1:])]
    return [np.linalg.solve(noise @ noise.T, gap) for gap, noise in asked if np.any(gap)] or [np.eye(one.shape[1])[-1]]


def _panels(edges: Floats) -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss-Legendre quadrature between neighbouring edges."""
    half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
    return (middle + half * _NODES).ravel(), (half * _WEIGHTS).ravel()


@dataclass(frozen=True, eq=False)
class DensityChain:
    """The density of the iterate before its proximal map and its projection, carried from step to step.

    It is smooth there, whatever the map does; panels of the quadrature end at the kinks of the step that follows.
    """

    small: SmallRun

    @property
    def masses(self) -> Masses:
        """The probabilities of cells of the last iterate, and of the checkpoint if there is one, on both data sets."""
        if not self.small.one_dimensional:
            raise NoExactLaw("steps that are not affine, with a state of several dimensions")
        one, two = (self._cell_masses(mine) for mine in (self.small.record, self.small.neighbour))
        return one, two

    def _cell_masses(self, mine: Gradient) -> Floats:
        state, step = np.ones((1, 1)), 0
        kernel = lru_cache(maxsize=256)(lambda step, batch: self._kernel(step, batch, mine))
        for patterns in self.small.stretches:
            after: Any = 0.0
            for pattern, probability in patterns.items():
                moved = state
                for place, batch in enumerate(pattern, start=step):
                    moved = kernel(place, batch) @ moved
                    if place + 1 in self.small.releases:
                        moved = moved * self._cells(place)
                after = after + probability * moved
            state, step = after, step + len(next(iter(patterns)))
        return np.asarray(state).ravel()

    def _kernel(self, step: int, batch: Batch, mine: Gradient) -> Floats:
        """Weights that carry the law from the nodes before a step to those after it, or to cells after the last."""
        x, size, spread = self._iterates(step), _at(self.small.run.step_size, step), _noise(self.small.run, step)
        center = x - size * self.small.mean_gradient(step, x, 1.0, batch, mine)
        if step + 1 < self.small.run.steps:
            nodes, weights = _panels(self.edges[step])
            density = np.exp(-(((nodes[:, None] - center) / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi))
            return weights[:, None] * density
        masses = between((self.edges[step][:, None] - center) / spread)
        return np.add.reduceat(masses, np.flatnonzero(np.diff(self._cell(step), prepend=-1)))

    def _iterates(self, step: int) -> Floats:
        """The iterates at the nodes after the step before."""
        if step == 0:
            return np.array([self.small.start])
        return self._mapped(step - 1, _panels(self.edges[step - 1])[0])

    def _mapped(self, step: int, values: Floats) -> Floats:
        """The proximal map and the projection."""
        size, (first, second) = _at(self.small.run.step_size, step), _terms(self.small.run)
        soft = np.sign(values) * np.maximum(np.abs(values) - size * first, 0.0) / (1 + size * second)
        return np.clip(soft, -_radius(self.small.run), _radius(self.small.run))

    def _cell(self, step: int) -> NDArray[np.intp]:
        """Index of the cell of each interval between edges; intervals that map to one point share a cell."""
        edges = self.edges[step]
        return np.unique(self._mapped(step, (edges[1:] + edges[:-1]) / 2), return_inverse=True)[1]

    def _cells(self, step: int) -> Floats:
        """1 where a node lies in a cell: nodes × cells."""
        cell = self._cell(step)
        return np.repeat(np.eye(cell.max() + 1)[cell], len(_NODES), axis=0)

    @cached_property
    def edges(self) -> list[Floats]:
        """Edges of the panels after each step, and of the fine intervals after the last step."""
        small, run, found = self.small, self.small.run, []
        seen = [list(zip(*patterns, strict=True)) for patterns in small.stretches]
        batches = [set(at_step) for stretch in seen for at_step in stretch]
        gradients = (small.record, small.neighbour)
        low = high = small.start
        for step in range(run.steps):
            size, spread = _at(run.step_size, step), _noise(run, step)
            x = np.linspace(low, high, 65)
            maps = [x - size * small.mean_gradient(step, x, 1.0, one, g) for one in batches[step] for g in gradients]
            first, last = np.min(maps) - _FAR * spread, np.max(maps) + _FAR * spread
            low, high = self._mapped(step, np.array([first, last])).tolist()
            if step + 1 < run.steps:
                panels = math.ceil(
                    (last - first) / (_PANEL * min(spread, self._resolution(step + 1, batches[step + 1])))
                )
            else:
                panels = 250 if small.releases else 800
            if panels > 1500:
                raise NoExactLaw("noise of very different sizes")
            kinks = [one for one in self._kinks(step) if first < one < last]
            found.append(np.unique(np.append(np.linspace(first, last, panels + 1), kinks)))
        return found

    def _resolution(self, step: int, batches: set[Batch]) -> float:
        """Smallest distance by which an iterate moves for the next one to move by its standard deviation."""
        small, run, size = self.small, self.small.run, _at(self.small.run.step_size, step)
        steepest = max(abs(one.slope) + abs(one.base) for one in (small.record, small.neighbour, small.other))
        share = max(sum(one) / _divisor(run, sum(one)) for one in batches)
        return _noise(run, step) / (1 + size * (steepest * share + run.loss.l2 + run.weight_decay))

    def _kinks(self, step: int) -> list[float]:
        """Places where the proximal map, the projection or the gradients of the next step are not smooth."""
        small, size, (first, second) = self.small, _at(self.small.run.step_size, step), _terms(self.small.run)
        radius, threshold = _radius(small.run), size * first
        points = [radius, -radius] if math.isfinite(radius) else []
        if step + 1 < small.run.steps:
            gradients = (small.record, small.neighbour, small.other)
            points += [x for one in gradients for x in one.kinks(small.bounds[step + 1]) if abs(x) < radius]
        before = [x * (1 + size * second) + math.copysign(threshold, x) for x in points]
        return before + ([threshold, -threshold] if threshold else [])
