"""What can be chosen on the page: every kind that is listed, with its arguments, in words and with units."""

from __future__ import annotations

import inspect
from typing import Any

from lastiterate.accounting.plain import finite
from lastiterate.algorithms.batches.passes import DROP, SMALLER
from lastiterate.algorithms.encode import run_to_dict
from lastiterate.algorithms.kinds import SECTIONS, Kind
from lastiterate.algorithms.run import Run
from lastiterate.errors import INSIDE_UNIT, checked_number
from lastiterate.privacy.adjacency import Adjacency

# In the order of the page. How many records a batch has is asked once for all kinds of batches.
OFFERED = ("loss", "batches", "noise", "domain", "optimizer", "released")
_ASKED_ELSEWHERE = {"batches": ("records", "batch_size", "rate", "batches"), "noise": ("std", "multiplier")}
KINDS = {
    "logistic": "logistic regression",
    "softmax": "softmax, several classes",
    "ridge": "squared loss (ridge)",
    "huber": "Huber regression",
    "smooth_hinge": "smooth hinge (SVM)",
    "network": "neural network, clipped",
    "general": "another loss, by its properties",
    "full": "full batch: every record at every step",
    "cyclic": "cyclic: one fixed order",
    "shuffled": "shuffled",
    "fixed_size": "random, of fixed size",
    "poisson": "Poisson",
    "poisson_mean": "Poisson, divided by the batch's own size",
    "balls_and_bins": "balls and bins",
    "on_mean_gradient": "on the mean gradient",
    "on_gradient_sum": "on the gradient sum (DP-SGD)",
    "on_iterate": "on the iterate",
    "langevin": "Langevin: √(2·step size) times the noise",
    "unbounded": "none",
    "ball": "on a ball",
    "box": "on a cube",
    "convex_set": "on a convex set",
    "sgd": "SGD",
    "adam": "Adam",
    "other": "another, by name",
    "last": "the last iterate",
    "ema": "a moving average of iterates",
    "average": "the mean of iterates",
}
ARGUMENTS = {
    "feature_norm": ("largest norm of a record’s features", "length"),
    "l2": ("l2 regularisation", "gradient norm per length"),
    "clip": ("clip gradients at", "gradient norm"),
    "classes": ("classes", "count"),
    "pull": ("cap on wrong-class probability", "share, up to 1"),
    "residual_bound": ("largest residual", "unit of the target"),
    "threshold": ("threshold of Huber's loss", "unit of the target"),
    "width": ("width of the rounded corner", "margin"),
    "smoothness": ("smoothness", "gradient norm per length"),
    "strong_convexity": ("strong convexity", "gradient norm per length"),
    "weak_convexity": ("weak convexity", "gradient norm per length"),
    "gradient_sensitivity": ("gradient change if a record is replaced", "gradient norm"),
    "gradient_norm": ("largest norm of a gradient", "gradient norm"),
    "each_epoch": ("a new order each epoch", "yes or no"),
    "last": ("last", "iterates to average, or what to do with leftover records"),
    "radius": ("radius", "length"),
    "side": ("side", "length"),
    "diameter": ("diameter", "length"),
    "dimension": ("parameters of the model", "count"),
    "momentum": ("momentum", "share, below 1"),
    "nesterov": ("Nesterov's momentum", "yes or no"),
    "dampening": ("dampening", "share, below 1"),
    "beta1": ("beta1", "share, below 1"),
    "beta2": ("beta2", "share, below 1"),
    "floor": ("floor of the denominator", "gradient norm"),
    "decoupled": ("decoupled weight decay (AdamW)", "yes or no"),
    "name": ("name", "text"),
    "decay": ("decay", "share, below 1"),
}


_LEFT_OVER = (SMALLER, DROP)


def start(run: Run, delta: float) -> dict[str, Any]:
    """What the page begins with."""
    return {
        "run": as_form(run),
        "delta": checked_number("delta", delta, INSIDE_UNIT),
        "form": finite(form()),
        "adjacencies": [{"value": one.name.lower(), "label": str(one.unit())} for one in Adjacency],
    }


def as_form(run: Run) -> dict[str, Any]:
    """The run with its length in epochs where these are whole: a batch size may then change without it."""
    epochs, rest = divmod(run.steps, run.batches.per_epoch)
    return {**run_to_dict(run), "steps": run.steps if rest else {"epochs": epochs}}


def form() -> dict[str, Any]:
    """For each section of a run its kinds, in words, and what they take."""
    return {section: [_kind(section, kind) for kind in SECTIONS[section]] for section in OFFERED}


def _kind(section: str, kind: Kind) -> dict[str, Any]:
    asked = [
        one
        for one in inspect.signature(kind.make).parameters.values()
        if one.name not in _ASKED_ELSEWHERE.get(section, ())
    ]
    return {
        "kind": kind.name,
        "label": KINDS.get(kind.name, kind.name),
        "arguments": [_argument(section, one, kind) for one in asked],
    }


def _argument(section: str, one: inspect.Parameter, kind: Kind) -> dict[str, Any]:
    """With the value that a new section starts with, where it needs one."""
    label, unit = ARGUMENTS.get(one.name, (one.name.replace("_", " "), ""))
    usual = None if one.default is one.empty else one.default
    needed = one.default is one.empty or (kind.name == "general" and one.name in kind.arguments)
    return {
        "name": one.name,
        "label": label,
        "unit": unit,
        "usual": usual,
        "yes_or_no": isinstance(usual, bool),
        "text": one.name == "name",
        "choices": _LEFT_OVER if section == "batches" and one.name == "last" else None,
        "needed": needed,
        "first": kind.arguments.get(one.name, 1.0) if needed else None,
    }
