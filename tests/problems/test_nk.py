"""NK landscapes against a plain loop, and their extremes."""

from __future__ import annotations

import numpy as np
import pytest

from mercbo import SettingError
from mercbo.problems.nk import nk


def test_fitness_is_the_mean_contribution() -> None:
    problem = nk(0, n=7, k=2)
    arrays = problem.objective.keywords  # type: ignore[attr-defined]
    for row in problem.initial:
        total = 0.0
        for i, seen in enumerate(arrays["neighbours"]):
            setting = sum(int(row[other]) << place for place, other in enumerate(seen))
            total += arrays["tables"][i, setting]
        assert problem.objective(row[np.newaxis])[0] == pytest.approx(-total / 7)


def test_neighbours_are_the_bit_and_k_others() -> None:
    neighbours = nk(1, n=9, k=4).objective.keywords["neighbours"]  # type: ignore[attr-defined]
    assert neighbours.shape == (9, 5)
    assert neighbours[:, 0].tolist() == list(range(9))
    assert all(len(set(row)) == 5 for row in neighbours.tolist())


def test_without_neighbours_the_best_of_each_bit_is_best() -> None:
    problem = nk(0, n=10, k=0)
    tables = problem.objective.keywords["tables"]  # type: ignore[attr-defined]
    assert problem.optimum == pytest.approx(-tables.max(axis=1).mean())


def test_more_neighbours_make_more_local_optima() -> None:
    counts = []
    for k in (0, 3, 9):
        problem = nk(0, n=10, k=k)
        values = problem.objective(problem.space.enumerate_rows())
        near = np.arange(1024)[:, np.newaxis] ^ (1 << np.arange(10))
        counts.append(int((values[near] > values[:, np.newaxis]).all(axis=1).sum()))
    assert counts[0] == 1
    assert counts[0] < counts[1] < counts[2]


def test_small_optima_are_known_and_large_ones_are_not() -> None:
    problem = nk(2, n=12, k=3)
    assert problem.objective(problem.space.enumerate_rows()).min() == problem.optimum
    assert nk(2, n=30, k=3).optimum is None


@pytest.mark.parametrize(("n", "k"), [(5, 5), (5, -1), (40, 16)])
def test_wrong_neighbours_are_quoted(n: int, k: int) -> None:
    with pytest.raises(SettingError, match=f"k={k} is too"):
        nk(0, n=n, k=k)
