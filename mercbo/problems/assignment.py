"""Quadratic assignment: which of n facilities goes to which of n places.

Koopmans and Beckmann (1957): the cost is the sum over pairs of facilities of their flow times the
distance of their places. Places are random in the unit square, flows are whole numbers of which
about half are zero. Variable i is the place of facility i; no two have the same.

| symbol   | meaning                                      | shape  |
|----------|----------------------------------------------|--------|
| flow     | between facilities, symmetric, zero diagonal | (n, n) |
| distance | between places, symmetric, zero diagonal     | (n, n) |
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.domain.constraints import AllDifferent
from mercbo.domain.variables import Categorical
from mercbo.problems.base import INITIAL, Problem, at_least
from mercbo.space import Space

# Facilities up to which all n! assignments are tried: 40,320 of 8.
ENUMERABLE = 8


def cost(rows: Rows, flow: Floats, distance: Floats) -> Floats:
    between = distance[rows[:, :, np.newaxis], rows[:, np.newaxis, :]]  # (N, n, n)
    return np.asarray((between * flow).sum(axis=(1, 2)) / 2)


def draw_flow(n: int, rng: np.random.Generator) -> Floats:
    upper = np.triu(rng.integers(1, 10, (n, n)) * rng.integers(0, 2, (n, n)), 1)
    return np.asarray(upper + upper.T, dtype=np.float64)


def draw_distance(n: int, rng: np.random.Generator) -> Floats:
    places = rng.random((n, 2))
    return np.asarray(np.linalg.norm(places[:, np.newaxis] - places, axis=2))


def best_of_all(n: int, objective: Callable[[Rows], Floats]) -> float | None:
    if n > ENUMERABLE:
        return None
    return float(objective(np.array(list(itertools.permutations(range(n))))).min())


def assignment(run: int, data: Path | None = None, *, n: int = 10) -> Problem:  # noqa: ARG001
    rng = np.random.default_rng([run, 11, at_least("n", n, 2)])
    names = [f"facility{i}" for i in range(n)]
    space = Space({name: Categorical(range(n)) for name in names}, [AllDifferent(names)])
    objective = partial(cost, flow=draw_flow(n, rng), distance=draw_distance(n, rng))
    initial = np.array([rng.permutation(n) for _ in range(INITIAL)])
    return Problem(
        f"assignment-{n}", space, objective, initial, "Koopmans and Beckmann 1957",
        best_of_all(n, objective),
    )  # fmt: skip
