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

not_a_positive_number = st.one_of(
    st.floats(max_value=0.0),
    st.sampled_from([math.nan, math.inf, -math.inf, None, "1", True, [1.0, 2.0], 1j, object()]),
)
not_a_delta = st.one_of(
    st.floats(max_value=0.0), st.floats(min_value=1.0), st.sampled_from([math.nan, math.inf, None, "x", True, 1j])
)
not_a_rate = st.one_of(
    st.floats(max_value=0.0),
    st.floats(min_value=1.0, exclude_min=True),
    st.sampled_from([math.nan, None, "x", [0.1, 0.2], True]),
)
not_an_epsilon = st.one_of(
    st.floats(max_value=0.0, exclude_max=True), st.sampled_from([math.nan, math.inf, None, "x", True, 1j])
)
not_an_order = st.one_of(st.floats(max_value=1.0), st.sampled_from([math.nan, math.inf, None, "x", True]))
not_a_count = st.one_of(
    st.integers(max_value=0), st.floats(0.1, 0.9), st.sampled_from([math.nan, math.inf, None, "3", 1.5, True, [1]])
)
not_an_error = st.one_of(
    st.floats(max_value=0.0, exclude_max=True),
    st.floats(min_value=1.0, exclude_min=True),
    st.sampled_from([math.nan, None, "x", True]),
)

kinds = st.sampled_from(
    [
        (li.POISSON, li.ADD_OR_REMOVE_ONE),
        (li.POISSON, li.REPLACE_ONE),
        (li.FIXED_SIZE, li.REPLACE_ONE),
    ]
)
