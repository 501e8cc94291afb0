"""The same problem with its values renamed, so that no method gains from where the optimum lies.

Several published optima lie at a special point (that of MaxSAT-60 is all zeros), which a method may
visit by accident. Each variable's values are shuffled in a way that keeps its graph, so that to any
model of the space the problem is as hard as before:

| variable                        | may become                                                |
|---------------------------------|-----------------------------------------------------------|
| Binary                          | itself or its complement                                  |
| Categorical                     | any permutation of its values                             |
| Categorical, encoding="binary"  | its bits permuted and complemented, as 2^b values allow;  |
|                                 | with another number of values it stays as it is           |
| Ordinal, Integer                | itself or its reverse                                     |
| any that a constraint names     | itself: the constraint would otherwise mean another thing |

A space with a `Where` constraint or a table keeps all its variables as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.domain.constraints import Where
from mercbo.domain.variables import Variable
from mercbo.problems.base import Problem
from mercbo.space import Space


@dataclass(frozen=True)
class Moved:
    """An objective behind a bijection: ``maps[i][j]`` is the old value of variable i's new j."""

    objective: Callable[..., Floats]
    maps: tuple[Rows, ...]

    def __call__(self, rows: Rows, **numbering: int) -> Floats:
        return self.objective(self.old(rows), **numbering)

    def old(self, rows: Rows) -> Rows:
        """Rows of the relocated problem -> rows of the original."""
        return np.stack([m[column] for m, column in zip(self.maps, rows.T, strict=True)], axis=1)

    def new(self, rows: Rows) -> Rows:
        """Rows of the original -> rows of the relocated problem."""
        backwards = [np.argsort(m) for m in self.maps]
        return np.stack([b[column] for b, column in zip(backwards, rows.T, strict=True)], axis=1)


def relocate(problem: Problem, run: int) -> Problem:
    """The problem with its values renamed by a bijection that is drawn from `run`.

    Initial points move along, so their values and that of the optimum are what they were.
    """
    rng = np.random.default_rng([run, 16])
    still = fixed_names(problem.space)
    maps = tuple(
        np.arange(variable.size) if name in still else draw_map(variable, rng)
        for name, variable in problem.space.variables.items()
    )
    moved = Moved(problem.objective, maps)
    return replace(problem, objective=moved, initial=moved.new(problem.initial), relocated=True)


def fixed_names(space: Space) -> set[str]:
    """The variables that constraints are about."""
    if space.region.table is not None or any(isinstance(c, Where) for c in space.constraints):
        return set(space.names)
    rows = [row for c in space.constraints for row in c.rows(space.variables)]
    return {name for row in rows for name, _ in row.weights}


def draw_map(variable: Variable, rng: np.random.Generator) -> Rows:
    """(k,): a random automorphism of the variable's graph."""
    if variable.graph == "path":
        values = np.arange(variable.size)
        return values[::-1].copy() if rng.random() < 0.5 else values
    if variable.encoding == "binary":
        return draw_bit_map(variable.size, rng)
    return rng.permutation(variable.size)


def draw_bit_map(k: int, rng: np.random.Generator) -> Rows:
    """(k,): the bits of each index in another order, some of them complemented."""
    bits = (k - 1).bit_length()
    values = np.arange(k)
    if k != 2**bits:
        return values
    order, mask = rng.permutation(bits), int(rng.integers(k))
    permuted = sum(((values >> int(old)) & 1) << new for new, old in enumerate(order))
    return np.asarray(permuted ^ mask, dtype=np.int64)
