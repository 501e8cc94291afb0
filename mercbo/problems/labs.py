"""Low auto-correlation binary sequences: minus the paper's merit n^2 / E, E = sum_k C_k^2.

Known energies: Barker-13 has E = 6; the optimum is E = 108 at n = 40 and E = 153 at n = 50.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.problems.base import INITIAL, Problem
from mercbo.space import Space

KNOWN = {13: 6, 40: 108, 50: 153}


def energy(rows: Rows) -> Floats:
    """E of each sequence; bit 1 is the spin +1."""
    spins = 2.0 * rows - 1.0
    n = rows.shape[1]
    lags = [(spins[:, : n - k] * spins[:, k:]).sum(axis=1) for k in range(1, n)]
    return np.asarray(np.square(lags).sum(axis=0))


def labs(run: int, data: Path | None = None, *, n: int = 50) -> Problem:  # noqa: ARG001
    """Nothing is published but the recipe of the initial points, which is followed here."""
    initial = np.random.default_rng(run).integers(0, 2, (INITIAL, n))
    optimum = -(n**2) / KNOWN[n] if n in KNOWN else None
    return Problem(
        f"labs-{n}", Space.binary(n), lambda rows: -(n**2) / energy(rows), initial,
        "Packebusch and Mertens 2016", optimum,
    )  # fmt: skip
