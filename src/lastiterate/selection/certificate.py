"""The certificate of a selection: that of one trial for each setting, how many trials there are, and the claim.

`verify` replays or recomputes each trial by its own grade, and the selection from what these prove and from the distribution
of the number of trials: no number of the certificate is trusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lastiterate.accounting.report import Report
from lastiterate.certificate.certificate import (
    FORMAT,
    SELECTION_FORMAT,
    check_run_certificate,
    other_assumptions,
    proved_by,
    rounded_up,
)
from lastiterate.certificate.verdict import Request, Verdict, rejected
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.gaussian_cover import AGAIN
from lastiterate.curves.minimum import worst
from lastiterate.curves.notion import Notion
from lastiterate.curves.selected import best_of_trials
from lastiterate.curves.trials import Trials, trials_from_dict, trials_said, trials_to_dict
from lastiterate.errors import INSIDE_UNIT, MU, NON_NEGATIVE, InvalidInput, Unavailable, checked_number, worded
from lastiterate.facts import Fact, fact, fact_from_json, facts_from_json, facts_to_json
from lastiterate.numerics.rounding import up

_MOST_SETTINGS = 10_000


@dataclass(frozen=True, repr=False)
class SelectionVerdict(Verdict):
    """The verdict on a selection: the law of the number of `trials`, and how each of the `settings` was checked."""

    trials: str = ""
    settings: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.accepted:
            return super().__str__()
        return worded("accepted_selection", **self._named("trials", "settings"))

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "settings": list(self.settings)}


def selection_certificate(
    reports: Sequence[Report], stated_mu: float | None, trials: Trials, caveats: tuple[Fact, ...]
) -> dict[str, Any]:
    """Return the certificate of trials with these reports, and perhaps with a part that is stated to be mu-GDP."""
    if len({(report.delta, report.unit) for report in reports}) != 1:
        raise InvalidInput("reports_not_alike", field="guarantees")
    settings: list[dict[str, Any]] = []
    notions: list[Notion] = []
    for report in reports:
        if (one := report.certificate) not in settings:
            settings.append(one)
            notions.append(_proved(report, one))
    stated = [] if stated_mu is None else [GaussianDP(stated_mu, reports[0].run.adjacency)]
    delta = reports[0].delta
    # Raised by a part in a million, so that whoever computes it again finds no more.
    epsilon = rounded_up(up(_epsilon_of_best([*notions, *stated], trials, delta), by=AGAIN))
    if not math.isfinite(epsilon):
        raise Unavailable("selection_not_finite", delta=delta)
    return {
        "format": SELECTION_FORMAT,
        "grade": "recomputed",
        "claim": {"unit": reports[0].unit.to_dict(), "delta": delta, "epsilon": epsilon},
        "trials": trials_to_dict(trials),
        "stated_mu": stated_mu,
        "assumptions": facts_to_json(_assumptions(trials, len(settings), stated_mu)),
        "caveats": facts_to_json(caveats),
        "settings": settings,
    }


def _proved(report: Report, certificate: dict[str, Any]) -> Notion:
    """Return the curve that `proved_by` finds in the certificate, without computing it again."""
    mu = certificate["claim"]["mu"]
    return report.best._proved if mu is None else GaussianDP(mu, report.run.adjacency)


def _epsilon_of_best(notions: Sequence[Notion], trials: Trials, delta: float) -> float:
    return float(best_of_trials(worst(notions), trials).epsilon(delta))


def check_selection_certificate(content: dict[str, Any], question: Request) -> Verdict:
    """Check the certificate of a selection: that of each setting by its own grade, then the claim on the best."""
    claim, settings = content["claim"], content["settings"]
    if not isinstance(settings, list) or not 0 < len(settings) <= _MOST_SETTINGS:
        return rejected("settings_not_listed")
    if caveats := facts_from_json(content["caveats"]):
        return rejected(caveats[0])
    if question.run is not None and len(settings) > 1:
        return rejected("several_settings", settings=len(settings))
    epsilon, unit = checked_number("epsilon", claim["epsilon"], NON_NEGATIVE), fact_from_json(claim["unit"])
    delta, trials = checked_number("delta", claim["delta"], INSIDE_UNIT), trials_from_dict(content["trials"])
    stated = None if content["stated_mu"] is None else checked_number("stated_mu", content["stated_mu"], MU)
    assumptions = facts_from_json(content["assumptions"])
    needed = tuple(_assumptions(trials, len(settings), stated))
    if otherwise := other_assumptions(assumptions, needed, of="selection"):
        return otherwise
    verdicts = [_check_setting(one, question) for one in settings]
    for number, verdict in enumerate(verdicts, start=1):
        if not verdict.accepted:
            return rejected("setting_rejected", number=number, because=verdict.rejection)
        if verdict.unit != unit:
            return rejected("setting_other_neighbours", number=number, unit=verdict.unit)
    notions = [proved_by(one) for one in settings]
    if stated is not None:
        notions.append(GaussianDP(stated, notions[0].adjacency))
    least = _epsilon_of_best(notions, trials, delta)
    if not least <= epsilon:
        return rejected("claims_too_much", claimed=epsilon, proved=least)
    of_trials = (one for verdict in verdicts for one in verdict.assumptions)
    return SelectionVerdict(
        True,
        epsilon,
        delta,
        assumptions=tuple(dict.fromkeys([*assumptions, *of_trials])),
        grade="recomputed",
        unit=unit,
        trials=trials_said(trials),
        settings=tuple(verdict.grade for verdict in verdicts),
    )


def _check_setting(content: dict[str, Any], question: Request) -> Verdict:
    """Check the certificate of one trial: of a run, by a theorem of the library, and for everybody."""
    if content["format"] != FORMAT:
        return rejected("setting_format", format=FORMAT)
    if content["claim"]["unit"]["records"]:
        return rejected("one_person_only")
    return check_run_certificate(content, Request(question.run, question.called))


def _assumptions(trials: Trials, settings: int, stated_mu: float | None) -> Iterator[Fact]:
    drawn = trials_to_dict(trials)
    yield fact("trials_drawn", law=drawn["law"], mean=drawn["mean"], shape=drawn.get("shape"))
    if settings > 1:
        yield fact("setting_drawn", settings=settings)
    yield fact("trials_fresh")
    yield fact("only_best_trial_released")
    yield fact("score_public") if stated_mu is None else fact("stated_gdp", mu=stated_mu)
