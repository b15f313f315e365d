"""Losses of which only facts are given: any loss, and that of a network."""

from __future__ import annotations

import math

from lastiterate.errors import NON_NEGATIVE, POSITIVE, InvalidInput, checked_number, must_be
from lastiterate.facts import Fact, fact
from lastiterate.runs.losses.loss import Loss, made
from lastiterate.runs.named import names_arguments
from lastiterate.runs.per_step import PerStep


@names_arguments
def general(
    *,
    smoothness: float | None = None,
    strong_convexity: float | None = None,
    weak_convexity: float | None = None,
    gradient_sensitivity: float | None = None,
    gradient_norm: float | None = None,
    clip: PerStep | None = None,
    l2: float = 0.0,
) -> Loss:
    """Any loss: Hessian between strong_convexity (or −weak_convexity) and smoothness.

    Without strong_convexity and weak_convexity, the Hessian is only assumed to be at least −smoothness. Replacing a record
    changes its gradient by at most gradient_sensitivity, 2·gradient_norm or 2·clip; its norm is at most gradient_norm or
    clip.
    """
    if strong_convexity is not None and weak_convexity is not None:
        raise InvalidInput("two_convexities", field="weak_convexity")
    if gradient_sensitivity is None and gradient_norm is None and clip is None:
        raise InvalidInput("general_unbounded", field="clip")
    top = math.inf if smoothness is None else checked_number("smoothness", smoothness, NON_NEGATIVE)
    bottom = -top
    if strong_convexity is not None:
        bottom = checked_number("strong_convexity", strong_convexity, NON_NEGATIVE)
    if weak_convexity is not None:
        bottom = -checked_number("weak_convexity", weak_convexity, NON_NEGATIVE)
    if bottom > top:
        raise must_be("strong_convexity", f"at most smoothness = {top:g}", f"{bottom:g}")
    longest = math.inf if gradient_norm is None else checked_number("gradient_norm", gradient_norm, POSITIVE)
    change = 2 * longest
    if gradient_sensitivity is not None:
        change = min(change, checked_number("gradient_sensitivity", gradient_sensitivity, POSITIVE))
    given = {
        "smoothness": None if smoothness is None else top,
        "strong_convexity": None if strong_convexity is None else bottom,
        "weak_convexity": None if weak_convexity is None else -bottom,
        "gradient_sensitivity": None if gradient_sensitivity is None else float(gradient_sensitivity),
        "gradient_norm": None if gradient_norm is None else longest,
    }
    return made(
        "general",
        given,
        clip=clip,
        l2=l2,
        smoothness=top,
        curvature=bottom,
        gradient_bound=longest,
        gradient_sensitivity=change,
        promises=(_hessian(bottom, top), *_norm(longest)),
        declared=True,
    )


@names_arguments
def network(*, clip: PerStep, smoothness: float | None = None, l2: float = 0.0) -> Loss:
    """A neural network with per-record clipping: not convex, and of unknown smoothness unless given."""
    top = math.inf if smoothness is None else checked_number("smoothness", smoothness, NON_NEGATIVE)
    if clip is None:
        raise InvalidInput("network_unbounded", field="clip")
    return made(
        "network",
        {"smoothness": None if smoothness is None else top},
        clip=clip,
        l2=l2,
        smoothness=top,
        curvature=-top,
        gradient_bound=math.inf,
        gradient_sensitivity=math.inf,
        promises=() if smoothness is None else (_hessian(-top, top),),
    )


def _norm(longest: float) -> tuple[Fact, ...]:
    return (fact("gradient_norm", at_most=longest, before_clipping=True),) if math.isfinite(longest) else ()


def _hessian(bottom: float, top: float) -> Fact:
    return fact("hessian", low=bottom, high=top) if math.isfinite(top) else fact("differentiable")
