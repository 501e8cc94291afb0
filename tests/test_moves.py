"""Moves keep states feasible, never raise the energy, and end where no move gains."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercbo import moves
from mercbo.domain.limits import Limits
from mercbo.moves import Walk


def random_form(width: int, groups: list[np.ndarray], rng: np.random.Generator):
    coupling = np.triu(rng.standard_normal((width, width)), 1)
    for group in groups:
        coupling[np.ix_(group, group)] = 0.0
    return rng.standard_normal(width), coupling + coupling.T


def layout(sizes: list[int]) -> tuple[int, list[np.ndarray]]:
    """Free bits (size 1) and one-hot groups side by side."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    groups = [np.arange(a, a + s) for a, s in zip(starts, sizes, strict=False) if s > 1]
    return int(starts[-1]), groups


problems = st.tuples(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(0, 2**31))


def feasible(states: np.ndarray, groups: list[np.ndarray]) -> bool:
    return all((states[:, group].sum(axis=1) == 1).all() for group in groups)


def one_move_away(state: np.ndarray, groups: list[np.ndarray]):
    grouped = {int(b) for group in groups for b in group}
    for bit in range(len(state)):
        if bit not in grouped:
            yield np.where(np.arange(len(state)) == bit, 1 - state, state)
    for group in groups:
        for bit in group:
            moved = state.copy()
            moved[group] = 0
            moved[bit] = 1
            yield moved


@given(problems)
def test_descent_ends_in_feasible_local_minima(problem) -> None:
    sizes, seed = problem
    width, groups = layout(sizes)
    rng = np.random.default_rng(seed)
    linear, coupling = random_form(width, groups, rng)
    starts = moves.random_states(6, width, groups, rng=rng)
    assert feasible(starts, groups)
    ends, energies = moves.descend(linear, coupling, groups, starts)
    assert feasible(ends, groups)
    np.testing.assert_allclose(energies, moves.energies(linear, coupling, ends))
    assert (energies <= moves.energies(linear, coupling, starts) + 1e-12).all()
    for end, energy in zip(ends, energies, strict=True):
        around = np.array(list(one_move_away(end, groups)))
        assert moves.energies(linear, coupling, around).min() >= energy - 1e-9


@given(problems)
def test_repair_makes_states_feasible_and_leaves_feasible_ones(problem) -> None:
    sizes, seed = problem
    width, groups = layout(sizes)
    rng = np.random.default_rng(seed)
    linear, coupling = random_form(width, groups, rng)
    broken = rng.integers(0, 2, (20, width), dtype=np.int8)
    mended = moves.repair(linear, coupling, groups, broken)
    assert feasible(mended, groups)
    fine = [i for i in range(20) if feasible(broken[i : i + 1], groups)]
    assert (mended[fine] == broken[fine]).all()


def test_repair_keeps_the_bit_of_lowest_field() -> None:
    linear = np.array([3.0, 1.0, 2.0])
    states = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1]], dtype=np.int8)
    mended = moves.repair(linear, np.zeros((3, 3)), [np.arange(3)], states)
    assert mended.tolist() == [[0, 0, 1], [0, 1, 0], [0, 1, 0]]


def test_constant_and_empty_models_end_at_once() -> None:
    states = np.array([[0, 1], [1, 1]], dtype=np.int8)
    ends, energies = moves.descend(np.zeros(2), np.zeros((2, 2)), [], states)
    assert (ends == states).all()
    assert (energies == 0).all()
    empty, none = moves.descend(np.zeros(0), np.zeros((0, 0)), [], np.zeros((3, 0), np.int8))
    assert empty.shape == (3, 0)
    assert none.tolist() == [0, 0, 0]


def test_a_huge_coefficient_does_not_hide_a_small_gain() -> None:
    states = np.zeros((1, 2), dtype=np.int8)
    ends, _ = moves.descend(np.array([1e13, -3.0]), np.zeros((2, 2)), [], states)
    assert ends.tolist() == [[0, 1]]


# -- within limits -----------------------------------------------------------------------------


def one(row: list[float], low: float = -np.inf, high: float = np.inf) -> Limits:
    return Limits.stack([(np.array(row, dtype=float), low, high)], len(row))


def random_limits(width: int, count: int, near: np.ndarray, rng: np.random.Generator) -> Limits:
    """Limits that hold at a state, some of them tightly, with small whole weights."""
    rows = []
    for _ in range(count):
        row = rng.integers(-3, 4, width).astype(float)
        side = float(row @ near)
        low, high = side - rng.integers(0, 3), side + rng.integers(0, 3)
        rows.append((row, low, high if rng.random() < 0.7 else np.inf))
    return Limits.stack(rows, width)


def by_hand(limits: Limits, state: np.ndarray) -> bool:
    """Whole weights add up exactly: no tolerance."""
    sides = [sum(int(w) for w, x in zip(r, state, strict=True) if x) for r in limits.matrix]
    return all(lo <= s <= hi for lo, s, hi in zip(limits.low, sides, limits.high, strict=True))


@given(problems, st.integers(0, 3))
def test_dives_and_mended_states_satisfy_limits_where_they_say_so(problem, count) -> None:
    sizes, seed = problem
    width, groups = layout(sizes)
    rng = np.random.default_rng(seed)
    near = moves.random_states(1, width, groups, rng=rng)[0]
    limits = random_limits(width, count, near, rng)
    states, fine = moves.dive(12, width, groups, limits, rng=rng)
    assert feasible(states, groups)
    assert fine.tolist() == [by_hand(limits, s) for s in states]
    starts = moves.random_states(12, width, groups, rng=rng)
    mended, reached = moves.mend(groups, limits, starts, rng=rng)
    assert feasible(mended, groups)
    assert reached.tolist() == [by_hand(limits, s) for s in mended]
    kept = np.array([by_hand(limits, s) for s in starts])
    assert (mended[kept] == starts[kept]).all()


@pytest.mark.parametrize("k", [0, 1, 7, 30])
def test_dives_never_miss_a_count(k) -> None:
    limits = one([1.0] * 30, k, k)
    states, fine = moves.dive(50, 30, [], limits, rng=np.random.default_rng(0))
    assert fine.all()
    assert (states.sum(axis=1) == k).all()


def test_dives_are_not_blind_to_small_coefficients() -> None:
    """Beside a limit of millions, one of billionths is met as well."""
    rows = [(np.full(20, 1e6), 5e6, 5e6), (1e-9 * np.arange(20.0), 4e-8, 6e-8)]
    _, fine = moves.dive(50, 20, [], Limits.stack(rows, 20), rng=np.random.default_rng(0))
    assert fine.mean() > 0.3


def units(width: int, groups: list[np.ndarray]) -> list[list[int]]:
    grouped = {int(b) for g in groups for b in g}
    return [[b] for b in range(width) if b not in grouped] + [g.tolist() for g in groups]


def changes(state: np.ndarray, unit: list[int]):
    """The states that differ from one in one unit."""
    for bit in unit:
        moved = state.copy()
        if len(unit) == 1:
            moved[bit] = 1 - moved[bit]
        else:
            moved[unit] = 0
            moved[bit] = 1
        if (moved != state).any():
            yield moved


def best_pair(linear, coupling, groups, limits, state) -> float:
    """The lowest energy two moves away within limits, by trying each pair."""
    around = [
        twice
        for first, second in itertools.combinations(units(len(state), groups), 2)
        for once in changes(state, first)
        for twice in changes(once, second)
    ]
    fine = [s for s in around if by_hand(limits, s)]
    return moves.energies(linear, coupling, np.array(fine)).min() if fine else np.inf


@pytest.mark.parametrize("sizes", [[1] * 9, [3, 4, 2, 3], [1, 1, 3, 1, 4, 1, 2], [1], [3]], ids=str)
@given(seed=st.integers(0, 2**31), count=st.integers(1, 3))
@settings(max_examples=25)
def test_the_best_feasible_pair_is_found(sizes, seed, count) -> None:
    width, groups = layout(sizes)
    rng = np.random.default_rng(seed)
    linear, coupling = random_form(width, groups, rng)
    near = moves.random_states(1, width, groups, rng=rng)[0]
    limits = random_limits(width, count, near, rng)
    starts = np.unique(moves.random_states(20, width, groups, rng=rng), axis=0)
    starts = np.array([near, *[s for s in starts if by_hand(limits, s)][:3]])
    walk = Walk.of(linear, coupling, groups, starts, limits)
    before = moves.energies(linear, coupling, starts)
    moved = walk.move_pairs(np.arange(len(starts)), np.full(width, 1e-12))
    after = moves.energies(linear, coupling, walk.states.astype(np.int8))
    lowest = np.array([best_pair(linear, coupling, groups, limits, s) for s in starts])
    gains = lowest < before - 1e-9
    assert sorted(moved.tolist()) == np.flatnonzero(gains).tolist()
    np.testing.assert_allclose(after, np.where(gains, lowest, before), atol=1e-9)
    # what makes the next step cheap is right as well
    np.testing.assert_allclose(walk.sides, walk.states @ limits.matrix.T, atol=1e-9)
    np.testing.assert_allclose(walk.fields, linear + walk.states @ coupling, atol=1e-9)


@given(problems, st.integers(1, 3))
def test_descent_within_limits_ends_where_no_move_or_pair_gains(problem, count) -> None:
    sizes, seed = problem
    width, groups = layout(sizes)
    rng = np.random.default_rng(seed)
    linear, coupling = random_form(width, groups, rng)
    near = moves.random_states(1, width, groups, rng=rng)
    limits = random_limits(width, count, near[0], rng)
    ends, energies = moves.descend(linear, coupling, groups, near, limits)
    assert by_hand(limits, ends[0])
    around = [s for s in one_move_away(ends[0], groups) if by_hand(limits, s)]
    if around:
        assert moves.energies(linear, coupling, np.array(around)).min() >= energies[0] - 1e-9
    assert best_pair(linear, coupling, groups, limits, ends[0]) >= energies[0] - 1e-9


def test_pairs_are_found_in_chunks_too(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    linear, coupling = random_form(10, [], rng)
    starts = np.repeat(np.eye(10, dtype=np.int8)[:1], 4, axis=0)
    limits = one([1.0] * 10, 1, 1)
    whole = moves.descend(linear, coupling, [], starts, limits)[0]
    monkeypatch.setattr(moves, "PAIR_ENTRIES", 1)
    assert (moves.descend(linear, coupling, [], starts, limits)[0] == whole).all()
    assert (whole == np.eye(10)[np.argmin(linear)]).all()


# -- many limits -------------------------------------------------------------------------------


def forbidden_pairs(width: int, count: int, seed: int) -> Limits:
    """At most one of two bits, or at least one of two, for many pairs of bits."""
    rng = np.random.default_rng(seed)
    matrix = np.zeros((count, width))
    for row in matrix:
        row[rng.choice(width, 2, replace=False)] = 1.0
    least = rng.random(count) < 0.1
    return Limits(matrix, np.where(least, 1.0, -np.inf), np.where(least, np.inf, 1.0))


@pytest.mark.parametrize(
    "groups", [[], [np.arange(0, 4), np.arange(10, 15)]], ids=["free", "groups"]
)
@pytest.mark.parametrize("seed", range(4))
def test_many_limits_are_checked_by_those_that_a_move_touches(groups, seed, monkeypatch) -> None:
    """The short way says of every move and pair of moves what the long way says."""
    width = 20
    limits = forbidden_pairs(width, 150, seed)
    rng = np.random.default_rng(seed)
    states = moves.random_states(6, width, groups, rng=rng)
    # states within the limits: those that they break are widened
    sides = states.astype(float) @ limits.matrix.T
    limits = Limits(
        limits.matrix,
        np.minimum(limits.low, sides.min(axis=0)),
        np.maximum(limits.high, sides.max(axis=0)),
    )
    linear, half = rng.standard_normal(width), rng.standard_normal((width, width))
    coupling = half + half.T
    np.fill_diagonal(coupling, 0.0)
    for group in groups:
        coupling[np.ix_(group, group)] = 0.0
    monkeypatch.setattr(Limits, "are_sparse", False)
    slow = moves.descend(linear, coupling, groups, states, limits)
    monkeypatch.setattr(Limits, "are_sparse", True)
    fast = moves.descend(linear, coupling, groups, states, limits)
    assert np.array_equal(slow[0], fast[0])
    assert limits.satisfied(fast[0]).all()


def test_limits_are_sparse_where_they_are_many_and_short() -> None:
    assert forbidden_pairs(200, 1000, 0).are_sparse
    assert not forbidden_pairs(200, 30, 0).are_sparse
    assert not Limits(np.ones((100, 20)), np.zeros(100), np.ones(100)).are_sparse
