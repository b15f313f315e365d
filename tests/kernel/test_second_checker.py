"""Certificates before a second checker, which shares no line with the first: exact, and with places of its own."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from alone import by_theorem
from lastiterate.kernel.steps import Refused
from replayed import check
from second_checker import TOOL, checker
from when_asked import WhenAsked

DELTA = 1e-5


def certificate(
    batches: object, steps: int, releases: tuple[int, ...] = (), theorem: str = "shift-engine", **changes: Any
) -> Any:
    values: dict[str, Any] = {
        "loss": li.losses.logistic(feature_norm=1.0, l2=0.01),
        "batches": batches,
        "step_size": 0.5,
        "noise": li.OnMeanGradient(std=0.2),
        "steps": steps,
    }
    report = by_theorem(theorem, li.Run(**{**values, **changes}), DELTA, releases)
    return json.loads(json.dumps(report.certificate))


def given(*arguments: Any, **more: Any) -> Callable[[], Any]:
    return partial(certificate, *arguments, **more)


LOUD = li.OnMeanGradient(std=3.0)
FULL, CYCLIC = li.FullBatch(records=100), li.Cyclic(records=60, batch_size=10)
GROWING = li.losses.general(smoothness=3.0, strong_convexity=0.0, gradient_sensitivity=1.0)
CERTIFICATES = WhenAsked(
    {
        "full batches": given(FULL, 20),
        "many steps": given(FULL, 2000),
        "cyclic": given(CYCLIC, 20),
        "contracting": given(CYCLIC, 32, weight_decay=0.3),
        "growing": given(CYCLIC, 21, theorem="shift-engine", loss=GROWING, step_size=1.0, noise=LOUD),
        "growing in a ball": given(
            FULL, 30, theorem="shift-engine", loss=GROWING, step_size=1.0, domain=li.Ball(radius=0.05)
        ),
        "bounded": given(CYCLIC, 90, theorem="shift-engine", domain=li.Ball(radius=0.02)),
        "steps that differ": given(CYCLIC, 20, step_size=np.linspace(0.1, 0.6, 20)),
        "a pattern": given(CYCLIC, 24, step_size=[0.5, 0.4, 0.3, 0.2, 0.1, 0.3] * 4),
        "released": given(CYCLIC, 20, (5, 12)),
        "no curvature known": given(CYCLIC, 20, theorem="shift-engine", loss=li.losses.network(clip=1.0)),
        "one order": given(li.Shuffled(records=60, batch_size=10, each_epoch=False), 20, theorem="random-order"),
        "many places": given(
            li.Shuffled(records=700, batch_size=1, each_epoch=False),
            1000,
            theorem="random-order",
            noise=li.OnMeanGradient(std=3.0),
        ),
        "new orders": given(li.Shuffled(records=60, batch_size=10), 20, theorem="random-order"),
        "new orders, worst": given(li.Shuffled(records=60, batch_size=10), 20, theorem="shift-engine"),
        "new orders, released": given(li.Shuffled(records=60, batch_size=10), 22, (4, 12), theorem="random-order"),
        "new orders, steps that differ": given(
            li.Shuffled(records=60, batch_size=10), 20, theorem="random-order", step_size=np.linspace(0.1, 0.6, 20)
        ),
        "prepaid": given(CYCLIC, 21, theorem="prepayment", loss=li.losses.logistic(feature_norm=1.0)),
        "prepaid, many steps": given(CYCLIC, 1200, theorem="prepayment", step_size=0.1),
        "prepaid, decaying": given(CYCLIC, 21, theorem="prepayment", start_norm=2.0),
        "prepaid, steps that differ": given(CYCLIC, 20, theorem="prepayment", step_size=np.linspace(0.6, 0.1, 20)),
        "prepaid, released": given(CYCLIC, 40, (13, 25), theorem="prepayment"),
        "prepaid, growing": given(
            CYCLIC,
            30,
            theorem="prepayment",
            loss=li.losses.network(clip=1.0, smoothness=0.5),
            step_size=0.05,
            domain=li.Unbounded(dimension=5),
        ),
        "prepaid, executed": given(
            CYCLIC, 24, theorem="prepayment", arithmetic=li.training.Arithmetic(1.0002, displacement=2.0**-19)
        ),
        "prepaid, one order": given(
            li.Shuffled(records=60, batch_size=10, each_epoch=False), 20, theorem="prepayment/random-order"
        ),
        "prepaid, new orders": given(li.Shuffled(records=60, batch_size=10), 20, theorem="prepayment/random-order"),
        "prepaid, new orders, worst": given(li.Shuffled(records=60, batch_size=10), 20, theorem="prepayment"),
        "prepaid, new orders, released": given(
            li.Shuffled(records=60, batch_size=10), 40, (14,), theorem="prepayment/random-order"
        ),
        "hidden in one order": given(
            li.Shuffled(records=60, batch_size=10, each_epoch=False), 20, theorem="hidden-place", noise=LOUD
        ),
        "hidden in new orders": given(li.Shuffled(records=60, batch_size=10), 18, theorem="hidden-place", noise=LOUD),
        "hidden, released": given(
            li.Shuffled(records=60, batch_size=10), 24, (4, 12), theorem="hidden-place", noise=LOUD
        ),
        "absent at the end, hidden": given(
            li.Shuffled(records=60, batch_size=10), 22, (4, 20), theorem="hidden-place", noise=LOUD
        ),
        "hidden, one order released": given(
            li.Shuffled(records=60, batch_size=10, each_epoch=False), 20, (5,), theorem="hidden-place", noise=LOUD
        ),
        "hidden, steps that differ": given(
            li.Shuffled(records=60, batch_size=10),
            24,
            theorem="hidden-place",
            step_size=np.linspace(0.1, 0.6, 24),
            noise=LOUD,
        ),
        "hidden, some for all": given(li.Shuffled(records=300, batch_size=10), 60, theorem="hidden-place", noise=LOUD),
        "hidden in one order, some for all": given(
            li.Shuffled(records=300, batch_size=10, each_epoch=False), 40, theorem="hidden-place", noise=LOUD
        ),
        "hidden, prepaid": given(
            li.Shuffled(records=100, batch_size=10, each_epoch=False),
            10,
            theorem="hidden-place/prepaid",
            loss=li.losses.logistic(feature_norm=1.0),
            step_size=1.0,
        ),
        "after a release": given(FULL, 20, prior_mu=0.3),
        "after a release, many places": given(
            li.Shuffled(records=60, batch_size=10), 21, (4, 18), theorem="random-order", prior_mu=0.3
        ),
        "hidden after a release": given(
            li.Shuffled(records=60, batch_size=10), 24, theorem="hidden-place", noise=LOUD, prior_mu=0.01
        ),
        "prepaid after a release": given(
            CYCLIC,
            12,
            theorem="prepayment",
            arithmetic=li.training.Arithmetic(1.0002, displacement=2.0**-19),
            prior_mu=0.3,
        ),
        "absent at the end, hidden, prepaid": given(
            li.Shuffled(records=60, batch_size=10), 15, theorem="hidden-place/prepaid", step_size=1.0
        ),
    }
)
HIDDEN = [name for name in CERTIFICATES if name.startswith("hidden")]


@pytest.mark.parametrize("name", CERTIFICATES)
def test_both_checkers_accept(name: str) -> None:
    given = CERTIFICATES[name]
    assert given["grade"] == "replayed"
    assert li.verify(given).accepted
    assert checker.judged(given) == ""


def _lower_epsilon(content: Any) -> None:
    content["claim"]["epsilon"] *= 1 - 1e-9


def _lower_delta(content: Any) -> None:
    content["claim"]["delta"] *= 1 - 1e-8  # where rounding is charged, a part 1e-9 of it is kept for that


def _scaled(content: Any, name: str, factor: float) -> None:
    given = content["proof"]["steps"][name]
    for pair in given["pattern"] if isinstance(given, dict) else given:
        pair[0] *= factor


def _less_noise(content: Any) -> None:
    _scaled(content, "noise", 1 - 1e-9)


def _more_sensitivity(content: Any) -> None:
    _scaled(content, "sensitivity", 1 + 1e-9)


def _no_schedule(content: Any) -> None:
    for entry in content["proof"]["schedules"]:
        entry["place"] += 1000


def _straying(content: Any) -> None:
    content["proof"]["displacement"] += 1e-6


def _more_before(content: Any) -> None:
    content["proof"]["prior_mu"] = content["proof"].get("prior_mu", 0.0) + 1e-3


TAMPERED = (_lower_epsilon, _lower_delta, _less_noise, _more_sensitivity, _no_schedule, _straying, _more_before)


@pytest.mark.parametrize("change", TAMPERED, ids=lambda change: change.__name__.strip("_"))
@pytest.mark.parametrize("name", [name for name in CERTIFICATES if name != "many places"])
def test_both_checkers_reject(name: str, change: Any) -> None:
    twin = copy.deepcopy(CERTIFICATES[name])
    change(twin)
    assert not li.verify(twin).accepted
    assert checker.judged(twin) != ""
    with pytest.raises(Refused):
        check(twin["proof"], twin["claim"])


def _larger_share(content: Any) -> None:
    listed = content["proof"]["hidden"]["shares"]
    hardest = max(listed, key=lambda pair: pair[1])
    hardest[1] *= 1.001


def _no_pairs(content: Any) -> None:
    content["proof"]["hidden"]["pairs"] = []


def _a_pair_is_missing(content: Any) -> None:
    """That of the place with the largest share, and of one that gives; without it nothing stands for them."""
    listed = dict(content["proof"]["hidden"]["shares"])
    hardest = max(listed, key=lambda place: listed[place])
    pairs = content["proof"]["hidden"]["pairs"]
    content["proof"]["hidden"]["pairs"] = [one for one in pairs if hardest not in one["places"]]


def _one_place_for_two(content: Any) -> None:
    """The push at one place only."""
    for pair in content["proof"]["hidden"]["pairs"]:
        pair["places"] = [max(pair["places"])] * 2
        pair["parts"] = next(one["parts"] for one in content["proof"]["schedules"] if one["place"] == pair["places"][0])


def _schedules_of_one_place(content: Any) -> None:
    """What pays for one push pays for no more: what is left is paid at the end, or the blocks do not fit."""
    own = {one["place"]: one["parts"] for one in content["proof"]["schedules"]}
    for pair in content["proof"]["hidden"]["pairs"]:
        pair["parts"] = own[max(pair["places"])]


def _no_share(content: Any) -> None:
    content["proof"]["hidden"]["shares"].pop()


def _a_share_below_zero(content: Any) -> None:
    for pair in content["proof"]["hidden"]["shares"]:
        pair[1] = -1.0 if pair[1] < 1 else pair[1]


HIDDEN_TAMPERED = (
    _larger_share, _no_pairs, _a_pair_is_missing, _one_place_for_two, _schedules_of_one_place, _no_share, _a_share_below_zero
)  # fmt: skip


@pytest.mark.parametrize("change", HIDDEN_TAMPERED, ids=lambda change: change.__name__.strip("_"))
@pytest.mark.parametrize("name", HIDDEN)
def test_both_checkers_reject_what_hides_too_much(name: str, change: Any) -> None:
    twin = copy.deepcopy(CERTIFICATES[name])
    assert max(share for _, share in twin["proof"]["hidden"]["shares"]) > 1
    change(twin)
    assert not li.verify(twin).accepted
    assert checker.judged(twin) != ""
    with pytest.raises((Refused, LookupError, ValueError)):
        check(twin["proof"], twin["claim"])


def test_two_records_that_change_places_make_three_pushes() -> None:
    """Of a theorem without hidden places there is one push; its certificates may not hide places."""
    twin = copy.deepcopy(CERTIFICATES["hidden, prepaid"])
    twin["theorem"] = "prepayment/random-order"
    twin["proof"]["prepaid"]["functions"] = 1
    assert "3 different pushes" in li.verify(twin).reason
    assert "three different pushes" in checker.judged(twin)


@pytest.mark.parametrize("fact", ["turning", "start", "largest"])
def test_nothing_that_is_known_of_pushes_is_below_zero(fact: str) -> None:
    twin = copy.deepcopy(CERTIFICATES["prepaid"])
    twin["proof"]["prepaid"][fact] = -1e-9
    assert checker.judged(twin) != ""
    with pytest.raises(Refused):
        check(twin["proof"], twin["claim"])


def test_an_exception_that_has_lost_its_digits_is_refused() -> None:
    twin = copy.deepcopy(CERTIFICATES["prepaid"])
    twin["proof"]["prepaid"]["slack"] = 1e-310
    with pytest.raises(Refused, match="slack must be from 1e-305"):
        check(twin["proof"], twin["claim"])


def test_the_kernel_looks_at_a_thousand_pairs_and_no_more() -> None:
    """So that no small file asks for hours."""
    twin = copy.deepcopy(CERTIFICATES["hidden in new orders"])
    listed = twin["proof"]["hidden"]["pairs"]
    twin["proof"]["hidden"]["pairs"] = [listed[0]] * (1000 - len(listed)) + listed
    assert li.verify(twin).accepted
    twin["proof"]["hidden"]["pairs"] = [listed[0]] * 1000 + listed
    assert not li.verify(twin).accepted


def test_it_is_a_program(tmp_path: Path) -> None:
    for name, code in (("cyclic", 0), ("tampered", 1), ("recomputed", 1)):
        content = copy.deepcopy(CERTIFICATES["cyclic"])
        if name == "tampered":
            _lower_epsilon(content)
        if name == "recomputed":
            content["grade"] = "recomputed"
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content))
        done = subprocess.run([sys.executable, str(TOOL), str(path)], capture_output=True, text=True)
        assert done.returncode == code
        assert done.stdout.startswith("accepted" if code == 0 else "rejected")
        assert done.stderr == ""


def test_it_uses_nothing_of_ours() -> None:
    assert "lastiterate" not in [
        line.split()[1] for line in TOOL.read_text().splitlines() if line.startswith(("import", "from"))
    ]
    assert len(TOOL.read_text().splitlines()) < 400
