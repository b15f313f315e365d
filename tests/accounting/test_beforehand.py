"""What was released about the same records before training: in the account, its certificate, and everything beside it."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lastiterate as li
from alone import by_theorem
from lastiterate.accounting.epsilon_curve import growth
from lastiterate.facts import fact
from lastiterate.runs.files import run_to_dict
from raising import raises

DELTA = 1e-5
LOSS = li.losses.logistic(feature_norm=1.0, l2=0.01)
FULL = li.Run(LOSS, li.FullBatch(records=1000), 0.5, li.OnMeanGradient(std=0.05), 50)
CYCLIC = li.Run(LOSS, li.Cyclic(records=1050, batch_size=100, last="drop"), 0.5, li.OnMeanGradient(std=0.05), 40)
SHUFFLED = li.Run(LOSS, li.Shuffled(records=60, batch_size=10), 0.5, li.OnMeanGradient(std=1.0), 22)
FIXED = li.Run(
    li.losses.logistic(feature_norm=1.0),
    li.FixedSize(records=1000, batch_size=100),
    0.5,
    li.OnMeanGradient(std=0.05),
    60,
)


def after(run: li.Run, mu: float = 0.3) -> li.Run:
    return replace(run, prior_mu=mu)


def test_mu_is_that_of_both_together() -> None:
    alone, both = li.account(FULL, DELTA), li.account(after(FULL), DELTA)
    assert alone.mu is not None
    assert both.mu == pytest.approx(math.hypot(alone.mu, 0.3), rel=1e-12)
    assert both.epsilon == pytest.approx(li.notions.GaussianDP(math.hypot(alone.mu, 0.3)).epsilon(DELTA), rel=1e-12)
    assert li.account(after(FULL, 0.0), DELTA).epsilon == alone.epsilon
    assert after(FULL, 0.0) == FULL


def test_it_counts_once_whatever_is_released() -> None:
    alone, both = (li.account(run, DELTA, releases=[10, 30]) for run in (FULL, after(FULL)))
    assert alone.mu is not None
    assert both.mu == pytest.approx(math.hypot(alone.mu, 0.3), rel=1e-12)


@pytest.mark.parametrize("run", [CYCLIC, SHUFFLED, FIXED], ids=lambda run: type(run.batches).__name__)
def test_more_before_costs_more(run: li.Run) -> None:
    epsilons = [li.account(after(run, mu), DELTA).epsilon for mu in (0.0, 0.01, 0.3, 2.0)]
    assert np.diff(epsilons).min() > 0
    assert epsilons[-1] > li.notions.GaussianDP(2.0).epsilon(DELTA)


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf, "a lot", None, 1e101])
def test_it_is_a_number_of_at_least_0(wrong: object) -> None:
    with raises("must_be", "prior_mu", kind=li.errors.InvalidInput) as caught:
        after(FULL, wrong)  # type: ignore[arg-type]
    assert caught.value.field == "prior_mu"


NEARLY_ALL = 0.999 * li.notions.largest_mu(epsilon=2.0, delta=DELTA)


@pytest.mark.parametrize(
    ("run", "mu"),
    [(FULL, 0.3), (FULL, NEARLY_ALL), (SHUFFLED, 0.3), (SHUFFLED, NEARLY_ALL), (FIXED, 0.3)],
    ids=["full", "full, nearly all", "shuffled", "shuffled, nearly all", "fixed size"],
)
def test_noise_is_found_for_both_together(run: li.Run, mu: float) -> None:
    found = li.calibrate(after(run, mu), epsilon=2.0, delta=DELTA)
    assert found.prior_mu == mu
    assert 1.999 < li.account(found, DELTA).epsilon <= 2.0


def test_where_nothing_is_left_for_training_one_sentence_says_so() -> None:
    for free in (li.NOISE, "steps"):
        with raises("spent_beforehand", "prior_mu", mu=0.6, epsilon=2.0) as caught:
            li.calibrate(after(FULL, 0.6), epsilon=2.0, delta=DELTA, free=free)
        assert str(caught.value).count(". ") == 1


def test_steps_are_found_for_both_together() -> None:
    alone, both = (
        li.calibrate(run, epsilon=2.0, delta=DELTA, free="steps", most_steps=500) for run in (FULL, after(FULL))
    )
    assert both.steps < alone.steps
    assert li.account(both, DELTA).epsilon <= 2.0


def test_every_record_pays_for_what_came_before() -> None:
    """Also those that no step uses: what is left over, and batches that were not reached."""
    run = replace(CYCLIC, steps=15)
    alone, both = li.account_each(run, DELTA), li.account_each(after(run), DELTA)
    assert run.batches.unused
    before = float(li.notions.GaussianDP(0.3).epsilon(DELTA))
    assert alone.epsilons[-1] == 0
    assert both.epsilons[-1] == pytest.approx(before, rel=1e-9)
    assert (both.epsilons >= np.maximum(alone.epsilons, before * (1 - 1e-9))).all()
    assert both.worst == pytest.approx(li.account(after(run), DELTA).epsilon, rel=1e-9)
    unreached = li.account_each(after(replace(CYCLIC, steps=3)), DELTA)
    assert unreached.batch_epsilons[5] == pytest.approx(before, rel=1e-6)


def test_the_lower_bound_has_it_as_well() -> None:
    assert li.account(after(FULL), DELTA).ratio == pytest.approx(1.0, rel=1e-6)
    alone = li.lower_bound(after(replace(SHUFFLED, noise=li.OnMeanGradient(std=1e3))), DELTA)
    assert alone.epsilon == pytest.approx(li.notions.GaussianDP(0.3).epsilon(DELTA), rel=1e-9)
    assert alone.instance.code == "beforehand_alone"
    for run in (CYCLIC, SHUFFLED, FIXED):
        report = li.account(after(run), DELTA)
        assert li.lower_bound(run, DELTA).epsilon <= report.lower_bound.epsilon <= report.epsilon * (1 + 1e-9)


def test_the_report_says_so() -> None:
    report = li.account(after(FULL), DELTA)
    page = report.details()
    assert "released before training, about the same records: mu = 0.3 of Gaussian" in page
    assert fact("released_before", mu=0.3) in report.promises
    assert fact("start_independent", beforehand=True) in report.promises
    assert "released_before" not in [one.code for one in li.account(FULL, DELTA).assumptions]
    assert "before training" not in li.account(FULL, DELTA).details()
    assert max(map(len, page.splitlines())) <= 110
    assert report.to_dict()["run"]["prior_mu"] == 0.3


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_files_hold_it_where_there_is_some(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"run.{ending}"
    for run in (after(FULL), FULL):
        li.write_run(run, path)
        assert li.read_run(path) == run
        assert ("prior_mu" in path.read_text()) == bool(run.prior_mu)


CERTIFIED = [
    (FULL, "shift-engine"),
    (SHUFFLED, "random-order"),
    (SHUFFLED, "hidden-place"),
    (CYCLIC, "prepayment"),
    (FIXED, "window-tail"),
    (FIXED, "bok2024/random/composition"),
]


@pytest.mark.parametrize(("run", "theorem"), CERTIFIED, ids=[name for _, name in CERTIFIED])
def test_certificates_are_about_both(run: li.Run, theorem: str) -> None:
    certificate = by_theorem(theorem, after(run), DELTA).certificate
    assert li.verify(certificate, after(run)).accepted
    assert not li.verify(certificate, run).accepted
    for less in (0.2999, None):
        lowered = copy.deepcopy(certificate)
        lowered["run"] = run_to_dict(after(run, less) if less else run)
        assert not li.verify(lowered).accepted
    more = copy.deepcopy(certificate)
    more["run"]["prior_mu"] = 0.31
    assert more["assumptions"][0] == {"code": "released_before", "mu": 0.3}
    assert "no. 1 must be released_before(mu=0.31)" in li.verify(more).reason
    more["assumptions"][0]["mu"] = 0.31
    assert "assumptions" not in li.verify(more).reason
    assert not li.verify(more).accepted
    if "proof" in more:
        more["proof"]["prior_mu"] = 0.31
        assert "proves" in li.verify(more).reason
    plain = by_theorem(theorem, run, DELTA).certificate
    assert "prior_mu" not in str(plain)
    assert {one.get("beforehand", False) for one in plain["assumptions"]} == {False}


def test_it_is_there_from_the_first_step_on() -> None:
    found, alone = growth(after(FULL), DELTA), growth(FULL, DELTA)
    assert found.hidden[-1] == pytest.approx(li.account(after(FULL), DELTA).epsilon, rel=1e-9)
    for with_it, without in ((found.hidden, alone.hidden), (found.released, alone.released)):
        assert (np.array(with_it) > np.array(without)).all()


def test_alternatives_keep_it() -> None:
    run = after(
        replace(CYCLIC, loss=li.losses.network(clip=1.0), domain=li.Unbounded(), noise=li.OnMeanGradient(std=0.1))
    )
    found = li.account(run, DELTA).alternatives
    assert found
    assert all(one.run.prior_mu == 0.3 for one in found)


def test_other_neighbours_and_budgets_have_it() -> None:
    run = after(replace(FULL, adjacency=li.ZERO_OUT))
    report = li.account(run, DELTA)
    assert report.mu is not None
    assert report.under(li.REPLACE_ONE).epsilon(DELTA) == pytest.approx(
        li.notions.GaussianDP(2 * report.mu).epsilon(DELTA), rel=1e-9
    )
    budget = li.Budget(10.0, DELTA)
    budget.spend(li.account(after(FULL), DELTA), what="training")
    epsilon = li.account(after(FULL), DELTA).epsilon
    assert epsilon <= budget.spent <= 1.02 * epsilon
