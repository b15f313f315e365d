"""Hypothesis strategies that the tests share."""

from __future__ import annotations

import math

from hypothesis import strategies as st

import lastiterate as li

deltas = st.floats(math.log(1e-30), math.log(0.5)).map(math.exp)
epsilons = st.floats(0.0, 50.0)
mus = st.floats(math.log(0.05), math.log(4.0)).map(math.exp)
rates = st.floats(math.log(1e-3), math.log(0.5)).map(math.exp)
counts = st.floats(math.log(200), math.log(1e6)).map(lambda x: round(math.exp(x)))

kinds = st.sampled_from(
    [
        (li.notions.POISSON, li.ADD_OR_REMOVE_ONE),
        (li.notions.POISSON, li.REPLACE_ONE),
        (li.notions.FIXED_SIZE, li.REPLACE_ONE),
    ]
)
