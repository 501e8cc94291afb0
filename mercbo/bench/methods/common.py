"""What our own methods share: the results so far, rows that must not come again, feasible moves.

| symbol | meaning                                                              | shape  |
|--------|----------------------------------------------------------------------|--------|
| rows   | the points told, in the order told, failures included                | (N, n) |
| values | their results, NaN where the evaluation failed                       | (N,)   |
| seen   | keys of all points told or asked for                                 |        |
| worth  | value of each told point by its key, infinite where it failed        |        |

A *neighbour* of a row is a feasible row that differs from it in one variable or, where constraints
bind, in two of which neither or only one could have changed alone (a swap). In a table, it is a
row that differs in as few variables as any other.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from mercbo.arrays import Floats, Mask, Rows, key, keys
from mercbo.domain.region import Region
from mercbo.errors import SpaceExhausted
from mercbo.space import Space


class InHouse(ABC):
    """A method that never repeats a point and never leaves the feasible ones.

    A subclass gives `suggest`, a new feasible row, and may look at each result in `learn`.
    """

    def __init__(self, space: Space, seed: int, evaluations: int) -> None:
        self.space = space
        self.feasible = space.feasible
        self.region = space.region
        self.evaluations = evaluations
        self.rng = np.random.default_rng(seed)
        self.asked = 0
        self.seen: set[bytes] = set()
        self.worth: dict[bytes, float] = {}
        self._rows: list[Rows] = []
        self._values: list[float] = []

    def ask(self) -> Rows:
        row = self.suggest()
        self.asked += 1
        self.seen.add(key(row))
        return row

    def tell(self, row: Rows, value: float) -> None:
        found = key(row)
        self.seen.add(found)
        self.worth[found] = math.inf if math.isnan(value) else value
        self._rows.append(row)
        self._values.append(value)
        self.learn(row, self.worth[found])

    @abstractmethod
    def suggest(self) -> Rows:
        """(n,): the next row, new and feasible."""

    def learn(self, row: Rows, worth: float) -> None:  # noqa: B027 (most methods need none)
        """Take note of a result; an infinite one is a failure."""

    def results(self) -> tuple[Rows, Floats]:
        """Rows (N, n) and values (N,) of the evaluations that worked."""
        values = np.array(self._values, dtype=np.float64)
        rows = np.array(self._rows, dtype=np.int64).reshape(len(values), len(self.space))
        worked = ~np.isnan(values)
        return rows[worked], values[worked]

    def random(self) -> Rows:
        """A random unseen row."""
        rows = self.feasible.unseen(self.seen, 1, rng=self.rng)
        if len(rows) == 0:
            raise SpaceExhausted(f"all {len(self.seen)} points of the space were asked for")
        return np.asarray(rows[0])

    def allowed(self, row: Rows) -> bool:
        return bool(self.region.allows(row[np.newaxis])[0])

    def shuffled_neighbours(self, row: Rows) -> Rows:
        """The neighbours of a row in random order; predicates have not been asked."""
        around = neighbours(self.region, row)
        return around[self.rng.permutation(len(around))]


def standardised(values: Floats) -> Floats:
    """Values with mean 0 and standard deviation 1; all 0 where they are all the same."""
    size = float(np.abs(values).max(initial=0.0)) or 1.0
    centred = values / size - (values / size).mean()
    spread = float(centred.std())
    # a spread below rounding is no spread
    return np.asarray(centred / spread) if spread > 1e-14 else np.zeros_like(centred)


def neighbours(region: Region, row: Rows) -> Rows:
    """(P, n): the neighbours of a row, predicates aside."""
    if region.table is not None:
        return nearest(region.table[region.holds(region.table)], row)
    alone = _changes(region, row)
    fine = region.moves(row[np.newaxis])[0] & alone
    singles = _moved(region, np.repeat(row[np.newaxis], int(fine.sum()), axis=0), fine)
    if len(region.limits) == 0:
        return singles
    return np.concatenate([singles, _pairs(region, row, alone & region.open, fine)])


def nearest(rows: Rows, row: Rows) -> Rows:
    """Those of some rows that differ from a row in the fewest variables, itself aside."""
    distance = (rows != row).sum(axis=1)
    least = distance[distance > 0].min(initial=len(row) + 1)
    return np.asarray(rows[distance == least])


def _changes(region: Region, row: Rows) -> Mask:
    """(L,): the levels that the row does not have."""
    own = np.zeros(len(region.open), dtype=np.bool_)
    own[region.start + row] = True
    return ~own


def _moved(region: Region, rows: Rows, levels: Mask) -> Rows:
    """Each row with one more of the chosen levels, in turn."""
    chosen = np.flatnonzero(levels)
    variable = region.variable_of[chosen]
    rows[np.arange(len(rows)), variable] = chosen - region.start[variable]
    return rows


def _pairs(region: Region, row: Rows, first: Mask, fine: Mask) -> Rows:
    """Rows within the limits that differ in two variables, not both free to change alone."""
    levels = np.flatnonzero(first)
    between = _moved(region, np.repeat(row[np.newaxis], len(levels), axis=0), first)
    second = region.moves(between) & first  # (T, L)
    # each pair once, and of two variables
    second &= region.variable_of > region.variable_of[levels][:, np.newaxis]
    second &= ~(fine[levels][:, np.newaxis] & fine)
    which, level = np.nonzero(second)
    pairs = between[which]
    variable = region.variable_of[level]
    pairs[np.arange(len(pairs)), variable] = level - region.start[variable]
    return pairs


def unseen_first(rows: Rows, seen: set[bytes]) -> list[Rows]:
    """The unseen ones of some rows, in their order."""
    return [row for row, found in zip(rows, keys(rows), strict=True) if found not in seen]
