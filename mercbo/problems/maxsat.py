"""Weighted MaxSAT with clauses of at most two literals: minus the weight of satisfied clauses.

`literals` is (clauses, n) in {-1, 0, 1}: the variable must be false, does not matter, must be true.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.problems.base import Problem, published, random_initial
from mercbo.space import Space


def minus_satisfied_weight(rows: Rows, weights: Floats, literals: Rows) -> Floats:
    met = (rows[:, np.newaxis, :] * 2 - 1) * literals[np.newaxis] > 0  # (N, clauses, n)
    return -np.asarray(met.any(axis=2) @ weights)


def maxsat(run: int, data: Path | None = None, *, n: int = 60) -> Problem:
    space = Space.binary(n)
    rng = np.random.default_rng([run, 3, n])
    if data is not None:
        stored = published(data, f"maxsat{n}", run)
        weights, literals = stored["weights"], stored["lit"].astype(np.int64)
        initial = (
            stored["init"].astype(np.int64) if "init" in stored else random_initial(space, rng)
        )
    else:
        clauses = 10 * n
        literals = np.zeros((clauses, n), dtype=np.int64)
        for row in literals:
            row[rng.choice(n, 2, replace=False)] = rng.choice([-1, 1], 2)
        weights = rng.standard_normal(clauses)
        initial = random_initial(space, rng)
    objective = partial(minus_satisfied_weight, weights=weights, literals=literals)
    return Problem(f"maxsat-{n}", space, objective, initial, "MaxSAT evaluations; COMBO 2019")
