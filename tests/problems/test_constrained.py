"""Problems with constraints, by enumeration of small ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mercbo import SettingError
from mercbo.domain.constraints import AllDifferent, Linear
from mercbo.problems.assignment import assignment
from mercbo.problems.knapsack import knapsack


def test_knapsack_by_enumeration() -> None:
    problem = knapsack(0, n=10)
    (limit,) = problem.space.constraints
    assert isinstance(limit, Linear)
    weights = [weight for _, weight in limit.weights]
    profits = problem.objective.keywords["profits"]  # type: ignore[attr-defined]
    best = 0.0
    for taken in itertools.product([0, 1], repeat=10):
        items = [i for i in range(10) if taken[i]]
        if sum(weights[i] for i in items) <= limit.bound:
            profit = sum(profits[i, i] for i in items)
            profit += sum(profits[i, j] for i, j in itertools.combinations(items, 2))
            best = max(best, profit)
    assert problem.optimum == -best


def test_knapsack_profits_and_limit() -> None:
    problem = knapsack(3, n=30)
    profits = problem.objective.keywords["profits"]  # type: ignore[attr-defined]
    assert (np.tril(profits, -1) == 0).all()
    assert (np.diag(profits) >= 1).all()
    # of 435 pairs a quarter has a profit, give or take four standard deviations
    count = (np.triu(profits, 1) > 0).sum()
    assert abs(count - 435 / 4) < 4 * np.sqrt(435 * 3 / 16)
    everything = np.ones((1, 30), dtype=np.int64)
    assert not problem.space.region.allows(everything).any()
    assert problem.space.region.allows(problem.initial).all()


def test_assignment_by_enumeration() -> None:
    problem = assignment(0, n=5)
    assert problem.space.constraints == (AllDifferent(problem.space.names),)
    arrays = problem.objective.keywords  # type: ignore[attr-defined]
    flow, distance = arrays["flow"], arrays["distance"]
    costs = [
        sum(flow[i, j] * distance[p[i], p[j]] for i, j in itertools.combinations(range(5), 2))
        for p in itertools.permutations(range(5))
    ]
    assert problem.optimum == pytest.approx(min(costs))
    rows = problem.space.enumerate_rows()
    np.testing.assert_allclose(problem.objective(rows), costs)


def test_assignments_start_from_permutations() -> None:
    problem = assignment(1, n=12)
    assert problem.optimum is None
    assert (np.sort(problem.initial, axis=1) == np.arange(12)).all()
    assert problem.space.region.allows(problem.initial).all()


def test_too_small_sizes_are_quoted() -> None:
    with pytest.raises(SettingError, match="n=2 is too small; at least 3"):
        knapsack(0, n=2)
    with pytest.raises(SettingError, match="n=1 is too small; at least 2"):
        assignment(0, n=1)
