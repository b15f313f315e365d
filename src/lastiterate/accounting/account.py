"""Describe a run, get the least provable ε."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from lastiterate.accounting.groups import at_their_places, checked_group, run_for
from lastiterate.accounting.ranked import Ranked
from lastiterate.accounting.releases import released
from lastiterate.accounting.report import Report
from lastiterate.algorithms.named import names_arguments
from lastiterate.algorithms.run import Run, checked_run
from lastiterate.errors import INSIDE_UNIT, Unavailable, checked_number
from lastiterate.progress import tracked
from lastiterate.theorems.catalogue import CATALOGUE
from lastiterate.theorems.theorem import Guarantee, Inapplicable, Theorem


@names_arguments
def account(run: Run, delta: float, releases: Iterable[int] = (), group: Iterable[int] = ()) -> Report:
    """Smallest provable ε for releasing the final iterate, plus any checkpoints in `releases`.

    Tries every catalogued theorem; the smallest ε at `delta` comes first. `releases`: the steps after which a checkpoint is
    released as well. `group`: the indices of all records of one person, to get a guarantee for that person. With batches in
    a fixed order it matters which records they are; otherwise only how many.
    """
    return account_by(CATALOGUE, run, delta, releases, group)


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
        raise Unavailable(f"no theorem applies to this run. {_commonest(refused)}.")
    asked, later = _asked([one for one in answers if isinstance(one, Guarantee)], target)
    return Report(run, target, process.releases, asked, later, refused, members=members)


def _asked(guarantees: list[Guarantee], delta: float) -> tuple[tuple[Ranked, ...], tuple[Guarantee, ...]]:
    """Those of which one is the best, in order, and those that are surely not, whose ε is left for later."""
    least, found, later = math.inf, [], []
    for one in sorted(guarantees, key=lambda one: one.evidence.at_least is not None):
        if one.evidence.hopeless(delta, least):
            later.append(one)
        else:
            found.append(Ranked(one.epsilon(delta), one))
            least = min(least, found[-1].epsilon)
    return tuple(sorted(found, key=Ranked.rank)), tuple(later)


def _commonest(refused: Sequence[Inapplicable]) -> str:
    """The most frequent reason, in one short sentence."""
    counts = Counter(reason for answer in refused for reason in answer.reasons)
    reason, count = max(counts.items(), key=lambda pair: (pair[1], -len(pair[0]), pair[0]))
    return f"The most frequent reason, for {count} of {len(refused)} theorems: each {reason}"
