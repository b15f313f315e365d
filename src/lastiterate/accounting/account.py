"""Describe a run, get the least provable ε."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lastiterate.accounting.releases import released
from lastiterate.accounting.report import Report
from lastiterate.algorithms.run import Run, checked_run
from lastiterate.errors import INSIDE_UNIT, Unavailable, checked_number
from lastiterate.progress import tracked
from lastiterate.theorems.catalogue import CATALOGUE
from lastiterate.theorems.evidence import About, Grade
from lastiterate.theorems.theorem import Guarantee, Inapplicable, Theorem


def account(run: Run, delta: float, releases: Iterable[int] = ()) -> Report:
    """What may be claimed of the last iterate of this run, and of the iterates after `releases` steps if these leave, too.

    Every theorem of the catalogue is asked; the least ε at `delta` comes first, of equal ones that with the better proof.
    """
    return account_by(CATALOGUE, run, delta, releases)


def account_by(theorems: Sequence[Theorem], run: Run, delta: float, releases: Iterable[int] = ()) -> Report:
    """The same, where only these theorems are asked."""
    checked_run(run)
    target = checked_number("delta", delta, INSIDE_UNIT)
    process = released(run.process, releases)
    found: list[tuple[float, Guarantee]] = []
    refused: list[Inapplicable] = []
    for theorem in tracked(theorems, "theorems"):
        answer = theorem.apply(process)
        if isinstance(answer, Guarantee):
            found.append((answer.epsilon(target), answer))
        else:
            refused.append(answer)
    if not found:
        raise Unavailable(f"no theorem says anything about this run. {_commonest(refused)}.")
    found.sort(key=lambda pair: _rank(*pair))
    return Report(
        run,
        target,
        process.releases,
        tuple(answer for _, answer in found),
        tuple(epsilon for epsilon, _ in found),
        tuple(refused),
    )


def _rank(epsilon: float, guarantee: Guarantee) -> tuple[float, bool, bool, bool, str]:
    """Of bounds that agree to nine digits: replayed first, every iterate before the last, without pairs; then by name."""
    evidence = guarantee.evidence
    recomputed, last_alone = evidence.grade is not Grade.REPLAYED, evidence.about is not About.EVERY_ITERATE
    return float(f"{epsilon:.9g}"), recomputed, last_alone, bool(evidence.pairs), guarantee.theorem.name


def _commonest(refused: list[Inapplicable]) -> str:
    """What keeps most theorems away, in one sentence of bearable length."""
    counts = Counter(reason for answer in refused for reason in answer.reasons)
    reason, count = max(counts.items(), key=lambda pair: (pair[1], -len(pair[0]), pair[0]))
    return f"What {count} of {len(refused)} lack: {reason}"
