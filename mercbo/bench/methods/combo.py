"""`combo`: after COMBO (Oh, Tomczak, Gavves and Welling 2019), on our own kernel.

A Gaussian process with the full diffusion kernel; hyper-parameters by slice sampling with COMBO's
priors (`fitting/slicing.py`): 100 sweeps at first, and then one for every ask, where the published
code makes 10. The acquisition is expected improvement on the best result, averaged over the last 10
states of the chain, under the present data. It is climbed by one-variable moves (pairs where
constraints bind) from the best of random points and of points around the best result. The published
code starts from 20,000 random points; we take fewer.
"""

from __future__ import annotations

import numpy as np

from mercbo.acquisition import Moves, best_spare
from mercbo.arrays import Rows
from mercbo.asking.improvement import Improvement
from mercbo.bench.methods.common import InHouse, neighbours, standardised
from mercbo.encoding import Encoding
from mercbo.fitting.slicing import BURN_IN, Chain
from mercbo.inference import Data, Hyper
from mercbo.kernel import Kernel
from mercbo.linalg import threads_for
from mercbo.model import Model
from mercbo.posterior import Posterior
from mercbo.space import Space

# States of the chain that are averaged, as in the published code.
STATES = 10
# Random points looked at, neighbours of the best result among them, and the climbs that start.
RANDOM, SPRAYED, CLIMBS = 1000, 20, 10
# Unseen points that stand in where everything around the maxima was seen.
SPARE = 500
# The process, not its features, is what is predicted.
FULL = Model(inference="slice", failures="ignore")


class Combo(InHouse):
    """State: the last states of the chain of hyper-parameters."""

    def __init__(self, space: Space, seed: int, evaluations: int) -> None:
        super().__init__(space, seed, evaluations)
        self.kernel = Kernel(Encoding(space))
        self.states: list[Hyper] = []

    def suggest(self) -> Rows:
        rows, values = self.results()
        if len(values) < 2 or self.kernel.n == 0:
            return self.random()
        with threads_for(len(values)):
            return self._modelled(Data(self.kernel, rows, standardised(values)))

    def _modelled(self, data: Data) -> Rows:
        posteriors = [Posterior(FULL, data, hyper) for hyper in self._states(data)]
        score = Improvement.of(posteriors, data.rows[:0], rng=self.rng)
        if self.region.table is None:
            moves = Moves(score, self.kernel, self.region)
            found = moves.best_unseen(*moves.descend(self._starts(score, data)), self.seen)
        else:
            most = len(self.region.table)
            found = best_spare(score, self.feasible, self.seen, most, rng=self.rng)
        if found is None:
            found = best_spare(score, self.feasible, self.seen, SPARE, rng=self.rng)
        return self.random() if found is None else found.row

    def _states(self, data: Data) -> list[Hyper]:
        chain = Chain(data, self.states[-1] if self.states else None)
        for _ in range(0 if self.states else BURN_IN):
            chain.sweep(rng=self.rng)
        for _ in range(1 if self.states else STATES):
            chain.sweep(rng=self.rng)
            self.states.append(chain.hyper())
        self.states = self.states[-STATES:]
        return self.states

    def _starts(self, score: Improvement, data: Data) -> Rows:
        """The most promising of random points and of those around the best result."""
        best = data.rows[int(data.y.argmin())]
        around = neighbours(self.region, best)
        around = around[self.rng.permutation(len(around))[:SPRAYED]]
        around = around[self.region.allows(around)]
        rows = np.concatenate([around, self.feasible.sample(RANDOM, rng=self.rng)])
        rows = np.unique(rows, axis=0)
        return rows[np.argsort(score.path(rows), kind="stable")[:CLIMBS]]
