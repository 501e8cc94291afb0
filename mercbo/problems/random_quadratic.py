"""A random function of main effects and pairs over n binary variables."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.problems.base import Problem, enumerated_optimum, random_initial
from mercbo.space import Space


def value(rows: Rows, main: Floats, pairs: Floats) -> Floats:
    spins = 1.0 - 2.0 * rows
    return np.asarray(spins @ main + np.einsum("ni,ni->n", spins @ pairs, spins))


def random_quadratic(run: int, data: Path | None = None, *, n: int = 100) -> Problem:  # noqa: ARG001
    rng = np.random.default_rng([run, 7, n])
    space = Space.binary(n)
    main, pairs = rng.standard_normal(n), np.triu(rng.standard_normal((n, n)), 1) / np.sqrt(n)
    objective = partial(value, main=main, pairs=pairs)
    return Problem(
        f"quadratic-{n}", space, objective, random_initial(space, rng), "drawn here",
        enumerated_optimum(space, objective),
    )  # fmt: skip
