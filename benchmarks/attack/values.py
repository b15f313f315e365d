"""Values that somebody may pass: sensible ones by the name of the argument, and wild ones."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

NUMBERS = (
    0, -0.0, 1, -1, 2, 0.5, 1e-5, 1e-12, 1e-100, 1e100, 1e-300, 1e300, 1e308, 5e-324, -5e-324, 1 - 1e-16, 1 + 1e-15,
    math.inf, -math.inf, math.nan, 10**6, 10**9, 10**13, 10**18, 10**25, 10**400, -(10**400), 0.1, 3.5, 700.0, 1e15,
)  # fmt: skip
WORDS = ("", "1", "nan", "x", "ε", "a\nb", "a\0b", "\udcff", "../..", "/", "noise", "x" * 5000, "logistic", "-1")
PLAIN = (*NUMBERS, *WORDS, None, True, False, [], [1.0], [0.1, 0.2], [math.nan], [[1.0]], ["x"], {}, {"kind": "x"})
OBJECTS = (
    10**5000, 1j, b"bytes", object(), datetime.date(2020, 1, 1), Decimal("0.1"), Fraction(1, 3), range(3), set(), (), len,
    lambda *_: None, lambda *_: math.nan, np.float32(0.5), np.array(0.5), np.array([]), np.array([0.5, 1.5]),
    np.array([[1.0]]), np.array(["x"]), np.array([None]), np.datetime64("2020-01-01"), np.ma.masked, int, slice(3),
)  # fmt: skip

_SIZES = (0.05, 0.3, 1.0, 3.0)
_DELTAS = (1e-5, 1e-6, 1e-3, 0.1, 1e-14)
_COUNTS = (1, 2, 5, 20)
SENSIBLE: dict[str, tuple[Any, ...]] = {
    "delta": _DELTAS,
    "deltas": ([0.1, 1e-6], [1e-5], [0.0]),
    "slack_delta": _DELTAS,
    "epsilons": ([0.0, 1.0], [0.5], [1.0]),
    "inclusion": (0.01, 0.1, 0.5, 1.0),
    "rate": (0.01, 0.1, 0.5, 1.0),
    "pull": (0.1, 0.5, 1.0),
    "theta": (0.5, 1.0),
    "rho": (0.1, 1.0),
    "records": (10, 20, 100, 1000),
    "batch_size": (1, 2, 5, 10),
    "dimension": (1, 3, 10),
    "classes": (2, 3, 10),
    "count": _COUNTS,
    "steps": _COUNTS,
    "times": _COUNTS,
    "runs": (40, 60),
    "most_steps": (5, 40, 200),
    "order": (1.5, 2.0, 8.0),
    "orders": ([2.0, 3.0], [1.5, 8.0]),
    "divergences": ([0.1, 0.2], [0.5, 2.0]),
    "masses": ([0.25, 0.0, 0.75], [1.0]),
    "first": (-1.0, 0.0, 1.0),
    "spacing": (0.1, 1.0),
    "infinite": (0.0, 0.01),
    "mus": ([1.0], [0.5, 1.0]),
    "weights": ([1.0], [0.5, 0.5]),
    "moments": ([1.0, 2.0],),
    "log_moments": ([0.1, 0.2],),
    "type_i_error": (0.0, 0.01, 0.5, [0.1, 0.2]),
    "type_i_errors": ([0.0, 0.5],),
    "type_ii_errors": ([0.9, 0.3],),
    "matrix": ([[0.5, 0.5], [0.2, 0.8]],),
    "confidence": (0.9, 0.95),
    "workers": (1,),
    "seed": (0, 1, 7, None),
    "cells": (10, 50),
    "per_epoch": (1, 2),
    "hazard": ([0.5, 0.5, 0.5], [1.0, 1.0, 1.0]),
    "low": (-1.0, -0.5),
    "high": (1.0, 2.0),
    "releases": ((), (1,), [2, 3]),
    "each_epoch": (True, False),
    "in_full": (None, True, False),
    "trace": (True, False),
}


def drawn(source: random.Random, name: str, wildness: float, wild: tuple[Any, ...] = PLAIN) -> Any:
    """A value for an argument of this name; with this probability one that it was not made for."""
    if source.random() < wildness:
        return source.choice(wild)
    return source.choice(SENSIBLE.get(name, _SIZES))
