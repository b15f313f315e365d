"""The certificate of a selection, and of a selection that somebody made smaller."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lastiterate as li
from lastiterate.certificate.certificate import proved_by
from lastiterate.cli import main
from lastiterate.curves.trials import Trials, trials_from_dict, trials_to_dict
from lastiterate.errors import InvalidInput, Unavailable
from lastiterate.facts import Basis, fact
from raising import raises
from selections import delta_by_the_integral, delta_of_gaussian_trials

DELTA = 1e-5
SEEDED = fact("noise_seeded", generator="lastiterate")
TEN = li.trials.Geometric(mean=10)
LAWS = [TEN, li.trials.Logarithmic(10.0), li.trials.Poisson(10.0), li.trials.NegativeBinomial(10.0, 0.5)]


def run_with(batches: object, std: float = 0.2, **changes: object) -> li.Run:
    values: dict[str, object] = {
        "loss": li.losses.logistic(feature_norm=1.0, l2=0.01),
        "batches": batches,
        "step_size": 0.5,
        "noise": li.OnMeanGradient(std=std),
        "steps": 16,
    }
    return li.Run(**{**values, **changes})  # type: ignore[arg-type]


RUNS = {
    "replayed, mu": run_with(li.FullBatch(records=100), std=0.5),
    "replayed, a profile": run_with(li.Cyclic(records=400, batch_size=100)),
    "recomputed": run_with(li.Cyclic(records=400, batch_size=100), domain=li.Ball(radius=0.05)),
}
REPORTS = {name: li.account(run, DELTA) for name, run in RUNS.items()}
ONE = li.select(REPORTS["replayed, mu"], trials=TEN)
ALL = li.select([*REPORTS.values(), REPORTS["recomputed"], li.notions.GaussianDP(mu=0.1)], trials=TEN)
CERTIFICATES = {"one": ONE.certificate, "all": ALL.certificate}


@pytest.mark.parametrize("name", list(REPORTS))
def test_the_best_of_trials_with_any_kind_of_proof_is_accepted(name: str) -> None:
    found = li.select(REPORTS[name], trials=TEN)
    verdict = li.verify(json.dumps(found.certificate), RUNS[name])
    assert verdict.accepted, verdict
    assert verdict.delta == DELTA
    assert found.epsilon(DELTA) <= verdict.epsilon <= found.epsilon(DELTA) * (1 + 1e-5)
    assert verdict.epsilon > REPORTS[name].epsilon


def test_the_verdict_says_what_was_selected_and_what_is_assumed() -> None:
    verdict = li.verify(CERTIFICATES["all"])
    assert isinstance(verdict, li.results.SelectionVerdict)
    assert verdict.settings == ("replayed", "replayed", "recomputed")
    assert verdict.trials == "geometric distribution with mean 10"
    assert "replace one record, only the best of a random number of trials released (geometric" in str(verdict)
    assert "3 settings replayed and recomputed, the selection recomputed" in str(verdict)
    assert verdict.unit == fact("neighbours", adjacency="replace_one", user_records=1, records=())
    assert verdict.assumptions[:5] == (
        fact("trials_drawn", law="geometric", mean=10.0, shape=None),
        fact("setting_drawn", settings=3),
        fact("trials_fresh"),
        fact("only_best_trial_released"),
        fact("stated_gdp", mu=0.1),
    )
    of_trials = [one for report in REPORTS.values() for one in report.assumptions]
    assert verdict.assumptions[5:] == tuple(dict.fromkeys(of_trials))
    assert {fact("batches", kind="full"), fact("batches", kind="cyclic"), fact("projected")} <= set(of_trials)
    said = "\n".join(map(str, verdict.assumptions))
    assert "drawn from a geometric distribution with mean 10, independently of the data" in said
    assert "one of 3 settings at random" in said
    assert "0.1-GDP. This is stated, and not proved here" in said
    assert li.verify(CERTIFICATES["one"]).assumptions[3] == fact("score_public")
    assert repr(verdict).startswith("SelectionVerdict(accepted: epsilon = ")
    assert repr(ONE) == "Selection(1 guarantee, trials=Geometric(mean=10.0, shape=1.0), replace one record)"
    assert json.loads(json.dumps(verdict.to_dict()))["settings"] == list(verdict.settings)


@pytest.mark.parametrize("trials", LAWS, ids=lambda law: type(law).__name__)
def test_exact_instances_stay_below_what_is_certified(trials: Trials) -> None:
    """Gaussian trials, ranked so that the best one tells most; a claim below what they show is rejected."""
    certificate = li.select(REPORTS["replayed, mu"], trials=trials).certificate
    mu, epsilon = certificate["settings"][0]["claim"]["mu"], certificate["claim"]["epsilon"]
    assert proved_by(certificate["settings"][0]) == li.notions.GaussianDP(mu)
    assert li.verify(certificate).accepted
    assert delta_of_gaussian_trials(trials, mu, epsilon) <= DELTA < delta_of_gaussian_trials(trials, mu, 0.96 * epsilon)
    certificate["claim"]["epsilon"] = 0.96 * epsilon
    assert not li.verify(certificate).accepted


@pytest.mark.parametrize("trials", LAWS, ids=lambda law: type(law).__name__)
def test_what_is_certified_is_the_integral_of_the_proof(trials: Trials) -> None:
    """Computed another way, to a part in a hundred of δ: neither less nor much more is certified."""
    certificate = li.select(REPORTS["replayed, mu"], trials=trials).certificate
    mu, epsilon = certificate["settings"][0]["claim"]["mu"], certificate["claim"]["epsilon"]
    assert 0.99 * DELTA < delta_by_the_integral(trials, mu, epsilon) <= DELTA


def claimed(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content["claim"].update({name: value})


def drawn(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content["trials"].update(values)


def honestly(**values: Any) -> Callable[[dict[str, Any]], None]:
    """With the assumption that belongs to it."""

    def change(content: dict[str, Any]) -> None:
        other = li.select(REPORTS["replayed, mu"], trials=trials_from_dict({**content["trials"], **values})).certificate
        content.update({name: other[name] for name in ("trials", "assumptions")})

    return change


def inside(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        place = content["settings"][0]
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value

    return change


def replaced(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content.update({name: value})


LEAST = CERTIFICATES["one"]["claim"]["epsilon"]
LOUDER = li.account(run_with(li.FullBatch(records=100), std=0.4), DELTA).certificate
OTHERS = li.account(run_with(li.FullBatch(records=100), std=0.5, adjacency=li.ZERO_OUT), DELTA).certificate
PERSON = li.account(RUNS["replayed, a profile"], DELTA, group=[3]).certificate
DOCTORED = {
    "epsilon a little smaller": (claimed("epsilon", LEAST * (1 - 1e-5)), "but proves 0.88866"),
    "epsilon of one trial": (claimed("epsilon", REPORTS["replayed, mu"].epsilon), "but proves"),
    "epsilon 0": (claimed("epsilon", 0.0), "but proves"),
    "epsilon negative": (claimed("epsilon", -1.0), "epsilon must be a float in"),
    "epsilon infinite": (claimed("epsilon", math.inf), "epsilon must be a float in"),
    "epsilon null": (claimed("epsilon", None), "epsilon must be a float in"),
    "epsilon NaN": (claimed("epsilon", math.nan), "epsilon must be a float in"),
    "epsilon true": (claimed("epsilon", True), "epsilon must be a float in"),
    "delta smaller": (claimed("delta", 1e-6), "but proves"),
    "delta 0": (claimed("delta", 0.0), "delta must be a float in"),
    "delta NaN": (claimed("delta", math.nan), "delta must be a float in"),
    "neighbours": (
        claimed("unit", li.ZERO_OUT.unit().to_dict()),
        "setting 1 protects other neighbours: replace one record",
    ),
    "a whole user": (
        claimed("unit", li.REPLACE_ONE.unit(2).to_dict()),
        "setting 1 protects other neighbours: replace one record",
    ),
    "one person": (
        claimed("unit", li.REPLACE_ONE.unit(1, (3,)).to_dict()),
        "setting 1 protects other neighbours: replace one record",
    ),
    "what was forgotten": (
        claimed("unit", fact("forgotten", records=1, replaced=True, adaptive=False).to_dict()),
        "setting 1 protects other neighbours: replace one record",
    ),
    "neighbours in words": (claimed("unit", "replace one record"), "a fact must have one of the known codes"),
    "a larger mean": (drawn(mean=20.0), "no. 1 must be trials_drawn(law='geometric', mean=20.0"),
    "a larger mean, and its assumption": (honestly(mean=20.0), "but proves"),
    "a smaller mean": (drawn(mean=5.0), "no. 1 must be trials_drawn(law='geometric', mean=5.0"),
    "a mean of infinity": (drawn(mean=math.inf), "mean must be a float in"),
    "a mean of NaN": (drawn(mean=math.nan), "mean must be a float in"),
    "a negative mean": (drawn(mean=-10.0), "mean must be a float in"),
    "another law": (drawn(law="logarithmic"), "no. 1 must be trials_drawn(law='logarithmic', mean=10.0"),
    "another law, and its assumption": (honestly(law="poisson"), "but proves"),
    "an unknown law": (drawn(law="fixed"), "law must be one of geometric"),
    "a shape that is not asked for": (drawn(shape=0.0), "must have the entries law, mean"),
    "an unlisted assumption": (lambda content: content["assumptions"].pop(), "no. 4 must be score_public()"),
    "assumptions in another order": (lambda content: content["assumptions"].reverse(), "no. 1 must be trials_drawn("),
    "an assumption that is checked": (
        lambda content: content["assumptions"][2].update(basis="checked"),
        "only_best_trial_released cannot be checked",
    ),
    "a caveat": (replaced("caveats", [SEEDED.to_dict()]), "rejected: DO NOT RELEASE: the noise came from a seed"),
    "a caveat in words": (replaced("caveats", ["noise from a seed"]), "a fact must have one of the known codes"),
    "a stated mu, kept from the assumptions": (replaced("stated_mu", 1.0), "no. 4 must be stated_gdp(mu=1.0)"),
    "a stated mu that is negative": (replaced("stated_mu", -1.0), "stated_mu must be a float in"),
    "no setting": (replaced("settings", []), "settings must be a list of certificates"),
    "a louder trial": (replaced("settings", [LOUDER]), "but proves"),
    "a trial about others": (replaced("settings", [OTHERS]), "setting 1 protects other neighbours: zero out"),
    "a trial for one person": (replaced("settings", [PERSON]), "for one person only"),
    "a selection as a trial": (replaced("settings", [CERTIFICATES["one"]]), "it is not a lastiterate certificate"),
    "the mu of a trial": (inside("claim", "mu", value=0.01), "it claims mu = 0.01"),
    "the noise of a trial": (inside("run", "noise", "std", value=5.0), "setting 1:"),
    "the neighbours of a trial": (inside("claim", "unit", value=li.ZERO_OUT.unit().to_dict()), "setting 1:"),
    "an assumption of a trial": (
        lambda content: content["settings"][0]["assumptions"].pop(0),
        "setting 1: its assumptions are not those of its run: no. 1 must be only_released(",
    ),
    "a caveat of a trial": (inside("caveats", value=[SEEDED.to_dict()]), "setting 1: DO NOT RELEASE"),
    "the theorem of a trial": (inside("theorem", value="no-theorem"), "no-theorem"),
}


@pytest.mark.parametrize("name", list(DOCTORED))
def test_a_doctored_certificate_is_rejected(name: str) -> None:
    change, reason = DOCTORED[name]
    content = copy.deepcopy(CERTIFICATES["one"])
    change(content)
    verdict = li.verify(content)
    assert not verdict.accepted
    assert reason in str(verdict), verdict


def test_more_assumptions_of_the_selection_and_of_its_trials_are_kept() -> None:
    more, checked = fact("durations_tell_nothing"), fact("collate_separate", compared="once").on(Basis.CHECKED)
    content = copy.deepcopy(CERTIFICATES["one"])
    content["assumptions"].append(more.to_dict())
    content["settings"][0]["assumptions"] += [more.to_dict(), checked.to_dict()]
    verdict = li.verify(json.dumps(content))
    assert verdict.accepted, verdict
    assert verdict.assumptions.count(more) == verdict.assumptions.count(checked) == 1
    executed = replace(REPORTS["replayed, mu"], also_assumed=(checked,))
    assert checked in li.verify(li.select(executed, trials=TEN).certificate).assumptions


def test_what_is_stated_counts_with_its_assumption() -> None:
    """As whoever rewrites all of it would."""
    content, louder = (
        li.select([REPORTS["replayed, mu"], li.notions.GaussianDP(mu)], trials=TEN).certificate for mu in (0.1, 1.0)
    )
    assert content["stated_mu"] == 0.1
    content.update({name: louder[name] for name in ("stated_mu", "assumptions")})
    assert "but proves" in str(li.verify(content))


@pytest.mark.parametrize("entry", ["claim", "trials", "settings", "assumptions", "caveats", "stated_mu"])
@pytest.mark.parametrize("value", [None, 3, "text", [], [3], {}])
def test_what_is_no_certificate_is_rejected_and_raises_nothing(entry: str, value: Any) -> None:
    content = copy.deepcopy(CERTIFICATES["one"])
    if (entry, value) in (("stated_mu", None), ("caveats", None), ("caveats", []), ("caveats", {})):
        value = math.nan
    content[entry] = value
    assert not li.verify(content).accepted
    del content[entry]
    assert f"{entry} is missing" in str(li.verify(content))


def test_a_certificate_is_about_its_run_or_about_several_settings() -> None:
    other = RUNS["replayed, a profile"]
    assert "setting 1: it is about another run" in str(li.verify(CERTIFICATES["one"], other))
    assert str(li.verify(CERTIFICATES["all"], other)) == "rejected: it is about 3 settings, not about one run"


def test_whoever_changes_a_certificate_changes_a_copy() -> None:
    ONE.certificate["claim"]["epsilon"] = 0.0
    assert li.verify(ONE.certificate).accepted


def test_what_has_no_certificate_says_so() -> None:
    report = REPORTS["replayed, mu"]
    for parts in (li.notions.GaussianDP(mu=0.5), [report, li.notions.Profile(epsilons=[0.1], deltas=[0.0])]):
        with raises("trials_without_reports", "guarantees", kind=Unavailable):
            _ = li.select(parts, trials=TEN).certificate
    with raises("reports_not_alike", "guarantees", kind=InvalidInput):
        _ = li.select([report, li.account(report.run, 1e-6)], trials=TEN).certificate


class Otherwise(li.trials.Geometric):
    """A law that certificates do not know."""


def test_laws_are_written_down_and_read_back() -> None:
    for law in LAWS:
        assert trials_from_dict(json.loads(json.dumps(trials_to_dict(law)))) == law
    with raises("trials_not_written", "trials", kind=Unavailable):
        _ = li.select(REPORTS["replayed, mu"], trials=Otherwise(mean=3)).certificate


def test_the_command_writes_what_verify_accepts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, certificate = tmp_path / "run.toml", tmp_path / "best.json"
    li.write_run(RUNS["replayed, mu"], run)
    assert main(["select", str(run), "--mean", "10", "--certificate", str(certificate)]) == 0
    assert f"certificate: {certificate} (check it with: lastiterate verify {certificate})" in capsys.readouterr().out
    assert main(["verify", str(certificate), "--run", str(run)]) == 0
    assert "only the best of a random number of trials released" in capsys.readouterr().out
    content = json.loads(certificate.read_text())
    content["claim"]["epsilon"] *= 0.99
    certificate.write_text(json.dumps(content))
    assert main(["verify", str(certificate)]) == 1
