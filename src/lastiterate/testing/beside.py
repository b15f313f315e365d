"""A guarantee beside the exact law of a run in one dimension."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lastiterate.auditing.filtered_instances import FilteredInstance
from lastiterate.auditing.instances import Instance
from lastiterate.theorems.theorem import Guarantee

EPSILONS = np.append(0.0, np.geomspace(0.003, 8.0, 24))
ROUNDING = 1e-13  # of sums of a few hundred probabilities


class Beside(NamedTuple):
    """bound − exact δ, without the error of the grid; bound/exact where δ is above 1e-9; where the bound is too small."""

    margin: float
    ratio: float
    wrong: str


def beside(answer: Guarantee, instance: Instance | FilteredInstance, name: str) -> Beside:
    """At two dozen ε."""
    exact, error = instance.chain.delta_with_error(EPSILONS)
    least = np.maximum(exact - error - ROUNDING, 0.0)
    bound, clear = np.asarray(answer.notion.delta(EPSILONS)), exact > 1e-9
    ratio = float((bound[clear] / exact[clear]).min()) if clear.any() else math.inf
    wrong = np.flatnonzero(~(bound >= least))
    told = ""
    if wrong.size:
        worst = int(wrong[np.argmin(bound[wrong] - least[wrong])])
        told = f"{name}: delta = {bound[worst]:.4g} at epsilon = {EPSILONS[worst]:.4g}, and exactly {exact[worst]:.4g}"
    return Beside(float((bound - least).min()), ratio, told)
