"""tools/check_selection.py: a second computation of selections, in mpmath, that shares no line with the first."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lastiterate as li
from lastiterate.curves.selected import Selected
from lastiterate.curves.trials import Trials, trials_to_dict
from lastiterate.facts import fact

TOOL = Path(__file__).parents[2] / "tools" / "check_selection.py"
sys.path.insert(0, str(TOOL.parent))

import check_selection as checker  # noqa: E402

DELTA = 1e-5
SEEDED = fact("noise_seeded", generator="lastiterate")
RUN = li.Run(
    loss=li.losses.logistic(feature_norm=1.0, l2=0.01),
    batches=li.FullBatch(records=100),
    step_size=0.5,
    noise=li.OnMeanGradient(std=0.5),
    steps=16,
)
REPORT = li.account(RUN, DELTA)
CERTIFICATE = li.select([REPORT, li.notions.GaussianDP(0.05)], trials=li.trials.Geometric(mean=10)).certificate


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    """As many points as the library takes, and a third of the digits."""
    before, checker.POINTS = checker.POINTS, 1024
    with checker.mp.workdps(17):
        yield
    checker.POINTS = before


@pytest.mark.parametrize(
    "trials",
    [li.trials.Logarithmic(10.0), li.trials.Poisson(30.0), li.trials.NegativeBinomial(3.0, 2.5)],
    ids=lambda law: type(law).__name__,
)
def test_both_compute_the_same_delta(trials: Trials) -> None:
    trial = li.notions.GaussianDP(0.5)
    epsilon = Selected(trial, trials).epsilon(DELTA)
    found = checker.delta_of(trials_to_dict(trials), checker.mpf(0.5), checker.mpf(epsilon))
    assert float(found) == pytest.approx(DELTA, rel=1e-6)
    assert found <= DELTA


def test_a_certificate_is_accepted_and_a_smaller_claim_is_not() -> None:
    assert checker.verdict_of(CERTIFICATE) == ""
    smaller = copy.deepcopy(CERTIFICATE)
    smaller["claim"]["epsilon"] *= 1 - 1e-4
    assert "it proves delta = 1.0" in checker.verdict_of(smaller)


def test_a_stated_mu_that_is_larger_counts() -> None:
    louder = copy.deepcopy(CERTIFICATE)
    louder["stated_mu"] = 0.5
    assert "it proves delta" in checker.verdict_of(louder)


def for_one_person(content: dict[str, Any]) -> None:
    for claim in (content["claim"], content["settings"][0]["claim"]):
        claim["unit"]["records"] = [0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: content["claim"].update(epsilon=-1.0), "out of range"),
        (lambda content: content["claim"].update(epsilon=float("nan")), "out of range"),
        (lambda content: content["claim"].update(delta=0.0), "out of range"),
        (lambda content: content["claim"].update(unit=li.ZERO_OUT.unit().to_dict()), "other neighbours"),
        (lambda content: content["claim"]["unit"].update(user_records=2), "other neighbours"),
        (lambda content: content["settings"][0]["claim"]["unit"].update(adjacency="zero_out"), "other neighbours"),
        (lambda content: for_one_person(content), "other neighbours"),
        (lambda content: content["trials"].update(mean=0.5), "the mean must be above 1"),
        (lambda content: content["trials"].update(mean=float("inf")), "the mean must be above 1"),
        (lambda content: content["trials"].update(law="fixed"), "it cannot be followed: KeyError"),
        (lambda content: content["settings"].clear(), "it is no certificate of a selection"),
        (lambda content: content["settings"][0]["claim"].update(mu=0.01), "setting 1: "),
        (lambda content: content["settings"][0]["claim"].update(mu=None), "setting 1 proves no mu"),
        (lambda content: content["caveats"].append(SEEDED.to_dict()), "has a caveat"),
        (lambda content: content["settings"][0]["caveats"].append(SEEDED.to_dict()), "setting 1 has a caveat"),
        (lambda content: content.pop("trials"), "it cannot be followed: KeyError"),
    ],
)
def test_what_is_doctored_is_rejected(change: Callable[[dict[str, Any]], None], reason: str) -> None:
    content = copy.deepcopy(CERTIFICATE)
    change(content)
    assert reason in checker.verdict_of(content)


def test_it_is_a_command_that_uses_nothing_of_the_library(tmp_path: Path) -> None:
    file = tmp_path / "best.json"
    file.write_text(json.dumps({**CERTIFICATE, "caveats": ["no"]}))
    done = subprocess.run([sys.executable, str(TOOL), str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "rejected: it is no certificate of a selection, or has a caveat\n")
    imports = [line.split()[1] for line in TOOL.read_text().splitlines() if line.startswith(("import", "from"))]
    assert imports == ["sys", "itertools", "statistics", "check_certificate", "mpmath"]
