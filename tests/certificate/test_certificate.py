"""Certificates: replayed, and rejected when a number was changed to the claimant's advantage."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from alone import alone
from lastiterate.certificate import certificate as certificates
from lastiterate.certificate.certificate import certificate_of
from lastiterate.certificate.claims import promises
from lastiterate.facts import fact, facts_to_json
from lastiterate.kernel.steps import Refused
from lastiterate.runs.files import run_from_dict, run_to_dict
from lastiterate.theorems.places import Place, place_evidence
from lastiterate.theorems.shift_engine import RANDOM_ORDER, SHIFT_ENGINE
from replayed import check
from second_checker import checker
from when_asked import WhenAsked

DELTA = 1e-5


def run_with(batches: object, steps: int, **changes: object) -> li.Run:
    values: dict[str, object] = {
        "loss": li.losses.logistic(feature_norm=1.0, l2=0.01),
        "batches": batches,
        "step_size": 0.5,
        "noise": li.OnMeanGradient(std=0.05),
        "steps": steps,
    }
    return li.Run(**{**values, **changes})  # type: ignore[arg-type]


REGULARISED = li.Run(
    loss=li.losses.network(clip=1.0),
    batches=li.FixedSize(records=1000, batch_size=10),
    step_size=0.02,
    noise=li.OnIterate(std=1.0),
    steps=2000,
    weight_decay=0.5,
    domain=li.Unbounded(dimension=5),
)
WINDOW = run_with(li.FixedSize(records=1000, batch_size=10), 4000, noise=li.OnMeanGradient(std=1.0), weight_decay=0.1)
CYCLIC = li.Cyclic(records=40, batch_size=10)
REPORTS = WhenAsked(
    {
        "full": partial(li.account, run_with(li.FullBatch(records=100), 20), DELTA),
        "cyclic": partial(li.account, run_with(CYCLIC, 20), DELTA),
        "bounded": partial(li.account, run_with(CYCLIC, 40, domain=li.Ball(radius=0.2)), DELTA),
        "blocks": partial(li.account, run_with(CYCLIC, 40, domain=li.Ball(radius=0.02)), DELTA),
        "schedule": partial(li.account, run_with(CYCLIC, 8, step_size=np.linspace(0.1, 0.6, 8)), DELTA),
        "periodic": partial(li.account, run_with(CYCLIC, 12, step_size=[0.5, 0.4, 0.3, 0.2] * 3), DELTA),
        "shuffled": partial(li.account, run_with(li.Shuffled(records=40, batch_size=10, each_epoch=False), 12), DELTA),
        "reshuffled": partial(li.account, run_with(li.Shuffled(records=40, batch_size=10), 12), DELTA),
        "released": partial(li.account, run_with(CYCLIC, 12), DELTA, releases=[5, 8]),
        "window": partial(li.account, WINDOW, DELTA),
        "regularised": partial(li.account, REGULARISED, DELTA),
    }
)
WITHOUT_PROOF = {"blocks", "window", "regularised"}


@pytest.mark.parametrize("name", REPORTS)
def test_certificates_are_accepted(name: str) -> None:
    report = REPORTS[name]
    verdict = li.verify(json.dumps(report.certificate))
    assert verdict.accepted, verdict
    assert verdict.epsilon == pytest.approx(report.epsilon, rel=1e-10)
    assert verdict.epsilon >= report.epsilon
    assert str(verdict).startswith("accepted: epsilon = ")
    assert li.verify(report.certificate, report.run).accepted  # type: ignore[arg-type]


def numbers_in(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where in a certificate a number stands."""
    if isinstance(content, dict | list):
        for key, value in content.items() if isinstance(content, dict) else enumerate(content):
            yield from numbers_in(value, (*path, key))
    elif isinstance(content, int | float) and not isinstance(content, bool):
        yield path


def changed(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    twin = copy.deepcopy(content)
    place = twin
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return twin


CHANGES = (lambda x: x * 0.9, lambda x: x * 1.1, lambda x: x * (1 - 1e-6), lambda x: x * (1 + 1e-6), lambda x: x + 1,
           lambda x: x - 1, lambda x: 0, lambda x: -x, lambda x: 2 * x, lambda x: math.nan, lambda x: math.inf,
           lambda x: None, lambda x: "x", lambda x: [], lambda x: 10**30)  # fmt: skip


@pytest.mark.parametrize("name", REPORTS)
def test_no_number_can_be_changed_to_the_claimants_advantage(name: str) -> None:
    """Any number, changed in any way: rejected, or the claim is true all the same."""
    certificate = REPORTS[name].certificate
    true_epsilon = REPORTS[name].epsilon
    rejected = 0
    for path in numbers_in(certificate):
        original = certificate
        for key in path:
            original = original[key]
        for change in CHANGES:
            value = change(original)
            if value == original:
                continue
            mutant = changed(certificate, path, value)
            verdict = li.verify(mutant)
            rejected += not verdict.accepted
            if verdict.accepted:
                assert _still_true(path, verdict, true_epsilon, mutant), (path, original, value)
    assert rejected > 30


def _still_true(
    path: tuple[Any, ...], verdict: li.results.Verdict, true_epsilon: float, mutant: dict[str, Any]
) -> bool:
    """A weaker claim, another schedule or rung that proves it, or another run, of which it is true as well."""
    if path[0] == "run":
        about = run_from_dict(mutant["run"])
        named = next((theorem for theorem in li.theorems.ALL if theorem.name == mutant.get("theorem")), None)
        found = named.apply(about.process) if named else li.account(about, verdict.delta, verdict.releases).best
        return found.epsilon(verdict.delta) <= verdict.epsilon * (1 + 1e-9)  # type: ignore[union-attr]
    if path[0] == "claim" and path[1] == "delta":
        return verdict.delta >= DELTA
    chosen = path[:2] in (("proof", "schedules"), ("proof", "hidden")) or (
        path[:2] == ("proof", "prepaid") and path[2] in ("slack", "largest")
    )
    if path[0] in ("claim", "rung") or chosen:
        return verdict.epsilon >= true_epsilon * (1 - 1e-9)
    return False


def test_the_claim_cannot_be_lowered_at_all() -> None:
    certificate = REPORTS["cyclic"].certificate
    lower = changed(certificate, ("claim", "epsilon"), certificate["claim"]["epsilon"] * (1 - 1e-10))
    verdict = li.verify(lower)
    assert not verdict.accepted
    assert "but proves" in str(verdict)


def test_it_must_be_about_the_run_that_was_asked_for() -> None:
    verdict = li.verify(REPORTS["cyclic"].certificate, run_with(CYCLIC, 24))  # type: ignore[arg-type]
    assert not verdict.accepted
    assert verdict.reason == "it is about another run: steps is 20 in the certificate and 24 in the run"


def test_every_entry_in_which_two_runs_differ_is_named() -> None:
    run = run_with(CYCLIC, 20)
    other = replace(run, step_size=0.75 * run.step_size, weight_decay=0.5, steps=19, domain=li.Ball(3.0))  # type: ignore[operator]
    reason = li.verify(li.account(run, DELTA).certificate, other).reason
    said = reason.partition(": ")[2].split("; ")
    assert [one.partition(" is ")[0] for one in said] == ["steps", "step_size", "weight_decay", "and more"]
    assert said[0] == "steps is 20 in the certificate and 19 in the run"
    bounded = replace(run, prior_mu=0.25)
    reason = li.verify(li.account(run, DELTA).certificate, bounded).reason
    assert reason.endswith("prior_mu is not given in the certificate and 0.25 in the run")


def test_an_average_may_be_taken_only_over_a_random_order() -> None:
    run = run_with(CYCLIC, 20)
    evidence = place_evidence(run.process, Place.AVERAGE)
    averaged = certificate_of(run, run.process, li.theorems.Guarantee(RANDOM_ORDER, evidence), DELTA)
    assert averaged["claim"]["epsilon"] < SHIFT_ENGINE.notion(run.process).epsilon(DELTA)
    assert "batches in a fixed order" in li.verify(averaged).reason
    reason = li.verify({**averaged, "theorem": SHIFT_ENGINE.name}).reason
    assert reason == "its turns are not those of its run: turns.averaged is True in the proof and False in the run"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schedules", 0, "parts", 0, "blocks"), [[1, 0, 0.0, 10**17]]),
        (("schedules", 0, "parts", 0, "blocks"), [[2 * 10**9, 0, 0.0, 1]]),
        (("steps", "noise"), [[0.5, 10**8]]),
        (("steps", "noise"), {"pattern": [[0.5, 10**8]]}),
        (("steps", "count"), 10**17),
    ],
)
def test_a_small_file_cannot_ask_for_a_large_list(path: tuple[Any, ...], value: object) -> None:
    certificate = changed(REPORTS["full"].certificate, ("proof", *path), value)
    assert not li.verify(certificate).accepted
    with pytest.raises(Refused, match=r"must have|an integer from"):
        check(certificate["proof"], certificate["claim"])


def test_all_but_these_are_replayed() -> None:
    assert {name for name, report in REPORTS.items() if "proof" not in report.certificate} == WITHOUT_PROOF


@pytest.mark.parametrize("name", sorted(REPORTS.keys() - WITHOUT_PROOF))
def test_steps_have_to_be_those_of_the_run_even_where_they_prove_the_claim(name: str) -> None:
    """A little less sensitivity, for the steps and for the schedules: the kernel accepts, and still it is rejected."""
    twin = copy.deepcopy(REPORTS[name].certificate)
    given = twin["proof"]["steps"]["sensitivity"]
    for pair in given["pattern"] if isinstance(given, dict) else given:
        pair[0] *= 1 - 1e-6
    check(twin["proof"], twin["claim"])
    reason = li.verify(twin).reason
    assert reason.startswith("its steps are not those of its run: steps.sensitivity")
    assert reason.count(" in the proof and ") == 1


UNITS = {
    "zeroed out": li.ZERO_OUT.unit(),
    "added or removed": li.ADD_OR_REMOVE_ONE.unit(),
    "a user": li.REPLACE_ONE.unit(2),
    "one person": li.REPLACE_ONE.unit(1, (3,)),
    "forgotten": fact("forgotten", records=1, replaced=True, adaptive=False),
}


@pytest.mark.parametrize("name", UNITS)
def test_the_unit_is_that_of_the_run(name: str) -> None:
    certificate = REPORTS["cyclic"].certificate
    assert li.verify(certificate).unit == li.REPLACE_ONE.unit() == REPORTS["cyclic"].unit
    verdict = li.verify(changed(certificate, ("claim", "unit"), UNITS[name].to_dict()))
    assert not verdict.accepted
    assert verdict.unit is None


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ("replace one record", "a fact must have one of the known codes"),
        (None, "a fact must have one of the known codes"),
        ({"code": "neighbours", "adjacency": "replace_one", "user_records": 1}, "must have the values"),
        ({"code": "noise"}, "records is missing"),
        ({"code": "neighbours", "adjacency": "none", "user_records": 1, "records": []}, "cannot have the values"),
        ({**li.REPLACE_ONE.unit().to_dict(), "basis": "enforced"}, "neighbours cannot be enforced"),
        ({**li.REPLACE_ONE.unit().to_dict(), "user_records": True}, "must have the values"),
        ({**li.REPLACE_ONE.unit().to_dict(), "records": [-1]}, "group must be an integer"),
        ({**li.REPLACE_ONE.unit().to_dict(), "text": "two records"}, "must have the values"),
    ],
)
def test_what_is_no_unit_is_rejected(unit: Any, said: str) -> None:
    verdict = li.verify(changed(REPORTS["cyclic"].certificate, ("claim", "unit"), unit))
    assert not verdict.accepted
    assert said in verdict.reason, verdict.reason


def test_a_caveat_is_why_a_certificate_is_rejected() -> None:
    certificate, seeded = REPORTS["cyclic"].certificate, fact("noise_seeded", generator="lastiterate")
    assert li.verify({**certificate, "caveats": [seeded.to_dict()]}).reason == str(seeded)
    for nonsense in (
        None,
        "none",
        [3],
        ["seeded"],
        [{"code": "seeded"}],
        [{**seeded.to_dict(), "basis": "checked"}],
        0,
    ):
        assert not li.verify({**certificate, "caveats": nonsense}).accepted


def test_depth_and_absence_are_rejected() -> None:
    assert not li.verify("[" * 200_000).accepted


def test_releases_are_part_of_the_verdict() -> None:
    verdict = li.verify(REPORTS["released"].certificate)
    assert verdict.releases == (5, 8)
    assert str(verdict).endswith(
        "the last of 12 iterates and those after 5, 8 steps released; proof replayed step by step"
    )


@pytest.mark.parametrize("content", ["", "{", "[]", "3", "null", "{}", '{"format": 1, "claim": {}}', '"x"'])
def test_nonsense_is_rejected_and_never_raises(content: str) -> None:
    assert not li.verify(content).accepted


def test_missing_entries_are_rejected() -> None:
    for name in ("cyclic", "bounded"):
        certificate = REPORTS[name].certificate
        for section in certificate.keys() - {"rung"}:  # without one, the theorem searches again
            twin = copy.deepcopy(certificate)
            del twin[section]
            assert not li.verify(twin).accepted
    without = changed(REPORTS["cyclic"].certificate, ("proof", "schedules"), [])
    assert "no schedule for place" in li.verify(without).reason


def test_periodic_processes_are_short() -> None:
    steps = REPORTS["periodic"].certificate["proof"]["steps"]
    assert steps["count"] == 12
    assert len(steps["sensitivity"]["pattern"]) == 4
    assert len(steps["noise"]["pattern"]) == 4
    long = li.account(run_with(li.FullBatch(records=100), 1_000_000), DELTA).certificate
    assert len(json.dumps(long)) < 2000


# Grades


NETWORK = run_with(li.Poisson(records=1000, rate=0.01), 50, loss=li.losses.network(clip=1.0))
RECOMPUTED = {
    "Poisson": run_with(li.Poisson(records=1000, rate=0.01), 50),
    "fixed size": run_with(li.FixedSize(records=1000, batch_size=10), 50),
    "a network": NETWORK,
    "averaged over their own size": run_with(li.parts.PoissonMean(records=10_000, rate=0.05), 50),
    "a window": WINDOW,
    "mixing": run_with(CYCLIC, 40, domain=li.Ball(radius=0.02)),
}


@pytest.mark.parametrize("name", RECOMPUTED)
@pytest.mark.parametrize("releases", [(), (7, 20)])
def test_every_guarantee_has_a_certificate(name: str, releases: tuple[int, ...]) -> None:
    report = li.account(RECOMPUTED[name], DELTA, releases)
    for guarantee in report.guarantees:
        certificate = alone(report, guarantee).certificate
        verdict = li.verify(json.loads(json.dumps(certificate)), report.run)
        assert verdict.accepted, verdict
        assert verdict.grade == certificate["grade"]
        assert verdict.epsilon == pytest.approx(guarantee.epsilon(DELTA), rel=1e-10)
        lower = changed(certificate, ("claim", "epsilon"), verdict.epsilon * (1 - 1e-6))
        assert not li.verify(lower).accepted


def test_the_grade_is_told() -> None:
    replayed, recomputed = REPORTS["cyclic"].certificate, li.account(NETWORK, DELTA).certificate
    assert str(li.verify(replayed)).endswith("; proof replayed step by step")
    assert str(li.verify(recomputed)).endswith("; recomputed from the run")
    assert "proof" not in recomputed
    assert not li.verify({**recomputed, "grade": "replayed"}).accepted
    assert not li.verify({**recomputed, "grade": "believed"}).accepted
    assert li.verify({**replayed, "grade": "recomputed", "claim": {**replayed["claim"], "mu": None}}).accepted
    with_mu = {**replayed, "grade": "recomputed", "claim": {**replayed["claim"], "mu": 1e9}}
    assert li.verify(with_mu).reason == "a claim of mu has to be replayed"


def test_every_records_own_guarantee_has_that_of_everybody() -> None:
    records = li.account_each(run_with(CYCLIC, 20), DELTA)
    verdict = li.verify(records.certificate)
    assert verdict.accepted
    assert verdict.epsilon == pytest.approx(records.worst, rel=1e-10)
    assert verdict.epsilon >= records.worst


def test_a_certificate_that_was_changed_leaves_the_report_alone() -> None:
    """So do the arguments of a loss."""
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(10), 0.1, li.OnIterate(std=1.0), 5)
    report = li.account(run, delta=1e-5)
    report.certificate["claim"]["epsilon"] = 0.0
    run.loss.arguments["feature_norm"] = 5.0
    assert report.certificate["claim"]["epsilon"] > 0
    assert run.loss.arguments["feature_norm"] == 1.0


def test_after_one_assumption_that_fails_no_other_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some take long, and a refusal should not."""
    certificate = li.account(run_with(li.FullBatch(records=100), 20), DELTA).certificate
    fails = li.theorems.Assumption.own("never", lambda process: "it never holds")
    slow = li.theorems.Assumption.own("slow", lambda process: pytest.fail("looked at"))
    theorem = replace(SHIFT_ENGINE, assumptions=(fails, slow))
    monkeypatch.setitem(certificates._THEOREMS, certificate["theorem"], theorem)
    assert li.verify(certificate).reason == "it never holds"


def test_a_run_that_leaves_the_range_of_floats_between_two_turns() -> None:
    """Factors shrink a distance below all floats, after it has grown: its exact μ, of a quadratic loss, is 707."""
    etas, stds = [1.0, *[1e16] * 40, *[1 + 2.0**-49] * 25], [1e-3, *[1e13] * 40, *[1e3] * 25]
    run = li.Run(
        loss=li.losses.general(smoothness=1.0, strong_convexity=1.0, gradient_sensitivity=1.0),
        batches=li.Cyclic(records=70, batch_size=1),
        step_size=etas,
        noise=li.OnIterate(std=stds),
        steps=66,
    )
    report = li.account(run, DELTA)
    assert report.epsilon >= li.notions.GaussianDP(707.1).epsilon(DELTA)
    assert li.verify(report.certificate, run).accepted


@pytest.mark.parametrize("rung", [21, 100_000, 1_000_000])
def test_a_small_file_cannot_ask_for_a_long_block(rung: int) -> None:
    """In new orders a round is an epoch: a million of them would be a billion steps."""
    run = run_with(li.Shuffled(records=1_000_000, batch_size=1000), 1_000_000, domain=li.Ball(radius=1.0))
    block_mixing = next(one for one in li.theorems.ALL if one.name == "block-mixing")
    assert not block_mixing.failures(run.process)
    certificate = copy.deepcopy(li.account(run_with(li.FullBatch(records=100), 20), DELTA).certificate)
    certificate.pop("proof")
    claim = {**certificate["claim"], "mu": None}
    content = {**certificate, "grade": "recomputed", "theorem": "block-mixing", "claim": claim, "rung": rung}
    verdict = li.verify({**content, "run": run_to_dict(run), "assumptions": facts_to_json(promises(run, ()))})
    assert verdict.reason == f"it is not a certificate: blocks must have at most 20 rounds. Got {rung}."


@pytest.mark.parametrize(
    "batches",
    [
        li.FullBatch(records=100),
        li.Cyclic(records=100, batch_size=20),
        li.Shuffled(records=100, batch_size=20),
        li.Shuffled(records=100, batch_size=20, each_epoch=False),
    ],
    ids=repr,
)
def test_a_run_for_ever_costs_its_limit_and_both_checkers_accept_it(batches: object) -> None:
    """The same ε for 10⁸ steps and for 10¹², at least that of fewer, and at most a little more."""

    def reported(steps: int) -> li.results.Report:
        loss, noise = li.losses.logistic(feature_norm=1.0, l2=0.1), li.OnMeanGradient(std=0.5)
        return li.account(li.Run(loss, batches, 0.5, noise, steps), 1e-5)  # type: ignore[arg-type]

    shorter, long, longest = (reported(steps) for steps in (2_000, 10**8, 10**12))
    assert long.epsilon == longest.epsilon
    assert shorter.epsilon <= long.epsilon * (1 + 1e-9)
    by_engine = {one.theorem.name: one.epsilon(1e-5) for one in shorter.guarantees}
    assert long.epsilon <= by_engine["shift-engine"] * (1 + 1e-9)
    certificate = longest.certificate
    assert li.verify(certificate, run=longest.run).accepted
    assert checker.judged(certificate) == ""
    assert certificate["run"]["steps"] == 10**12
    cheaper = {**certificate, "claim": {**certificate["claim"], "epsilon": 0.9 * longest.epsilon, "mu": None}}
    assert not li.verify(cheaper).accepted


@pytest.mark.parametrize("domain", [li.Unbounded(), li.Ball(radius=1.0)], ids=repr)
@pytest.mark.parametrize(
    "batches", [li.FixedSize(records=100, batch_size=20), li.Poisson(records=100, rate=0.2)], ids=repr
)
def test_random_batches_for_ever_cost_their_limit(batches: object, domain: object) -> None:
    """Also where so many steps are more than a composition is computed for with sampling."""
    loss, noise = li.losses.logistic(feature_norm=1.0, l2=0.1, clip=1.0), li.OnMeanGradient(std=0.5)
    reports = [
        li.account(li.Run(loss, batches, 0.5, noise, steps, domain=domain), 1e-5)  # type: ignore[arg-type]
        for steps in (10**8, 10**11, 10**12)
    ]
    assert reports[0].epsilon == reports[1].epsilon == reports[2].epsilon
    assert 0 < reports[0].epsilon_all_released <= reports[1].epsilon_all_released <= reports[2].epsilon_all_released
    assert li.verify(reports[2].certificate, run=reports[2].run).accepted


def test_what_was_asked_before_does_not_matter() -> None:
    """Curves that were drawn for other questions serve the next; whoever verifies has not asked them."""
    run = li.Run(
        li.losses.logistic(feature_norm=3.082207001484488),
        li.parts.PoissonMean(records=3, rate=0.3),
        0.8,
        li.OnMeanGradient(std=15.41103500742244),
        3,
        li.Unbounded(dimension=1),
        start_norm=24.657656011875904,
        user_records=2,
    )
    certificate = li.account(run, 1e-5).certificate
    assert certificate["theorem"] == "window-tail"
    for _ in range(2):
        assert li.verify(certificate).accepted
        li.account(run, 1e-4)


@pytest.mark.parametrize("section", ["loss", "batches", "noise", "domain"])
def test_a_kind_that_nobody_knows_is_told_in_a_sentence(section: str) -> None:
    certificate = li.account(run_with(li.FullBatch(records=100), 20), DELTA).certificate
    certificate["run"][section]["kind"] = "mine"
    assert f"kind of {section} must be one of" in li.verify(certificate).reason


def test_an_entry_that_is_nested_too_deep_is_rejected_with_a_reason() -> None:
    deep: Any = 1
    for _ in range(990):
        deep = [deep]
    verdict = li.verify(changed(REPORTS["cyclic"].certificate, ("proof", "steps", "diameter"), deep))
    assert not verdict.accepted
    assert len(str(verdict)) < 1000
