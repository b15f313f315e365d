"""Describe a run, get the least provable ε."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from lastiterate.accounting.groups import at_their_places, checked_group, run_for
from lastiterate.accounting.ranked import Ranked
from lastiterate.accounting.releases import released
from lastiterate.accounting.report import Report
from lastiterate.errors import INSIDE_UNIT, InvalidInput, Unavailable, checked_number
from lastiterate.progress import tracked
from lastiterate.runs.named import names_arguments
from lastiterate.runs.run import Run, checked_run
from lastiterate.theorems.own import checked_theorems, of_the_library
from lastiterate.theorems.theorem import Guarantee, Inapplicable, Theorem

_ROUNDING = 1e-9  # of both sides of a sandwich


@names_arguments
def account(
    run: Run,
    delta: float,
    releases: Iterable[int] = (),
    group: Iterable[int] = (),
    theorems: Iterable[Theorem] | None = None,
) -> Report:
    """Smallest provable ε for releasing the final iterate, plus any checkpoints in `releases`.

    Tries every catalogued theorem; the smallest ε at `delta` comes first. `releases`: the steps after which a checkpoint is
    released as well. `group`: the indices of all records of one person, to get a guarantee for that person. With batches in
    a fixed order it matters which records they are; otherwise only how many.

    `theorems`: what is tried instead of the catalogue, such as [*li.theorems.CATALOGUE, MINE] with a theorem of your own.
    """
    report = account_by(checked_theorems(theorems), run, delta, releases, group)
    if not of_the_library(report.best.theorem):
        _check_against_instances(report)
    return report


def _check_against_instances(report: Report) -> None:
    """What the library proves is above every instance; of a theorem that somebody brings along nobody knows."""
    lower = report.lower_bound
    if lower.epsilon > report.epsilon * (1 + _ROUNDING):
        raise InvalidInput(
            "theorem_false",
            field="theorems",
            theorem=report.best.theorem.name,
            epsilon=report.epsilon,
            least=lower.epsilon,
            instance=lower.instance,
        )


def account_by(
    theorems: Sequence[Theorem], run: Run, delta: float, releases: Iterable[int] = (), group: Iterable[int] = ()
) -> Report:
    """The same, with only these theorems."""
    target, members = checked_number("delta", delta, INSIDE_UNIT), checked_group(checked_run(run), group)
    run = run_for(run, members)
    process = at_their_places(released(run.process, releases), members)
    answers = [theorem.apply(process) for theorem in tracked(theorems, "theorems")]
    refused = tuple(one for one in answers if isinstance(one, Inapplicable))
    if len(refused) == len(answers):
        reason, count = _commonest(refused)
        raise Unavailable("no_theorem_applies", reason=reason, count=count, tried=len(refused))
    ranked = [Ranked(_number(one, target), one) for one in answers if isinstance(one, Guarantee)]
    return Report(run, target, process.releases, tuple(sorted(ranked, key=Ranked.rank)), refused, members=members)


def _number(guarantee: Guarantee, delta: float) -> float:
    epsilon = guarantee.epsilon(delta)
    if math.isnan(epsilon):
        raise Unavailable("theorem_says_nan", theorem=guarantee.theorem.name)
    return epsilon


def _commonest(refused: Sequence[Inapplicable]) -> tuple[str, int]:
    """The most frequent reason, and how many theorems have it."""
    counts = Counter(reason for answer in refused for reason in answer.sentences)
    return max(counts.items(), key=lambda pair: (pair[1], -len(pair[0]), pair[0]))
