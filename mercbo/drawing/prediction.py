"""Moments of the posterior at points and at all their one-variable neighbours.

What the scores of points (`asking/improvement.py`, `asking/entropy.py`, `asking/bound.py`) ask for
over and over: the mean and the variance of the full process, for one or several sets of results at
the same rows.

| symbol | meaning                                                                     | shape     |
|--------|-----------------------------------------------------------------------------|-----------|
| S      | sets of results                                                             |           |
| alpha  | Sigma^-1 (results - mean)                                                   | (N, S)    |
| cross  | covariance of a point with the data                                         | (R, N)    |
| g      | one level's factor of the kernel with each result                           | (L, N)    |
| own    | log of the factor of a level with itself                                    | (L,)      |

A neighbour differs in one factor of a product, so that its covariances are those of the point times
g[new level] / g[old level]: nothing is looked up, summed or exponentiated again. Where the kernel
is averaged over symmetries, this is done for the images of the results under each of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercbo.arrays import Floats, Index, Rows
from mercbo.kernel import Kernel
from mercbo.kernels.pooling import PooledCovariance
from mercbo.linalg import Factor

# Rows predicted at a time: enough for matrix products, few enough to stay in the cache.
CHUNK = 1024


@dataclass(frozen=True)
class Covariance:
    """A product kernel of some amplitude, between points and the results at the rows of `hot`."""

    kernel: Kernel
    tables: Sequence[Floats]
    amplitude: float
    hot: Floats  # (N, L)

    def at(self, rows: Rows) -> tuple[Floats, Floats]:
        """With the results (R, N), and with themselves (R,)."""
        cross = self.amplitude * self.kernel.gram(self.tables, rows, self.hot)
        return cross, self.amplitude * self.kernel.diagonal(self.tables, rows)

    def around(self, rows: Rows, which: Index, level: Index) -> tuple[Floats, Floats]:
        """The same (M, N) and (M,) of rows[which], one variable at the value of a level."""
        held, variable = self.kernel.held(rows), self.kernel.level_variable[level]
        old = held[which, variable]
        moved = np.zeros((len(which), len(self.hot)))
        for hot, factor, inverse in self._images:
            cross = self.amplitude * self.kernel.product(self.tables, rows, hot)
            others = cross[:, np.newaxis] * inverse[held]  # (P, n, N): all factors but one
            moved += others[which, variable] * factor[level]
        if self._roots is not None:
            moved /= len(self._images) * self._roots
            moved /= self._roots_around(rows, which, level)[:, np.newaxis]
        own = self.amplitude * self.kernel.diagonal(self.tables, rows)
        return moved, own[which] * np.exp(self._own[level] - self._own[old])

    def _roots_around(self, rows: Rows, which: Index, level: Index) -> Floats:
        # between a neighbour and its image several factors have changed
        moved = rows[which]
        at = self.kernel.level_variable[level]
        moved[np.arange(len(moved)), at] = self.kernel.level_value[level]
        return np.asarray(self.kernel.roots(self.tables, moved))

    @cached_property
    def _roots(self) -> Floats | None:
        """What covariances with each result are divided by where there are symmetries."""
        return self.kernel.roots(self.tables, self.kernel.rows_of(self.hot))

    @cached_property
    def _images(self) -> list[tuple[Floats, Floats, Floats]]:
        """The results under each symmetry of the kernel, one-hot, with g and 1 / g."""
        logs = [(hot, self._log_factors(hot)) for hot in self.kernel.hot_images(self.hot)]
        return [(hot, np.exp(log), np.exp(-log)) for hot, log in logs]

    def _log_factors(self, hot: Floats) -> Floats:
        """log g, which the bounds of contrasts and the floor of a path's table keep finite."""
        out = np.zeros((self.kernel.levels, len(hot)))
        for part, table in zip(self.kernel.parts, self.tables, strict=True):
            looked = table @ hot[:, part.levels].transpose(1, 2, 0)  # (v, k, N)
            out[part.levels.ravel()] = looked.reshape(-1, len(hot))
        return out

    @cached_property
    def _own(self) -> Floats:
        out = np.zeros(self.kernel.levels)
        for part, table in zip(self.kernel.parts, self.tables, strict=True):
            out[part.levels] = np.einsum("vkk->vk", table)
        return out


@dataclass(frozen=True)
class Predictor:
    """A Gaussian process whose covariance is the sum of some, given results."""

    covariances: Sequence[Covariance | PooledCovariance]
    mean: float
    sigma: Factor
    alpha: Floats  # (N, S)

    def at(self, rows: Rows) -> tuple[Floats, Floats]:
        """Means (R, S) and variance (R,)."""
        return self._moments([each.at(rows) for each in self.covariances])

    def around(self, rows: Rows, which: Index, level: Index) -> tuple[Floats, Floats]:
        """Means (M, S) and variance (M,) at rows[which], one variable at the value of a level."""
        return self._moments([each.around(rows, which, level) for each in self.covariances])

    def _moments(self, parts: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
        cross, diagonal = parts[0]
        for more_cross, more_diagonal in parts[1:]:
            cross += more_cross
            diagonal += more_diagonal
        half = self.sigma.half_solve(cross.T)
        variance = diagonal - np.einsum("nr,nr->r", half, half)
        return self.mean + cross @ self.alpha, np.maximum(variance, 0.0)


class MomentScore(ABC):
    """A function of the moments under some states, to be descended (see `samples.Sample`)."""

    kernel: Kernel
    predictors: Sequence[Predictor]

    @abstractmethod
    def combine(self, moments: Sequence[tuple[Floats, Floats]]) -> Floats:
        """(R,) from the means (R, S) and the variance (R,) of each predictor."""

    def path(self, rows: Rows) -> Floats:
        parts = [
            self.combine([predictor.at(rows[i : i + CHUNK]) for predictor in self.predictors])
            for i in range(0, len(rows), CHUNK)
        ]
        return np.concatenate([np.zeros(0), *parts])

    def value(self, rows: Rows) -> Floats:
        return self.path(rows)

    def path_neighbours(self, rows: Rows) -> Floats:
        held = self.kernel.held(rows)[:, self.kernel.level_variable]  # (P, L)
        which, level = np.nonzero(held != np.arange(self.kernel.levels))
        parts = [
            self._moved(rows, which[i : i + CHUNK], level[i : i + CHUNK])
            for i in range(0, len(which), CHUNK)
        ]
        out = np.repeat(self.path(rows)[:, np.newaxis], self.kernel.levels, axis=1)
        out[which, level] = np.concatenate([np.zeros(0), *parts])
        return out

    def _moved(self, rows: Rows, which: Index, level: Index) -> Floats:
        """(M,): at rows[which], in their order, one variable at the value of a level."""
        first = which[0]
        some = rows[first : which[-1] + 1]  # what all of them hold is looked up for no others
        return self.combine([each.around(some, which - first, level) for each in self.predictors])
