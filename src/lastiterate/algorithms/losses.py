"""What is known of the loss of one record: how curved it is, how far its gradient can move when the record is replaced.

Each function returns facts, and only true ones. Clipping keeps a generalised linear model convex, because it cuts the
derivative in the margin, which is nondecreasing; it does not keep the softmax loss convex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from lastiterate.algorithms.per_step import PerStep, checked_per_step
from lastiterate.errors import NON_NEGATIVE, POSITIVE, RATE, InvalidInput, checked_count, checked_number


@dataclass(frozen=True)
class Loss:
    """Facts of the loss of one record, without its l2 term: Hessian between `curvature` and `smoothness`.

    `gradient_bound` bounds the gradient's norm and `gradient_sensitivity` its change when the record is replaced, both
    before clipping (∞ where unknown). The l2 term is added after clipping. `keeps_convexity`: the clipped gradient is
    still the gradient of a convex function, no less smooth.
    """

    kind: str
    smoothness: float
    curvature: float
    gradient_bound: float
    gradient_sensitivity: float
    clip: PerStep | None = None
    keeps_convexity: bool = False
    l2: float = 0.0
    promises: tuple[str, ...] = ()
    arguments: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def linear(self) -> bool:
        """Whether it is a loss of scores that are linear in the weights."""
        return "feature_norm" in self.arguments

    @property
    def convex(self) -> bool:
        """Whether the gradient that is used, clipped or not, is that of a convex function."""
        return self.convex_if(clipped=self.clip is not None)

    def convex_if(self, clipped: bool) -> bool:
        return self.curvature >= 0 and (self.keeps_convexity or not clipped)


def general(
    *,
    smoothness: float | None = None,
    strong_convexity: float | None = None,
    weak_convexity: float | None = None,
    gradient_sensitivity: float | None = None,
    clip: PerStep | None = None,
    l2: float = 0.0,
) -> Loss:
    """Any loss: Hessian between strong_convexity (or −weak_convexity) and smoothness.

    Without either modulus of convexity the loss is taken for −smoothness-weakly convex. Two gradients of one record differ
    by at most gradient_sensitivity, or by 2·clip.
    """
    if strong_convexity is not None and weak_convexity is not None:
        raise InvalidInput(
            "general needs strong_convexity or weak_convexity, not both. Give the one that holds.",
            field="weak_convexity",
        )
    if gradient_sensitivity is None and clip is None:
        raise InvalidInput(
            "general needs gradient_sensitivity or clip: without either no privacy can be proved.", field="clip"
        )
    top = math.inf if smoothness is None else checked_number("smoothness", smoothness, NON_NEGATIVE)
    bottom = -top
    if strong_convexity is not None:
        bottom = checked_number("strong_convexity", strong_convexity, NON_NEGATIVE)
    if weak_convexity is not None:
        bottom = -checked_number("weak_convexity", weak_convexity, NON_NEGATIVE)
    if bottom > top:
        raise InvalidInput(
            f"strong_convexity must be at most smoothness = {top:g}. Got {bottom:g}.", field="strong_convexity"
        )
    change = math.inf
    if gradient_sensitivity is not None:
        change = checked_number("gradient_sensitivity", gradient_sensitivity, POSITIVE)
    given = {
        "smoothness": None if smoothness is None else top,
        "strong_convexity": None if strong_convexity is None else bottom,
        "weak_convexity": None if weak_convexity is None else -bottom,
        "gradient_sensitivity": None if gradient_sensitivity is None else change,
    }
    return _loss("general", given, clip, l2, top, bottom, math.inf, change, (_hessian_promise(bottom, top),))


def logistic(*, feature_norm: float, l2: float = 0.0, clip: PerStep | None = None, classes: int | None = None) -> Loss:
    """log(1 + e^{−y⟨θ, x⟩}) with y = ±1 and ‖x‖ ≤ feature_norm; a constant feature for the intercept counts.

    With `classes`, one such problem for each class against the rest; a clip is divided among them, clip/√classes each.
    """
    norm = checked_number("feature_norm", feature_norm, POSITIVE)
    count = _checked_classes(classes)
    return _linear_model(
        "logistic", {"feature_norm": norm, "classes": count}, norm, 0.25, _side_by_side(count), clip, l2
    )


def huber(*, feature_norm: float, threshold: float = 1.0, l2: float = 0.0, clip: PerStep | None = None) -> Loss:
    """Huber's loss of ⟨θ, x⟩ − y: quadratic up to threshold, linear beyond, with ‖x‖ ≤ feature_norm."""
    norm = checked_number("feature_norm", feature_norm, POSITIVE)
    limit = checked_number("threshold", threshold, POSITIVE)
    return _linear_model("huber", {"feature_norm": norm, "threshold": limit}, norm, 1.0, limit, clip, l2)


def smooth_hinge(
    *,
    feature_norm: float,
    width: float = 1.0,
    l2: float = 0.0,
    clip: PerStep | None = None,
    classes: int | None = None,
) -> Loss:
    """The hinge of y⟨θ, x⟩ with its corner rounded over an interval of this width, ‖x‖ ≤ feature_norm.

    With `classes`, one such problem for each class against the rest; a clip is divided among them, clip/√classes each.
    """
    norm = checked_number("feature_norm", feature_norm, POSITIVE)
    corner = checked_number("width", width, POSITIVE)
    count = _checked_classes(classes)
    given = {"feature_norm": norm, "width": corner, "classes": count}
    return _linear_model("smooth_hinge", given, norm, 1 / corner, _side_by_side(count), clip, l2)


def ridge(
    *, feature_norm: float, residual_bound: float | None = None, l2: float = 0.0, clip: PerStep | None = None
) -> Loss:
    """(⟨θ, x⟩ − y)²/2 with ‖x‖ ≤ feature_norm. Its gradient has no bound: clip it, or give one for |⟨θ, x⟩ − y|.

    A residual bound has to hold on the whole domain: feature_norm·radius + largest |y|, for a ball around 0.
    """
    norm = checked_number("feature_norm", feature_norm, POSITIVE)
    if residual_bound is None and clip is None:
        raise InvalidInput(
            "ridge needs clip or residual_bound: a squared loss has gradients of any size.", field="clip"
        )
    bound = math.inf if residual_bound is None else checked_number("residual_bound", residual_bound, POSITIVE)
    extra = (
        () if residual_bound is None else (f"Every residual |prediction − target| is at most {bound:g} on the domain.",)
    )
    given = {"feature_norm": norm, "residual_bound": None if residual_bound is None else bound}
    return _linear_model("ridge", given, norm, 1.0, bound, clip, l2, extra)


@dataclass(frozen=True)
class PullLimit:
    """The wrong classes get a probability of at most `pull` together, and of pull/4 each (pull/2 of three classes, …).

    Whatever probabilities would exceed that are replaced by those of the largest likelihood that do not. It is the gradient
    of a convex function, no less smooth than the softmax loss (docs/proofs.md).
    """

    pull: float
    classes: int

    @property
    def parts(self) -> int:
        """How many wrong classes it takes to exhaust the pull."""
        return min(4, self.classes - 1)

    @property
    def gradient_bound(self) -> float:
        """Of the gradient in the scores: (pull, and as many equal parts of it)."""
        return self.pull * math.sqrt(1 + 1 / self.parts) * (1 + 1e-12)  # probabilities are rounded


def softmax(
    *,
    feature_norm: float,
    l2: float = 0.0,
    clip: PerStep | None = None,
    pull: float | None = None,
    classes: int | None = None,
) -> Loss:
    """Multi-class logistic loss of the scores ⟨θ_k, x⟩ with ‖x‖ ≤ feature_norm.

    Unclipped it is convex. Clipped as one vector its gradient is not monotone (errata E4.1), so no theorem for convex losses
    applies. What shortens gradients and keeps the loss convex is a `pull` below 1: see `PullLimit`. It needs `classes`.
    """
    norm = checked_number("feature_norm", feature_norm, POSITIVE)
    count = _checked_classes(classes)
    given: dict[str, Any] = {"feature_norm": norm, "classes": count}
    bound = math.sqrt(2.0) * norm
    if pull is not None:
        if count is None or clip is not None:
            raise InvalidInput("pull needs classes, and no clip: it takes the place of clipping.", field="pull")
        given["pull"] = checked_number("pull", pull, RATE)
        bound = min(bound, PullLimit(given["pull"], count).gradient_bound * norm)
    promise = f"Every feature vector has norm at most {norm:g}."
    return _loss("softmax", given, clip, l2, norm * norm / 2, 0.0, bound, 2 * bound, (promise,))


def network(*, clip: PerStep, smoothness: float | None = None, l2: float = 0.0) -> Loss:
    """A neural network with per-record clipping: nothing is convex, and often not even the smoothness is known."""
    top = math.inf if smoothness is None else checked_number("smoothness", smoothness, NON_NEGATIVE)
    if clip is None:
        raise InvalidInput("network needs clip: the gradients of a network have no bound of their own.", field="clip")
    promises = () if smoothness is None else (_hessian_promise(-top, top),)
    given = {} if smoothness is None else {"smoothness": top}
    return _loss("network", given, clip, l2, top, -top, math.inf, math.inf, promises)


def _checked_classes(classes: int | None) -> int | None:
    return None if classes is None else checked_count("classes", classes, least=2)


def _side_by_side(classes: int | None) -> float:
    """The norm of gradients in the score of at most 1, one for each class: they add up in squares."""
    return 1.0 if classes is None else math.nextafter(math.sqrt(classes), math.inf)


def _linear_model(
    kind: str,
    given: dict[str, Any],
    norm: float,
    second: float,
    first: float,
    clip: PerStep | None,
    l2: float,
    promises: tuple[str, ...] = (),
) -> Loss:
    """A convex function of ⟨θ, x⟩ with derivatives at most `first` and `second`."""
    known = (f"Every feature vector has norm at most {norm:g}, the constant feature of an intercept included.",)
    bound = first * norm
    return _loss(kind, given, clip, l2, second * norm * norm, 0.0, bound, 2 * bound, (*known, *promises), True)


def _loss(
    kind: str,
    given: dict[str, Any],
    clip: PerStep | None,
    l2: float,
    smoothness: float,
    curvature: float,
    gradient_bound: float,
    gradient_sensitivity: float,
    promises: tuple[str, ...],
    keeps_convexity: bool = False,
) -> Loss:
    clip = None if clip is None else checked_per_step("clip", clip, POSITIVE)
    l2 = checked_number("l2", l2, NON_NEGATIVE)
    arguments = {name: value for name, value in {**given, "l2": l2 or None}.items() if value is not None}
    return Loss(
        kind,
        smoothness,
        curvature,
        gradient_bound,
        gradient_sensitivity,
        clip,
        keeps_convexity,
        l2,
        promises,
        arguments,
    )


def _hessian_promise(bottom: float, top: float) -> str:
    if not math.isfinite(top):
        return "Each record's loss is differentiable; nothing is known of its second derivatives."
    return f"The Hessian of each record's loss lies between {bottom:g} and {top:g} on a neighbourhood of the domain."
