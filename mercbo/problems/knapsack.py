"""Quadratic knapsack: which of n items to take within a weight limit, where some pairs go together.

Recipe of Gallo, Hammer and Simeone (1980): profits of items and of a quarter of the pairs are whole
numbers from 1 to 100, weights from 1 to 50. The limit is half of the total weight. To be maximised,
so the objective is the negative profit.

| symbol  | meaning                                      | shape  |
|---------|----------------------------------------------|--------|
| weights | of the items                                 | (n,)   |
| profits | items on the diagonal, pairs above it        | (n, n) |
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.domain.constraints import Linear
from mercbo.domain.variables import Binary
from mercbo.problems.base import Problem, at_least, enumerated_optimum, random_initial
from mercbo.space import Space

# Share of the pairs that have a profit of their own.
DENSITY = 0.25


def minus_profit(rows: Rows, profits: Floats) -> Floats:
    return -np.asarray(((rows @ profits) * rows).sum(axis=1))


def draw_profits(n: int, rng: np.random.Generator) -> Floats:
    pairs = rng.integers(1, 101, (n, n)) * (rng.random((n, n)) < DENSITY)
    return np.asarray(np.triu(pairs, 1) + np.diag(rng.integers(1, 101, n)), dtype=np.float64)


def knapsack_space(weights: Rows) -> Space:
    names = [f"item{i}" for i in range(len(weights))]
    limit = Linear(dict(zip(names, weights.tolist(), strict=True)), "<=", int(weights.sum()) // 2)
    return Space({name: Binary() for name in names}, [limit])


def knapsack(run: int, data: Path | None = None, *, n: int = 30) -> Problem:  # noqa: ARG001
    rng = np.random.default_rng([run, 10, at_least("n", n, 3)])
    space = knapsack_space(rng.integers(1, 51, n))
    objective = partial(minus_profit, profits=draw_profits(n, rng))
    return Problem(
        f"knapsack-{n}", space, objective, random_initial(space, rng),
        "Gallo, Hammer and Simeone 1980", enumerated_optimum(space, objective),
    )  # fmt: skip
