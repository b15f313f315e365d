"""The facts of every loss, number by number: smoothness, curvature, the gradient's bound and its change, what is convex."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import pytest

import lastiterate as li
from lastiterate.algorithms.losses import Loss, PullLimit

INF = math.inf
ROOT = math.sqrt(2.0)
# loss: (smoothness, curvature, bound, sensitivity, convex as it is, convex if clipped, arguments)
FACTS: dict[str, tuple[Loss, tuple[float, float, float, float], tuple[bool, bool], dict[str, object]]] = {
    "logistic": (li.losses.logistic(feature_norm=3.0), (9 / 4, 0, 3, 6), (True, True), {"feature_norm": 3.0}),
    "one against the rest": (
        li.losses.logistic(feature_norm=3.0, classes=4, l2=0.1),
        (9 / 4, 0, 6, 12),
        (True, True),
        {"feature_norm": 3.0, "classes": 4, "l2": 0.1},
    ),
    "huber": (
        li.losses.huber(feature_norm=3.0, threshold=0.5),
        (9, 0, 1.5, 3),
        (True, True),
        {"feature_norm": 3.0, "threshold": 0.5},
    ),
    "huber, usual": (
        li.losses.huber(feature_norm=2.0),
        (4, 0, 2, 4),
        (True, True),
        {"feature_norm": 2.0, "threshold": 1.0},
    ),
    "smooth hinge": (
        li.losses.smooth_hinge(feature_norm=3.0, width=0.5),
        (18, 0, 3, 6),
        (True, True),
        {"feature_norm": 3.0, "width": 0.5},
    ),
    "smooth hinge, two classes": (
        li.losses.smooth_hinge(feature_norm=3.0, classes=2),
        (9, 0, 3 * ROOT, 6 * ROOT),
        (True, True),
        {"feature_norm": 3.0, "width": 1.0, "classes": 2},
    ),
    "ridge": (li.losses.ridge(feature_norm=3.0, clip=2.0), (9, 0, INF, INF), (True, True), {"feature_norm": 3.0}),
    "ridge, bounded": (
        li.losses.ridge(feature_norm=3.0, residual_bound=0.5),
        (9, 0, 1.5, 3),
        (True, True),
        {"feature_norm": 3.0, "residual_bound": 0.5},
    ),
    "softmax": (
        li.losses.softmax(feature_norm=5.0),
        (12.5, 0, 5 * ROOT, 10 * ROOT),
        (True, False),
        {"feature_norm": 5.0},
    ),
    "softmax, clipped": (
        li.losses.softmax(feature_norm=3.0, clip=1.0),
        (4.5, 0, 3 * ROOT, 6 * ROOT),
        (False, False),
        {"feature_norm": 3.0},
    ),
    "softmax, pulled": (
        li.losses.softmax(feature_norm=3.0, pull=0.5, classes=10),
        (4.5, 0, 1.5 * math.sqrt(1.25), 3 * math.sqrt(1.25)),
        (True, False),
        {"feature_norm": 3.0, "pull": 0.5, "classes": 10},
    ),
    "softmax, hardly pulled": (
        li.losses.softmax(feature_norm=3.0, pull=1.0, classes=2),
        (4.5, 0, 3 * ROOT, 6 * ROOT),
        (True, False),
        {"feature_norm": 3.0, "pull": 1.0, "classes": 2},
    ),
    "network": (li.losses.network(clip=1.0), (INF, -INF, INF, INF), (False, False), {}),
    "smooth network": (
        li.losses.network(clip=1.0, smoothness=2.0),
        (2, -2, INF, INF),
        (False, False),
        {"smoothness": 2.0},
    ),
    "general": (
        li.losses.general(smoothness=2.0, gradient_sensitivity=3.0),
        (2, -2, INF, 3),
        (False, False),
        {"smoothness": 2.0, "gradient_sensitivity": 3.0},
    ),
    "strongly convex": (
        li.losses.general(smoothness=2.0, strong_convexity=0.5, clip=1.0, l2=0.2),
        (2, 0.5, INF, INF),
        (False, False),
        {"smoothness": 2.0, "strong_convexity": 0.5, "l2": 0.2},
    ),
    "as convex as smooth": (
        li.losses.general(smoothness=2.0, strong_convexity=2.0, gradient_sensitivity=1.0),
        (2, 2, INF, 1),
        (True, False),
        {"smoothness": 2.0, "strong_convexity": 2.0, "gradient_sensitivity": 1.0},
    ),
    "weakly convex": (
        li.losses.general(smoothness=2.0, weak_convexity=0.5, gradient_sensitivity=1.0),
        (2, -0.5, INF, 1),
        (False, False),
        {"smoothness": 2.0, "weak_convexity": 0.5, "gradient_sensitivity": 1.0},
    ),
    "unknown": (li.losses.general(clip=1.0), (INF, -INF, INF, INF), (False, False), {}),
}


@pytest.mark.parametrize("name", FACTS)
def test_its_facts_are_these(name: str) -> None:
    loss, numbers, convex, arguments = FACTS[name]
    found = (loss.smoothness, loss.curvature, loss.gradient_bound, loss.gradient_sensitivity)
    assert found == pytest.approx(numbers, rel=1e-11)
    assert (loss.convex, loss.convex_if(clipped=True)) == convex
    assert loss.arguments == arguments
    assert loss.l2 == arguments.get("l2", 0.0)
    with pytest.raises(FrozenInstanceError):
        loss.l2 = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("name", FACTS)
def test_bounds_are_rounded_up(name: str) -> None:
    """Square roots are; a whole number of classes is compared in squares."""
    loss = FACTS[name][0]
    if "classes" in loss.arguments and loss.kind != "softmax":
        assert loss.gradient_bound**2 >= loss.arguments["classes"] * loss.arguments["feature_norm"] ** 2
    assert loss.gradient_sensitivity in (INF, 2 * loss.gradient_bound) or loss.kind == "general"


@pytest.mark.parametrize(("classes", "parts"), [(2, 1), (3, 2), (4, 3), (5, 4), (6, 4), (100, 4)])
def test_a_pull_is_exhausted_by_a_few_classes(classes: int, parts: int) -> None:
    limit = PullLimit(0.6, classes)
    assert limit.parts == parts
    assert limit.gradient_bound == pytest.approx(math.hypot(0.6, 0.6 / math.sqrt(parts)), rel=1e-11)
    assert limit.gradient_bound >= math.hypot(0.6, 0.6 / math.sqrt(parts))


def test_nothing_is_taken_for_granted_that_is_not_said() -> None:
    bare = Loss("mine", 1.0, 0.0, 1.0, 2.0)
    assert (bare.clip, bare.keeps_convexity, bare.l2, bare.promises, bare.arguments) == (None, False, 0.0, (), {})
    assert hash(bare) == hash(Loss("mine", 1.0, 0.0, 1.0, 2.0))
    with pytest.raises(FrozenInstanceError):
        PullLimit(0.5, 3).pull = 0.6  # type: ignore[misc]


def test_promises_say_what_has_to_hold() -> None:
    assert "norm at most 3" in li.losses.logistic(feature_norm=3.0).promises[0]
    assert "norm at most 3" in li.losses.softmax(feature_norm=3.0).promises[0]
    assert "residual" in li.losses.ridge(feature_norm=1.0, residual_bound=2.0).promises[1]
    assert len(li.losses.ridge(feature_norm=1.0, clip=2.0).promises) == 1
    assert "between -2 and 2" in li.losses.network(clip=1.0, smoothness=2.0).promises[0]
    assert li.losses.network(clip=1.0).promises == ()
    assert "nothing is known" in li.losses.general(clip=1.0).promises[0]
    assert "between 0.5 and 2" in li.losses.general(smoothness=2.0, strong_convexity=0.5, clip=1.0).promises[0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: li.losses.general(smoothness=1.0, strong_convexity=0.1, weak_convexity=0.1, clip=1.0), "not both"),
        (lambda: li.losses.general(smoothness=1.0), "gradient_sensitivity or clip"),
        (lambda: li.losses.general(smoothness=1.0, strong_convexity=1.1, clip=1.0), "at most smoothness"),
        (lambda: li.losses.ridge(feature_norm=1.0), "clip or residual_bound"),
        (lambda: li.losses.softmax(feature_norm=1.0, pull=0.5), "pull needs classes"),
        (lambda: li.losses.softmax(feature_norm=1.0, pull=0.5, classes=3, clip=1.0), "no clip"),
        (lambda: li.losses.softmax(feature_norm=1.0, pull=1.5, classes=3), "pull"),
        (lambda: li.losses.softmax(feature_norm=1.0, classes=1), "classes"),
        (lambda: li.losses.logistic(feature_norm=1.0, classes=1), "classes"),
        (lambda: li.losses.network(clip=None), "needs clip"),  # type: ignore[arg-type]
        (lambda: li.losses.logistic(feature_norm=1.0, l2=-0.1), "l2"),
        (lambda: li.losses.logistic(feature_norm=1.0, clip=0.0), "clip"),
    ],
)
def test_what_is_false_or_missing_is_refused(call: object, words: str) -> None:
    with pytest.raises(li.InvalidInput, match=words):
        call()  # type: ignore[operator]
