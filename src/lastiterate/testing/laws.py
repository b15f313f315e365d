"""Laws that every theorem obeys. Each looks for a run where it is broken, and says what is wrong there, or nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from scipy.special import ndtr

from lastiterate.algorithms.batches import Cyclic, FixedSize, FullBatch, Poisson, Shuffled
from lastiterate.algorithms.process import Process
from lastiterate.auditing.chain import Chain
from lastiterate.numerics.arrays import Floats
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.testing.beside import ROUNDING, beside
from lastiterate.testing.draws import BATCHES, changed, in_other_units, random_process
from lastiterate.testing.examples import NothingToTry, Subject, answer_about, draws_for
from lastiterate.testing.processes import exact_mu_of_quadratics, process
from lastiterate.theorems.theorem import Guarantee, Inapplicable, Theorem

DELTA = 1e-5
GAUSSIAN = float(GaussianDP(0.5).epsilon(DELTA))
_BEFORE, _EPSILONS = 0.4, np.array([0.2, 1.5])
_QUADRATICS, _AT = 300, np.array([0.2, 1.0, 3.0])
_ROUNDED = 1e-9


@dataclass(frozen=True)
class TheoremLaw:
    """`broken` says where and by how much, or None; it raises NothingToTry where the theorem applies to nothing.

    `of_runs`: whether it is tried on runs to which the theorem applies.
    """

    name: str
    broken: Callable[[Subject], str | None]
    of_runs: bool = True


def _first(found: Iterator[str]) -> str | None:
    return next(found, None)


def is_cited(subject: Subject) -> str | None:
    theorem = subject.theorem
    statements = [assumption.statement for assumption in theorem.assumptions]
    if not (theorem.citation and theorem.covers and statements):
        return "citation, covers and assumptions must not be empty"
    return None if len(set(statements)) == len(statements) else "two assumptions have the same statement"


def single_step(theorem: Theorem) -> Process | None:
    """One full batch, or one batch of one, to which the theorem applies: sensitivity/noise is 1/2."""
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
    """Gaussians, computed by hand: full batches, with checkpoints now and then, and batches in a fixed order."""
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
                    f"delta = {bound[worst]:.4g} at epsilon = {_AT[worst]:g} for {_said(given)}; quadratic losses have "
                    f"{exact[worst]:.4g} (mu = {mu:.4g})"
                )
    if not seen:
        raise NothingToTry(f"{theorem.name} says nothing about quadratic losses without a domain")
    return None


def _quadratics() -> Iterator[Process]:
    """A quadratic has gradients of any size, and needs room."""
    source = np.random.default_rng(9)
    for number in range(_QUADRATICS):
        drawn = random_process(source, BATCHES[number % 2], alike=bool(source.random() < 0.5))
        places = (len(drawn) // 2,) if number % 6 == 0 and len(drawn) > 1 else ()
        far = np.broadcast_to(np.inf, len(drawn))
        given = replace(drawn, diameter=math.inf, drift=far, releases=places, smooth="it is not used")
        yield given
        if number % 5 == 0:
            yield _scheduled(source, fading=number % 10 == 0)


def _scheduled(source: np.random.Generator, fading: bool) -> Process:
    """Contracting steps that differ widely; or `fading` as fast as they contract, so that none hides another."""
    steps, ratio = int(source.integers(10, 60)), float(source.uniform(0.05, 0.5))
    lipschitz = np.full(steps, source.uniform(0.5, 0.95)) if fading else source.uniform(0.5, 0.95, steps)
    noise = np.cumprod(lipschitz) if fading else 10 ** source.uniform(-1, 1, steps)
    return process(BATCHES[0], steps, ratio * noise, noise, lipschitz)


def _said(given: Process) -> str:
    return repr(given) + (f" with a release after {given.releases[0]} steps" if given.releases else "")


def lies_above_exact_instances(subject: Subject) -> str | None:
    def broken() -> Iterator[str]:
        for seed, instance in subject.in_time(subject.exact):
            answer = subject.theorem.apply(instance.process)
            if isinstance(answer, Guarantee) and (told := beside(answer, instance, f"{instance.process!r}").wrong):
                yield f"{told} (seed {seed})"

    return _first(broken())


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
    answer = subject.theorem.apply(replace(instance.process, beforehand_mu=_BEFORE))
    if not isinstance(answer, Guarantee):
        return None
    least = np.asarray(GaussianDP(_BEFORE).delta(_EPSILONS)) * (1 - 1e-12)
    if isinstance(instance.chain, Chain):
        exact, coarse = (exact_delta(one, _BEFORE, _EPSILONS) for one in (instance.chain.finer, instance.chain))
        least = np.maximum(least, exact - np.abs(exact - coarse))
    bound = np.asarray(answer.notion.delta(_EPSILONS))
    if (bound >= least - ROUNDING).all():
        return None
    return f"delta = {bound} at epsilon = {_EPSILONS} for {instance.process!r} (seed {seed}); exactly {least}"


def earlier_release_counts_whole_and_once(subject: Subject) -> str | None:
    """More than either alone, not more than both added up, and more for more."""
    theorem, slack, before = subject.theorem, subject.tolerance, GaussianDP(_BEFORE)
    given = min(subject.examples, key=len)
    answer = answer_about(theorem, given)
    assert isinstance(answer, Guarantee)
    alone = answer.evidence
    found, slightly = (float(alone.after(mu).notion.epsilon(DELTA)) for mu in (_BEFORE, _BEFORE / 2))
    least = max(subject.epsilon(given), float(before.epsilon(DELTA))) * (1 - slack)
    most = (float(before.epsilon(DELTA / 2)) + subject.epsilon(given, DELTA / 2)) * (1 + 2 * slack)
    if not (found >= least and slightly <= found * (1 + slack) <= most):
        return f"epsilon = {found:.6g} with mu = {_BEFORE:g} released before, not from {least:.6g} to {most:.6g}: {given!r}"
    if isinstance(alone.notion, GaussianDP):
        exact, both = math.hypot(alone.notion.mu, _BEFORE), alone.after(_BEFORE).notion
        if not isinstance(both, GaussianDP) or not exact <= both.mu <= exact * (1 + 1e-14):
            return f"with mu = {_BEFORE:g} released before, {both!r} instead of mu = {exact:.6g}: {given!r}"
        if not math.isclose(found, float(GaussianDP(exact).epsilon(DELTA)), rel_tol=1e-12):
            return f"epsilon = {found!r} is not that of mu = {exact!r}"
    return None


def units_do_not_matter(subject: Subject) -> str | None:
    def broken() -> Iterator[str]:
        for given in subject.examples:
            one, two = subject.epsilon(given), subject.epsilon(in_other_units(given, 1e5))
            if not math.isclose(one, two, rel_tol=1e-6, abs_tol=1e-12):
                yield f"epsilon = {one:.6g} for {given!r}, and {two:.6g} with all lengths multiplied by 1e5"

    return _first(broken())


Change = Callable[[Process], Process | None]


def _never_smaller(subject: Subject, worse: Change, what: str) -> str | None:
    """For each example: what is worse does not come out smaller."""

    def broken() -> Iterator[str]:
        for given in subject.examples:
            other = worse(given)
            if other is None:
                continue
            one, two = subject.epsilon(given), subject.epsilon(other)
            if not two >= one * (1 - subject.tolerance):
                yield f"epsilon = {one:.6g} for {given!r}, and {two:.6g} {what}"

    return _first(broken())


def more_noise_never_hurts(subject: Subject) -> str | None:
    def broken() -> Iterator[str]:
        for given in subject.examples:
            one = subject.epsilon(given)
            two = subject.epsilon(changed(given, lambda values: values * 1.1, "noise"))
            if not two <= one * (1 + subject.tolerance):
                yield f"epsilon = {one:.6g} for {given!r}, and {two:.6g} with 1.1 times the noise"

    return _first(broken())


def a_wider_domain_never_helps(subject: Subject) -> str | None:
    def wider(given: Process) -> Process | None:
        return replace(given, diameter=given.diameter * 1.1) if math.isfinite(given.diameter) else None

    return _never_smaller(subject, wider, "with a domain 1.1 times as wide")


def _more_steps(given: Process) -> int:
    """Whole epochs, where there are epochs: a run that ends within one hides its last records less."""
    every = given.batches.per_epoch if isinstance(given.batches, Cyclic | Shuffled) else 1
    return -(-len(given) // every) * every


def more_steps_never_help(subject: Subject) -> str | None:
    """About twice as many, each like the first; where the longer run is outside the assumptions nothing is claimed.

    Noise before the first turn helps, too, where it counts: there whole epochs are compared.
    """
    theorem = subject.theorem

    def broken() -> Iterator[str]:
        for given in subject.examples:
            count = _more_steps(given) if theorem.functions else len(given)
            short = replace(given, releases=()).like_the_first(count)
            longer = short.like_the_first(len(short) + _more_steps(short))
            if not theorem.failures(short):
                one, two = subject.epsilon(short), subject.epsilon(longer)
                if not two >= one * (1 - subject.tolerance):
                    yield f"epsilon = {one:.6g} for {short!r}, and {two:.6g} after {len(longer)} steps"

    return _first(broken())


def a_record_seen_more_often_is_not_better_hidden(subject: Subject) -> str | None:
    def oftener(given: Process) -> Process | None:
        if isinstance(given.batches, FixedSize):
            return replace(given, batches=FixedSize(records=120, batch_size=45))
        return replace(given, batches=Poisson(120, 0.375)) if isinstance(given.batches, Poisson) else None

    return _never_smaller(subject, oftener, "where a record is in 1.5 times as many batches")


def its_profile_falls_and_its_epsilon_belongs_to_it(subject: Subject) -> str | None:
    def broken() -> Iterator[str]:
        for given in subject.examples[:2]:
            answer = answer_about(subject.theorem, given)
            assert isinstance(answer, Guarantee)
            deltas = np.asarray(answer.notion.delta(np.array([0.0, 0.5, 1.0, 2.0, 4.0])))
            falls = (np.diff(deltas)[deltas[:-1] < 0.99] <= 1e-12).all()  # above, it says nothing
            if not (falls and ((deltas >= 0) & (deltas <= 1)).all()):
                yield f"its delta does not fall from 1 to 0 as epsilon grows: {deltas}, for {given!r}"
            bound = answer.epsilon(DELTA)
            if math.isfinite(bound) and bound > 0 and not float(answer.notion.delta(bound)) <= DELTA * (1 + 1e-6):
                yield f"at its own epsilon = {bound:.6g} delta is {float(answer.notion.delta(bound)):.4g}, not {DELTA:g}"

    return _first(broken())


def first_two_failures(theorem: Theorem, given: Process) -> list[str]:
    """The statements of the first two assumptions that fail; further ones are not looked at."""
    return list(islice((one.statement for one in theorem.assumptions if one.failure(given) is not None), 2))


def refused_as_it_should_be(theorem: Theorem, given: Process) -> str | None:
    """Of a process in which one assumption fails, and nothing else is wrong."""
    answer = theorem.apply(given)
    if not isinstance(answer, Inapplicable):
        return f"it does not refuse {given!r}"
    fine = str(answer).startswith(f"{theorem.name} does not apply: ") and len(answer.reasons) == 1
    return None if fine else f"its refusal is not one sentence: {answer!s:.200}"


def it_refuses_where_an_assumption_fails(subject: Subject) -> str | None:
    """Wherever one fails alone, in as many draws as it takes to see most of them."""
    theorem = subject.theorem
    sought = {one.statement for one in theorem.assumptions}
    for given in islice(draws_for(theorem, 12), _REFUSED):
        failed = first_two_failures(theorem, given) if sought else []
        if len(failed) == 1 and failed[0] in sought and theorem.updates.failure(given) is None:
            sought.discard(failed[0])
            if told := refused_as_it_should_be(theorem, given):
                return f"where this fails: {failed[0]}; {told}"
    return None


_REFUSED = 1_000

LAWS = (
    TheoremLaw("it is cited and says what it needs", is_cited, of_runs=False),
    TheoremLaw("one full-batch step is at least the Gaussian mechanism", one_step_is_above_the_gaussian_mechanism),
    TheoremLaw("it lies above quadratic losses", lies_above_quadratics),
    TheoremLaw("its profile falls, and its epsilon belongs to it", its_profile_falls_and_its_epsilon_belongs_to_it),
    TheoremLaw("units do not matter", units_do_not_matter),
    TheoremLaw("more noise never hurts", more_noise_never_hurts),
    TheoremLaw("more steps never help", more_steps_never_help),
    TheoremLaw("a wider domain never helps", a_wider_domain_never_helps),
    TheoremLaw("a record that is seen more often is not better hidden", a_record_seen_more_often_is_not_better_hidden),
    TheoremLaw("an earlier release is counted in full, and once", earlier_release_counts_whole_and_once),
    TheoremLaw("it refuses where an assumption fails", it_refuses_where_an_assumption_fails, of_runs=False),
    TheoremLaw("it lies above exact instances", lies_above_exact_instances),
    TheoremLaw("after an earlier release it lies above exact instances", lies_above_exact_instances_after_a_release),
)
