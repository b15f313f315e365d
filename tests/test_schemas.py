"""The published JSON Schemas are those of what the library writes."""

from __future__ import annotations

import importlib.util
import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import lastiterate as li

ROOT = Path(__file__).parents[1]
FOLDER = Path(li.__file__).parent / "schemas"
DELTA = 1e-5
LOGISTIC = li.losses.logistic(feature_norm=1.0, l2=0.1)
RUN = li.Run(LOGISTIC, li.Cyclic(records=40, batch_size=10), 0.5, li.OnMeanGradient(std=0.3), 12)


def maker() -> Any:
    spec = importlib.util.spec_from_file_location("schemas", ROOT / "tools" / "schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def schema(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))


def errors(name: str, content: Any) -> list[str]:
    found = jsonschema.Draft202012Validator(schema(name)).iter_errors(json.loads(json.dumps(content)))
    return [f"{list(one.path)}: {one.message[:200]}" for one in found]


def trained() -> li.results.Report:
    data = np.eye(40, 3), np.where(np.arange(40) % 2, 1, -1)
    return li.train(RUN, data, seed=0).report(DELTA)


def budget() -> li.Budget:
    found = li.Budget(99.0, DELTA, li.REPLACE_ONE)
    found.spend(li.account(RUN, DELTA), "a model")
    found.spend(li.notions.GaussianDP(0.1), "a histogram")
    return found


CERTIFICATES = {
    "replayed": lambda: li.account(RUN, DELTA).certificate,
    "recomputed": lambda: (
        li.account(
            li.Run(LOGISTIC, li.Poisson(records=40, rate=0.1), 0.5, li.OnMeanGradient(std=0.3), 12), DELTA
        ).certificate
    ),
    "executed": lambda: trained().certificate,
    "of one person": lambda: li.account(RUN, DELTA, group=[3, 4]).certificate,
    "forgetting": lambda: li.forget(RUN, epsilon=1.0, delta=DELTA).certificate,
    "selection": lambda: li.select(li.account(RUN, DELTA), trials=li.trials.Geometric(mean=5)).certificate,
    "budget": lambda: budget().certificate,
}


@pytest.mark.parametrize("name", ["certificate", "report", "label"])
def test_the_files_are_what_the_tool_writes(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    assert (FOLDER / f"{name}.schema.json").read_text(encoding="utf-8") == maker().text_of(name)


@pytest.mark.parametrize("name", CERTIFICATES)
def test_certificates_are_valid(name: str) -> None:
    assert errors("certificate", CERTIFICATES[name]()) == []


def test_reports_and_labels_are_valid() -> None:
    for report in (li.account(RUN, DELTA), trained(), li.account(RUN, DELTA, releases=[4])):
        assert errors("report", report.to_dict()) == []
    assert errors("label", li.account(RUN, DELTA).label()) == []


@pytest.mark.parametrize("change", ["an entry more", "a fact of no known kind", "a sentence", "an enforced promise"])
def test_what_is_not_written_is_not_valid(change: str) -> None:
    content = deepcopy(li.account(RUN, DELTA).certificate)
    match change:
        case "an entry more":
            content["note"] = "ε is in fact 0"
        case "a fact of no known kind":
            content["assumptions"].append({"code": "all_is_well"})
        case "a sentence":
            content["assumptions"][0] = "Only the last iterate is released."
        case _:
            content["assumptions"][0]["basis"] = "enforced"
    assert errors("certificate", content)
    assert change == "an entry more" or not li.verify(content).accepted
