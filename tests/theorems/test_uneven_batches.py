"""Batches that do not divide the records: every order of a tiny data set, exactly, against every theorem."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import lastiterate as li
from alone import alone, by_theorem
from lastiterate.kernel.hidden import pair_mus
from lastiterate.runs.optimizers import At
from lastiterate.runs.process import Process
from lastiterate.runs.quantities import clipped_constant
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import ALL
from lastiterate.theorems.epochs import EPOCH_BY_EPOCH, HIDDEN_EPOCHS, mus_by_place
from lastiterate.theorems.evidence import together
from lastiterate.theorems.places import (
    MOST_REPRESENTED,
    best_stretches,
    new_orders,
    places_of,
    representative_pairs,
)
from lastiterate.theorems.shift_engine import HIDDEN_PLACE, RANDOM_ORDER
from processes import process
from second_checker import checker

EPSILONS = np.array([0.05, 0.5, 1.0, 2.0, 3.0])
WIDE = np.array([0.5, 3.0, 6.0, 8.0, 9.0])
PUSH = 1.0  # of a record's gradient; its neighbour's is −PUSH


@cache
def dealings(records: int, size: int, drop: bool) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Every way to deal the records to the batches of an epoch, each as likely as any other."""

    def dealt(left: frozenset[int]) -> list[tuple[tuple[int, ...], ...]]:
        if len(left) < (size if drop else 1):
            return [()]
        batches = itertools.combinations(sorted(left), min(size, len(left)))
        return [(batch, *rest) for batch in batches for rest in dealt(left - set(batch))]

    return tuple(dealt(frozenset(range(records))))


def laws(run: Run, gradients: np.ndarray, hessian: float) -> tuple[np.ndarray, np.ndarray, float]:
    """The means of the last iterate, over all orders, with the record and with its neighbour, and their deviation.

    The update is written out once more: with noise on the mean, a batch is divided by its own size.
    """
    batches, eta = run.batches, run.step_size
    assert isinstance(batches, li.Shuffled)
    assert isinstance(eta, float)
    ways = dealings(batches.records, batches.batch_size, batches.last == "drop")
    counts = np.array([len(batch) for batch in ways[0]])
    by = np.full(len(counts), batches.batch_size) if isinstance(run.noise, li.OnGradientSum) else counts
    factors = np.tile(1 - eta * run.loss.l2 - eta * hessian * counts / by, run.steps // len(counts))
    after = np.append(np.cumprod(factors[:0:-1])[::-1], 1.0).reshape(-1, len(counts))
    if isinstance(run.noise, li.OnGradientSum):
        std = eta / batches.batch_size * run.noise.multiplier * run.noise.clip  # type: ignore[operator]
    else:
        std = eta * run.noise.std  # type: ignore[attr-defined]
    found = []
    for own in (PUSH, -PUSH if run.adjacency is li.REPLACE_ONE else 0.0):
        given = np.append(own, gradients)
        moved = np.array([[-eta * given[list(batch)].sum() for batch in way] for way in ways]) / by
        of_epochs = moved @ after.T
        if batches.each_epoch:
            means = np.zeros(1)
            for one in of_epochs.T:
                means = (means[:, None] + one).ravel()
        else:
            means = of_epochs.sum(axis=1)
        found.append(means)
    return found[0], found[1], float(std * np.sqrt(np.square(after).sum()))


def exact(run: Run, gradients: np.ndarray, hessian: float) -> np.ndarray:
    """δ at each ε, the worse of both orders, as sums over narrow cells, which is no more than it is."""
    first, second, deviation = laws(run, gradients, hessian)
    low, high = min(first.min(), second.min()) - 9 * deviation, max(first.max(), second.max()) + 9 * deviation
    edges = np.linspace(low, high, 3000)
    one, two = (cells(means, deviation, edges) for means in (first, second))
    levels = np.exp(EPSILONS)[:, None]
    return np.maximum(np.maximum(one - levels * two, 0).sum(axis=1), np.maximum(two - levels * one, 0).sum(axis=1))


def cells(means: np.ndarray, deviation: float, edges: np.ndarray) -> np.ndarray:
    different, counts = np.unique(means.round(12), return_counts=True)
    return np.diff(ndtr((edges[:, None] - different) / deviation) @ (counts / means.size))


OTHERS = {
    "silent": lambda n: np.zeros(n),
    "as the record": lambda n: np.full(n, PUSH),
    "as its neighbour": lambda n: np.full(n, -PUSH),
    "mixed": lambda n: PUSH * np.cos(np.arange(n) * 2.0),
}
SHAPES = {"flat": (0.0, 0.0), "contracting": (0.5, 0.3), "growing": (-0.4, 0.0)}
FORGETTING = {"forgetting": (0.0, 2.5)}  # at every step all that was before


def run_of(batches: Any, on_sum: bool, shape: str, epochs: int, noise: float = 1.2) -> tuple[Run, float]:
    hessian, l2 = {**SHAPES, **FORGETTING}[shape]
    facts = {"strong_convexity": hessian} if hessian >= 0 else {"weak_convexity": -hessian}
    if on_sum:
        loss = li.losses.general(smoothness=0.5, **facts, clip=PUSH, l2=l2) if hessian <= 0 else None
        kind: Any = li.OnGradientSum(multiplier=noise, clip=PUSH)
        if loss is None:  # strongly convex losses have no bounded gradients
            loss, hessian = li.losses.general(smoothness=0.5, strong_convexity=0.0, clip=PUSH, l2=l2), 0.0
        hessian = 0.0
    else:
        loss = li.losses.general(smoothness=0.5, **facts, gradient_sensitivity=2 * PUSH, l2=l2)
        kind = li.OnMeanGradient(std=noise / 2)
    return li.Run(loss, batches, 0.4, kind, li.epochs(epochs), domain=li.Unbounded(dimension=1)), hessian


def held(given: Process, lowest: np.ndarray) -> list[str]:
    """The theorems that apply; none of them may be below."""
    applied = []
    for theorem in ALL:
        answer = theorem.apply(given)
        if isinstance(answer, li.theorems.Guarantee):
            found = answer.notion.delta(EPSILONS)
            assert (found >= lowest).all(), (theorem.name, found, lowest)
            applied.append(theorem.name)
    return applied


@pytest.mark.parametrize("on_sum", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("last", ["smaller", "drop"])
@pytest.mark.parametrize("each_epoch", [True, False])
@pytest.mark.parametrize(("records", "size"), [(5, 2), (5, 3)])
def test_no_theorem_is_below_the_mixture_over_all_orders(
    records: int, size: int, each_epoch: bool, last: str, shape: str, on_sum: bool
) -> None:
    run, hessian = run_of(li.Shuffled(records, size, each_epoch=each_epoch, last=last), on_sum, shape, 2)
    lowest = np.max([exact(run, others(records - 1), hessian) for others in OTHERS.values()], axis=0)
    applied = held(run.process, lowest * (1 - 1e-9) - 1e-11)
    assert {"shift-engine", "bok2024/cyclic/composition", "random-order", "hidden-place"} <= set(applied)
    if shape == "growing" and each_epoch:
        assert {"random-order/epoch-by-epoch", "hidden-place/epoch-by-epoch"} <= set(applied)


@pytest.mark.parametrize("on_sum", [False, True])
@pytest.mark.parametrize("l2", [0.0, 2.5])
@pytest.mark.parametrize("last", ["smaller", "drop"])
@pytest.mark.parametrize("each_epoch", [True, False])
def test_a_record_that_contributes_nothing(each_epoch: bool, last: str, l2: float, on_sum: bool) -> None:
    loss = li.losses.general(smoothness=0.5, strong_convexity=0.0, clip=PUSH, l2=l2)
    noise: Any = li.OnGradientSum(multiplier=0.7, clip=PUSH) if on_sum else li.OnMeanGradient(std=0.35)
    batches = li.Shuffled(5, 2, each_epoch=each_epoch, last=last)
    run = li.Run(loss, batches, 0.4, noise, li.epochs(2), adjacency=li.ZERO_OUT)
    lowest = np.max([exact(run, others(4), 0.0) for others in OTHERS.values()], axis=0)
    applied = held(run.process, lowest * (1 - 1e-9) - 1e-11)
    assert {"shift-engine", "bok2024/cyclic/composition", "random-order"} <= set(applied)


@pytest.mark.parametrize("on_sum", [False, True])
@pytest.mark.parametrize(("shape", "left"), [*((shape, 1) for shape in SHAPES), ("contracting", 0), ("forgetting", 0)])
@pytest.mark.parametrize("last", ["smaller", "drop"])
def test_every_record_of_a_fixed_order(last: str, shape: str, left: int, on_sum: bool) -> None:
    run, hessian = run_of(li.Cyclic(8, 3, last=last), on_sum, shape, 3 if left else 1)
    run = run.first(run.steps - left)  # the last batch has had a turn less, or as many
    counts = np.array([3, 3, 2] if last == "smaller" else [3, 3])
    by = np.full(len(counts), 3) if on_sum else counts
    eta, every = float(run.step_size), len(counts)  # type: ignore[arg-type]
    at = np.arange(run.steps) % every
    factors = 1 - eta * run.loss.l2 - eta * hessian * (counts / by)[at]
    after = np.append(np.cumprod(factors[:0:-1])[::-1], 1.0)
    deviation = float(run.process.noise[0]) * np.sqrt(np.square(after).sum())
    mus = [2 * PUSH * eta * float((after / by[at])[at == place].sum()) / deviation for place in range(every)]
    worst = np.max([li.notions.GaussianDP(mu).delta(EPSILONS) for mu in mus], axis=0)
    assert "shift-engine" in held(run.process, worst * (1 - 1e-9))
    report = li.account_each(run, delta=1e-3)
    own = [report.epsilon_of(record) for record in range(8)]
    least = [
        li.notions.GaussianDP(mus[record // 3]).epsilon(1e-3) if record // 3 < every else 0.0 for record in range(8)
    ]
    assert all(np.array(own) >= np.array(least) * (1 - 1e-9))
    assert own[7] > 0 if last == "smaller" else own[6] == own[7] == 0.0
    assert li.lower_bound(run, delta=1e-3).epsilon <= li.account(run, delta=1e-3).epsilon


def test_a_smaller_batch_on_the_iterate() -> None:
    """Divided by its own size it moves farther for one record; divided by batch_size it bends less."""
    loss = li.losses.general(smoothness=3.0, strong_convexity=0.0, clip=0.5, gradient_sensitivity=2.0)
    batches = li.Cyclic(8, 3, last="smaller")
    mean = li.Run(loss, batches, 0.9, li.OnMeanGradient(std=0.1), 6).process
    total = li.Run(loss, batches, 0.9, li.OnGradientSum(multiplier=2.0, clip=0.5), 6).process
    assert mean.sensitivity == pytest.approx(np.tile([0.3, 0.3, 0.45], 2), rel=1e-12)
    assert mean.noise == pytest.approx(np.full(6, 0.09), rel=1e-12)
    assert total.sensitivity == pytest.approx(np.full(6, 0.3), rel=1e-12)
    assert total.noise == pytest.approx(np.full(6, 0.3), rel=1e-12)
    growth = clipped_constant(0.0, 3.0, np.array([0.9, 0.9 * 2 / 3]))
    assert mean.lipschitz == pytest.approx(np.full(6, growth[0]), rel=1e-12)
    assert total.lipschitz == pytest.approx(np.tile(growth[[0, 0, 1]], 2), rel=1e-12)
    assert total.drift == pytest.approx(np.tile([0.9, 0.9, 0.6], 2), rel=1e-9)
    short = li.Run(loss, batches, 0.9, li.OnMeanGradient(std=0.1), 2).process
    assert short.constant  # before the first smaller batch all steps are alike
    zeroed = li.Run(loss, batches, 0.9, li.OnMeanGradient(std=0.1), 6, adjacency=li.ZERO_OUT).process
    assert zeroed.sensitivity == pytest.approx(mean.sensitivity / 2, rel=1e-12)


@pytest.mark.parametrize("each_epoch", [True, False])
def test_places_are_as_likely_as_their_batches_are_large(each_epoch: bool) -> None:
    batches = li.Shuffled(8, 3, each_epoch=each_epoch, last="smaller")
    whole = places_of(process(batches, 6, sensitivity=[1, 1, 1.5] * 2), averaged=True)
    assert whole.wanted == {0: 3 / 8, 1: 3 / 8, 2: 2 / 8}
    assert batches.inclusion(4).tolist() == [3 / 8, 3 / 8, 2 / 8, 3 / 8]
    alike = places_of(process(batches, 6), averaged=True)
    assert alike.wanted == whole.wanted
    if each_epoch:
        cut = new_orders(process(batches, 5), averaged=True)
        assert cut.wanted == {0: 3 / 8, 1: 3 / 8, -1: 1 - 6 / 8}
        released = new_orders(process(batches, 6, releases=(4,)), averaged=True)
        assert released.wanted == {0: 3 / 8, 1: 2 / 8, -1: 1 - 5 / 8}
    many = li.Shuffled(20_011, 10, each_epoch=each_epoch, last="smaller")
    grouped = places_of(process(many, 2 * many.per_epoch), averaged=True)
    assert len(grouped.wanted) < 1024
    assert grouped.wanted[many.per_epoch - 1] == 1 / 20_011
    assert sum(grouped.wanted.values()) == pytest.approx(1.0, rel=1e-12)


def test_the_average_has_the_weights_of_the_batches() -> None:
    run, _ = run_of(li.Shuffled(8, 3, last="smaller"), False, "growing", 1)
    mus = mus_by_place(*(one[None] for one in (run.process.sensitivity, run.process.noise, run.process.lipschitz)))[0]
    weights = (3 / 8, 3 / 8, 2 / 8)
    expected = sum(w * li.notions.GaussianDP(float(mu)).delta(EPSILONS) for w, mu in zip(weights, mus, strict=True))
    for theorem in (RANDOM_ORDER, EPOCH_BY_EPOCH):
        assert theorem.notion(run.process).delta(EPSILONS) == pytest.approx(expected, rel=1e-6)
    assert (HIDDEN_EPOCHS.notion(run.process).delta(EPSILONS) <= expected * 1.002).all()  # chords


@pytest.mark.parametrize("each_epoch", [True, False])
@pytest.mark.parametrize("steps", [90, 75])
def test_of_many_places_some_stand_for_others(each_epoch: bool, steps: int) -> None:
    """A push that is larger at the end of each epoch: what stands for a place, or for two, is no better."""
    batches = li.Shuffled(88, 3, each_epoch=each_epoch, last="smaller")
    pushes = np.where(np.arange(steps) % 30 == 29, 1.5, 0.5)
    given = process(batches, steps, sensitivity=pushes, lipschitz=0.99)
    places = places_of(given, averaged=True)
    assert places.later_is_no_better
    assert not replace(places, each=True).later_is_no_better
    chosen = [place for place in places.wanted if place >= 0]
    mus = {place: together(best_stretches(places, place)) for place in chosen}
    for part in (chosen[: places.more_turns], chosen[places.more_turns :]):
        assert all(mus[a] <= mus[b] * (1 + 1e-9) for a, b in itertools.pairwise(part))
    pairs = {pair: together(best_stretches(places, *pair)) for pair in representative_pairs(places, MOST_REPRESENTED)}
    counted = pair_mus(places, dict.fromkeys(chosen, 1.0), pairs)
    source = np.random.default_rng(7)
    for _ in range(25):
        first, second = sorted(source.choice(len(chosen), 2, replace=False).tolist())
        exact_pair = together(best_stretches(places, chosen[first], chosen[second]))
        assert exact_pair * (1 - 1e-9) <= counted[first, second] < np.inf
    falling = process(batches, steps, sensitivity=np.linspace(1.0, 0.9, steps), lipschitz=0.99)
    assert not places_of(falling, averaged=True).later_is_no_better
    growing = process(batches, steps, sensitivity=pushes, lipschitz=1.001)
    assert not places_of(growing, averaged=True).later_is_no_better


def test_many_uneven_batches_have_a_certificate() -> None:
    loss, batches = li.losses.logistic(feature_norm=1.0, l2=0.01), li.Shuffled(88, 3, last="smaller")
    run = li.Run(loss, batches, 0.1, li.OnMeanGradient(std=0.5), li.epochs(3))
    report = li.account(run, delta=1e-5)
    assert report.best.theorem is HIDDEN_PLACE
    written = json.loads(json.dumps(report.certificate))
    assert li.verify(written, run).accepted
    assert checker.judged(written) == ""
    changed = json.loads(json.dumps(written))
    changed["claim"]["epsilon"] *= 0.99
    assert not li.verify(changed).accepted
    assert checker.judged(changed)


@pytest.mark.parametrize("each_epoch", [True, False])
def test_prepayment_and_noise_on_the_sum(each_epoch: bool) -> None:
    """Steps are alike but for how far a batch bends: no place stands for another where something may be prepaid."""
    loss, batches = li.losses.logistic(feature_norm=1.0), li.Shuffled(11, 4, each_epoch=each_epoch, last="smaller")
    run = li.Run(loss, batches, 0.1, li.OnGradientSum(multiplier=2.0, clip=1.0), li.epochs(3))
    report = li.account(run, delta=1e-5)
    names = {one.theorem.name for one in report.guarantees}
    assert ("hidden-place/prepaid" in names) != each_epoch
    for named in report.guarantees:
        if named.theorem.places is not None:
            certificate = json.loads(json.dumps(alone(report, named).certificate))
            assert li.verify(certificate).accepted
            assert checker.judged(certificate) == ""


class Interval:
    """X ← Π(X + push + N(0, 1)) on an interval of this width, by cells."""

    def __init__(self, width: float, cells: int = 120) -> None:
        self.edges = np.linspace(-width / 2, width / 2, cells + 1)
        self.middles = (self.edges[1:] + self.edges[:-1]) / 2

    def step(self, push: float) -> np.ndarray:
        inner = ndtr(self.edges[None, 1:-1] - self.middles[:, None] - push)
        return np.diff(inner, axis=1, prepend=0.0, append=1.0)


@pytest.mark.parametrize("each_epoch", [True, False])
@pytest.mark.parametrize("width", [1.5, 4.0])
def test_bounded_domains(each_epoch: bool, width: float) -> None:
    interval, pushes, epochs = Interval(width), np.array([0.5, 0.5, 0.75]), 6
    free, weights = interval.step(0.0), np.array([3, 3, 2]) / 8
    ends = []
    for side in (1.0, -1.0):
        turns = [interval.step(side * push / 2) for push in pushes]
        passes = [np.linalg.multi_dot([turns[at] if at == place else free for at in range(3)]) for place in range(3)]
        if each_epoch:
            kernel = np.linalg.matrix_power(np.tensordot(weights, passes, 1), epochs)
        else:
            kernel = np.tensordot(weights, [np.linalg.matrix_power(one, epochs) for one in passes], 1)
        ends.append(kernel[len(kernel) // 2])
    gap = np.maximum(ends[0] - np.exp(EPSILONS)[:, None] * ends[1], 0).sum(axis=1)
    batches = li.Shuffled(8, 3, each_epoch=each_epoch, last="smaller")
    given = process(batches, 3 * epochs, sensitivity=np.tile(pushes, epochs), diameter=width)
    assert {"block-mixing", "reflection", "random-order"} <= set(held(given, gap * 0.98 - 1e-9))


@pytest.mark.parametrize("each_epoch", [True, False])
@pytest.mark.parametrize("on_sum", [False, True])
@pytest.mark.parametrize("theorem", ["shift-engine", "random-order", "hidden-place"])
def test_certificates_name_the_sizes(theorem: str, on_sum: bool, each_epoch: bool) -> None:
    run, _ = run_of(li.Shuffled(8, 3, each_epoch=each_epoch, last="smaller"), on_sum, "contracting", 2)
    written = json.loads(json.dumps(by_theorem(theorem, run, 1e-3).certificate))
    assert written["proof"]["turns"]["sizes"] == [3, 2]
    assert li.verify(written).accepted
    assert checker.judged(written) == ""
    for wrong in (None, [1, 1], [3, 1]):
        changed = json.loads(json.dumps(written))
        changed["proof"]["turns"].pop("sizes")
        if wrong is not None:
            changed["proof"]["turns"]["sizes"] = wrong
        assert not li.verify(changed).accepted
    changed["proof"]["turns"]["sizes"] = [2, 3]
    assert not li.verify(changed).accepted
    assert "larger than the others" in checker.judged(changed) or theorem == "shift-engine"


@pytest.mark.parametrize("optimizer", [li.SGD(momentum=0.9), li.SGD(momentum=0.5, nesterov=True), li.SGD()], ids=repr)
@pytest.mark.parametrize("released", [li.LAST, li.EMA(0.5), li.AVERAGE(last=2)], ids=repr)
@pytest.mark.parametrize(("each_epoch", "steps"), [(False, 2), (False, 4), (True, 1), (True, 2), (True, 3)])
@pytest.mark.parametrize(("records", "size"), [(201, 200), (5, 4), (5, 2)])
def test_momentum_and_averages(
    records: int, size: int, each_epoch: bool, steps: int, released: Any, optimizer: Any
) -> None:
    """Constant pushes at tiny steps: what is released is a mixture of Gaussians over the places of the record."""
    batches = li.Shuffled(records, size, each_epoch=each_epoch, last="smaller")
    loss, noise = li.losses.huber(feature_norm=1.0, threshold=1.0), li.OnGradientSum(1.0, 1.0)
    run = li.Run(loss, batches, 1e-6, noise, steps, optimizer=optimizer, released=released)
    response = np.array([_released_after(run, step) for step in range(steps)])
    every = batches.per_epoch
    chances = np.append(np.full(every - 1, size / records), records % size / records)
    epochs = -(-steps // every)
    ways = (
        itertools.product(range(every), repeat=epochs) if each_epoch else ((place,) * epochs for place in range(every))
    )
    means, weights = [], []
    for way in ways:
        turns = [epoch * every + place for epoch, place in enumerate(way) if epoch * every + place < steps]
        means.append(float(response[turns].sum()))
        weights.append(float(np.prod(chances[list(way)])) if each_epoch else float(chances[way[0]]))
    deviation = float(np.sqrt(np.square(response).sum()))
    edges = np.linspace(-2 * max(means) - 9 * deviation, 2 * max(means) + 9 * deviation, 20_000)
    gap = np.zeros(len(WIDE))
    for others in (0.0, 1.0, -1.0):  # all other records are silent, or as the record is, or as its neighbour
        above, below = (
            ndtr(((side - others) * np.array(means) - edges[:, None]) / deviation) @ weights for side in (1, -1)
        )
        gap = np.maximum(gap, (above - np.exp(WIDE)[:, None] * below).max(axis=1))  # of the best threshold
    for theorem in ALL:
        answer = theorem.apply(run.process)
        if isinstance(answer, li.theorems.Guarantee):
            assert (answer.notion.delta(WIDE) >= gap * (1 - 1e-9)).all(), theorem.name
    hidden = {one.theorem.name for one in li.account(run, 1e-5).guarantees} - {"bok2024/cyclic/composition"}
    assert hidden


def _released_after(run: Run, step: int) -> float:
    """What is released of a push of 1 at this step, from the update as it is written."""
    x, memory, mean = np.zeros(1), tuple(np.zeros(1) for _ in range(run.optimizer.slots)), np.zeros(1)
    for now in range(run.steps):
        x, memory = run.optimizer.moved(x, np.full(1, float(now == step)), memory, At(now))
        mean = mean + run.released.weight(now, run.steps) * (x - mean)
    return float(mean[0])
