"""Laws that every theorem obeys. Each looks for a run where it is broken, and says what is wrong there, or nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.display import summary
from lastiterate.errors import UNIT, LastIterateError, checked_number, must_be, shown
from lastiterate.facts import own
from lastiterate.progress import tracked
from lastiterate.runs.batches import Cyclic, FixedSize, Poisson, Shuffled
from lastiterate.runs.per_step import is_constant
from lastiterate.runs.process import Process
from lastiterate.runs.run import Run, checked_run
from lastiterate.testing.draws import changed, in_other_units
from lastiterate.testing.exact_laws import (
    BEFORE,
    DELTA,
    lies_above_exact_instances,
    lies_above_exact_instances_after_a_release,
    lies_above_exact_instances_of_every_kind,
    lies_above_quadratics,
    one_step_is_above_the_gaussian_mechanism,
)
from lastiterate.testing.examples import NothingToTry, Subject, answer_about, draws_for
from lastiterate.theorems.evidence import About
from lastiterate.theorems.features import Assumption
from lastiterate.theorems.theorem import Guarantee, Inapplicable, Theorem

_REFUSED = 1_000  # draws


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
    statements = list(theorem.needs)
    if not (theorem.citation and theorem.covers and statements):
        return "citation, covers and assumptions must not be empty"
    return None if len(set(statements)) == len(statements) else "two assumptions have the same statement"


def earlier_release_counts_whole_and_once(subject: Subject) -> str | None:
    """With an earlier release, ε is at least that of either part, at most their sum, and grows with it."""
    theorem, slack, before = subject.theorem, subject.tolerance, GaussianDP(BEFORE)
    given = min(subject.examples, key=len)
    answer = answer_about(theorem, given)
    if not isinstance(answer, Guarantee):
        return f"it refuses a run to which it applied before: {given!r}"
    alone = answer.evidence
    found, slightly = (float(alone.after(mu).notion.epsilon(DELTA)) for mu in (BEFORE, BEFORE / 2))
    least = max(subject.epsilon(given), float(before.epsilon(DELTA))) * (1 - slack)
    most = (float(before.epsilon(DELTA / 2)) + subject.epsilon(given, DELTA / 2)) * (1 + 2 * slack)
    if not (found >= least and slightly <= found * (1 + slack) <= most):
        return (
            f"epsilon = {found:.6g} with mu = {BEFORE:g} released before, not from {least:.6g} to {most:.6g}: {given!r}"
        )
    if isinstance(alone.notion, GaussianDP):
        exact, both = math.hypot(alone.notion.mu, BEFORE), alone.after(BEFORE).notion
        if not isinstance(both, GaussianDP) or not exact <= both.mu <= exact * (1 + 1e-14):
            return f"with mu = {BEFORE:g} released before, {both!r} instead of mu = {exact:.6g}: {given!r}"
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
    """Describe an example whose ε falls when it is changed for the worse, or return None."""

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
    """ε does not grow with the noise; a run that leaves the assumptions with more noise is no counterexample."""

    def broken() -> Iterator[str]:
        for given in subject.examples:
            noisier = changed(given, lambda values: values * 1.1, "noise")
            one, two = subject.epsilon(given), subject.epsilon(noisier)
            if not two <= one * (1 + subject.tolerance) and not subject.theorem.failures(noisier):
                yield f"epsilon = {one:.6g} for {given!r}, and {two:.6g} with 1.1 times the noise"

    return _first(broken())


def a_wider_domain_never_helps(subject: Subject) -> str | None:
    def wider(given: Process) -> Process | None:
        return replace(given, diameter=given.diameter * 1.1) if math.isfinite(given.diameter) else None

    return _never_smaller(subject, wider, "with a domain 1.1 times as wide")


def _more_steps(given: Process) -> int:
    """Number of steps rounded up to whole epochs: a run that ends within one hides its last records less."""
    every = given.batches.per_epoch if isinstance(given.batches, Cyclic | Shuffled) else 1
    return -(-len(given) // every) * every


def more_steps_never_help(subject: Subject) -> str | None:
    """ε does not fall with twice as many equal steps; a longer run outside the assumptions is no counterexample.

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


def all_iterates_cost_the_same_in_any_order_of_epochs(subject: Subject) -> str | None:
    """If every iterate is released, epochs compose: reversing the order of whole epochs changes nothing."""
    if subject.theorem.about is not About.EVERY_ITERATE:
        return None

    def broken() -> Iterator[str]:
        for given in subject.examples:
            turned = _epochs_turned_round(given)
            one, two = subject.epsilon(given), subject.epsilon(turned)
            if not math.isclose(one, two, rel_tol=1e-9):
                yield f"epsilon = {one:.6g} for {given!r}, and {two:.6g} with its epochs in the opposite order"

    return _first(broken())


def _epochs_turned_round(given: Process) -> Process:
    """Return the process with its whole epochs in reverse order; the rest of an epoch stays at the end."""
    every = given.batches.per_epoch if given.batches.passes else 1
    whole = len(given) // every * every
    places = np.arange(whole).reshape(-1, every)[::-1].ravel()
    order = np.append(places, np.arange(whole, len(given)))
    names = ("sensitivity", "noise", "lipschitz", "drift", "retain", "sampled")
    turned: dict[str, Any] = {
        name: values if is_constant(values := getattr(given, name)) else values[order] for name in names
    }
    return replace(given, **turned, releases=(), smooth=own("its steps are in another order"))


def more_records_of_a_user_never_help(subject: Subject) -> str | None:
    """Three records of a user cost at least what one does."""
    given = min(subject.examples, key=len)
    answers = [answer_about(subject.theorem, one) for one in (given, replace(given, group=3))]
    one, three = (float(x.notion.delta(1.0)) if isinstance(x, Guarantee) else 1.0 for x in answers)
    if three >= one * (1 - subject.tolerance):
        return None
    return f"delta = {one:.6g} at epsilon = 1 for one record of a user, and {three:.6g} for three: {given!r}"


def a_record_seen_more_often_is_not_better_hidden(subject: Subject) -> str | None:
    def oftener(given: Process) -> Process | None:
        batches = given.batches
        if isinstance(batches, FixedSize):
            return replace(given, batches=replace(batches, batch_size=batches.batch_size * 3 // 2))
        return (
            replace(given, batches=replace(batches, rate=1.5 * batches.rate)) if isinstance(batches, Poisson) else None
        )

    return _never_smaller(subject, oftener, "where a record is in 1.5 times as many batches")


def its_profile_falls_and_its_epsilon_belongs_to_it(subject: Subject) -> str | None:
    """δ(ε) falls, and δ at the ε found for a δ is that δ, up to the tolerance of a search."""
    most = DELTA * (1 + max(1e-6, subject.tolerance))

    def broken() -> Iterator[str]:
        for given in subject.examples[:2]:
            answer = answer_about(subject.theorem, given)
            if not isinstance(answer, Guarantee):
                yield f"it refuses a run to which it applied before: {given!r}"
                continue
            deltas = np.asarray(answer.notion.delta(np.array([0.0, 0.5, 1.0, 2.0, 4.0])))
            falls = (np.diff(deltas)[deltas[:-1] < 0.99] <= 1e-12).all()  # above, it says nothing
            if not (falls and ((deltas >= 0) & (deltas <= 1)).all()):
                yield f"its delta does not fall from 1 to 0 as epsilon grows: {deltas}, for {given!r}"
            bound = answer.epsilon(DELTA)
            if math.isfinite(bound) and bound > 0 and not float(answer.notion.delta(bound)) <= most:
                yield f"at its own epsilon = {bound:.6g} delta is {float(answer.notion.delta(bound)):.4g}, not {DELTA:g}"

    return _first(broken())


def first_two_failures(theorem: Theorem, given: Process) -> list[Assumption]:
    """The first two assumptions that fail, of features first; further ones are not looked at."""
    return [one for one, _ in islice(theorem.failing(given), 2)]


def refused_as_it_should_be(theorem: Theorem, given: Process) -> str | None:
    """Describe what is wrong with the refusal of a process in which exactly one assumption fails, or return None."""
    answer = theorem.apply(given)
    if not isinstance(answer, Inapplicable):
        return f"it does not refuse {given!r}"
    fine = str(answer).startswith(f"{theorem.name} does not apply: ") and len(answer.reasons) == 1
    return None if fine else f"its refusal is not one sentence: {answer!s:.200}"


def it_refuses_where_an_assumption_fails(subject: Subject) -> str | None:
    """A theorem refuses wherever one assumption fails alone, over as many draws as show most of them."""
    theorem = subject.theorem
    sought = set(theorem.assumptions)
    for given in islice(draws_for(theorem, 12), _REFUSED):
        failed = first_two_failures(theorem, given) if sought else []
        if len(failed) == 1 and failed[0] in sought:
            sought.discard(failed[0])
            if told := refused_as_it_should_be(theorem, given):
                return f"where this fails: {failed[0].statement}; {told}"
    return None


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
    TheoremLaw(
        "if all iterates are covered, the order of epochs does not matter",
        all_iterates_cost_the_same_in_any_order_of_epochs,
        of_runs=False,
    ),
    TheoremLaw("more records of a user never help", more_records_of_a_user_never_help),
    TheoremLaw("it lies above exact instances", lies_above_exact_instances),
    TheoremLaw("it lies above exact instances of every kind", lies_above_exact_instances_of_every_kind),
    TheoremLaw("after an earlier release it lies above exact instances", lies_above_exact_instances_after_a_release),
)


# Theorems of one's own under every law of the catalogue.


_EXAMPLES, _INSTANCES, _SECONDS = 8, 60, 8.0


class LawBroken(LastIterateError, AssertionError):
    """A theorem breaks a law: it is false, or an assumption of it is missing."""


@dataclass(frozen=True)
class CheckedTheorem:
    """Result of the laws: `laws` hold wherever they were tried; for `untried` ones no run was found."""

    theorem: Theorem
    laws: tuple[str, ...]
    untried: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return summary(self, repr(self.theorem.name), f"{len(self.laws)} laws hold", f"{len(self.untried)} untried")

    def __str__(self) -> str:
        lines = [f"{self.theorem.name}: {len(self.laws)} laws hold wherever they were tried. This is no proof."]
        return "\n".join([*lines, *(f"  {one}" for one in self.laws), *(f"  not tried: {one}" for one in self.untried)])


def check_theorem(theorem: Theorem, *, runs: Iterable[Run] = (), tolerance: float = 1e-9) -> CheckedTheorem:
    """Put a theorem of yours under the laws that every theorem of the library obeys; `LawBroken` if it breaks one.

    It is tried on random runs and on runs whose privacy loss is known exactly, in less than a minute. To pass is no proof,
    but most mistakes do not pass: a factor, a forgotten assumption, a unit. `runs`: some of your own to try it on as well,
    where its assumptions are narrow. `tolerance`: by what part its numbers may move where they should not, 0.01 for a bound
    that is searched on a grid.
    """
    if not isinstance(theorem, Theorem):
        raise must_be("theorem", "a li.theorems.Theorem", f"{shown(theorem):.60}")
    allowed = checked_number("tolerance", tolerance, UNIT)
    processes = tuple(checked_run(run).process for run in runs)
    subject = Subject(theorem, allowed, _EXAMPLES, _INSTANCES, processes, fewer=True, seconds=_SECONDS)
    held: list[str] = []
    untried: list[str] = []
    for law in tracked(LAWS, "laws"):
        (held if _obeyed(law, subject) else untried).append(law.name)
    if not any(law.of_runs and law.name in held for law in LAWS):
        raise LawBroken(f"{theorem.name} applies to none of the runs that it was tried on. Give some runs=[...].")
    return CheckedTheorem(theorem, tuple(held), tuple(untried))


def _obeyed(law: TheoremLaw, subject: Subject) -> bool:
    """Whether a law was tried; raise LawBroken if it does not hold."""
    name: Any = subject.theorem.name
    try:
        told = law.broken(subject)
    except NothingToTry:
        return False
    except Exception as error:
        raise LawBroken(f"{name} raised {type(error).__name__} under the law “{law.name}”: {error}") from error
    if told:
        raise LawBroken(f"{name} breaks the law “{law.name}”: {told}.")
    return True
