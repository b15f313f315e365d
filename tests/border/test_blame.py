"""Errors name the field they blame, as data; and integers that Python does not write are refused in a sentence."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate import estimators
from lastiterate.errors import LastIterateError
from lastiterate.runs.files import BadEntry, run_from_dict, run_from_text, run_to_dict, run_to_toml

RUN = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(records=4), 0.1, li.OnMeanGradient(std=1.0), 3)
PLAIN = run_to_dict(RUN)
DATA = (np.eye(4) / 2, np.array([1.0, -1.0, 1.0, -1.0]))
HUGE = 10**5000  # Python writes no integer of more than 4300 digits


def blamed(call: Callable[[], Any]) -> str | None:
    with pytest.raises(LastIterateError) as caught:
        call()
    assert "Exceeds the limit" not in str(caught.value)
    return caught.value.field


def test_an_error_keeps_its_field_wherever_it_goes() -> None:
    error = li.errors.InvalidInput("mu must be more.", field="mu")
    assert (error.field, str(error)) == ("mu", "mu must be more.")
    assert li.errors.Unavailable("nothing.").field is None
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(other), other.field, str(other)) == (li.errors.InvalidInput, "mu", "mu must be more.")


@pytest.mark.parametrize(
    ("change", "path", "field"),
    [
        ({"step_size": -1.0}, ("step_size",), "step_size"),
        ({"steps": {"epochs": 0}}, ("steps", "epochs"), "epochs"),
        ({"momentum": 0.9}, ("momentum",), "momentum"),
        ({"loss": {"kind": "logistic", "feature_norm": 0.0}}, ("loss", "feature_norm"), "feature_norm"),
        ({"loss": {"kind": "logistic", "norm": 1.0}}, ("loss", "norm"), "norm"),
        ({"batches": {"kind": "cyclic", "records": 4, "batch_size": 3}}, ("batches", "batch_size"), "batch_size"),
        ({"batches": {"kind": "ful", "records": 4}}, ("batches", "kind"), "kind"),
        ({"noise": {"kind": "on_iterate", "std": [1.0, 2.0]}}, ("noise", "std"), "std"),
        ({"arithmetic": {"factor": 0.5}}, ("arithmetic", "factor"), "factor"),
        ({"arithmetic": {"factor": HUGE}}, ("arithmetic", "factor"), "factor"),
        ({"arithmetic": HUGE}, ("arithmetic",), "arithmetic"),
    ],
)
def test_a_bad_entry_says_where_it_stands(change: dict[str, Any], path: tuple[str, ...], field: str) -> None:
    with pytest.raises(BadEntry) as caught:
        run_from_dict({**PLAIN, **change})
    assert (caught.value.path, caught.value.field) == (path, field)


def test_a_missing_entry_is_blamed_by_its_name() -> None:
    assert blamed(lambda: run_from_dict({name: PLAIN[name] for name in PLAIN if name != "noise"})) == "noise"


def test_kinds_that_cannot_be_executed_are_blamed_by_their_place_in_a_run() -> None:
    assert blamed(lambda: li.parts.ConvexSet(diameter=1.0).projected(np.zeros(2))) == "domain"
    assert blamed(lambda: li.parts.ConvexTerm(modulus=1.0).mapped(np.zeros(2), 0.1)) == "prox"


def test_files_hand_the_field_on() -> None:
    wrong = run_to_toml(RUN).replace("feature_norm = 1.0", "feature_norm = -1.0")
    assert blamed(lambda: run_from_text(wrong, toml=True)) == "feature_norm"
    assert blamed(lambda: li.read_run("missing.toml")) == "path"


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: li.account_each(RUN, 1e-5).epsilon_of(HUGE), "record"),
        (lambda: li.account_each(RUN, 1e-5).epsilon_of([HUGE]), "record"),  # type: ignore[arg-type]
        (lambda: li.train(RUN, DATA, dtype=HUGE), "dtype"),  # type: ignore[arg-type]
        (lambda: li.train(RUN, DATA, loss=HUGE, start=np.zeros(4)), "loss"),  # type: ignore[arg-type]
        (lambda: li.train(RUN, DATA, classes=HUGE), "classes"),
        (lambda: li.train(RUN, DATA, seed=HUGE), "seed"),
        (lambda: li.train(RUN, DATA, checkpoint=HUGE), "checkpoint"),  # type: ignore[arg-type]
        (lambda: li.train(RUN, DATA, releases=[HUGE]), "releases"),
        (lambda: li.mechanisms.Brownian(sensitivity=1.0).continued(HUGE, time=1.0), "released"),  # type: ignore[arg-type]
        (lambda: li.Shuffled(records=4, batch_size=2, each_epoch=HUGE), "each_epoch"),  # type: ignore[arg-type]
    ],
)
def test_integers_that_python_does_not_write(call: Callable[[], Any], field: str) -> None:
    assert blamed(call) == field


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"classes": HUGE}, "classes"),
        ({"classes": [HUGE, 0]}, "classes"),
        ({"batches": HUGE}, "batches"),
        ({"epochs": HUGE}, "epochs"),
        ({"random_state": HUGE}, "random_state"),
        ({"feature_norm": HUGE}, "feature_norm"),
    ],
    ids=lambda change: next(iter(change)) if isinstance(change, dict) else "",
)
@pytest.mark.filterwarnings("ignore::lastiterate.errors.PrivacyLeak")
def test_estimators_too(change: dict[str, Any], field: str) -> None:
    model = estimators.PrivateLogisticRegression(
        **{"epsilon": 1.0, "delta": 0.01, "feature_norm": 1.0, "classes": [-1, 1], **change}
    )
    assert blamed(lambda: model.fit(*DATA)) == field


def test_regressors_and_checkpoints(tmp_path: Path) -> None:
    model = estimators.PrivateLinearRegression(loss=HUGE, epsilon=1.0, delta=0.01, feature_norm=1.0, target_bound=1.0)
    assert blamed(lambda: model.fit(*DATA)) == "loss"
    assert blamed(lambda: li.audit(HUGE, 0, 1, delta=0.1)) == "train"  # type: ignore[arg-type]
    assert blamed(lambda: li.account(RUN, 1e-5).save_certificate(tmp_path / "no" / "\0")) == "path"
