"""Sentences may change on any day: what was written before stays true, and a page is held to the words of its version."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reports import DELTA, PAGES, REPORTS, SIGNABLE, run_of, saved

import lastiterate as li
from lastiterate.cli import main
from lastiterate.facts import fact
from lastiterate.report import english

OTHER = "0.0.9"
SAID = english.sentence


def budget() -> dict[str, Any]:
    found = li.Budget(100.0, DELTA)
    found.spend(REPORTS["also assumed"], what="a model")
    found.spend(li.notions.GaussianDP(mu=0.1), what="stated")
    return found.certificate


CERTIFICATES: dict[str, Callable[[], dict[str, Any]]] = {
    **{name: lambda name=name: REPORTS[name].certificate for name in SIGNABLE},  # type: ignore[misc]
    "one person": lambda: li.account(run_of(), DELTA, group=[0, 3]).certificate,
    "budget": budget,
    "selection": lambda: li.select(REPORTS["replayed"], trials=li.trials.Geometric(mean=2)).certificate,
    "forgetting": lambda: li.forget(run_of(li.FullBatch(40)), epsilon=5.0, delta=DELTA).certificate,
    "report and certificate": lambda: json.loads(saved(REPORTS["trained"], "json")),
}


@pytest.fixture(scope="module")
def written() -> dict[str, tuple[str, li.results.Verdict]]:
    """Certificates, and what is said of them, before any sentence changes."""
    assert english.sentence is SAID
    made = {name: json.dumps(make()) for name, make in CERTIFICATES.items()}
    return {name: (text, li.verify(text)) for name, text in made.items()}


@pytest.fixture
def pages() -> dict[str, str]:
    assert english.sentence is SAID
    return {name: PAGES[name] for name in ("replayed", "trained")}


@pytest.fixture
def in_upper_case(written: Any, pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(english, "sentence", lambda code, values: SAID(code, values).upper())
    assert str(fact("noise")).startswith("THE NOISE IS GAUSSIAN")


@pytest.mark.usefixtures("in_upper_case")
@pytest.mark.parametrize("name", CERTIFICATES)
def test_certificates_do_not_depend_on_sentences(name: str, written: dict[str, tuple[str, li.results.Verdict]]) -> None:
    text, before = written[name]
    assert before.accepted, before
    assert li.verify(text) == before
    assert [str(one) for one in li.verify(text).assumptions] == [
        SAID(one.code, dict(one.values)).upper() for one in before.assumptions
    ]
    assert json.dumps(CERTIFICATES[name]()).replace(" ", "") == text.replace(" ", "") or "budget" in name


@pytest.mark.usefixtures("in_upper_case")
def test_what_is_wrong_with_an_execution_stays_wrong() -> None:
    seeded = REPORTS["seeded"].certificate
    assert li.verify(seeded).reason.startswith("DO NOT RELEASE: THE NOISE CAME FROM A SEED")


@pytest.mark.usefixtures("in_upper_case")
@pytest.mark.parametrize("name", ["replayed", "trained"])
def test_a_page_of_this_version_has_to_have_its_words(name: str, pages: dict[str, str]) -> None:
    verdict = li.verify(pages[name])
    assert not verdict.accepted
    assert re.search(r"of the page says “.*”, its certificate makes “.*”", verdict.reason)
    assert li.verify(saved(REPORTS[name], curves=False)).accepted  # whatever they are now


@pytest.mark.usefixtures("in_upper_case")
@pytest.mark.parametrize("name", ["replayed", "trained"])
def test_of_a_page_of_another_version_the_numbers_are_compared(
    name: str, pages: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, report = of_another_version(pages[name]), REPORTS[name]
    verdict = li.verify(page, report.run)
    assert verdict.accepted, verdict
    assert isinstance(verdict, li.results.PageVerdict)
    assert (verdict.compared, verdict.version) == (False, OTHER)
    assert (verdict.unit, verdict.assumptions) == (report.unit, report.assumptions)
    assert verdict.to_dict()["compared"] is False
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    assert main(["verify", str(tmp_path / "report.html")]) == 0
    printed = capsys.readouterr().out
    assert "its words were not compared, so rely on this line" in printed
    assert "the page says the same" not in printed


def of_another_version(page: str) -> str:
    return doctored(page, f'"version": "{li.__version__}"', f'"version": "{OTHER}"')


def doctored(page: str, old: str, new: str) -> str:
    assert page.count(old) == 1, (page.count(old), old)
    return page.replace(old, new)


def shown(page: str, name: str) -> str:
    (found,) = re.findall(f'<td id="{name}">[^<]*</td>', page)
    return str(found)


@pytest.mark.parametrize("name", ["epsilon", "delta"])
def test_other_numbers_are_refused_whoever_wrote_the_page(name: str) -> None:
    page = of_another_version(PAGES["replayed"])
    assert li.verify(page).accepted
    entry, proved = shown(page, name), REPORTS["replayed"].certificate["claim"][name]
    for number in (
        "0.5",
        f"{proved * (1 - 1e-6):.12g}",
        f"{2 * proved:.12g}",
        "nan",
        "inf",
        "-1",
        "",
        "about 1",
        "1,5",
    ):
        verdict = li.verify(doctored(page, entry, f'<td id="{name}">{number}</td>'))
        assert not verdict.accepted, number
        if number[:1].isdigit() and "," not in number:
            assert verdict.reason == f"the page says {name} = {number}, its certificate proves {proved:.12g}"
    assert f"the page says {name} = nothing" in li.verify(doctored(page, entry, "")).reason
    twice = li.verify(doctored(page, entry, f'{entry}<td id="{name}">{proved}</td>'))
    assert f"the page says {name} = " in twice.reason


def test_what_its_version_does_not_change_is_checked_on_every_page() -> None:
    """The certificate, the lower bound, an attacker's chances, the end of the curve."""
    page = of_another_version(PAGES["replayed"])
    report = REPORTS["replayed"]
    claim = json.dumps(report.certificate["claim"])[1:-1]
    (growth,) = re.findall(r'"hidden": \[[^]]*\]', page)
    for old, new, said in (
        (claim, json.dumps({**report.certificate["claim"], "epsilon": 0.1})[1:-1], "it claims delta"),
        (growth, f"{growth[:-1]}, 0.1]", "the curve of the page ends at epsilon = 0.1"),
        ('"lower_bound": ', '"lower_bound": 1', "its run gives"),
        ('"detected": [', '"detected": [0.0, ', "smaller chances"),
        ('"date": "', '"date": "x', "date of the page must match"),
        (
            '"format": "lastiterate report 1"',
            '"format": "lastiterate report 2"',
            "Make the page again with this version",
        ),
        ('"theorem": "shift-engine", "claim"', '"theorem": "no-theorem", "claim"', "no-theorem"),
    ):
        verdict = li.verify(doctored(page, old, new))
        assert not verdict.accepted
        assert said in verdict.reason, verdict.reason


@pytest.mark.parametrize("version", ["", "0.0.9 ", "<b>", "0" * 41, 3, None, "ε", "0.0.9\n"])
def test_what_is_no_version_is_refused(version: Any) -> None:
    page = doctored(PAGES["replayed"], f'"version": "{li.__version__}"', f'"version": {json.dumps(version)}')
    assert "version of the page must match" in li.verify(page).reason


@pytest.mark.parametrize("delta", [1e-5, 1.23456789e-5, 1 / 3_000_007])
def test_numbers_of_any_length_agree(delta: float) -> None:
    page = saved(li.account(run_of(), delta), curves=False)
    assert li.verify(page).accepted
    verdict = li.verify(of_another_version(page))
    assert verdict.accepted, verdict


def test_a_page_that_cannot_be_signed_is_refused_whoever_wrote_it() -> None:
    assert li.verify(of_another_version(PAGES["seeded"])).reason == str(fact("noise_seeded", generator="lastiterate"))
