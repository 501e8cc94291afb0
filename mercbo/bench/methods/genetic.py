"""`genetic`: a steady-state genetic algorithm, one child at a time.

The population is the best so far, (mu + 1). Two parents are chosen by tournament and crossed
uniformly, each variable of the child mutates with probability 1/n, and a child outside the
constraints is mended by the moves that break them least.
"""

from __future__ import annotations

import numpy as np

from mercbo.arrays import Rows, key
from mercbo.bench.methods.common import InHouse, nearest, unseen_first
from mercbo.domain.feasible import mend

# The best so many live; as many as the initial points of a run.
POPULATION = 20
# Of so many random members the best becomes a parent.
TOURNAMENT = 3
# Children tried before one is new; each mutates a little more than the one before.
TRIES = 50


class Genetic(InHouse):
    """State: nothing but the results."""

    def suggest(self) -> Rows:
        rows, values = self.results()
        members = rows[np.argsort(values, kind="stable")[:POPULATION]]
        if len(members) == 0:
            return self.random()
        for turn in range(TRIES):
            child = self._mutated(self._crossed(members), times=1.0 + turn / 5)
            for row in self._repaired(child):
                if key(row) not in self.seen and self.allowed(row):
                    return np.asarray(row)
        return self.random()

    def _parent(self, members: Rows) -> Rows:
        """The best of a few random members (they are sorted)."""
        return np.asarray(members[self.rng.integers(0, len(members), TOURNAMENT).min()])

    def _crossed(self, members: Rows) -> Rows:
        one, other = self._parent(members), self._parent(members)
        return np.where(self.rng.random(len(one)) < 0.5, one, other)

    def _mutated(self, row: Rows, times: float) -> Rows:
        sizes = self.space.sizes
        rate = min(0.5, times / len(row))
        chosen = (self.rng.random(len(row)) < rate) & (sizes > 1)
        other = (row + self.rng.integers(1, np.maximum(sizes, 2))) % sizes
        return np.where(chosen, other, row)

    def _repaired(self, child: Rows) -> Rows:
        """(0 or more, n): rows within the limits near the child, or rows of the table."""
        table = self.region.table
        if table is None:
            return mend(self.region, child[np.newaxis], rng=self.rng)
        left = unseen_first(table[self.region.holds(table)], self.seen)
        if not left:
            return table[:0]
        # the child itself is at distance 0 and as good
        rows = np.stack(left)
        same = rows[(rows == child).all(axis=1)]
        return same if len(same) else nearest(rows, child)
