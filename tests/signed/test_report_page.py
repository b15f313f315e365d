"""The page to sign: it says what its certificate proves, and `verify` refuses it if it says anything else."""

from __future__ import annotations

import json
import math
import random
import re
from contextlib import suppress
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reports import DELTA, MAKERS, PAGES, REPORTS, SEEDED, SIGNABLE, run_of, saved

import lastiterate as li
from lastiterate.cli import main
from lastiterate.digits import above, below
from lastiterate.facts import Basis, fact
from lastiterate.report import english
from lastiterate.report.page import page_of
from lastiterate.report.sheet import RATES, ReportSheet

HELD = re.compile(r'^<script type="application/json" id="(\w+)">(.*)</script>$', re.MULTILINE)


class Seen(HTMLParser):
    """What a browser would make of it: tags, and text outside of scripts and style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside not in ("script", "style"):
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())


def held(page: str) -> dict[str, Any]:
    return {name: json.loads(text) for name, text in HELD.findall(page)}


@pytest.mark.parametrize("name", SIGNABLE)
def test_what_is_saved_is_accepted_and_says_the_claim(name: str) -> None:
    report, page = REPORTS[name], PAGES[name]
    verdict = li.verify(page, report.run)
    assert verdict.accepted, verdict.reason
    assert str(verdict).endswith("; the page says the same")
    assert isinstance(verdict, li.results.PageVerdict)
    assert verdict.version == li.__version__
    words = Seen(page).words
    assert verdict.compared
    assert (verdict.unit, verdict.assumptions) == (report.unit, report.assumptions)
    epsilon = report.certificate["claim"]["epsilon"]
    assert f"is (ε, δ)-differentially private with ε = {above(epsilon)} and δ = 1e-05, for any two data sets" in words
    assert f'<td id="epsilon">{epsilon:.12g}</td>' in page
    assert english.definition(**dict(report.unit.values)) in words
    assert report.best.theorem.citation in words
    assert [one for one in report.assumptions if " ".join(str(one).split()) not in words] == []
    assert all(word in words for word in ("Name and role", "Date and signature"))
    assert held(page)["certificate"] == report.certificate
    assert held(page)["label"] == report.label()


@pytest.mark.parametrize("name", SIGNABLE)
def test_only_what_is_promised_has_a_box(name: str) -> None:
    report, page = REPORTS[name], PAGES[name]
    boxed = [unescape(one) for one in re.findall(r'<span class="box"[^>]*></span><span>(.*)</span></li>', page)]
    assert boxed == [str(one) for one in report.promises]
    assert page.count('class="box"') == len(report.promises)
    others = [one for one in report.assumptions if one.basis is not Basis.PROMISED]
    assert bool(others) == (name == "trained")
    for one in others:
        assert f"<li>{escape(str(one))}</li>" in page
    executed = "Executed by lastiterate." in Seen(page).words
    assert executed == (name == "trained")


@pytest.mark.parametrize("name", SIGNABLE)
def test_an_attackers_chance_is_that_of_the_whole_proof(name: str) -> None:
    report, shown = REPORTS[name], held(PAGES[name])["record"]["shown"]
    assert shown["lower_bound"] == report.lower_bound.epsilon
    assert shown["detected"] == pytest.approx(1 - report.best.notion.tradeoff(np.array(RATES)), rel=1e-9)
    at_one_percent = shown["detected"][RATES.index(0.01)]
    assert f"at most {above(100 * at_one_percent, 3)}% of the time" in Seen(PAGES[name]).words
    bound = (math.exp(report.epsilon) * 0.01 + DELTA, 1 - math.exp(-report.epsilon) * (0.99 - DELTA))
    assert at_one_percent <= min(bound) * (1 + 1e-9)  # what (ε, δ) alone implies


@pytest.mark.parametrize("name", MAKERS)
def test_it_is_complete_in_itself_and_runs_nothing(name: str) -> None:
    seen = Seen(PAGES[name])
    assert [tag for tag, given in seen.tags if tag == "script" and given["type"] != "application/json"] == []
    assert {tag for tag, _ in seen.tags} & {"link", "img", "iframe", "object", "form", "a", "base"} == set()
    assert [given for _, given in seen.tags if {"style", "src", "href", "onload", "onclick"} & set(given)] == []
    policy = next(given["content"] for tag, given in seen.tags if given.get("http-equiv"))
    assert str(policy).startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in str(policy)
    assert len(HELD.findall(PAGES[name])) == 3
    ids = [given["id"] for _, given in seen.tags if "id" in given]
    assert len(ids) == len(set(ids))


def test_no_string_can_get_out_of_its_element() -> None:
    evil = "</script><script>alert(1)</script><!-- & \" ' \u2028 <b>ε"
    report = replace(REPORTS["replayed"], also_assumed=(fact("trainer_seed_unused", seed=evil.replace("\u2028", "")),))
    page = saved(report, stated={"registry": {"basic": {"name": evil}}}, curves=False)
    assert evil not in page
    assert "<script>alert" not in page
    assert held(page)["label"]["registry"]["basic"]["name"] == evil
    assert len(HELD.findall(page)) == 3
    assert li.verify(page).accepted


def test_a_report_with_a_caveat_does_not_look_as_if_one_could_sign_it() -> None:
    page = PAGES["seeded"]
    words = Seen(page).words
    assert words.index("Do not sign this page.") < words.index("Releasing the last iterate")
    assert words.count(str(SEEDED)) == 2
    assert "Not claimed: Releasing" in words
    assert "This page cannot be signed" in words
    assert '<span class="box"' not in page
    assert "role" not in words
    assert "attacker" not in words
    assert li.verify(page).reason == str(SEEDED)


def test_an_infinite_epsilon_is_nothing_to_sign() -> None:
    found = held(PAGES["replayed"])
    found["certificate"]["claim"]["epsilon"] = None
    page = remade(found)
    words = Seen(page).words
    assert words.count("No finite ε is proved for this run at δ = 1e-05.") == 2
    assert "This page cannot be signed" in words
    assert not li.verify(page).accepted


def remade(found: dict[str, Any]) -> str:
    """The page that the library itself would make of this content."""
    names = ("version", "date", "shown", "stated", "digests")
    return page_of(ReportSheet(found["certificate"], **{name: found["record"][name] for name in names}))


def doctored(page: str, old: str, new: str) -> str:
    assert page.count(old) >= 1, old
    return page.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('<td id="epsilon">E<', '<td id="epsilon">0.5<', "the page says epsilon = 0.5, its certificate proves E"),
        ("ε = 14.5 and δ", "ε = 1.45 and δ", "the page says claim = Releasing the last iterate"),
        ("at most 64.3% of", "at most 6.43% of", "the page says chance = An attacker"),
        (">Planned, or executed elsewhere.<", ">Executed by lastiterate.<", "the page says status = Executed by"),
        ("<h2>Assumptions you must guarantee</h2>", "<h2>Checked by a program</h2>", "says “Checked by a program”"),
        ('<span class="box" role="img" aria-label="box for initials"></span>', "", "says “Only the last iterate is"),
        ('<td id="delta">1e-05<', '<td id="delta">1e-09<', "the page says delta = 1e-09, its certificate proves 1e-05"),
        (
            "if they differ in one",
            "if they have one",
            "the page says neighbours = Two data sets are neighbours if they have",
        ),
        (
            '<td id="unit">one record<',
            '<td id="unit">one user<',
            "the page says unit = one user, its certificate proves",
        ),
        ("<li>20 steps (5 epochs", "<li>10 steps (2 epochs", "says “10 steps (2 epochs of 4)"),
        ("The noise is Gaussian", "The noise is Laplacian", "says “The noise is Laplacian"),
        ("</body>", "<p>ε = 0.1</p></body>", "of the page says “ε = 0.1”, its certificate makes “</body>”"),
        ("var(--paper); overflow-wrap", "red; overflow-wrap", "of the page says"),
        ("default-src 'none'", "default-src *", "of the page says"),
        ('"epsilon": ', '"epsilon": 0', ""),
        ("<h1>Differential", "<h1>NIST-approved differential", "says “NIST-approved differential privacy report”"),
    ],
)
def test_a_doctored_page_is_refused_with_what_differs(old: str, new: str, said: str) -> None:
    page, epsilon = PAGES["replayed"], f"{REPORTS['replayed'].certificate['claim']['epsilon']:.12g}"
    verdict = li.verify(doctored(page, old.replace("E<", f"{epsilon}<"), new))
    assert not verdict.accepted
    assert said.replace("proves E", f"proves {epsilon}") in verdict.reason


def lowered(values: list[float], place: int) -> None:
    values[place] *= 1 - 1e-5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: found["certificate"]["claim"].update(epsilon=0.1), "it claims delta"),
        (lambda found: found["certificate"]["run"].update(steps=3), "not those of its run"),
        (lambda found: found["certificate"]["caveats"].append(SEEDED.to_dict()), "the noise came from a seed"),
        (lambda found: found["certificate"]["caveats"].append("seeded"), "a fact must have one of the known codes"),
        (lambda found: found["certificate"]["assumptions"].pop(0), "no. 1 must be only_released("),
        (lambda found: found["certificate"]["assumptions"][0].update(basis="enforced"), "cannot be enforced"),
        (lambda found: found["certificate"]["claim"].update(unit=li.ZERO_OUT.unit().to_dict()), "other neighbouring"),
        (lambda found: found["certificate"].pop("claim"), "claim is missing"),
        (lambda found: found["record"].update(format="lastiterate report 0"), "Make the page again"),
        (lambda found: found["record"].update(date="today"), "date of the page must match"),
        (lambda found: found["record"]["digests"].update(model="mine"), "model of the page must match"),
        (lambda found: found["record"]["shown"].update(lower_bound=0.01), "is at least 0.01, its run gives"),
        (lambda found: found["record"]["shown"].update(lower_bound="none"), "it is not a report page"),
        (lambda found: found["record"]["shown"].update(lower_bound=math.nan), ""),
        (lambda found: found["record"]["shown"]["detected"].insert(0, 0.0), "it is not a report page"),
        (lambda found: found["record"]["shown"]["detected"].pop(), "it is not a report page"),
        (lambda found: lowered(found["record"]["shown"]["detected"], 1), "smaller chances than its certificate"),
        (lambda found: lowered(found["record"]["shown"]["detected"], 4), "smaller chances than its certificate"),
        (lambda found: lowered(found["record"]["shown"]["detected"], 50), "smaller chances than its certificate"),
        (lambda found: found["record"]["shown"].pop("detected"), "detected is missing"),
        (lambda found: found["record"]["shown"]["growth"]["hidden"].append(0.1), ""),
        (lambda found: found["record"]["shown"]["guarantees"].append(["nobody2026", 0.1]), "nobody2026"),
        (lambda found: found["record"]["shown"].pop("refusals"), "refusals is missing"),
        (lambda found: found["record"]["stated"].update(epsilon=0.1), "is not a field of stated"),
    ],
)
def test_whoever_makes_the_page_anew_from_other_content_is_refused(change: Any, said: str) -> None:
    """The text of the page is that of its content, where that can be shown at all: only the content is wrong."""
    found, text = held(PAGES["replayed"]), PAGES["replayed"]
    change(found)
    with suppress(LookupError, TypeError, ValueError):
        text = remade(found)
    for name, content in found.items():
        before, element, rest = text.partition(f'<script type="application/json" id="{name}">')
        text = f"{before}{element}{json.dumps(content)}</script>\n{rest.partition(chr(10))[2]}"
    verdict = li.verify(text)
    assert not verdict.accepted
    assert said in verdict.reason


@pytest.mark.parametrize("name", ["replayed", "checkpoints"])
def test_no_letter_that_a_reader_sees_can_be_changed(name: str) -> None:
    page, source = PAGES[name], random.Random(7)
    seen = page.index('<script type="application/json"')
    for _ in range(60):
        first = source.randrange(seen)
        last = source.choice([first, first + 1, source.randrange(first, seen)])
        other = page[:first] + source.choice(["", "0", "9", ".", " ", "<b>", "\n"]) + page[last:]
        if other != page:
            assert not li.verify(other).accepted, page[first - 20 : last + 20]


def test_the_curve_ends_at_the_claim() -> None:
    found = held(PAGES["replayed"])["record"]["shown"]["growth"]
    assert found["hidden"][-1] == pytest.approx(REPORTS["replayed"].epsilon, rel=1e-9)
    assert found["unit"] == "epochs"
    page = saved(REPORTS["replayed"], curves=False)
    assert "This page has no curve" in page
    assert li.verify(page).accepted


def test_there_is_no_curve_of_another_claim() -> None:
    """Where more than the last iterate was released, a curve of the last iterate alone would end too low."""
    assert REPORTS["every iterate"].epsilon > 1.1 * REPORTS["replayed"].epsilon
    assert held(PAGES["every iterate"])["record"]["shown"]["growth"] is None
    assert "This page has no curve" in PAGES["every iterate"]


@pytest.mark.parametrize(
    "text", ["<", "<html></html>", "<script>", '<script type="application/json" id="record">{</script>']
)
def test_other_html_is_rejected_in_a_sentence(text: str) -> None:
    verdict = li.verify(text)
    assert not verdict.accepted
    assert verdict.reason.startswith("it is not a report page: ")


def test_mail_may_change_how_lines_end(tmp_path: Path) -> None:
    page = PAGES["replayed"]
    assert li.verify("\ufeff" + page.replace("\n", "\r\n")).accepted
    (tmp_path / "report.html").write_bytes(page.replace("\n", "\r\n").encode("utf-8-sig"))
    assert main(["verify", str(tmp_path / "report.html")]) == 0


@pytest.mark.parametrize("value", [1.0, 2.0, 4.33915857231, 0.1 + 0.2, 123456.7, 1e-9, 9.9999, 0.0, math.inf])
def test_numbers_of_a_claim_are_rounded_to_the_safe_side(value: float) -> None:
    assert float(below(value)) <= value <= float(above(value))
    assert float(above(value)) <= value * 1.001
    assert float(below(value)) >= value * 0.999


def test_a_run_that_is_another_one_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "report.html").write_text(PAGES["replayed"], encoding="utf-8")
    li.write_run(run_of(steps=24), tmp_path / "run.toml")
    assert main(["verify", str(tmp_path / "report.html"), "--run", str(tmp_path / "run.toml")]) == 1
    said = f"rejected: it is about another run: steps is 20 in the certificate and 24 in {tmp_path / 'run.toml'}\n"
    assert capsys.readouterr().out == said
