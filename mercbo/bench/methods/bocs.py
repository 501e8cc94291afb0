"""`bocs`: after BOCS (Baptista and Poloczek 2018): Thompson sampling of a sparse quadratic.

The model is linear in the monomials of order <= 2 of the bits (one bit for two values, one-hot for
more; bits of one variable do not meet), with a horseshoe prior on the coefficients. Every ask
draws coefficients and minimises the drawn quadratic plus a small penalty on the number of ones by
simulated annealing (the backend "annealing", which keeps to one-hot groups and constraints).

The published code runs 1000 sweeps of Gibbs sampling from scratch for every ask; here the first
ask does, and later ones go on from where the chain stands.

| symbol   | meaning                                            | shape  |
|----------|----------------------------------------------------|--------|
| bits     | points in the native layout of `encoding.py`       | (N, B) |
| head     | first bit of each pair                             | (p,)   |
| tail     | second bit                                         | (p,)   |
| features | bits, then products of pairs                       | (N, d) |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercbo import backend, moves
from mercbo.arrays import Bits, Floats, Index, Rows, keys
from mercbo.bench.methods.common import InHouse, neighbours, standardised
from mercbo.bench.methods.horseshoe import Scales, gibbs
from mercbo.domain.export import Levels, binary_model, constrained_model
from mercbo.domain.feasible import mend
from mercbo.encoding import Encoding
from mercbo.features import Quadratic
from mercbo.linalg import threads_for
from mercbo.space import Space

# Sweeps of the first ask, and of each later one.
BURN_IN, SWEEPS = 1000, 100
# The penalty on each one, for standardised results (BOCS: lambda = 1e-4).
PENALTY = 1e-4
# Minima whose neighbours stand in where the minima themselves were seen.
AROUND = 5
# Unseen points of which the best is taken where that does not help, or in a table.
SPARE = 2000


class Bocs(InHouse):
    """State: where the chain of the scales stands."""

    def __init__(self, space: Space, seed: int, evaluations: int) -> None:
        super().__init__(space, seed, evaluations)
        self.encoding = Encoding(space, native=True)
        self.sampler = backend.resolve("annealing")
        self.scales: Scales | None = None

    def suggest(self) -> Rows:
        rows, values = self.results()
        if len(values) < 2 or self.encoding.width == 0:
            return self.random()
        with threads_for(len(values)):
            drawn = Drawn(self.encoding, self._coefficients(rows, standardised(values)), self.pairs)
        if self.region.table is not None:
            return self._spare(drawn, len(self.region.table))
        pool = self._minima(drawn)
        candidates = [pool, *(neighbours(self.region, row) for row in pool[:AROUND])]
        chosen = self._best_unseen(drawn, np.concatenate(candidates))
        return self._spare(drawn, SPARE) if chosen is None else chosen

    # -- the model -----------------------------------------------------------------------------

    @cached_property
    def pairs(self) -> tuple[Index, Index]:
        """head and tail: the pairs of bits that belong to different variables."""
        group = np.arange(self.encoding.width)
        for number, columns in enumerate(self.encoding.groups):
            group[columns] = self.encoding.width + number
        head, tail = np.triu_indices(self.encoding.width, 1)
        apart = group[head] != group[tail]
        return head[apart], tail[apart]

    def _coefficients(self, rows: Rows, y: Floats) -> Floats:
        """(d,): one draw from the posterior; zero where the data show no difference."""
        features = self._features(rows)
        spread = features.std(axis=0)
        varied = np.flatnonzero(spread > 0)
        X = (features[:, varied] - features[:, varied].mean(axis=0)) / spread[varied]
        d = features.shape[1]
        sweeps = BURN_IN if self.scales is None else SWEEPS
        scales = Scales.start(d) if self.scales is None else self.scales
        beta, part = gibbs(X, y, scales.take(varied), sweeps, rng=self.rng)
        self.scales = scales.put(varied, part)
        out = np.zeros(d)
        out[varied] = beta / spread[varied]
        return out

    def _features(self, rows: Rows) -> Floats:
        bits = self.encoding.to_bits(rows).astype(np.float64)
        head, tail = self.pairs
        return np.concatenate([bits, bits[:, head] * bits[:, tail]], axis=1)

    # -- its minima ----------------------------------------------------------------------------

    def _minima(self, drawn: Drawn) -> Rows:
        """Low feasible rows of the drawn quadratic, lowest first."""
        form, labels = drawn.form, self.encoding.labels
        model = binary_model(form.linear, form.coupling, 0.0, labels)
        bound = bool(self.encoding.groups) or not self.region.is_free
        if bound:
            model = constrained_model(self._levels, model, ())
        found = backend.solve(self.sampler, model, rng=self.rng)
        if len(found) == 0:
            return self.feasible.sample(1, rng=self.rng)
        order = [found.variables.index(label) for label in labels]
        bits = (found.record.sample[:, order] > 0).astype(np.int8)
        bits = moves.repair(form.linear, form.coupling, self.encoding.groups, bits)
        rows, _ = self.encoding.from_bits(bits)
        if not self.region.is_free:
            rows = mend(self.region, rows, rng=self.rng)
        rows = np.unique(rows, axis=0)
        return rows[np.argsort(drawn.value(rows), kind="stable")]

    @cached_property
    def _levels(self) -> Levels:
        return Levels(self.region, self.encoding)

    def _best_unseen(self, drawn: Drawn, rows: Rows) -> Rows | None:
        rows = rows[[found not in self.seen for found in keys(rows)]]
        for row in rows[np.argsort(drawn.value(rows), kind="stable")]:
            if self.allowed(row):
                return np.asarray(row)
        return None

    def _spare(self, drawn: Drawn, most: int) -> Rows:
        rows = self.feasible.unseen(self.seen, most, rng=self.rng)
        return self.random() if len(rows) == 0 else rows[int(drawn.value(rows).argmin())]


@dataclass(frozen=True)
class Drawn:
    """One draw of the coefficients, with the penalty, as a function of rows."""

    encoding: Encoding
    coefficients: Floats
    pairs: tuple[Index, Index]

    @cached_property
    def form(self) -> Quadratic:
        width = self.encoding.width
        coupling = np.zeros((width, width))
        coupling[self.pairs] = self.coefficients[width:]
        return Quadratic(0.0, self.coefficients[:width] + PENALTY, coupling + coupling.T)

    def value(self, rows: Rows) -> Floats:
        bits: Bits = self.encoding.to_bits(rows)
        return moves.energies(self.form.linear, self.form.coupling, bits)
