"""Laws by exact numbers: the Gaussian mechanism, quadratic losses, and runs in one dimension whose laws are computed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from lastiterate.auditing.chain import Chain
from lastiterate.auditing.filtered import FilteredInstance
from lastiterate.auditing.instances import Instance
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.facts import own
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.batches import Cyclic, FullBatch
from lastiterate.runs.process import Process
from lastiterate.testing.draws import BATCHES, exact_mu_of_quadratics, process, random_process
from lastiterate.testing.examples import NothingToTry, Subject
from lastiterate.theorems.theorem import Guarantee, Theorem

DELTA = 1e-5
GAUSSIAN = float(GaussianDP(0.5).epsilon(DELTA))
BEFORE = 0.4  # mu of an earlier release
_EPSILONS = np.array([0.2, 1.5])
_QUADRATICS, _AT = 300, np.array([0.2, 1.0, 3.0])
_ROUNDED = 1e-9
_IN_ORDER = (*BATCHES[:2], Cyclic(records=80, batch_size=30, last="smaller"))


def single_step(theorem: Theorem) -> Process | None:
    """Return a process of one step that the theorem covers, with sensitivity/noise 1/2, or None."""
    for batches in (FullBatch(records=120), Cyclic(records=30, batch_size=30)):
        for diameter in (math.inf, 0.5):
            for retain in (1.0, 0.6):
                given = process(batches, 1, 0.7, 1.4, 0.9, diameter, drift=5.0, retain=retain, dimension=2)
                given = replace(given, adjacency=theorem.adjacencies[0])
                if not theorem.failures(given):
                    return given
    return None


def one_step_is_above_the_gaussian_mechanism(subject: Subject) -> str | None:
    given = single_step(subject.theorem)
    if given is None:
        raise NothingToTry(f"{subject.theorem.name} says nothing about one full batch")
    found = subject.epsilon(given)
    if found >= GAUSSIAN * (1 - _ROUNDED):
        return None
    return f"epsilon = {found:.6g} at delta = {DELTA:g} for {given!r}; the Gaussian mechanism has {GAUSSIAN:.6g}"


def lies_above_quadratics(subject: Subject) -> str | None:
    """The bound is above that of quadratic losses, computed by hand, for full batches and fixed orders."""
    theorem, seen = subject.theorem, 0
    for given in _quadratics():
        answer = theorem.apply(replace(given, adjacency=theorem.adjacencies[0]))
        if isinstance(answer, Guarantee):
            seen += 1
            mu = exact_mu_of_quadratics(given)
            exact, bound = (np.asarray(one.delta(_AT)) for one in (GaussianDP(mu), answer.notion))
            if not (bound >= exact * (1 - _ROUNDED)).all():
                worst = int(np.argmin(bound / exact))
                return (
                    f"delta = {bound[worst]:.4g} at epsilon = {_AT[worst]:g} for {_words_for(given)}; quadratic losses have "
                    f"{exact[worst]:.4g} (mu = {mu:.4g})"
                )
    if not seen:
        raise NothingToTry(f"{theorem.name} says nothing about quadratic losses without a domain")
    return None


def _quadratics() -> Iterator[Process]:
    """Yield processes of quadratic losses, which have no domain and no bound on gradients."""
    source = np.random.default_rng(9)
    for number in range(_QUADRATICS):
        drawn = random_process(source, _IN_ORDER[number % 3], alike=bool(source.random() < 0.5))
        places = (len(drawn) // 2,) if number % 6 == 0 and len(drawn) > 1 else ()
        far = np.broadcast_to(np.inf, len(drawn))
        given = replace(drawn, diameter=math.inf, drift=far, releases=places, smooth=own("it is not used"))
        yield given
        if number % 5 == 0:
            yield _scheduled(source, fading=number % 10 == 0)


def _scheduled(source: np.random.Generator, fading: bool) -> Process:
    """Draw contracting steps that differ widely, or noise that is `fading` as fast as they contract."""
    steps, ratio = int(source.integers(10, 60)), float(source.uniform(0.05, 0.5))
    lipschitz = np.full(steps, source.uniform(0.5, 0.95)) if fading else source.uniform(0.5, 0.95, steps)
    noise = np.cumprod(lipschitz) if fading else 10 ** source.uniform(-1, 1, steps)
    return process(BATCHES[0], steps, ratio * noise, noise, lipschitz)


def _words_for(given: Process) -> str:
    return repr(given) + (f" with a release after {given.releases[0]} steps" if given.releases else "")


def lies_above_exact_instances(subject: Subject) -> str | None:
    return _below(subject, subject.exact)


def lies_above_exact_instances_of_every_kind(subject: Subject) -> str | None:
    """The bound is above exact laws of unusual runs, any two traits together, such as cut epochs and averages."""
    return _below(subject, subject.varied)


def _below(subject: Subject, instances: list[tuple[int, Any]]) -> str | None:
    """Describe where the bound is below the exact law of one of the instances, or return None."""
    for seed, instance in subject.in_time(instances):
        answer = subject.theorem.apply(instance.process)
        if isinstance(answer, Guarantee) and (told := beside(answer, instance, f"{instance.process!r}").wrong):
            return f"{told} (seed {seed})"
    return None


def exact_delta(chain: Chain, mu: float, epsilons: Floats) -> Floats:
    """δ of the last iterate of a chain, and of N(0, 1) or N(mu, 1) before it, from their laws: in the worse order."""
    found = []
    for first, second in (chain.laws, chain.laws[::-1]):
        both = (first > 0) & (second > 0)  # the rest only adds to it
        first, second = first[both], second[both]
        beyond = (epsilons[:, None] - np.log(first / second)) / mu
        terms = first * ndtr(mu / 2 - beyond) - np.exp(epsilons[:, None]) * second * ndtr(-mu / 2 - beyond)
        found.append(terms.sum(axis=1))
    return np.asarray(np.max(found, axis=0))


def lies_above_exact_instances_after_a_release(subject: Subject) -> str | None:
    seed, instance = min(subject.exact, key=lambda pair: len(pair[1].process))
    answer = subject.theorem.apply(replace(instance.process, prior_mu=BEFORE))
    if not isinstance(answer, Guarantee):
        return None
    least = np.asarray(GaussianDP(BEFORE).delta(_EPSILONS)) * (1 - 1e-12)
    if isinstance(instance.chain, Chain):
        exact, coarse = (exact_delta(one, BEFORE, _EPSILONS) for one in (instance.chain.finer, instance.chain))
        least = np.maximum(least, exact - np.abs(exact - coarse))
    bound = np.asarray(answer.notion.delta(_EPSILONS))
    if (bound >= least - ROUNDING).all():
        return None
    return f"delta = {bound} at epsilon = {_EPSILONS} for {instance.process!r} (seed {seed}); exactly {least}"


# Comparison of a guarantee with the exact law of a run in one dimension.


EPSILONS = np.append(0.0, np.geomspace(0.003, 8.0, 24))
ROUNDING = 1e-13  # of sums of a few hundred probabilities


class Beside(NamedTuple):
    """Result of a comparison: bound − exact δ, their ratio where δ is above 1e-9, and where the bound is too small."""

    margin: float
    ratio: float
    wrong: str


def beside(answer: Guarantee, instance: Instance | FilteredInstance, name: str) -> Beside:
    """Compare the guarantee with the exact law of the instance at two dozen ε."""
    exact, error = instance.chain.delta_with_error(EPSILONS)
    least = np.maximum(exact - error - ROUNDING, 0.0)
    bound, clear = np.asarray(answer.notion.delta(EPSILONS)), exact > 1e-9
    ratio = float((bound[clear] / exact[clear]).min()) if clear.any() else math.inf
    wrong = np.flatnonzero(~(bound >= least))
    told = ""
    if wrong.size:
        worst = int(wrong[np.argmin(bound[wrong] - least[wrong])])
        told = f"{name}: delta = {bound[worst]:.4g} at epsilon = {EPSILONS[worst]:.4g}, and exactly {exact[worst]:.4g}"
    return Beside(float((bound - least).min()), ratio, told)
