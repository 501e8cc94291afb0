"""`local`: local search by first improvement, with restarts.

The search stands at a point, at first the best one told. It asks for unseen neighbours in random
order and goes to the first that is better. Where no neighbour is left untried and none known is
better, it starts again from a random point.
"""

from __future__ import annotations

import math

import numpy as np

from mercbo.arrays import Rows, key, keys
from mercbo.bench.methods.common import InHouse, unseen_first


class Local(InHouse):
    """State: where the search stands; None where it is to start anew."""

    here: Rows | None = None

    def suggest(self) -> Rows:
        while self.here is not None:
            around = self.shuffled_neighbours(self.here)
            better = self._known_better(around)
            if better is not None:
                self.here = better
                continue
            for row in unseen_first(around, self.seen):
                if self.allowed(row):
                    return row
            self.here = None
        return self.random()

    def _known_better(self, around: Rows) -> Rows | None:
        """The first neighbour that was told and is better."""
        assert self.here is not None
        level = self.worth[key(self.here)]
        for row, found in zip(around, keys(around), strict=True):
            if self.worth.get(found, math.inf) < level:
                return np.asarray(row)
        return None

    def learn(self, row: Rows, worth: float) -> None:
        level = math.inf if self.here is None else self.worth[key(self.here)]
        if worth < level:
            self.here = row
