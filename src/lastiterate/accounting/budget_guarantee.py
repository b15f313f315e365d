"""Guarantees as plain dictionaries: whole curves, from which a composition can be computed again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lastiterate.curves.adjacency import Adjacency, Sampling
from lastiterate.curves.dominated import tabled
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.loss import PrivacyLoss
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import Profile
from lastiterate.curves.renyi import RenyiDP
from lastiterate.curves.sampled_steps import SampledStep
from lastiterate.curves.subsampled import SubsampledGaussians
from lastiterate.errors import Unavailable, must_be
from lastiterate.numerics.arrays import Floats

_MOST_CELLS = 20_000  # of a loss distribution that is kept as it is: about half a megabyte


def guarantee_to_dict(notion: Notion, delta: float) -> dict[str, Any]:
    """As it is, where it is a few numbers; else a table of its profile, down to far below δ."""
    match notion:
        case GaussianDP():
            return {"kind": "gaussian", "mu": notion.mu}
        case RenyiDP(rho=None):
            return {"kind": "renyi", "orders": list(notion.orders), "divergences": list(notion.divergences)}
        case RenyiDP():
            return {"kind": "concentrated", "rho": notion.rho}
        case SubsampledGaussians(is_mixed=False):
            steps = [[step.mu, step.inclusion, step.sampling.name.lower(), count] for step, count in notion.steps]
            return {"kind": "subsampled", "steps": steps}
        case PrivacyLoss() if _is_small(notion):
            return _loss_to_dict(notion)
    table = tabled(notion, delta)
    if table is None:
        raise Unavailable("budget_no_finite_epsilon", delta=delta)
    return {"kind": "profile", "epsilons": table[0].tolist(), "deltas": table[1].tolist()}


def guarantee_from_dict(content: dict[str, Any], adjacency: Adjacency) -> Notion:
    """Back; whatever is missing or wrong raises."""
    kind = content["kind"]
    if kind not in _MADE:
        raise must_be("kind", f"of kind {', '.join(_MADE)}", f"{kind!r:.60}", called="a guarantee")
    return _MADE[kind](content, adjacency)


def implied(guarantee: dict[str, Any], proved: Notion, delta: float) -> bool:
    """Whether what is proved is at least as good as the guarantee, which was once written down from it."""
    match guarantee["kind"], proved:
        case "gaussian", GaussianDP():
            return proved.mu <= float(guarantee["mu"]) * (1 + 1e-12)
        case "profile", _:
            return _below(guarantee, tabled(proved, delta, raised=0.0))
    again = guarantee_to_dict(proved, delta)
    return bool(again["kind"] == guarantee["kind"]) and _alike(again, guarantee)


def _below(guarantee: dict[str, Any], found: tuple[Floats, Floats] | None) -> bool:
    """Between points of a table a profile lies below its chords."""
    if found is None:
        return False
    points, most = np.array(guarantee["epsilons"], float), np.array(guarantee["deltas"], float)
    return bool((np.asarray(Profile(epsilons=found[0], deltas=found[1]).delta(points)) <= most).all())


def _alike(one: Any, other: Any) -> bool:
    """Up to the last bits."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(_alike(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float):
        return isinstance(other, float) and math.isclose(one, other, rel_tol=1e-12)
    return bool(one == other)


def _is_small(loss: PrivacyLoss) -> bool:
    return len(loss.total.parts) == 1 and loss.total.parts[0].masses.size <= _MOST_CELLS


def _loss_to_dict(loss: PrivacyLoss) -> dict[str, Any]:
    part, count = loss.total.parts[0], loss.total.counts[0]
    law = {"first": part.first, "spacing": part.spacing, "masses": part.masses.tolist(), "infinite": part.infinite}
    return {"kind": "loss", **law, "count": count}


def _loss(content: dict[str, Any], adjacency: Adjacency) -> Notion:
    law = {name: content[name] for name in ("first", "spacing", "masses", "infinite")}
    return PrivacyLoss(**law, adjacency=adjacency).compose(content["count"])


def _subsampled(content: dict[str, Any], adjacency: Adjacency) -> Notion:
    steps = [
        (SampledStep(mu, rate, Sampling[str(sampling).upper()]), count)
        for mu, rate, sampling, count in content["steps"]
    ]
    return SubsampledGaussians(tuple(steps), adjacency)


_MADE: dict[str, Callable[[dict[str, Any], Adjacency], Notion]] = {
    "gaussian": lambda content, adjacency: GaussianDP(content["mu"], adjacency),
    "renyi": lambda content, adjacency: RenyiDP(
        orders=content["orders"], divergences=content["divergences"], adjacency=adjacency
    ),
    "concentrated": lambda content, adjacency: RenyiDP(rho=content["rho"], adjacency=adjacency),
    "subsampled": _subsampled,
    "loss": _loss,
    "profile": lambda content, adjacency: Profile(
        epsilons=content["epsilons"], deltas=content["deltas"], adjacency=adjacency
    ),
}
