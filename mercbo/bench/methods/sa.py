"""`sa`: simulated annealing on the objective itself.

The walk stands at a point, at first the best one told, and proposes random neighbours. One that
is known is decided by its known value, at no cost; one that is not is asked for and decided when
it is told. A step up by d is taken with probability exp(-d / T). T falls geometrically over the
evaluations to come, between two shares of the standard deviation of the results so far. A walk
that has seen everything around it and stays there starts again from a random point.
"""

from __future__ import annotations

import math

import numpy as np

from mercbo.arrays import Rows, key
from mercbo.bench.methods.common import InHouse, neighbours

# Shares of the spread: at first a step up by half of it is taken one time in three (the spread of
# all points is that of many moves together); at last the walk only descends.
HOT, COLD = 0.5, 0.01
# Steps between known points in one ask; a walk that has seen everything around it ends here.
MOST_STEPS = 200


class Annealed(InHouse):
    """State: where the walk stands, None before anything worked; what is around; the spread."""

    here: Rows | None = None
    level: float = math.inf
    spread: float = 1.0

    def suggest(self) -> Rows:
        for _ in range(MOST_STEPS if self.here is not None else 0):
            row = self._proposal()
            if row is None:
                break
            found = key(row)
            if found not in self.seen:
                return row
            self._decide(row, self.worth.get(found, math.inf))
        self.here, self.level = None, math.inf
        return self.random()

    def _proposal(self) -> Rows | None:
        """A random neighbour of where the walk stands."""
        for at in self.rng.permutation(len(self.around)):
            if self.allowed(self.around[at]):
                return np.asarray(self.around[at])
        return None

    def learn(self, row: Rows, worth: float) -> None:
        _, values = self.results()
        self.spread = float(np.std(values)) if len(values) > 1 else 0.0
        if self.asked > 0:
            self._decide(row, worth)
        elif worth < self.level:  # points from elsewhere: the walk starts at the best of them
            self._go(row, worth)

    def _decide(self, row: Rows, worth: float) -> None:
        """Take a step, or do not."""
        up = worth - self.level
        if up <= 0 or self.rng.random() < math.exp(-min(up / self._temperature(), 700.0)):
            self._go(row, worth)

    def _go(self, row: Rows, worth: float) -> None:
        if math.isfinite(worth):
            self.here, self.level = row, worth
            self.around = neighbours(self.region, row)

    def _temperature(self) -> float:
        gone = min(1.0, self.asked / max(1, self.evaluations))
        return float((self.spread or 1.0) * HOT * (COLD / HOT) ** gone)
