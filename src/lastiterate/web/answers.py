"""Answers to the questions of the page: one function for each, which yields parts, the most wanted first."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lastiterate.accounting.account import account
from lastiterate.accounting.calibrate import Free, calibrate
from lastiterate.accounting.report import Report
from lastiterate.digits import above
from lastiterate.errors import InvalidInput, checked_choice, must_be, shown
from lastiterate.report import english
from lastiterate.report.text import attack_sentence, calibrated, described
from lastiterate.runs.files import run_from_dict, run_from_text, run_to_toml
from lastiterate.runs.run import Run
from lastiterate.training.plans.planning import plan
from lastiterate.web.curves import attack, curves
from lastiterate.web.form import as_form, run_to_python

Part = dict[str, Any]
_QUICK = 0.1  # CPU seconds for an account: curves then have as many points as can be seen


def answered(question: Any) -> Iterator[Part]:
    """Yield the parts of the answer; a wrong question is an error of the library that names the field."""
    if not isinstance(question, dict):
        raise must_be("question", "a table", f"a {type(question).__name__}", called="a question")
    return _chosen(QUESTIONS, "ask", question.get("ask"))(question)


def _accounted(question: Mapping[str, Any]) -> Iterator[Part]:
    """Yield all parts of an account, or those that are asked for."""
    wanted = question.get("parts") or list(PARTS)
    if not isinstance(wanted, list) or not all(name in PARTS for name in map(str, wanted)):
        raise must_be("parts", f"a list of {', '.join(PARTS)}", f"{shown(wanted):.60}")
    begun = time.thread_time()
    report = _report(question)
    fine = time.thread_time() - begun < _QUICK
    for name in PARTS:
        if name in wanted:
            yield from ({"part": name, **part} for part in PARTS[name](report, fine))


def _claim(report: Report, _: bool) -> Iterator[Part]:
    yield {
        "epsilon": report.epsilon,
        "shown": above(report.epsilon) if math.isfinite(report.epsilon) else "∞",
        "delta": report.delta,
        "mu": report.mu,
        "theorem": report.best.theorem.name,
        "citation": report.best.theorem.citation,
        "composition": report.epsilon_all_released,
        "adjacency": str(report.unit),
        "sentences": _sentences(report),
    }


def _sentences(report: Report) -> list[str]:
    """Sentences of the claim and of what releasing every iterate would cost."""
    if not math.isfinite(report.epsilon):
        return [english.nothing_proved(report.delta)]
    unit = report.run.adjacency.name.lower(), report.run.user_records, report.members
    claim = english.claim(report.run.released.called, above(report.epsilon), report.delta, *unit)
    return [claim, *filter(None, [english.every_iterate(report.epsilon_all_released, report.epsilon)])]


def _lower(report: Report, _: bool) -> Iterator[Part]:
    yield {
        "epsilon": report.lower_bound.epsilon,
        "sentence": english.lower_bound(report.lower_bound.epsilon, report.epsilon),
    }


def _attack(report: Report, _: bool) -> Iterator[Part]:
    yield {**attack(report), "sentence": attack_sentence(report)}


def _whole(report: Report, _: bool) -> Iterator[Part]:
    refused = [f"{one.theorem.name}: {'; '.join(one.sentences)}." for one in report.inapplicable]
    words = {"assumed": [str(one) for one in report.assumptions], "refused": refused}
    yield {**report.to_dict(), **words, "described": described(report.run)}


def _alternatives(report: Report, _: bool) -> Iterator[Part]:
    yield {"sentences": list(map(str, report.alternatives))}


def _calibrated(question: Mapping[str, Any]) -> Iterator[Part]:
    free = checked_choice("free", _given(question, "free"), Free)
    before, epsilon = _run(question), _given(question, "epsilon")
    run = calibrate(before, epsilon=epsilon, delta=_given(question, "delta"), free=free)
    yield {"part": "run", "run": as_form(run), "sentence": calibrated(before, run, free, epsilon)}


def _planned(question: Mapping[str, Any]) -> Iterator[Part]:
    """Yield plans for the records, loss and neighbours of the run; batches, steps and l2 are chosen anew."""
    run = run_from_dict(_without_l2(_given(question, "run")))
    found = plan(
        loss=run.loss,
        records=run.batches.records,
        features=_given(question, "features"),
        epsilon=_given(question, "epsilon"),
        delta=_given(question, "delta"),
        adjacency=run.adjacency,
        passes=_given(question, "passes"),
    )
    plain = found.to_dict()
    more = [{"described": one.way, "called": one.settings.way.called, "run": as_form(one.run)} for one in found]
    plans = [{**one, **other} for one, other in zip(plain["plans"], more, strict=True)]
    yield {"part": "plans", **plain, "plans": plans}


def _without_l2(run: Any) -> Any:
    loss = run.get("loss") if isinstance(run, dict) else None
    return {**run, "loss": {name: loss[name] for name in loss if name != "l2"}} if isinstance(loss, dict) else run


def _opened(question: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the run in the text of a file."""
    name, text = _given(question, "name"), _given(question, "text")
    if not isinstance(name, str) or not isinstance(text, str):
        raise InvalidInput("file_without_text", field="file")
    yield {"part": "run", "run": as_form(run_from_text(text, name, toml=not name.endswith(".json")))}


def _exported(question: Mapping[str, Any]) -> Iterator[Part]:
    name, text = _chosen(_EXPORTS, "form", question.get("form"))(question)
    yield {"part": "file", "name": name, "text": text}


def _saved(name: str) -> Callable[[Mapping[str, Any]], tuple[str, str]]:
    """Return a function that gives the report as a file of this name, as `report.save` writes it."""

    def saved(question: Mapping[str, Any]) -> tuple[str, str]:
        with TemporaryDirectory() as folder:
            path = Path(folder) / name
            _report(question).save(path)
            return name, path.read_text(encoding="utf-8")

    return saved


def _as_certificate(question: Mapping[str, Any]) -> tuple[str, str]:
    return "certificate.json", f"{dumps(_report(question).certificate)}\n"


def _as_toml(question: Mapping[str, Any]) -> tuple[str, str]:
    return "run.toml", run_to_toml(_run(question))


def _as_python(question: Mapping[str, Any]) -> tuple[str, str]:
    return "run.py", run_to_python(_run(question), _given(question, "delta"))


def _report(question: Mapping[str, Any]) -> Report:
    return account(_run(question), _given(question, "delta"))


def _run(question: Mapping[str, Any]) -> Run:
    return run_from_dict(_given(question, "run"))


def _given(question: Mapping[str, Any], name: str) -> Any:
    if question.get(name) is None:
        raise InvalidInput("value_missing", field=name)
    return question[name]


def _chosen(choices: Mapping[str, Any], name: str, value: Any) -> Any:
    if not isinstance(value, str) or value not in choices:
        raise must_be(name, f"one of {', '.join(choices)}", f"{shown(value):.60}")
    return choices[value]


_EXPORTS: Mapping[str, Callable[[Mapping[str, Any]], tuple[str, str]]] = {
    "toml": _as_toml,
    "python": _as_python,
    "certificate": _as_certificate,
    "page": _saved("report.html"),
    "text": _saved("report.txt"),
    "json": _saved("report.json"),
}
QUESTIONS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Part]]] = {
    "account": _accounted,
    "calibrate": _calibrated,
    "plan": _planned,
    "open": _opened,
    "export": _exported,
}
# In the order in which they are wanted.
PARTS: Mapping[str, Callable[[Report, bool], Iterator[Part]]] = {
    "answer": _claim,
    "lower": _lower,
    "attack": _attack,
    "report": _whole,
    "alternatives": _alternatives,
    "curves": curves,
}
