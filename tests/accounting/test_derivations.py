"""What is derived from a report knows all that the run says: what else was released, how many records a user has, and what
was released before. And a certificate proves its own run alone, whatever is taken over from an easier one.
"""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import lastiterate as li

DELTA = 1e-5
TRIALS = li.trials.Geometric(mean=5)
BASE = li.Run(
    loss=li.losses.logistic(feature_norm=1.0, l2=0.5),
    batches=li.FullBatch(records=100),
    step_size=0.5,
    noise=li.OnMeanGradient(std=0.1),
    steps=12,
    adjacency=li.ZERO_OUT,
)
FIELDS: dict[str, tuple[li.Run, tuple[int, ...]]] = {
    "releases": (BASE, (4, 8)),
    "user_records": (replace(BASE, user_records=3), ()),
    "prior_mu": (replace(BASE, prior_mu=0.4), ()),
    "all but users": (replace(BASE, prior_mu=0.4), (4, 8)),
    "all": (replace(BASE, user_records=3, prior_mu=0.4), (4, 8)),
}


@cache
def report_of(field: str) -> li.results.Report:
    return li.account(*[FIELDS[field][0], DELTA, FIELDS[field][1]])


def gaussian(mu: float) -> float:
    return float(li.notions.GaussianDP(mu, li.ZERO_OUT).epsilon(DELTA))


def budget(report: li.results.Report) -> li.Budget:
    return li.Budget(100.0, DELTA, li.ZERO_OUT, adaptive=False, user_records=report.run.user_records)


def spent(report: li.results.Report, release: Any, **given: Any) -> float:
    ledger = budget(report)
    ledger.spend(release, "a model", **given)
    verdict = li.verify(ledger.certificate)
    assert verdict.accepted, verdict
    assert float(verdict.epsilon) >= ledger.spent
    return ledger.spent


def dp_accounting() -> Any:
    return pytest.importorskip("lastiterate.adapters.dp_accounting")


def accounted_for(report: li.results.Report, event: Any) -> float:
    accountant = dp_accounting().LastIterateAccountant(dp_accounting().relation_of(li.ZERO_OUT))
    return float(accountant.compose(event).get_epsilon(DELTA))


def composed_into(report: li.results.Report) -> float:
    accountant = dp_accounting().LastIterateAccountant(dp_accounting().relation_of(li.ZERO_OUT))
    return float(dp_accounting().compose_into(accountant, report).get_epsilon(DELTA))


def verified(certificate: Any) -> float:
    verdict = li.verify(certificate)
    assert verdict.accepted, verdict
    return verdict.epsilon


def page(report: li.results.Report, folder: Path) -> float:
    report.save(folder / "report.html", curves=False)
    return verified((folder / "report.html").read_text())


# Each with what an account of the run says, from its μ.
DERIVED: dict[str, tuple[Callable[[li.results.Report, Path], float], Callable[[float], float]]] = {
    "group": (lambda one, _: one.group(2).epsilon, lambda mu: gaussian(2 * mu)),
    "under": (lambda one, _: float(one.under(li.REPLACE_ONE).epsilon(DELTA)), lambda mu: gaussian(2 * mu)),
    "select": (
        lambda one, _: float(li.select(one, trials=TRIALS).epsilon(DELTA)),
        lambda mu: float(li.select(li.notions.GaussianDP(mu), trials=TRIALS).epsilon(DELTA)),
    ),
    "selection certificate": (
        lambda one, _: verified(li.select(one, trials=TRIALS).certificate),
        lambda mu: float(li.select(li.notions.GaussianDP(mu), trials=TRIALS).epsilon(DELTA)),
    ),
    "compose": (lambda one, _: float(li.compose([one, one]).epsilon(DELTA)), lambda mu: gaussian(2**0.5 * mu)),
    "spend a report": (lambda one, _: spent(one, one), gaussian),
    "spend a run": (lambda one, _: spent(one, one.run, releases=one.releases), gaussian),
    "certificate": (lambda one, _: verified(one.certificate), gaussian),
    "page": (page, gaussian),
    "copy": (lambda one, _: float(pickle.loads(pickle.dumps(one)).epsilon), gaussian),
    "notion": (lambda one, _: float(one.notion.epsilon(DELTA)), gaussian),
    "dp-accounting, event": (lambda one, _: accounted_for(one, dp_accounting().event_of(one)), gaussian),
    "dp-accounting, run": (
        lambda one, _: accounted_for(one, dp_accounting().LastIterateDpEvent(one.run, one.releases)),
        gaussian,
    ),
    "dp-accounting, compose_into": (lambda one, _: composed_into(one), gaussian),
    "dp-accounting, distribution": (
        lambda one, _: float(dp_accounting().privacy_loss_distribution(one).get_epsilon_for_delta(DELTA)),
        gaussian,
    ),
}


@pytest.mark.parametrize("derived", DERIVED)
@pytest.mark.parametrize("field", FIELDS)
def test_what_is_derived_says_all_that_the_run_says(field: str, derived: str, tmp_path: Path) -> None:
    report, (derive, expected) = report_of(field), DERIVED[derived]
    assert report.mu is not None
    if derived == "group" and report.run.user_records > 1:
        with pytest.raises(li.errors.InvalidInput) as caught:
            report.group(2)
        assert caught.value.field == "size"
        return
    found = derive(report, tmp_path)
    assert found >= expected(report.mu) * (1 - 1e-9)
    assert found == pytest.approx(expected(report.mu), rel=1e-3)


@pytest.mark.parametrize("field", FIELDS)
def test_each_field_counts(field: str) -> None:
    """So that a derivation that lost it would be seen above: by more than its tolerance."""
    alone, report = li.account(BASE, DELTA), report_of(field)
    assert report.mu is not None
    assert alone.mu is not None
    assert report.mu > 1.02 * alone.mu


# Forged: a harder run with what an easier one may claim.
CYCLIC = replace(BASE, batches=li.Cyclic(records=100, batch_size=25), adjacency=li.REPLACE_ONE)
EASY = {
    "replayed": BASE,
    "places": CYCLIC,
    "hidden places": replace(CYCLIC, batches=li.Shuffled(records=100, batch_size=25), steps=8),
    "recomputed": replace(CYCLIC, domain=li.Ball(radius=0.02), steps=40),
}
RUNG = replace(CYCLIC, batches=li.FixedSize(records=100, batch_size=10), noise=li.OnMeanGradient(std=1.0), steps=40)
HARDER: dict[str, Callable[[li.Run], li.Run]] = {
    "less noise": lambda run: replace(run, noise=li.OnMeanGradient(std=0.08)),
    "something before": lambda run: replace(run, prior_mu=0.5),
    "users": lambda run: replace(run, user_records=2),
}


@cache
def account(run: li.Run) -> dict[str, Any]:
    return li.account(run, DELTA).certificate


@cache
def group(run: li.Run) -> dict[str, Any]:
    return li.account(replace(run, user_records=1), DELTA, group=range(run.user_records)).certificate


@cache
def selection(run: li.Run) -> dict[str, Any]:
    return li.select([li.account(run, DELTA), li.notions.GaussianDP(0.1, run.adjacency)], trials=TRIALS).certificate


@cache
def ledger(run: li.Run) -> dict[str, Any]:
    found = li.Budget(100.0, DELTA, run.adjacency, adaptive=False, user_records=run.user_records)
    found.spend(run, "a model")
    return found.certificate


@cache
def forgetting(run: li.Run) -> dict[str, Any]:
    return li.forget(run, epsilon=15.0, delta=DELTA).certificate


KINDS: dict[str, tuple[Callable[[li.Run], dict[str, Any]], tuple[str, ...]]] = {
    "account": (account, tuple(EASY)),
    "group": (group, ("replayed", "places")),
    "selection": (selection, ("replayed", "places")),
    "budget": (ledger, ("replayed", "places")),
    "forgetting": (forgetting, ("replayed", "places")),
}


def entries(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a certificate down to the second level of its parts, but for the steps of the run."""
    inside = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for name, value in inside:
        if name != "run":
            yield (*path, name)
            if len(path) < 3:
                yield from entries(value, (*path, name))


def at(content: Any, path: tuple[Any, ...]) -> Any:
    for name in path:
        try:
            content = content[name]
        except (KeyError, IndexError, TypeError):
            return None
    return content


def transplanted(
    hard: dict[str, Any], easy: dict[str, Any], paths: tuple[tuple[Any, ...], ...]
) -> dict[str, Any] | None:
    forged = copy.deepcopy(hard)
    for path in paths:
        place = at(forged, path[:-1])
        if place is None or at(easy, path) is None:
            return None
        place[path[-1]] = copy.deepcopy(at(easy, path))
    return forged


def differing(hard: dict[str, Any], easy: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [path for path in entries(easy) if at(hard, path[:-1]) is not None and at(hard, path) != at(easy, path)]


CASES = [
    (kind, easy, harder)
    for kind, (_, runs) in KINDS.items()
    for easy in runs
    for harder in HARDER
    if not (kind == "forgetting" and harder == "users") and not (kind == "group" and harder == "users")
]


@pytest.mark.parametrize(("kind", "easy", "harder"), CASES)
def test_nothing_of_an_easier_run_makes_the_claim_of_a_harder_one_smaller(kind: str, easy: str, harder: str) -> None:
    """Each part of its certificate alone, each two parts at the top, and everything but the run."""
    made, run = KINDS[kind][0], HARDER[harder](EASY[easy])
    hard, soft = made(run), made(EASY[easy])
    assert soft["claim"]["epsilon"] < hard["claim"]["epsilon"] or kind == "forgetting"
    assert forgeries(hard, soft, None if kind == "budget" else run) == []


def forgeries(hard: dict[str, Any], soft: dict[str, Any], run: li.Run | None) -> list[Any]:
    """What may be taken over from another certificate so that less is accepted than the run has."""
    least = li.verify(hard, run).epsilon
    assert least < float("inf")
    paths = differing(hard, soft)
    top = [path for path in paths if len(path) == 1]
    assert ("claim",) in top
    found = []
    for one in [*[(path,) for path in paths], *combinations(top, 2), tuple(top)]:
        forged = transplanted(hard, soft, one)
        if forged is None or forged == soft:
            continue
        verdict = li.verify(json.dumps(forged), run)
        if verdict.accepted and verdict.epsilon < least * (1 - 1e-9) and not after_more_steps(forged, hard):
            found.append(one)
    return found


def after_more_steps(forged: dict[str, Any], hard: dict[str, Any]) -> bool:
    """Whether it claims that records are forgotten later, which is another claim."""
    return sum(forged["claim"].get("steps", ())) > sum(hard["claim"].get("steps", ()))


def test_nothing_of_a_person_who_is_better_hidden_helps_another() -> None:
    hard, soft = (li.account(CYCLIC, DELTA, group=group) for group in ([98, 99], [0, 1]))
    assert soft.epsilon < hard.epsilon
    assert forgeries(hard.certificate, soft.certificate, hard.run) == []


def test_a_stated_mu_is_part_of_the_claim() -> None:
    hard, soft = (
        li.select([li.account(BASE, DELTA), li.notions.GaussianDP(mu, li.ZERO_OUT)], trials=TRIALS).certificate
        for mu in (0.9, 0.1)
    )
    assert forgeries(hard, soft, BASE) == []


def test_the_rung_of_an_easier_run_is_evaluated_for_the_harder_one() -> None:
    hard, soft = (replace(RUNG, noise=li.OnMeanGradient(std=std)) for std in (0.8, 1.0))
    assert "rung" in account(hard)
    assert forgeries(account(hard), account(soft), hard) == []
    for rung in (1, 5, 13, 40):
        claim = {**account(hard)["claim"], "epsilon": account(soft)["claim"]["epsilon"]}
        assert not li.verify({**account(hard), "claim": claim, "rung": rung}).accepted
