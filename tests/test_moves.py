"""Moves keep states feasible, never raise the energy, and end where no move gains."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mercbo import moves


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
