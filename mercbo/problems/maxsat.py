"""Weighted MaxSAT with clauses of at most two literals: minus the weight of satisfied clauses.

`literals` is (clauses, n) in {-1, 0, 1}: the variable must be false, does not matter, must be true.
With data, 28, 43 and 60 variables are the published instances; all other sizes are drawn here, with
ten clauses of two literals per variable and standard normal weights.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.problems.base import Problem, at_least, published, random_initial
from mercbo.space import Space

BUDGET = 270  # as published
# Proven optima of the published instances, by branch and bound and, for 60, CP-SAT as well. That
# of 60 is the point of all zeros, so that methods that start there find it at once: relocate it.
OPTIMA = {28: -38.162171908, 43: -92.740316868, 60: -195.652728438}


def minus_satisfied_weight(rows: Rows, weights: Floats, literals: Rows) -> Floats:
    met = (rows[:, np.newaxis, :] * 2 - 1) * literals[np.newaxis] > 0  # (N, clauses, n)
    return -np.asarray(met.any(axis=2) @ weights)


def random_clauses(n: int, rng: np.random.Generator) -> tuple[Floats, Rows]:
    """Weights (10 n,) and literals (10 n, n)."""
    clauses = 10 * n
    literals = np.zeros((clauses, n), dtype=np.int64)
    for row in literals:
        row[rng.choice(n, 2, replace=False)] = rng.choice([-1, 1], 2)
    return rng.standard_normal(clauses), literals


def maxsat(run: int, data: Path | None = None, *, n: int = 60) -> Problem:
    space = Space.binary(at_least("n", n, 2))
    rng = np.random.default_rng([run, 3, n])
    if data is not None and n in OPTIMA:
        stored = published(data, f"maxsat{n}", run)
        weights = stored["weights"].astype(np.float64)
        literals, initial = stored["lit"].astype(np.int64), stored["init"].astype(np.int64)
        optimum: float | None = OPTIMA[n]
    else:
        weights, literals = random_clauses(n, rng)
        initial, optimum = random_initial(space, rng), None
    objective = partial(minus_satisfied_weight, weights=weights, literals=literals)
    return Problem(
        f"maxsat-{n}", space, objective, initial, "MaxSAT evaluations; Oh et al. 2019",
        optimum, BUDGET,
    )  # fmt: skip
