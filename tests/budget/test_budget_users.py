"""A budget for users with several records: runs and reports for such users, and nothing that is for single records."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lastiterate as li
from lastiterate.budget.entries import Terms, chained, plain_text
from lastiterate.cli import main
from lastiterate.facts import fact
from raising import raises

DELTA = 1e-5


@pytest.fixture(scope="module")
def run() -> li.Run:
    return li.Run(
        loss=li.losses.logistic(feature_norm=1.0, l2=0.01),
        batches=li.FullBatch(records=100),
        step_size=0.5,
        noise=li.OnMeanGradient(std=0.5),
        steps=16,
        user_records=3,
    )


@pytest.fixture(scope="module")
def shuffled(run: li.Run) -> li.Run:
    return replace(run, batches=li.Shuffled(records=100, batch_size=20), noise=li.OnMeanGradient(std=2.0))


@pytest.fixture(scope="module", params=[True, False], ids=["adaptive", "decided beforehand"])
def budget(request: pytest.FixtureRequest, run: li.Run, shuffled: li.Run) -> li.Budget:
    found = li.Budget(6.0, DELTA, user_records=3, adaptive=request.param)
    found.spend(run, "a run")
    found.spend(li.account(replace(shuffled, user_records=1), DELTA).group(3), "a report")
    found.spend(li.notions.GaussianDP(mu=0.05), "stated, for one record")
    return found


def test_what_is_spent_is_for_users(budget: li.Budget, run: li.Run) -> None:
    one, two, three = budget.history
    assert one.epsilon == pytest.approx(li.account(run, DELTA).epsilon, rel=1e-6)
    assert one.epsilon > li.account(replace(run, user_records=1), DELTA).epsilon
    assert three.epsilon == pytest.approx(li.notions.GaussianDP(mu=0.15).epsilon(DELTA), rel=1e-6)
    assert "replace up to 3 records of one user" in str(budget)
    assert budget.spent > max(one.epsilon, two.epsilon, three.epsilon)


def test_its_certificate_names_them(budget: li.Budget) -> None:
    verdict = li.verify(json.dumps(budget.certificate))
    assert verdict.accepted, verdict
    assert verdict.unit == fact("neighbours", adjacency="replace_one", user_records=3, records=())
    assert verdict.assumptions.count(fact("user_records", at_most=3)) == 1


def rechained(content: dict[str, Any]) -> None:
    texts = [plain_text(entry) for entry in content["entries"]]
    content["digest"] = chained(Terms.from_dict(content["terms"]), texts)[-1]


DOCTORED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "more records": (lambda one: one["terms"].update(user_records=5), "other neighbours than its terms"),
    "more records, and it says so": (
        lambda one: (
            one["terms"].update(user_records=5),
            one["claim"]["unit"].update(user_records=5),
        ),
        "its certificate has other neighbouring data sets",
    ),
    "single records": (
        lambda one: (one["terms"].update(user_records=1), one["claim"]["unit"].update(user_records=1)),
        "its certificate has other neighbouring data sets",
    ),
    "the claim alone": (lambda one: one["claim"]["unit"].update(user_records=1), "other neighbours"),
    "not said": (lambda one: one["terms"].pop("user_records"), "user_records is missing"),
    "no number": (lambda one: one["terms"].update(user_records=0), "user_records"),
}


@pytest.mark.parametrize("name", DOCTORED)
def test_a_changed_certificate_is_rejected(name: str, budget: li.Budget) -> None:
    change, reason = DOCTORED[name]
    changed = copy.deepcopy(budget.certificate)
    change(changed)
    if name not in ("no number", "not said"):
        rechained(changed)
    verdict = li.verify(changed)
    assert not verdict.accepted
    assert reason in verdict.reason


def test_users_and_records_are_not_mixed(run: li.Run) -> None:
    users, records, one = li.Budget(9.0, DELTA, user_records=3), li.Budget(9.0, DELTA), replace(run, user_records=1)
    report = li.account(one, DELTA)
    for budget, release, advice in (
        (users, one, r"must be 3, as in the budget\. Got a run with 1\. Spend replace\(run, user_records=3\)"),
        (users, report, r"Got a report with 1\. Spend report\.group\(3\)"),
        (users, report.group(2), r"Got a report with 2\. Spend replace\(run, user_records=3\), accounted for again"),
        (records, run, r"must be 1, as in the budget\. Got a run with 3"),
        (records, report.group(3), r"Got a report with 3"),
    ):
        with pytest.raises(li.errors.Incompatible, match=advice) as caught:
            budget.spend(release, "a model")
        assert caught.value.field == "user_records"
        assert not budget.history


def test_a_file_remembers_its_users(run: li.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, described = str(tmp_path / "team.sqlite"), str(tmp_path / "run.toml")
    li.write_run(run, described)
    assert main(["budget", path, "--create", "--epsilon", "6", "--delta", "1e-5", "--user-records", "3"]) == 0
    assert main(["budget", path, "--spend", described, "--what", "a model"]) == 0
    assert "replace up to 3 records of one user" in capsys.readouterr().out
    assert li.Budget.open(path).terms.user_records == 3
    with raises("budget_terms_differ", "file", kind=li.errors.Incompatible, term="user_records", found=3, wanted=1):
        li.Budget(6.0, DELTA, file=path)
    assert main(["budget", path, "--user-records", "2"]) == 2
    assert "--user-records is fixed when a budget is created" in capsys.readouterr().err


def test_a_budget_for_single_records_says_so() -> None:
    terms = Terms(1.0, DELTA, li.REPLACE_ONE, "", True, 0.1)
    assert terms.to_dict()["user_records"] == 1
    assert Terms.from_dict(terms.to_dict()) == terms
