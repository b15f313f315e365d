"""Several records of one person: the account, its certificate, its files and its refusals."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lastiterate as li
from alone import by_theorem
from lastiterate.accounting.account import account_by
from lastiterate.accounting.epsilon_curve import growth
from lastiterate.certificate.verify import verify
from lastiterate.cli.entry import main
from lastiterate.facts import fact
from lastiterate.runs.files import run_to_dict
from lastiterate.theorems.shift_engine import RANDOM_ORDER, SHIFT_ENGINE, own_mus
from raising import raises
from second_checker import checker

DELTA = 1e-5
LOSS = li.losses.logistic(feature_norm=1.0)
NOISE = li.OnMeanGradient(std=0.05)
FULL = li.Run(LOSS, li.FullBatch(records=1000), 0.5, NOISE, 20)
CYCLIC = li.Run(LOSS, li.Cyclic(records=1050, batch_size=100, last="drop"), 0.5, NOISE, li.epochs(4))
SHUFFLED = li.Run(LOSS, li.Shuffled(records=400, batch_size=100), 0.5, NOISE, li.epochs(2))
FIXED = li.Run(LOSS, li.FixedSize(records=1000, batch_size=100), 0.5, NOISE, 3)


def of_users(run: li.Run, records: int = 4) -> li.Run:
    return replace(run, user_records=records)


def engine(run: li.Run, group: list[int], **others: object) -> li.results.Report:
    return account_by([SHIFT_ENGINE], run, DELTA, group=group, **others)  # type: ignore[arg-type]


def test_mu_times_the_records() -> None:
    for run in (FULL, replace(FULL, steps=1), replace(CYCLIC, loss=li.losses.network(clip=1.0))):
        one = li.account(run, DELTA)
        four = one.group(4)
        assert one.mu is not None
        assert four.mu == pytest.approx(4 * one.mu, rel=1e-9)
        assert four.run == of_users(run)
        assert four.epsilon == li.account(of_users(run), DELTA).epsilon


def test_a_full_batch_in_a_domain_counts_them_at_once() -> None:
    """The domain is as wide as before, where four neighbours one after the other would need four of them."""
    run = replace(FULL, domain=li.Ball(radius=0.02), steps=400)
    one, four = (by_theorem("shift-engine", run, DELTA) for run in (run, of_users(run)))
    assert one.mu is not None
    assert four.mu is not None
    assert one.mu < four.mu < 0.7 * 4 * one.mu


@pytest.mark.parametrize("run", [CYCLIC, SHUFFLED, FIXED], ids=lambda run: type(run.batches).__name__)
def test_every_theorem_is_for_a_whole_user(run: li.Run) -> None:
    theorems = [
        one for one in li.theorems.ALL if not one.name.startswith("hidden-participation")
    ]  # slow, as all others
    one, two = (account_by(theorems, given, DELTA) for given in (run, of_users(run, 2)))
    epsilons = {each.theorem.name: epsilon for each, epsilon in zip(one.guarantees, one.epsilons, strict=True)}
    for each, epsilon in zip(two.guarantees, two.epsilons, strict=True):
        assert epsilon > 1.5 * epsilons[each.theorem.name]
    assert {each.theorem.name for each in two.guarantees} == set(epsilons)


def test_named_records_count_at_their_own_turns() -> None:
    anywhere = by_theorem("shift-engine", of_users(CYCLIC), DELTA).epsilon
    at_the_end, early, apart = (
        engine(CYCLIC, group).epsilon for group in ([996, 997, 998, 999], [0, 1, 2, 3], [0, 300, 600, 900])
    )
    assert at_the_end == pytest.approx(anywhere, rel=1e-9)
    assert early < apart < anywhere
    assert engine(CYCLIC, [5]).epsilon == pytest.approx(li.account_each(CYCLIC, DELTA).epsilon_of(5), rel=0.3)
    assert engine(CYCLIC, [5]).mu == pytest.approx(early_mu(5), rel=1e-9)
    assert engine(CYCLIC, [1001, 1049]).mu == 0  # no step uses them
    assert engine(CYCLIC, [1001, 3]).mu == pytest.approx(early_mu(3), rel=1e-9)
    assert (
        account_by([RANDOM_ORDER], SHUFFLED, DELTA, group=[1, 2]).epsilon
        == by_theorem("random-order", of_users(SHUFFLED, 2), DELTA).epsilon
    )


def early_mu(record: int) -> float:
    return float(own_mus(CYCLIC.process)[record // 100])


def test_what_was_released_before_is_about_each_record() -> None:
    before = replace(FULL, prior_mu=0.3)
    alone = li.account(FULL, DELTA)
    assert alone.mu is not None
    assert li.account(before, DELTA).group(3).mu == pytest.approx(3 * math.hypot(alone.mu, 0.3), rel=1e-9)
    both = engine(replace(CYCLIC, prior_mu=0.2), [0, 999])
    assert both.mu == pytest.approx(math.hypot(engine(CYCLIC, [0, 999]).mu or 0, 0.4), rel=1e-9)


def certificates() -> list[li.results.Report]:
    rounded = li.calibrate(CYCLIC, epsilon=3.0, delta=DELTA).expected_arithmetic
    return [
        li.account(of_users(FULL), DELTA),
        li.account(of_users(CYCLIC), DELTA),
        by_theorem(
            "shift-engine", replace(of_users(CYCLIC), domain=li.Ball(radius=0.1), arithmetic=rounded), DELTA, [7]
        ),
        engine(replace(CYCLIC, arithmetic=rounded, prior_mu=0.1), [0, 1, 300, 999], releases=[13]),
        by_theorem("random-order", of_users(SHUFFLED), DELTA),
    ]


def test_certificates_are_accepted_and_tampering_is_seen() -> None:
    for report in certificates():
        content = json.loads(json.dumps(report.certificate))
        verdict = verify(content)
        assert verdict.accepted, verdict.reason
        assert verdict.unit == report.unit
        if content["grade"] == "replayed":
            assert not checker.check(content)
        fewer = copy.deepcopy(content)
        fewer["run"]["user_records"] = 2
        assert not verify(fewer).accepted
        if report.members:
            for other in ([0, 1, 300, 998], [0, 1, 300], [0, 1, 300, 99_999], []):
                assert not verify(of_records(content, other)).accepted
            for other in ([0, 1, 998, 999], [0, 1, 300], [0, 1, 300, 99_999], []):
                assert not verify(of_person(content, other)).accepted
        else:
            assert not verify(of_records(content, [0, 1, 2, 3])).accepted


def of_records(content: dict[str, Any], records: list[int]) -> dict[str, Any]:
    """Where the unit says it."""
    other = copy.deepcopy(content)
    other["claim"]["unit"]["records"] = records
    return other


def of_person(content: dict[str, Any], records: list[int]) -> dict[str, Any]:
    """There, and where the assumptions do, as whoever rewrites all of it would."""
    other = of_records(content, records)
    first = {"code": "one_person", "records": records} if records else {"code": "user_records", "at_most": 4}
    return {**other, "assumptions": [first, *other["assumptions"][1:]]}


def test_the_unit_and_the_assumptions_name_the_same_records() -> None:
    content = engine(CYCLIC, [0, 1, 300, 999]).certificate
    assert verify(of_person(content, [0, 1, 300, 999])).accepted
    assert verify(of_person(content, [0, 1, 301, 998])).accepted  # in the same batches: true of them as well
    for records in ([0, 1, 301, 998], []):
        assumed = copy.deepcopy(content)
        assumed["assumptions"][0]["records"] = records
        assert not verify(of_records(content, records)).accepted
        assert "no. 1 must be one_person(records=(0, 1, 300, 999))" in verify(assumed).reason
    fewer = copy.deepcopy(content)
    fewer["claim"]["unit"]["user_records"] = 2
    assert "its run has other neighbouring data sets" in verify(fewer).reason


def test_sentences() -> None:
    report, named = li.account(of_users(CYCLIC), DELTA), engine(CYCLIC, [3, 0])
    assert report.assumptions[0] == fact("user_records", at_most=4)
    assert named.assumptions[0] == fact("one_person", records=(0, 3))
    assert report.unit == fact("neighbours", adjacency="replace_one", user_records=4, records=())
    assert named.unit == fact("neighbours", adjacency="replace_one", user_records=2, records=(0, 3))
    assert (named.to_dict()["unit"], report.to_dict()["unit"]) == (named.unit.to_dict(), report.unit.to_dict())
    assert "(replace up to 4 records of one user" in str(report)
    assert "(replace the 2 records 0, 3 of one person" in str(named)
    assert "detects the 4 replaced records of a user at most" in str(report)
    assert str(li.account(of_users(FULL), DELTA).lower_bound).endswith("Hessian 0")
    assert 0.8 * named.epsilon < named.lower_bound.epsilon <= named.epsilon
    assert growth(named.run, DELTA, group=named.members).hidden[-1] == pytest.approx(
        li.account(CYCLIC, DELTA, group=[0, 3]).epsilon, rel=1e-9
    )


def test_files_and_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(run_to_dict(of_users(CYCLIC))))
    assert li.read_run(path) == of_users(CYCLIC)
    assert "user_records" not in run_to_dict(CYCLIC)
    path.write_text(json.dumps(run_to_dict(CYCLIC)))
    proof = tmp_path / "proof.json"
    assert main(["account", str(path), "--group-records", "0", "300", "--certificate", str(proof)]) == 0
    assert "replace the 2 records 0, 300 of one person" in capsys.readouterr().out
    assert main(["verify", str(proof)]) == 0
    assert main(["account", str(path), "--group", "2", "--json"]) == 0
    assert f"{li.account(of_users(CYCLIC, 2), DELTA).epsilon:.9g}"[:9] in capsys.readouterr().out
    assert main(["account", str(path), "--group", "2", "--each"]) == 2
    assert "--each is for single records" in capsys.readouterr().err
    page = tmp_path / "report.html"
    engine(CYCLIC, [0, 300]).save(page, curves=False)
    assert "for any two data sets that differ in records 0, 300, those of one person" in page.read_text()
    assert "they differ in records 0, 300 of the data, counted from 0" in page.read_text()
    assert verify_page(page)


def verify_page(path: Path) -> bool:
    return main(["verify", str(path)]) == 0


def test_calibration_is_for_users() -> None:
    found = li.calibrate(of_users(FULL), epsilon=1.0, delta=DELTA)
    assert found.user_records == 4
    assert 0.999 < li.account(found, DELTA).epsilon <= 1.0


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ([0, 0], "each record once"),
        ([1050], "from 0 to 1049"),
        ([-1], "group must be"),
        ([0.5], "group must be"),
        (3, "list of indices"),
    ],
)
def test_groups_that_are_none(group: object, words: str) -> None:
    with pytest.raises(li.errors.InvalidInput, match=words) as caught:
        li.account(CYCLIC, DELTA, group=group)  # type: ignore[arg-type]
    assert caught.value.field == "group"


def test_refusals() -> None:
    with raises("group_of_users", "group", kind=li.errors.InvalidInput) as caught:
        li.account(of_users(CYCLIC), DELTA, group=[0, 1])
    assert caught.value.field == "group"
    for wrong in (0, 1001, 1.5, "many"):
        with pytest.raises(li.errors.InvalidInput) as caught:
            replace(FULL, user_records=wrong)
        assert caught.value.field == "user_records"
    with pytest.raises(li.errors.InvalidInput) as caught:
        li.account(FULL, DELTA).group(4).group(2)
    assert caught.value.field == "size"
    with pytest.raises(li.errors.InvalidInput) as caught:
        li.account_each(of_users(CYCLIC), DELTA)
    assert caught.value.field == "user_records"
    with raises("single_records_forgotten", "user_records", kind=li.errors.InvalidInput) as caught:
        li.forget(of_users(FULL), epsilon=1.0, delta=DELTA)
    assert caught.value.field == "user_records"
    named = engine(CYCLIC, [3])
    with raises("one_person_composed", "guarantees", kind=li.errors.InvalidInput):
        li.compose([named])
    budget = li.Budget(epsilon=10.0, delta=1e-4)
    with raises("budget_one_person", "release", kind=li.errors.InvalidInput):
        budget.spend(named, "a model")
    with raises("budget_other_users", "user_records", kind=li.errors.Incompatible, budget=1):
        budget.spend(of_users(FULL), "a model")
