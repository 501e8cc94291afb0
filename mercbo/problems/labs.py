"""Low auto-correlation binary sequences: minus the paper's merit n^2 / E, E = sum_k C_k^2.

The optimal energies up to n = 66 are those of Packebusch and Mertens (2016), found by exhaustive
search; Barker's sequence of length 13 has E = 6.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.problems.base import INITIAL, Problem, at_least
from mercbo.space import Space

BUDGET = 270  # as published
# Optimal energies from n = 3 on, ten to a line from n = 10 on.
OPTIMA = (
    1, 2, 2, 7, 3, 8, 12,
    13, 5, 10, 6, 19, 15, 24, 32, 25, 29,
    26, 26, 39, 47, 36, 36, 45, 37, 50, 62,
    59, 67, 64, 64, 65, 73, 82, 86, 87, 99,
    108, 108, 101, 109, 122, 118, 131, 135, 140, 136,
    153, 153, 166, 170, 175, 171, 192, 188, 197, 205,
    218, 226, 235, 207, 208, 240, 257,
)  # fmt: skip
KNOWN = dict(enumerate(OPTIMA, start=3))


def energy(rows: Rows) -> Floats:
    """E of each sequence; bit 1 is the spin +1."""
    spins = 2.0 * rows - 1.0
    n = rows.shape[1]
    lags = [(spins[:, : n - k] * spins[:, k:]).sum(axis=1) for k in range(1, n)]
    return np.asarray(np.square(lags).sum(axis=0))


def labs(run: int, data: Path | None = None, *, n: int = 50) -> Problem:  # noqa: ARG001
    """Nothing is published but the recipe of the initial points, which is followed here."""
    at_least("n", n, 3)
    initial = np.random.default_rng(run).integers(0, 2, (INITIAL, n))
    optimum = -(n**2) / KNOWN[n] if n in KNOWN else None
    return Problem(
        f"labs-{n}", Space.binary(n), lambda rows: -(n**2) / energy(rows), initial,
        "Packebusch and Mertens 2016", optimum, BUDGET,
    )  # fmt: skip
