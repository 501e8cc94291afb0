"""Linear limits on bits: in whole numbers they say the same, and their excess has a unit."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercbo import Linear, Optimizer, Space
from mercbo.domain import limits as module
from mercbo.domain.limits import Limits


def all_states(width: int) -> np.ndarray:
    return ((np.arange(2**width)[:, None] >> np.arange(width)) & 1).astype(np.int8)


def one(row: list[float], low: float = -np.inf, high: float = np.inf) -> Limits:
    return Limits.stack([(np.array(row, dtype=float), low, high)], len(row))


def in_whole_numbers(limits: Limits, states: np.ndarray, **options) -> np.ndarray:
    """Which states the limits allow when each is replaced by its whole one."""
    fine = np.ones(len(states), dtype=bool)
    for number in range(len(limits)):
        weights, low, high = limits.whole(number, **options)
        sides = states.astype(np.int64) @ weights
        fine &= (low is None) | (sides >= (low or 0))
        fine &= (high is None) | (sides <= (high or 0))
    return fine


@pytest.mark.parametrize(
    ("row", "low", "high", "weights", "whole_low", "whole_high"),
    [
        ([1, -2, 3], -np.inf, 2, [1, -2, 3], None, 2),
        ([1, -2, 3], 2, np.inf, [1, -2, 3], 2, None),
        ([3, 5], 2.5, 7.9, [3, 5], 3, 7),
        ([0.1, 0.2], 0.3, 0.3, [1, 2], 3, 3),
        ([0.25, 1], 0.5, 1, [25, 100], 50, 100),
        ([1 / 3, 2 / 3, 1], 1, 1, [1, 2, 3], 3, 3),
        ([1e9, 1], -np.inf, 1e9, [10**9, 1], None, 10**9),
        ([1e-10, 2e-10], -np.inf, 2e-10, [1, 2], None, 2),
        ([0, 0], 0, 1, [0, 0], 0, 1),
        ([0.1 + 0.2 - 0.3, 1, 2], -np.inf, 2, [0, 1, 2], None, 2),
        ([1e-300, 1e-300], -1e300, 1e300, [1, 1], -(2**54), 2**54),
        ([2, 4], 3, 3, [2, 4], 3, 3),
        # no sum comes near these bounds, and they fit 64 bits
        ([1, 1], -np.inf, -1e19, [1, 1], None, -(2**54)),
        ([1, 1], 1e300, np.inf, [1, 1], 2**54, None),
    ],
)
def test_limits_become_whole(row, low, high, weights, whole_low, whole_high) -> None:
    found, least, most = one(row, low, high).whole(0)
    assert found.tolist() == weights
    assert (least, most) == (whole_low, whole_high)


WEIGHTS = st.one_of(
    st.lists(st.integers(-(10**12), 10**12).map(Fraction), min_size=1, max_size=6),
    st.lists(st.integers(-9999, 9999).map(lambda n: Fraction(n, 100)), min_size=1, max_size=6),
    st.lists(st.integers(-20, 20).map(lambda n: Fraction(n, 3)), min_size=1, max_size=6),
)


@given(WEIGHTS, st.data())
def test_whole_limits_say_the_same_where_there_is_an_exact_scale(weights, data) -> None:
    states = all_states(len(weights))
    sums = [sum((w for w, x in zip(weights, s, strict=True) if x), Fraction(0)) for s in states]
    low, high = sorted(data.draw(st.tuples(st.sampled_from(sums), st.sampled_from(sums))))
    limits = one(list(map(float, weights)), float(low), float(high))
    expected = [low <= total <= high for total in sums]
    assert limits.satisfied(states).tolist() == expected
    assert in_whole_numbers(limits, states).tolist() == expected


FLOATS = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(
    st.lists(st.one_of(FLOATS, FLOATS.map(lambda x: x * 1e14)), min_size=1, max_size=6),
    st.data(),
    st.sampled_from([2.0**10, 2.0**15, module.MOST_WHOLE]),
)
def test_whole_limits_lose_no_feasible_state(row, data, most) -> None:
    states = all_states(len(row))
    sums = (states @ np.array(row)).tolist()
    low, high = sorted(data.draw(st.tuples(st.sampled_from(sums), st.sampled_from(sums))))
    limits = one(row, low, high)
    fine = limits.satisfied(states)
    assert in_whole_numbers(limits, states, most=most)[fine].all()
    weights, _, _ = limits.whole(0, most=most)
    assert np.abs(weights).sum() <= most + len(row)


def test_the_rounding_of_large_sums_loses_no_feasible_state() -> None:
    row = [4.99998e19, 4.99998e19, 5e13, 5e13]
    states, limits = all_states(4), one(row, 0.0, 9.999965e19)
    fine = limits.satisfied(states)
    assert in_whole_numbers(limits, states)[fine].all()


@pytest.mark.parametrize("size", [1e-250, 1e-20, 1.0, 1e9, 1e200])
def test_limits_without_an_exact_scale_keep_their_digits(size) -> None:
    row = [size * np.pi, size * np.e, -size * np.sqrt(2)]
    for high in (1.3, 2.7, 4.4):
        limits = one(row, high=high * size)
        states = all_states(3)
        assert in_whole_numbers(limits, states).tolist() == limits.satisfied(states).tolist()


def test_excess_counts_in_units_of_the_largest_coefficient() -> None:
    limits = Limits.stack([(np.array([10.0, 5.0]), 0.0, 5.0), (np.zeros(2), 3.0, np.inf)], 2)
    sides = np.array([[0.0, 3.0], [15.0, 3.0], [-5.0, 0.0], [5.0 + 1e-12, 3.0]])
    assert limits.excess(sides).tolist() == [0.0, 1.0, 3.5, 0.0]
    assert limits.holds(sides).tolist() == [True, False, False, True]


def test_whole_numbers_too_large_to_be_exact_are_judged_alike_everywhere() -> None:
    """1e17 + 1 is 1e17: no state may be lost that another way of looking finds."""
    limits = one([1e17, 1.0, -1e17], 1.0, 1.0)
    states = np.array(list(itertools.product((0, 1), repeat=3)), dtype=np.int8)
    fine = limits.satisfied(states)
    assert fine[states.tolist().index([0, 1, 0])]
    assert in_whole_numbers(limits, states).tolist() == fine.tolist()
    rule = Linear({"x0": 1e17, "x1": 1, "x2": -1e17}, "==", 1)
    space = Space(Space.binary(3).variables, [rule])
    assert space.enumerate_rows().tolist() == states[fine].tolist()
    assert Optimizer(space, seed=0).ask() in space.points(space.enumerate_rows())
