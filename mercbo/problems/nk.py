"""NK landscapes: n bits, each of whose contributions depends on itself and on k others.

Kauffman (1993), with neighbours drawn at random and contributions uniform on [0, 1]. The fitness is
their mean, so it is in [0, 1] too; it is to be maximised, so the objective is its negative. k = 0
is additive, k = n - 1 has no structure at all.

| symbol     | meaning                                              | shape        |
|------------|------------------------------------------------------|--------------|
| neighbours | the bit itself, then the k others that it depends on | (n, k + 1)   |
| tables     | contribution of each bit for each setting of those   | (n, 2^(k+1)) |
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.errors import SettingError
from mercbo.problems.base import Problem, at_least, enumerated_optimum, random_initial
from mercbo.space import Space

# A table has 2^(k+1) entries; beyond this they stop being small.
MOST_NEIGHBOURS = 15


def minus_fitness(rows: Rows, neighbours: Rows, tables: Floats) -> Floats:
    n, width = neighbours.shape
    settings = rows[:, neighbours] @ (2 ** np.arange(width))  # (N, n)
    return -np.asarray(tables[np.arange(n), settings].mean(axis=1))


def draw_neighbours(n: int, k: int, rng: np.random.Generator) -> Rows:
    """(n, k + 1): each bit with k others, all different."""
    others = [np.delete(np.arange(n), i) for i in range(n)]
    return np.array([[i, *rng.choice(others[i], k, replace=False)] for i in range(n)])


def nk(run: int, data: Path | None = None, *, n: int = 30, k: int = 3) -> Problem:  # noqa: ARG001
    at_least("k", k, 0)
    if k >= n or k > MOST_NEIGHBOURS:
        raise SettingError(f"k={k} is too large; at most {min(n - 1, MOST_NEIGHBOURS)} was wanted")
    rng = np.random.default_rng([run, 9, n, k])
    space = Space.binary(n)
    neighbours = draw_neighbours(n, k, rng)
    objective = partial(minus_fitness, neighbours=neighbours, tables=rng.random((n, 2 ** (k + 1))))
    return Problem(
        f"nk-{n}-{k}", space, objective, random_initial(space, rng), "Kauffman 1993",
        enumerated_optimum(space, objective),
    )  # fmt: skip
