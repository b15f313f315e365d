"""Texts for users are in the language of the field: the sentences that were hard to read, and what they became."""

from __future__ import annotations

import inspect
import json
from functools import cache
from pathlib import Path

import pytest

import lastiterate as li
from lastiterate.theorems.regularised import REGULARISED_MIXING

ROOT = Path(__file__).parent.parent
READ_BY_USERS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "docs").rglob("*.ipynb")),
    *sorted((ROOT / "src").rglob("*.py")),
    *sorted((ROOT / "src").rglob("*.html")),
    *sorted((ROOT / "src").rglob("*.js")),
]
NO_LONGER_WRITTEN = (
    "some loss with these facts",
    "whoever wants to tell",
    "you have to stand for",
    "but drift is",
    "but retain is",
    "diameter is inf",
    "start again from the same point after each of them",
    "where the price stops growing",
    "as it is trained",
    "theorem of the catalogue is asked",
    "leave the house",
    "leaves the house",
)
RUN = li.Run(
    li.losses.general(smoothness=1.0, strong_convexity=0.1, gradient_sensitivity=1.0),
    li.Cyclic(records=40, batch_size=10),
    0.1,
    li.OnMeanGradient(std=0.5),
    li.epochs(5),
)
CLIPPED = li.Run(
    li.losses.network(clip=1.0),
    li.Shuffled(records=40, batch_size=10),
    0.1,
    li.OnGradientSum(multiplier=1.0, clip=1.0),
    li.epochs(5),
    adjacency=li.ZERO_OUT,
)


@cache
def printed(run: li.Run) -> str:
    """In one line: where lines break depends on numbers."""
    return " ".join(str(li.account(run, 1e-5)).split())


@pytest.mark.parametrize("phrase", NO_LONGER_WRITTEN)
def test_old_phrases_are_gone(phrase: str) -> None:
    holding = [str(path.relative_to(ROOT)) for path in READ_BY_USERS if phrase in " ".join(path.read_text().split())]
    assert holding == []


@pytest.mark.parametrize(
    ("run", "phrase"),
    [
        (RUN, "Lower bound: an allowed loss exists with ε ≥ "),
        (RUN, ", so this ε is at most "),
        (RUN, " times too large."),
        (RUN, "An attacker with a 1% false-positive rate detects a replaced record at most "),
        (CLIPPED, "An attacker with a 1% false-positive rate detects a zeroed out record at most "),
        (RUN, "Releasing every iterate would give ε = "),
        (RUN, " Run - 20 steps"),
        (RUN, " Interpretation - "),
        (RUN, " All guarantees, smallest ε first "),
        (RUN, " Theorems that do not apply - "),
        (RUN, " Assumptions you must guarantee - "),
        (RUN, "needs a bounded domain; this run has none. Use domain=li.Ball(radius=...)."),
    ],
)
def test_the_report_says_it_like_this(run: li.Run, phrase: str) -> None:
    assert phrase in printed(run)


def test_several_needs_make_one_sentence() -> None:
    known = li.Run(RUN.loss, RUN.batches, 0.1, RUN.noise, 20, domain=li.Unbounded(dimension=3))
    for run, said in (
        (known, "needs clipped gradients and weight decay; this run has neither."),
        (RUN, "needs clipped gradients, weight decay and a stated number of parameters; this run has none of these."),
    ):
        assert str(REGULARISED_MIXING.apply(run.process)).startswith(f"regularised-mixing does not apply: {said}")


def test_refusals_name_what_the_user_typed() -> None:
    """And never what only the library knows."""
    for run in (RUN, CLIPPED):
        for refusal in li.account(run, 1e-5).inapplicable:
            said = str(refusal)
            assert not [word for word in ("lipschitz", "drift", "retain", " inf", "push", " turn") if word in said], (
                said
            )


@pytest.mark.parametrize(
    ("what", "phrase"),
    [
        (li.account, "Smallest provable ε for releasing the final iterate, plus any checkpoints in `releases`."),
        (li.account, "Tries every catalogued theorem"),
        (li.calibrate, "If ε stops growing below the target, any number of steps works and"),
        (li.calibrate, "`most_steps` (default 1,000,000) is returned."),
        (li.Run.convex.fget, "every per-record loss, after any clipping, is convex"),
    ],
)
def test_docstrings_say_it_like_this(what: object, phrase: str) -> None:
    assert phrase in " ".join((inspect.getdoc(what) or "").split())


def test_documents_say_it_like_this() -> None:
    accounting = (ROOT / "docs" / "accounting.md").read_text()
    assert "If you also release the iterates at steps 400 and 1000, accounting restarts after each." in accounting
    assert "every per-record loss, after any clipping, is convex" in (ROOT / "docs" / "choose.md").read_text()


def test_a_report_and_its_page_have_the_same_assumptions_and_headings(tmp_path: Path) -> None:
    report = li.account(RUN, 1e-5)
    report.save(tmp_path / "report.html", curves=False)
    page = (tmp_path / "report.html").read_text()
    assert "<h2>Assumptions you must guarantee</h2>" in page
    assert "detects a replaced record at most" in page
    assert json.loads(report.to_json())["assumptions"] == list(report.assumptions)
