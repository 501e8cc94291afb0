"""`combo`: after COMBO (Oh, Tomczak, Gavves and Welling 2019), on our own kernel.

A Gaussian process with the full diffusion kernel; hyper-parameters by slice sampling with COMBO's
priors (`slicing.py`): 100 sweeps at first, and then one for every ask, where the published code
makes 10. The acquisition is expected improvement on the best result, averaged over the last 10
states of the chain, under the present data. It is climbed
by one-variable moves (pairs where constraints bind) from the best of random points and of points
around the best result. The published code starts from 20,000 random points; we take fewer.

| symbol | meaning                                                            | shape  |
|--------|--------------------------------------------------------------------|--------|
| mean   | posterior mean of the noise-free function                          | (R,)   |
| sd     | its posterior standard deviation                                   | (R,)   |
| z      | (best - mean) / sd                                                 | (R,)   |
| EI     | E max(best - f, 0) = sd (phi(z) + z Phi(z))                        | (R,)   |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, logsumexp, ndtr

from mercbo.acquisition import Moves, best_spare
from mercbo.arrays import Floats, Rows
from mercbo.bench.methods.common import InHouse, neighbours, standardised
from mercbo.encoding import Encoding
from mercbo.inference import Data, Hyper
from mercbo.kernel import Kernel
from mercbo.linalg import threads_for
from mercbo.model import Model
from mercbo.posterior import Posterior
from mercbo.slicing import BURN_IN, Chain
from mercbo.space import Space

# States of the chain that are averaged, as in the published code.
STATES = 10
# Random points looked at, neighbours of the best result among them, and the climbs that start.
RANDOM, SPRAYED, CLIMBS = 1000, 20, 10
# Unseen points that stand in where everything around the maxima was seen.
SPARE = 500
# Rows predicted at a time.
CHUNK = 1024
# The process, not its features, is what is predicted.
FULL = Model(inference="slice", failures="ignore")
# A standard deviation below this is rounding: the point is known.
LEAST_SD = 1e-9
# Below this z the direct formula of EI cancels; further down its tail is phi(z) / z^2.
DIRECT, TAIL = -1.0, -1e3
LOG_ROOT_2PI = 0.5 * np.log(2.0 * np.pi)


def log_improvement(mean: Floats, variance: Floats, best: float) -> Floats:
    """log EI, accurate where EI itself would underflow.

    >>> float(np.exp(log_improvement(np.zeros(1), np.ones(1), 0.0))[0])  # 1 / sqrt(2 pi)
    0.3989422804014327
    """
    sd = np.maximum(np.sqrt(variance), LEAST_SD)
    z = (best - mean) / sd
    log_phi = -0.5 * z**2 - LOG_ROOT_2PI
    near, far = np.maximum(z, DIRECT), np.clip(z, TAIL, DIRECT)
    direct = np.log(np.exp(-0.5 * near**2 - LOG_ROOT_2PI) + near * ndtr(near))
    # Phi(z) / phi(z) = sqrt(pi / 2) erfcx(-z / sqrt 2)
    ratio = log_phi + np.log1p(far * np.sqrt(0.5 * np.pi) * erfcx(-far / np.sqrt(2.0)))
    tail = log_phi - 2.0 * np.log(np.maximum(np.abs(z), 1.0))
    parts = np.where(z > DIRECT, direct, np.where(z > TAIL, ratio, tail))
    return np.asarray(np.log(sd) + parts)


@dataclass(frozen=True)
class Improvement:
    """Minus the log of EI averaged over posteriors: a function to descend, as `samples.Sample`."""

    kernel: Kernel
    posteriors: list[Posterior]
    best: float

    def path(self, rows: Rows) -> Floats:
        parts = [self._path(rows[i : i + CHUNK]) for i in range(0, len(rows), CHUNK)]
        return np.concatenate([np.zeros(0), *parts])

    def _path(self, rows: Rows) -> Floats:
        logs = [log_improvement(*p.predict(rows), self.best) for p in self.posteriors]
        return np.asarray(np.log(len(logs)) - logsumexp(logs, axis=0))

    value = path

    def path_neighbours(self, rows: Rows) -> Floats:
        kernel = self.kernel
        moved = np.repeat(rows, kernel.levels, axis=0)
        at = np.tile(np.arange(kernel.levels), len(rows))
        moved[np.arange(len(moved)), kernel.level_variable[at]] = kernel.level_value[at]
        return self.path(moved).reshape(len(rows), kernel.levels)


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
        score = Improvement(self.kernel, posteriors, float(data.y.min()))
        if self.region.table is None:
            moves = Moves(score, self.kernel, self.region)
            row = moves.best_unseen(*moves.descend(self._starts(score, data)), self.seen)
        else:
            row = best_spare(score, self.feasible, self.seen, len(self.region.table), rng=self.rng)
        if row is None:
            row = best_spare(score, self.feasible, self.seen, SPARE, rng=self.rng)
        return self.random() if row is None else row

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
