"""Theorems that somebody brings along: tried like those of the library, and never taken for one of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lastiterate as li
from lastiterate.accounting.account import account_by
from lastiterate.facts import fact
from lastiterate.runs.process import Process
from lastiterate.theorems.catalogue import OF_EVERY_ITERATE
from lastiterate.theorems.features import ANY_MAP, CONTRACTING, FULL_BATCHES, REPLACED
from lastiterate.theorems.shift_engine import SHIFT_ENGINE
from raising import raises

RUN = li.Run(
    li.losses.general(smoothness=1.0, strong_convexity=0.05, gradient_sensitivity=1.0),
    li.FullBatch(records=1_000),
    0.5,
    li.OnIterate(std=0.005),
    2_000,
)


def mu_of(process: Process) -> float:
    return float((2 / (1 - process.contraction)) ** 0.5 * process.step_mu * (1 + 1e-12))


def named(name: str, factor: float = 1.0) -> li.theorems.Theorem:
    return li.theorems.Theorem(
        name=name,
        citation="my notes, Theorem 1",
        covers="strongly convex, full batches, any number of steps",
        features={FULL_BATCHES, REPLACED} | ANY_MAP,
        assumptions=(CONTRACTING,),
        bound=lambda process: li.theorems.Evidence(li.notions.GaussianDP(factor * mu_of(process))),
    )


MINE, HALVED = named("mine/full-batch"), named("mine/halved", factor=0.5)
THIS = "which is not part of the library"
TRUE = fact("theorem_true", theorem="mine/full-batch", citation="my notes, Theorem 1")


def by_mine() -> li.results.Report:
    """The only theorem that is tried: those of the library are better."""
    return li.account(RUN, delta=1e-6, theorems=[MINE])


def test_it_is_tried_beside_the_catalogue_and_does_not_come_first_where_another_is_better() -> None:
    report = li.account(RUN, delta=1e-6, theorems=[*li.theorems.CATALOGUE, MINE])
    assert report.epsilon == li.account(RUN, delta=1e-6).epsilon
    assert MINE in [one.theorem for one in report.guarantees]
    assert report.theorems == (*li.theorems.CATALOGUE, MINE)
    assert "theorem_true" not in [one.code for one in report.assumptions]
    assert "mine/full-batch (my notes, Theorem 1; yours, not part of the library)" in report.details().replace(
        "\n    ", " "
    )


def test_a_report_by_it_says_so_plainly() -> None:
    report = by_mine()
    assert report.mu == mu_of(RUN.process)
    for text in (str(report), report.details(), report._repr_html_()):
        assert f"of yours, {THIS}" in " ".join(text.split())
    assert "the theorem mine/full-batch is true" in " ".join(str(report).split())
    assert report.promises[-1] == report.assumptions[-1] == TRUE
    assert report.to_dict()["assumptions"][-1] == TRUE.to_dict()


def test_its_certificate_is_refused_without_it() -> None:
    certificate = by_mine().certificate
    assert certificate["grade"] == "recomputed"
    for given in (certificate, json.dumps(certificate)):
        verdict = li.verify(given)
        assert not verdict.accepted
        assert verdict.reason.startswith("its theorem 'mine/full-batch' is not part of the library. ")
        assert not li.verify(given, theorems=[*li.theorems.CATALOGUE, HALVED]).accepted
    with_it = li.verify(certificate, theorems=[*li.theorems.CATALOGUE, MINE])
    assert with_it.accepted
    assert with_it.assumptions[-1] == TRUE
    assert "assuming the theorem mine/full-batch, which is not part of the library" in str(with_it)


@pytest.mark.parametrize("name", [SHIFT_ENGINE.name, "bok2024/full-batch/composition", "mine/other"])
def test_a_certificate_that_is_renamed_is_refused(name: str) -> None:
    """What the library proves of this run is less than what the false theorem claims."""
    report = account_by([HALVED], RUN, 1e-6)  # as `account` makes it, but for the check against instances
    certificate = report.certificate | {"theorem": name}
    assert not li.verify(certificate).accepted
    assert certificate["assumptions"].pop()["code"] == "theorem_true"
    assert not li.verify(certificate).accepted


def test_what_is_not_assumed_in_a_certificate_is_assumed_in_the_verdict() -> None:
    silent = by_mine().certificate
    assert silent["assumptions"].pop() == TRUE.to_dict()
    assert li.verify(silent, theorems=[MINE]).assumptions == by_mine().assumptions
    assert li.verify(by_mine().certificate, theorems=[MINE]).assumptions == by_mine().assumptions
    assert li.verify(silent, theorems=[MINE]).own_theorem == MINE.name


def test_schedules_of_a_theorem_of_ones_own_are_not_replayed_as_if_it_were_ours() -> None:
    copied = replace(SHIFT_ENGINE, name="mine/engine")
    certificate = li.account(RUN, delta=1e-6, theorems=[copied]).certificate
    assert certificate["grade"] == "recomputed"
    assert "proof" not in certificate
    assert not li.verify(certificate).accepted
    assert li.verify(certificate, theorems=[copied]).accepted
    assert not li.verify(certificate | {"grade": "replayed"}).accepted


def test_of_equal_guarantees_that_of_the_library_comes_first() -> None:
    copied = replace(SHIFT_ENGINE, name="a-copy")
    assert li.account(RUN, delta=1e-6, theorems=[copied, *li.theorems.CATALOGUE]).best.theorem is SHIFT_ENGINE


def test_a_false_theorem_is_found_out_where_an_instance_refutes_it() -> None:
    with raises("theorem_false", "theorems", kind=li.errors.InvalidInput, theorem="mine/halved"):
        li.account(RUN, delta=1e-6, theorems=[*li.theorems.CATALOGUE, HALVED])
    with raises("theorem_false", "theorems", kind=li.errors.InvalidInput, theorem="mine/halved"):
        li.calibrate(RUN, epsilon=1.0, delta=1e-6, theorems=[*li.theorems.CATALOGUE, HALVED])


def test_calibrate_takes_theorems() -> None:
    found = li.calibrate(RUN, epsilon=1.0, delta=1e-6, theorems=[MINE])
    assert 0.99 < li.account(found, delta=1e-6, theorems=[MINE]).epsilon <= 1.0
    assert li.account(found, delta=1e-6).epsilon <= 1.0


@pytest.mark.parametrize(
    ("theorems", "said"),
    [
        ([], r"theorems must be such as \[\*li.theorems.CATALOGUE, MINE\]. Got \[\]"),
        (MINE, "theorems must be such as"),
        ("shift-engine", "theorems must be such as"),
        ([*li.theorems.CATALOGUE, "mine"], "Got 'mine'"),
        ([MINE, MINE], "theorems must be of different names. Got 'mine/full-batch' twice"),
        ([replace(MINE, name="shift-engine")], "'shift-engine' is the name of a theorem of the library"),
        ([replace(MINE, name="a\nb")], "the name of a theorem must be one line"),
        ([replace(MINE, name="")], "the name of a theorem must be one line"),
    ],
)
def test_what_is_no_list_of_theorems_is_one_sentence(theorems: Any, said: str) -> None:
    for call in (li.account, li.verify):
        first = RUN if call is li.account else by_mine().certificate
        with pytest.raises(li.errors.InvalidInput, match=said):
            call(first, **({"delta": 1e-6} if call is li.account else {}), theorems=theorems)  # type: ignore[operator]


def test_what_others_rely_on_takes_theorems_of_the_library_only(tmp_path: Path) -> None:
    for ending in ("html", "json", "txt"):
        with raises("own_theorem_for_others", "theorems", kind=li.errors.InvalidInput):
            by_mine().save(tmp_path / f"report.{ending}")
    with raises("own_theorem_for_others", "theorems", kind=li.errors.InvalidInput):
        by_mine().label()
    with raises("budget_own_theorem", "release", kind=li.errors.InvalidInput):
        li.Budget(epsilon=9.0, delta=1e-6).spend(by_mine(), "a model")
    assert list(tmp_path.iterdir()) == []
    beside = li.account(RUN, delta=1e-6, theorems=[*li.theorems.CATALOGUE, MINE])
    beside.save(tmp_path / "report.html", curves=False)
    assert li.verify((tmp_path / "report.html").read_text()).accepted


def test_a_number_that_is_none_is_refused() -> None:
    class Nothing(li.notions.GaussianDP):
        def epsilon(self, delta: Any) -> Any:
            return float("nan")

    broken = replace(MINE, name="mine/nan", bound=lambda _: li.theorems.Evidence(Nothing(1.0)))
    with raises("theorem_says_nan", kind=li.errors.Unavailable, theorem="mine/nan"):
        li.account(RUN, delta=1e-6, theorems=[*li.theorems.CATALOGUE, broken])


def test_a_report_about_every_iterate_stays_one_for_groups_curves_and_alternatives() -> None:
    """Of a training whose iterates were shown: what other theorems say of the last iterate is not claimed of it."""
    loss = li.losses.logistic(feature_norm=1.0, l2=0.1)
    run = li.Run(loss, li.Cyclic(records=1_000, batch_size=100), 0.5, li.OnMeanGradient(std=0.05), li.epochs(40))
    report = account_by(OF_EVERY_ITERATE, run, 1e-5)
    group = report.group(2)
    assert group.epsilon == account_by(OF_EVERY_ITERATE, replace(run, user_records=2), 1e-5).epsilon
    assert group.epsilon > 2 * li.account(run, 1e-5).group(2).epsilon
    for one in report.alternatives:
        assert one.theorem in [theorem.name for theorem in OF_EVERY_ITERATE]
    pyplot = pytest.importorskip("matplotlib.pyplot")
    hidden = report.plot().lines[0].get_ydata()
    pyplot.close("all")
    assert hidden[-1] == report.epsilon
