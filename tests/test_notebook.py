"""What a notebook shows of a value: one line, or a little HTML that can do no harm."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.digits import above
from lastiterate.display import bullets, card, folded, headline, table
from lastiterate.facts import fact
from raising import raises

LOSS = li.losses.logistic(feature_norm=1.0, l2=0.01)
RUN = li.Run(LOSS, li.Cyclic(records=200, batch_size=20), 0.1, li.OnMeanGradient(std=0.1), li.epochs(3))
SCHEDULED = replace(RUN, step_size=li.cosine(0.1), domain=li.Ball(1.0), adjacency=li.ZERO_OUT, user_records=2)
ATTACK = "<script>alert(1)</script>\"'&"


@cache
def values() -> dict[str, Any]:
    """Of every kind that functions return."""
    report = li.account(RUN, delta=1e-5)
    features = np.eye(3)[np.arange(200) % 3]
    budget = li.Budget(epsilon=3.0, delta=1e-5, dataset=ATTACK)
    budget.spend(report, ATTACK)
    plans = li.plan(loss=LOSS, records=5_000, features=10, epsilon=1.0, delta=1e-5, passes=20)
    forgetting = li.forget(RUN, epsilon=2.0, delta=1e-5)
    return {
        "Run": RUN,
        "another Run": SCHEDULED,
        "Loss": LOSS,
        "Process": RUN.process,
        "Report": report,
        "a report for a user": li.account(SCHEDULED, delta=1e-5),
        "RecordReport": li.account_each(RUN, delta=1e-5),
        "Verdict": li.verify(report.certificate),
        "Plans": plans,
        "PlannedRun": plans.best,
        "Plan": plans.best.settings,
        "Trained": li.train(RUN, (features, np.ones(200)), seed=1, releases=[5]),
        "Audit": li.audit(_mean, 0.0, 1.0, delta=1e-5, runs=60, claimed=0.01),
        "Forgetting": forgetting,
        "Removed": forgetting.of([3]),
        "Budget": budget,
        "BudgetEntry": budget.history[0],
        "BudgetVerdict": li.verify(budget.certificate),
        "ForgettingVerdict": li.verify(forgetting.certificate),
        "notion": report.notion,
        "selected": li.select(report, trials=li.trials.Poisson(3)),
        "sampled": li.account(replace(RUN, batches=li.Poisson(200, 0.1)), 1e-5).best.notion,
        "averaged": li.notions.AveragedGaussianDP(mus=np.linspace(0.1, 1.0, 500), weights=np.full(500, 0.002)),
        "RenyiDP": li.notions.RenyiDP(orders=np.arange(2, 300), divergences=np.arange(2, 300)),
        "FiniteKernel": li.mechanisms.FiniteKernel(np.full((9, 9), 1 / 9)),
        **{f"guarantee {one.theorem.name}": one for one in report.guarantees},
        **{f"evidence {one.theorem.name}": one.evidence for one in report.guarantees},
        **{f"refusal {one.theorem.name}": one for one in report.inapplicable},
        **{f"theorem {one.name}": one for one in li.theorems.ALL},
        **{f"assumption {one.name}": next(iter((*one.assumptions, *one.features))) for one in li.theorems.ALL},
    }


def _mean(data: float, seed: int) -> Any:
    return np.random.default_rng(seed).normal(3 * data, 1.0, size=1)


def test_every_repr_is_one_short_line() -> None:
    for name, value in values().items():
        said = repr(value)
        assert len(said) <= 160, (name, said)
        assert "\n" not in said, name
        assert " at 0x" not in said, (name, said)
        assert re.match(r"_?[A-Z]\w*\(", said), (name, said)


def test_what_a_report_and_a_run_say_in_a_line() -> None:
    report = values()["Report"]
    epsilon, theorem = above(report.epsilon), report.best.theorem.name
    assert repr(report) == f"Report(epsilon={epsilon}, delta=1e-05, by {theorem!r}, 30 steps, replace one record)"
    assert repr(RUN) == (
        f"Run(logistic loss, {RUN.batches.described}, 3 epochs, step size 0.1, noise OnMeanGradient(std=0.1))"
    )
    assert repr(LOSS) == "Loss('logistic', feature_norm=1.0, l2=0.01)"


def test_runs_are_told_apart_by_all_of_their_numbers_and_not_by_their_repr() -> None:
    other = replace(RUN, loss=li.losses.logistic(feature_norm=1.0, l2=0.02))
    assert repr(other) == repr(RUN)
    assert other != RUN
    assert pickle.loads(pickle.dumps(RUN)) == RUN
    assert hash(pickle.loads(pickle.dumps(RUN))) == hash(RUN)


SHOWN = ("Run", "another Run", "Report", "a report for a user", "RecordReport", "Plans", "PlannedRun", "Plan")
SHOWN += ("Trained", "Audit", "Forgetting", "Budget")  # type: ignore[assignment]


class Elements(HTMLParser):
    """Which elements and attributes there are, each closed where it has to be, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.styles = ""
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.styles += " ".join(value or "" for name, value in attrs if name == "style") + ";"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def elements(html: str) -> Elements:
    found = Elements()
    found.feed(html)
    found.close()
    assert found.open == []
    return found


@pytest.mark.parametrize("name", SHOWN)
def test_html_is_harmless_and_takes_the_colours_of_the_notebook(name: str) -> None:
    found = elements(values()[name]._repr_html_())
    allowed = {"div", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "pre"}
    assert found.tags <= allowed
    assert found.attributes <= {"style", "role"}
    assert not re.search(r"url|(?<!-)\bcolor:(?!inherit)|background:(?!none)", found.styles)
    assert len(found.text) < 20_000


@pytest.mark.parametrize("name", ["Report", "a report for a user", "Plans", "Audit", "Forgetting", "Budget"])
def test_html_says_what_the_text_says_and_nothing_else(name: str) -> None:
    """Word by word; a text may repeat or order them otherwise."""
    value = values()[name]
    whole = value.details() if isinstance(value, li.results.Report) else str(value)
    marks = re.compile(r"[\s\-:|]+")
    said, shown = (
        set(marks.split(text)) for text in (whole, re.sub(r"<[^>]*>", " ", value._repr_html_()).replace("&#x27;", "'"))
    )
    escaped = {word for word in shown if "&" in word} | {"Ledger", "Details"}
    assert shown - said - escaped <= {""}


def test_names_cannot_bring_elements_with_them() -> None:
    budget = values()["Budget"]._repr_html_()
    assert "<script" not in budget
    assert elements(budget).text.count("alert(1)") == 2
    pieces = card(headline(ATTACK), folded(ATTACK, bullets([ATTACK])), table([(ATTACK,)], (ATTACK,)))
    assert "script" not in elements(pieces).tags
    assert elements(pieces).text == ATTACK * 5


def test_a_theorem_with_a_wild_name_is_escaped_in_a_report() -> None:
    report = values()["Report"]
    wild = replace(report.best.theorem, name=ATTACK, citation=ATTACK)
    guarantee = replace(report.best, theorem=wild)
    found = replace(
        report, ranked=(replace(report.ranked[0], guarantee=guarantee),), caveats=(fact("called_by", callers=ATTACK),)
    )
    assert "script" not in elements(found._repr_html_()).tags


def test_an_execution_that_must_not_be_released_says_so_first() -> None:
    trained = values()["Trained"]
    assert "DO NOT RELEASE" in repr(trained)
    assert "DO NOT RELEASE" in repr(trained.report(1e-5))
    assert elements(trained._repr_html_()).text.startswith("DO NOT RELEASE")
    assert elements(trained.report(1e-5)._repr_html_()).text.startswith("DO NOT RELEASE")


def pictures() -> dict[str, Any]:
    report = values()["Report"]
    sampled = li.mechanisms.langevin(
        lambda x: x, np.zeros(2), trace=True, lipschitz=1.0, step_size=0.1, steps=9, smoothness=1.0
    )
    return {
        "growth": report.plot,
        "comparison": report.plot_comparison,
        "records": values()["RecordReport"].plot,
        "plans": values()["Plans"].plot,
        "audit": values()["Audit"].plot,
        "trace": sampled.plot,
    }


@pytest.mark.parametrize("name", ["growth", "comparison", "records", "plans", "audit", "trace"])
def test_plots_take_axes_and_return_them(name: str, tmp_path: Path) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    draw = pictures()[name]
    _, given = pyplot.subplots()
    try:
        axes = draw(tmp_path / "picture.png", ax=given)
        assert axes is given
        assert axes.get_title()
        assert axes.get_xlabel()
        assert axes.get_legend() is None
        assert (tmp_path / "picture.png").stat().st_size > 1000
        shown = draw()
        assert shown.figure in map(pyplot.figure, pyplot.get_fignums())  # which a notebook shows
    finally:
        pyplot.close("all")
    with raises("must_be", "ax", kind=li.errors.InvalidInput, allowed="the axes of a matplotlib figure"):
        draw(ax="axes")


def test_the_lower_bound_is_in_the_pictures_of_a_report() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    report = values()["Report"]
    try:
        for axes in (report.plot(), report.plot_comparison()):
            told = [text.get_text() for text in axes.texts if "lower bound" in text.get_text()]
            assert len(told) == 1
            lower = float(told[0].split()[-1])
            assert report.lower_bound.epsilon * 0.999 <= lower <= report.lower_bound.epsilon
    finally:
        pyplot.close("all")
