"""The certificate of a selection: that of one trial for each setting, how many trials there are, and the claim.

`verify` replays or recomputes each trial by its own grade, and the selection from what these prove and from the distribution
of the number of trials: no number of the certificate is trusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lastiterate.accounting.certificate import FORMAT, SELECTION_FORMAT, checked, proved_by, rounded_up
from lastiterate.accounting.difference import first_other
from lastiterate.accounting.report import Report
from lastiterate.accounting.verdict import Verdict, rejected
from lastiterate.algorithms.run import Run
from lastiterate.digits import above
from lastiterate.errors import INSIDE_UNIT, MU, NON_NEGATIVE, InvalidInput, Unavailable, checked_number
from lastiterate.numerics.rounding import up
from lastiterate.privacy.dominated import AGAIN
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.privacy.notion import Notion
from lastiterate.privacy.pointwise import worst
from lastiterate.privacy.select import best_of_trials
from lastiterate.privacy.trials import Trials, trials_from_dict, trials_said, trials_to_dict

_MOST_SETTINGS = 10_000
_ALONE = (
    "Only the best trial is released: its model, its setting and its score. The other trials, their scores and their "
    "number stay secret, and so does how long the search took."
)


@dataclass(frozen=True, repr=False)
class SelectionVerdict(Verdict):
    """Of a selection: the distribution of the number of `trials`, and how a trial of each of the `settings` was checked."""

    trials: str = ""
    settings: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.accepted:
            return super().__str__()
        how = " and ".join(dict.fromkeys(self.settings))
        return (
            f"accepted: epsilon = {above(self.epsilon, 9)} at delta = {self.delta:g}, {self.adjacency}, "
            f"only the best of a random number of trials released ({self.trials}); "
            f"{_counted(len(self.settings))} {how}, the selection recomputed"
        )

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "settings": list(self.settings)}


def _counted(settings: int) -> str:
    return "1 setting" if settings == 1 else f"{settings} settings"


def selection_certificate(
    reports: Sequence[Report], stated_mu: float | None, trials: Trials, caveats: tuple[str, ...]
) -> dict[str, Any]:
    """Of trials with these reports, and perhaps with a part that is stated to be mu-GDP."""
    if len({(report.delta, report.protected) for report in reports}) != 1:
        raise InvalidInput(
            "reports must have one delta and protect the same records to share a certificate. Account for every run at one "
            "delta.",
            field="guarantees",
        )
    settings: list[dict[str, Any]] = []
    notions: list[Notion] = []
    for report in reports:
        if (one := report.certificate) not in settings:
            settings.append(one)
            notions.append(_proved(report, one))
    stated = [] if stated_mu is None else [GaussianDP(stated_mu, reports[0].run.adjacency)]
    delta = reports[0].delta
    # Raised by a part in a million, so that whoever computes it again finds no more.
    epsilon = rounded_up(up(_price([*notions, *stated], trials, delta), by=AGAIN))
    if not math.isfinite(epsilon):
        raise Unavailable(f"certificate needs a finite epsilon at delta = {delta:g}. Use more noise in each trial.")
    return {
        "format": SELECTION_FORMAT,
        "grade": "recomputed",
        "claim": {"adjacency": reports[0].protected, "delta": delta, "epsilon": epsilon},
        "trials": trials_to_dict(trials),
        "stated_mu": stated_mu,
        "assumptions": list(_assumptions(trials, len(settings), stated_mu)),
        "caveats": list(caveats),
        "settings": settings,
    }


def _proved(report: Report, certificate: dict[str, Any]) -> Notion:
    """What `proved_by` finds in the certificate, without the search for it."""
    mu = certificate["claim"]["mu"]
    return report.best._proved if mu is None else GaussianDP(mu, report.run.adjacency)


def _price(notions: Sequence[Notion], trials: Trials, delta: float) -> float:
    return float(best_of_trials(worst(notions), trials).epsilon(delta))


def verify_selection(content: dict[str, Any], run: Run | None, called: str) -> Verdict:
    """Each setting by its own grade, then the selection."""
    claim, settings = content["claim"], content["settings"]
    if not isinstance(settings, list) or not 0 < len(settings) <= _MOST_SETTINGS:
        return rejected("settings must be a list of certificates, one for each setting")
    if content["caveats"]:
        return rejected(str(content["caveats"][0]))
    if run is not None and len(settings) > 1:
        return rejected(f"it is about {len(settings)} settings, not about one run")
    epsilon = checked_number("epsilon", claim["epsilon"], NON_NEGATIVE)
    delta, trials = checked_number("delta", claim["delta"], INSIDE_UNIT), trials_from_dict(content["trials"])
    stated = None if content["stated_mu"] is None else checked_number("stated_mu", content["stated_mu"], MU)
    assumptions = list(_assumptions(trials, len(settings), stated))
    if content["assumptions"] != assumptions:
        which = first_other(content["assumptions"], assumptions)
        return rejected(f"its assumptions are not those of its selection: {which}")
    verdicts = [_checked_setting(one, run, called) for one in settings]
    for number, verdict in enumerate(verdicts, start=1):
        if not verdict.accepted:
            return rejected(f"setting {number}: {verdict.reason}")
        if verdict.adjacency != claim["adjacency"]:
            return rejected(f"setting {number} protects other neighbours: {verdict.adjacency}")
    notions = [proved_by(one) for one in settings]
    if stated is not None:
        notions.append(GaussianDP(stated, notions[0].adjacency))
    least = _price(notions, trials, delta)
    if not least <= epsilon:
        return rejected(f"it claims epsilon = {epsilon:.12g}, but proves {least:.12g}")
    return SelectionVerdict(
        True,
        epsilon,
        delta,
        assumptions=(*assumptions, *_of_settings(verdicts)),
        grade="recomputed",
        adjacency=str(claim["adjacency"]),
        trials=trials_said(trials),
        settings=tuple(verdict.grade for verdict in verdicts),
    )


def _checked_setting(content: dict[str, Any], run: Run | None, called: str) -> Verdict:
    """A trial is one run, and its guarantee is for everybody."""
    if content["format"] != FORMAT:
        return rejected(f"it is not a {FORMAT}")
    if content.get("group"):
        return rejected("its guarantee is for one person only")
    return checked(content, run, called)


def _assumptions(trials: Trials, settings: int, stated_mu: float | None) -> Iterator[str]:
    yield f"The number of trials is drawn from a {trials_said(trials)}, independently of the data, and is not released."
    if settings > 1:
        yield f"Every trial draws one of {settings} settings at random, independently of the data and of the other trials."
    yield "Every trial trains anew, with fresh noise: the trials share nothing that was learnt from the data."
    yield _ALONE
    if stated_mu is None:
        yield "The score of a trial is computed from its model and public records."
    else:
        yield (
            f"Trials without a certificate here, or scores on records that no trial trains on, are {stated_mu:.12g}-GDP. "
            "This is stated, and not proved here."
        )


def _of_settings(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Each once, with the settings that make it."""
    made: dict[str, list[str]] = {}
    for number, verdict in enumerate(verdicts, start=1):
        for sentence in verdict.assumptions:
            made.setdefault(sentence, []).append(str(number))
    for sentence, numbers in made.items():
        every = len(numbers) == len(verdicts)
        which = "Every trial" if every else f"Trials with setting {' or '.join(numbers)}"
        yield f"{which}: {sentence}"
