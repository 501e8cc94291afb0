"""Ising sparsification: which of 24 edges of a 4 x 4 grid of spins to keep.

BOCS (Baptista and Poloczek 2018): KL(p || q) + penalty * (edges kept), where p is the zero-field
Ising model p(z) proportional to exp(sum over ordered pairs J_ij z_i z_j), so each edge counts
twice, and q has the kept couplings only. All 2^16 states are summed over.

The published names are ising-0, ising (penalty 1e-4) and ising-1e-2.
"""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from scipy.special import logsumexp

from mercbo.arrays import Floats, Rows
from mercbo.problems.base import Problem, published, random_initial, with_penalty
from mercbo.space import Space

SIDE, EDGES = 4, 24
# Bits of the horizontal edges, row-major over the grid; the others are vertical, in order.
HORIZONTAL = [0, 2, 4, 7, 9, 11, 14, 16, 18, 21, 22, 23]
VERTICAL = [bit for bit in range(EDGES) if bit not in HORIZONTAL]
BUDGET = 170  # as published
# Optima of the five published instances by enumeration of all 2^24 choices, by penalty. Each
# instance has five published runs.
OPTIMA = {
    1e-4: (0.0024, 0.00210002641, 0.00150770731, 0.00227454048, 0.00201926662),
    1e-2: (0.21925039919, 0.15937791836, 0.15000770731, 0.21058035549, 0.18129019899),
}
RUNS_EACH = 5


@lru_cache(maxsize=1)
def edge_products() -> Floats:
    """(2^16, 24): 2 z_i z_j of each edge in each state."""
    number = np.arange(2 ** (SIDE * SIDE))
    spins = 1.0 - 2.0 * ((number[:, np.newaxis] >> np.arange(SIDE * SIDE)) & 1)
    grid = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    products = np.zeros((len(spins), EDGES))
    products[:, HORIZONTAL] = 2 * spins[:, grid[:, :-1].ravel()] * spins[:, grid[:, 1:].ravel()]
    products[:, VERTICAL] = 2 * spins[:, grid[:-1].ravel()] * spins[:, grid[1:].ravel()]
    return products


def divergence(rows: Rows, couplings: Floats, penalty: float) -> Floats:
    """couplings (24,): J of each edge, by bit."""
    products = edge_products()
    weights = products @ couplings
    log_p = logsumexp(weights)
    moments = np.exp(weights - log_p) @ products  # E_p of each edge product
    kept = rows * couplings
    log_q = np.array([logsumexp(products @ row) for row in kept])
    return np.asarray((couplings - kept) @ moments - log_p + log_q + penalty * rows.sum(axis=1))


def ising(run: int, data: Path | None = None, *, penalty: float = 1e-4) -> Problem:
    space = Space.binary(EDGES)
    optimum = 0.0 if penalty == 0 else None  # keeping every edge is then best
    couplings = np.zeros(EDGES)
    if data is not None:
        stored = published(data, "ising", run)
        couplings[HORIZONTAL] = stored["horizontal"].ravel()
        couplings[VERTICAL] = stored["vertical"].ravel()
        initial = stored["init"].astype(np.int64)
        optimum = OPTIMA[penalty][run // RUNS_EACH] if penalty in OPTIMA else optimum
    else:
        rng = np.random.default_rng([run, 2])
        couplings[:] = rng.uniform(0.05, 5.0, EDGES) * rng.choice([-1.0, 1.0], EDGES)
        initial = random_initial(space, rng)
    objective = partial(divergence, couplings=couplings, penalty=penalty)
    return Problem(
        with_penalty("ising", penalty), space, objective, initial,
        "Baptista and Poloczek 2018", optimum, BUDGET,
    )  # fmt: skip
