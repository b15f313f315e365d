"""A budget: what is paid for, what is refused, and what the page says."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from raising import raises

DELTA = 1e-5
RUN = li.Run(
    loss=li.losses.logistic(feature_norm=1.0, l2=0.01),
    batches=li.Cyclic(records=400, batch_size=100),
    step_size=0.5,
    noise=li.OnMeanGradient(std=0.1),
    steps=40,
)
REPORT = li.account(RUN, DELTA)
SUBSAMPLED = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.01, adjacency=li.REPLACE_ONE).compose(400)
NOTIONS = {
    "gaussian": li.notions.GaussianDP(0.2),
    "pure": li.notions.Profile(epsilons=[0.1], deltas=[0.0]),
    "approximate": li.notions.Profile(epsilons=[0.1], deltas=[1e-8]),
    "function": li.notions.Profile(function=lambda epsilons: li.notions.GaussianDP(0.2).delta(epsilons)),
    "concentrated": li.notions.RenyiDP(rho=0.01),
    "curve": li.notions.RenyiDP(orders=[2.0, 8.0, 32.0], divergences=[0.02, 0.08, 0.4]),
    "subsampled": SUBSAMPLED,
    "loss": li.notions.PrivacyLoss(first=-0.1, spacing=0.2, masses=[0.475, 0.525]),
    "best": li.notions.best([li.notions.GaussianDP(0.2), li.notions.Profile(epsilons=[0.3], deltas=[1e-4])]),
}


@pytest.mark.parametrize("adaptive", [True, False])
def test_what_is_recorded_is_the_whole_curve(adaptive: bool, tmp_path: Path) -> None:
    """And read again from the file, it comes to the same; never to less than one of its parts."""
    budget, largest = li.Budget(6.0, DELTA, file=tmp_path / "team.sqlite", adaptive=adaptive), 0.0
    for name, notion in NOTIONS.items():
        entry = budget.spend(notion, what=name)
        assert entry.what == name
        assert notion.epsilon(DELTA) <= entry.epsilon <= notion.epsilon(DELTA) * 1.001
        largest = max(largest, entry.epsilon)
    again = li.Budget.open(tmp_path / "team.sqlite")
    assert again.spent == budget.spent > largest
    assert [entry.what for entry in again.history] == list(NOTIONS)
    assert li.verify(again.certificate).accepted
    assert again.terms == budget.terms


def test_a_composition_is_as_sharp_as_compose_and_a_filter_hardly_less() -> None:
    """What would be is what then is."""
    parts = [li.notions.GaussianDP(0.3), li.notions.GaussianDP(0.4), SUBSAMPLED]
    spent = {}
    for adaptive in (True, False):
        budget = li.Budget(6.0, DELTA, adaptive=adaptive)
        for part in parts:
            spent[adaptive] = budget.would(part)
            budget.spend(part, what="a part")
        assert spent[adaptive] == pytest.approx(budget.spent, rel=1e-7)
    composed = li.compose(parts).epsilon(DELTA)
    assert spent[False] == pytest.approx(composed, rel=1e-7)
    assert composed <= spent[True] <= 1.05 * composed


@pytest.mark.parametrize("release", [RUN, REPORT], ids=["run", "report"])
def test_a_run_and_its_report_are_the_same_release(release: Any) -> None:
    budget = li.Budget(5.0, DELTA)
    entry = budget.spend(release, what="logistic model, March", who="ann")
    assert entry.theorem == REPORT.best.theorem.name
    assert entry.epsilon == pytest.approx(REPORT.epsilon, rel=1e-3)
    assert entry.epsilon >= REPORT.epsilon
    assert entry.certificate is not None
    assert li.verify(entry.certificate, RUN).accepted
    page = str(budget)
    assert f"logistic model, March (ann), by {entry.theorem}" in page
    assert "Spent: epsilon = " in page
    assert json.loads(budget.to_json())["entries"][0]["theorem"] == entry.theorem


def test_checkpoints_are_paid_for() -> None:
    budget = li.Budget(8.0, DELTA)
    assert budget.would(RUN, releases=[20]) > budget.would(RUN)
    entry = budget.spend(RUN, what="with a checkpoint", releases=[20])
    assert entry.certificate is not None
    assert entry.certificate["claim"]["releases"] == [20]
    with raises("releases_without_run", "releases", kind=li.errors.InvalidInput):
        budget.spend(REPORT, what="x", releases=[20])


@pytest.mark.parametrize("adaptive", [True, False])
def test_a_refusal_is_one_sentence_and_records_nothing(adaptive: bool, tmp_path: Path) -> None:
    budget = li.Budget(3.0, DELTA, file=tmp_path / "team.sqlite", adaptive=adaptive)
    budget.spend(li.notions.GaussianDP(0.6), what="first")
    before = budget.digest, budget.spent, (tmp_path / "team.sqlite").read_bytes()
    with raises("budget_spent", kind=li.errors.BudgetExceeded, epsilon=3.0, delta=1e-05):
        budget.spend(li.notions.GaussianDP(0.6), what="second")
    assert (budget.digest, budget.spent, (tmp_path / "team.sqlite").read_bytes()) == before
    assert budget.would(li.notions.GaussianDP(0.6)) > 3.0
    assert isinstance(pickle.loads(pickle.dumps(li.errors.BudgetExceeded("more."))), ValueError)


@pytest.mark.parametrize("adaptive", [True, False])
def test_what_is_left_can_be_spent_and_no_more(adaptive: bool) -> None:
    budget = li.Budget(2.0, DELTA, adaptive=adaptive)
    assert budget.left.epsilon(DELTA) == pytest.approx(2.0, rel=0.01)
    budget.spend(li.notions.GaussianDP(0.3), what="a")
    if not adaptive:
        budget.spend(li.notions.Profile(epsilons=[0.1], deltas=[0.0]), what="b")
    left = budget.left
    with pytest.raises(li.errors.BudgetExceeded):
        budget.spend(li.notions.GaussianDP(left.mu * 1.01), what="too much")
    budget.spend(left, what="the rest")
    assert 1.99 < budget.spent <= 2.0
    assert budget.left.mu < 0.05
    assert li.verify(budget.certificate).accepted
    with pytest.raises(li.errors.BudgetExceeded):
        budget.spend(li.notions.GaussianDP(0.1), what="one more")


def test_what_no_gaussian_covers_needs_the_reserve() -> None:
    floor = li.notions.Profile(epsilons=[0.1], deltas=[5e-7])
    budget = li.Budget(3.0, DELTA)
    budget.spend(floor, what="within the reserve of 1e-6")
    with raises("reserve_spent", kind=li.errors.BudgetExceeded, room=4.999989999994963e-07, reserve=0.1):
        budget.spend(li.notions.Profile(epsilons=[0.1], deltas=[6e-7]), what="beyond")
    with raises("reserve_spent", kind=li.errors.BudgetExceeded, room=0.0, reserve=0.0):
        li.Budget(3.0, DELTA, reserve=0.0).spend(floor, what="no reserve")
    with raises("budget_no_finite_epsilon", kind=li.errors.Unavailable):
        budget.spend(li.notions.Profile(function=lambda epsilons: 0 * epsilons + 0.1), what="never")


def test_neighbours_are_not_mixed() -> None:
    budget = li.Budget(5.0, DELTA, li.ZERO_OUT)
    with raises("budget_other_adjacency", "adjacency", kind=li.errors.Incompatible):
        budget.spend(REPORT, what="x")
    with raises("budget_other_adjacency", "adjacency", kind=li.errors.Incompatible):
        budget.spend(li.notions.GaussianDP(0.1), what="x")
    zeroed = li.account(dataclasses.replace(RUN, adjacency=li.ZERO_OUT), DELTA)
    budget.spend(zeroed, what="its own neighbours")
    other = li.Budget(8.0, DELTA, li.REPLACE_ONE)
    with raises("budget_other_adjacency", "adjacency", kind=li.errors.Incompatible):
        other.spend(zeroed, what="x")
    assert other.spend(zeroed.under(li.REPLACE_ONE), what="both ways").epsilon > budget.spent
    assert budget.history[0].adjacency is li.ZERO_OUT


def test_what_was_trained_is_paid_for_with_its_rounding() -> None:
    """The report is about the arithmetic of the machine, and so is the curve that is recorded."""
    data = np.eye(400) / 2, np.ones(400)
    trained, budget = li.train(RUN, data), li.Budget(5.0, DELTA)
    report = trained.report(DELTA)
    assert report.run.arithmetic != RUN.arithmetic
    entry = budget.spend(report, what="trained")
    assert report.epsilon <= entry.epsilon <= report.epsilon * 1.001
    assert entry.epsilon >= REPORT.epsilon
    assert li.verify(budget.certificate).accepted


def test_a_report_with_a_caveat_is_refused() -> None:
    seeded = li.train(RUN, (np.eye(400) / 2, np.ones(400)), seed=1).report(DELTA)
    budget = li.Budget(5.0, DELTA)
    with raises("budget_caveat", "release", kind=li.errors.InvalidInput):
        budget.spend(seeded, what="x")
    assert budget.history == ()


def test_a_budget_in_memory_is_not_copied() -> None:
    budget = li.Budget(3.0, DELTA)
    for copied in (pickle.dumps, copy.deepcopy):
        with raises("budget_copied", kind=li.errors.Unavailable):
            copied(budget)


def test_a_budget_in_a_file_may_go_to_other_processes(tmp_path: Path) -> None:
    budget = li.Budget(3.0, DELTA, file=tmp_path / "team.sqlite")
    pickle.loads(pickle.dumps(budget)).spend(li.notions.GaussianDP(0.1), what="elsewhere")
    assert [entry.what for entry in budget.history] == ["elsewhere"]


def test_entries_stay_as_they_are() -> None:
    budget = li.Budget(3.0, DELTA)
    entry = budget.spend(li.notions.GaussianDP(0.1), what="a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.mu = 0.0  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        budget.terms = None  # type: ignore[misc, assignment]
    budget.certificate["entries"].clear()
    assert len(budget.certificate["entries"]) == 1


BAD: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    *((li.Budget, {"epsilon": bad}, "epsilon") for bad in (0.0, -1.0, float("nan"), float("inf"), "1", None, [1.0])),
    *((li.Budget, {"delta": bad}, "delta") for bad in (0.0, 1.0, float("nan"), "1", None)),
    *((li.Budget, {"adjacency": bad}, "adjacency") for bad in (None, "zero-out", 1)),
    *((li.Budget, {"reserve": bad}, "reserve") for bad in (-0.1, 1.0, float("nan"), "x", None)),
    *((li.Budget, {"adaptive": bad}, "adaptive") for bad in (None, 1, "yes")),
    *((li.Budget, {"dataset": bad}, "dataset") for bad in (None, 1, "a\nb", "x" * 201)),
    *((li.Budget, {"timeout": bad}, "timeout") for bad in (-1.0, float("nan"), "x", None)),
    *((li.Budget, {"file": bad}, "file") for bad in (3, b"x", "", "a\0b", "/nowhere/at/all.sqlite", ".")),
    *((li.Budget.open, {"file": bad}, "file") for bad in (None, 3, "", "a\0b", "/nowhere.sqlite", ".")),
]


@pytest.mark.parametrize(("make", "change", "field"), BAD, ids=lambda value: str(value)[:40])
def test_bad_terms_are_refused_by_name(make: Callable[..., Any], change: dict[str, Any], field: str) -> None:
    good = {} if make == li.Budget.open else {"epsilon": 3.0, "delta": DELTA}
    with pytest.raises(li.errors.InvalidInput) as caught:
        make(**{**good, **change})
    assert caught.value.field == field
    assert len(str(caught.value)) <= 300


@pytest.mark.parametrize("release", [None, 1.0, "run.toml", {}, li.Run, [li.notions.GaussianDP(0.1)]])
def test_other_releases_are_refused(release: Any) -> None:
    for use in (li.Budget(3.0, DELTA).would, lambda one: li.Budget(3.0, DELTA).spend(one, what="x")):
        with raises("not_a_release", "release", kind=li.errors.InvalidInput) as caught:
            use(release)
        assert caught.value.field == "release"


@pytest.mark.parametrize("what", ["", None, 3, "two\nlines", "\x1b[2J", "x" * 201])
def test_what_it_is_takes_one_line(what: Any) -> None:
    with raises("must_be", "what", kind=li.errors.InvalidInput, allowed="1 to 200 printable characters"):
        li.Budget(3.0, DELTA).spend(li.notions.GaussianDP(0.1), what=what)
