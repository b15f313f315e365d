"""The facts of every loss, number by number: smoothness, curvature, the gradient's bound and its change, what is convex."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy.integrate import trapezoid

import lastiterate as li
from lastiterate.facts import fact
from lastiterate.runs.losses import Loss, PullLimit

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
    losses, norm = li.losses, fact("feature_norm", at_most=3.0, intercept=True)
    assert losses.logistic(feature_norm=3.0).promises == (norm,)
    assert losses.softmax(feature_norm=3.0).promises == (fact("feature_norm", at_most=3.0, intercept=False),)
    assert losses.ridge(feature_norm=3.0, residual_bound=2.0).promises == (norm, fact("residual", at_most=2.0))
    assert losses.ridge(feature_norm=3.0, clip=2.0).promises == (norm,)
    assert losses.network(clip=1.0, smoothness=2.0).promises == (fact("hessian", low=-2.0, high=2.0),)
    assert losses.network(clip=1.0).promises == ()
    assert losses.general(clip=1.0).promises == (fact("differentiable"),)
    known = losses.general(smoothness=2.0, strong_convexity=0.5, clip=1.0)
    assert known.promises == (fact("hessian", low=0.5, high=2.0),)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: li.losses.general(smoothness=1.0, strong_convexity=0.1, weak_convexity=0.1, clip=1.0), "not both"),
        (lambda: li.losses.general(smoothness=1.0), "gradient_norm or clip"),
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
    with pytest.raises(li.errors.InvalidInput, match=words):
        call()  # type: ignore[operator]


def test_only_the_owner_of_a_general_loss_knows_its_curvature() -> None:
    assert li.losses.general(smoothness=1.0, clip=1.0).declared
    for known in (li.losses.logistic(feature_norm=1.0), li.losses.network(clip=1.0)):
        assert not known.declared


def test_several_classes_are_clipped_one_by_one_where_that_keeps_the_loss_convex() -> None:
    by_class = li.losses.logistic(feature_norm=1.0, classes=3, clip=1.0).clip_promise(1.0)
    assert by_class == fact("clipped", least=1.0, most=1.0, per="class", classes=3)
    for together in (
        li.losses.logistic(feature_norm=1.0, clip=1.0),
        li.losses.softmax(feature_norm=1.0, classes=3, clip=1.0),
        li.losses.network(clip=1.0),
    ):
        assert together.clip_promise(1.0) == fact("clipped", least=1.0, most=1.0, per="record", classes=0)


def test_a_loss_says_what_is_known_of_its_hessian() -> None:
    assert li.losses.network(clip=1.0).described == "network, no Hessian known"
    assert li.losses.network(clip=1.0, smoothness=2.0).described == "network, Hessian between -2 and 2"


@pytest.mark.parametrize(
    ("loss", "far"),
    [
        (li.losses.logistic(feature_norm=1.0), 40.0),
        (li.losses.smooth_hinge(feature_norm=1.0, width=0.5), 2.0),
        (li.losses.smooth_hinge(feature_norm=1.0, width=3.0), 2.0),
        (li.losses.huber(feature_norm=1.0, threshold=0.7), 1.0),
        (li.losses.ridge(feature_norm=1.0, clip=1.0), 1.0),
    ],
)
def test_a_loss_is_what_its_slopes_add_up_to(loss: Loss, far: float) -> None:
    """From a score at which nothing is lost."""
    assert loss.model is not None
    for target in (-1.0, 1.0):
        for score in (-3.0, -0.4, 0.2, 0.9, 2.5):
            path = np.linspace(target * far, score, 200_001)
            slopes = loss.model.slopes(path, np.full_like(path, target))
            found = loss.model.values(np.array([score]), np.array([target]))[0]
            assert found == pytest.approx(trapezoid(slopes, path), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(("pull", "level"), [(None, math.log(3)), (0.5, 0.5 * math.log(2) + 0.5 * math.log(4))])
def test_a_softmax_loss_is_what_its_slopes_add_up_to(pull: float | None, level: float) -> None:
    """Between two scores; at equal ones it is the largest entropy that is allowed."""
    model = li.losses.softmax(feature_norm=1.0, classes=3, pull=pull).model
    assert model is not None
    parts = np.linspace(0.0, 1.0, 20_001)[:, None]
    first, last = np.array([0.0, 0.0, 0.0]), np.array([1.5, -2.0, 3.0])
    for target in (0.0, 2.0):
        values = model.values(np.array([first, last]), np.full(2, target))
        assert values[0] == pytest.approx(level, rel=1e-12)
        slopes = model.slopes(first + parts * (last - first), np.full(len(parts), target))
        assert values[1] - values[0] == pytest.approx(trapezoid(slopes @ (last - first), parts[:, 0]), rel=1e-6)


def test_a_softmax_loss_takes_the_number_of_its_classes_once() -> None:
    unknown, three = (li.losses.softmax(feature_norm=1.0, classes=classes).model for classes in (None, 3))
    assert unknown is not None
    assert three is not None
    assert unknown.with_classes(2).columns == 2
    assert three.with_classes(None) is three.with_classes(3) is three
    for model, classes in ((unknown, None), (unknown, 1), (three, 4)):
        with pytest.raises(li.errors.InvalidInput, match="classes"):
            model.with_classes(classes)


def test_a_softmax_loss_of_scores_that_lie_far_apart_has_its_slopes() -> None:
    model = li.losses.softmax(feature_norm=1.0, classes=3).model
    assert model is not None
    slopes = model.slopes(np.array([[1000.0, 0.0, -1000.0], [-2000.0, -2000.0, -2000.0]]), np.array([1.0, 2.0]))
    assert slopes == pytest.approx(np.array([[1.0, -1.0, 0.0], [1 / 3, 1 / 3, -2 / 3]]), rel=1e-12)
