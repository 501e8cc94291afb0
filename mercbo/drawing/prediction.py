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
from typing import TypeAlias

import numpy as np

from mercbo.arrays import Floats, Index, Rows, sum_of
from mercbo.kernel import Kernel
from mercbo.kernels.motifs import MotifCovariance, MotifTerm
from mercbo.kernels.pooling import Pool, PooledCovariance
from mercbo.kernels.stacking import StackedCovariance, pays
from mercbo.kernels.windows import Summand
from mercbo.linalg import Factor

# Rows predicted at a time: enough for matrix products, few enough to stay in the cache. (With 250
# results, 6 rows of 100 neighbours take 1.5 times as long at 1024, and 1.3 times at 100.)
CHUNK = 512


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

    def around(self, rows: Rows, level: Index) -> tuple[Floats, Floats]:
        """The same (P, J, N) and (P, J) of the rows, one variable at the value of a level (P, J);
        a column of levels has one variable."""
        held, variable = self.kernel.held(rows), self.kernel.level_variable[level[0]]
        ends = _ends(variable)
        parts = []
        for hot, factor, inverse in self._images:
            cross = self.amplitude * self.kernel.product(self.tables, rows, hot)
            others = inverse.take(held[:, variable[ends - 1]], axis=0)
            others *= cross[:, np.newaxis]  # (P, V, N): all factors but one
            moved = factor.take(level, axis=0)
            _multiply(moved, others, ends)
            parts.append(moved)
        moved = sum_of(parts)
        if self._roots is not None:
            moved /= len(self._images) * self._roots
            moved /= self._roots_around(rows, level)[:, :, np.newaxis]
        own = self.amplitude * self.kernel.diagonal(self.tables, rows)[:, np.newaxis]
        return moved, own * np.exp(self._own[level] - self._own[held[:, variable]])

    def _roots_around(self, rows: Rows, level: Index) -> Floats:
        # between a neighbour and its image several factors have changed
        moved = np.repeat(rows, level.shape[1], axis=0)
        at = self.kernel.level_variable[level.ravel()]
        moved[np.arange(len(moved)), at] = self.kernel.level_value[level.ravel()]
        return np.asarray(self.kernel.roots(self.tables, moved)).reshape(level.shape)

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


def _multiply(moved: Floats, others: Floats, ends: Index) -> None:
    """Multiply the columns of moved (P, J, N) by others (P, V, N), number v of which is for those
    up to ends[v], in place: a temporary of a megabyte takes longer than all else here."""
    counts = ends.copy()
    counts[1:] -= ends[:-1]
    first = 0
    for stop in _ends(counts).tolist():  # variables with as many columns each
        columns = moved[:, ends[first] - counts[first] : ends[stop - 1]]
        shape = len(moved), stop - first, int(counts[first]), moved.shape[2]
        by_variable = columns.reshape(shape)  # a view
        by_variable *= others[:, first:stop, np.newaxis]
        first = stop


def _ends(labels: Index) -> Index:
    """Where each stretch of equal labels ends."""
    return np.append(np.flatnonzero(labels[1:] != labels[:-1]) + 1, len(labels))


AnyCovariance: TypeAlias = Covariance | StackedCovariance | PooledCovariance | MotifCovariance


def covariances_of(
    kernel: Kernel,
    summands: Sequence[Summand],
    pools: Sequence[Pool],
    motifs: Sequence[MotifTerm],
    hot: Floats,
) -> list[AnyCovariance]:
    """What the covariance with the results at the rows of `hot` is the sum of."""
    products: list[AnyCovariance]
    if pays(kernel, summands):
        products = [StackedCovariance(kernel, summands, hot)]
    else:
        products = [Covariance(kernel, each.tables, each.amplitude, hot) for each in summands]
    pooled = [PooledCovariance(pool, hot) for pool in pools]
    return [*products, *pooled, *(MotifCovariance(motif, hot) for motif in motifs)]


@dataclass(frozen=True)
class Predictor:
    """A Gaussian process whose covariance is the sum of some, given results."""

    covariances: Sequence[AnyCovariance]
    mean: float
    sigma: Factor
    alpha: Floats  # (N, S)

    def at(self, rows: Rows) -> tuple[Floats, Floats]:
        """Means (R, S) and variance (R,)."""
        return self._moments([each.at(rows) for each in self.covariances])

    def around(self, rows: Rows, level: Index) -> tuple[Floats, Floats]:
        """Means (P J, S) and variance (P J,) at each row with one variable at the value of each of
        its levels (P, J), those of the first row first; a column of levels has one variable."""
        return self._moments([each.around(rows, level) for each in self.covariances])

    def _moments(self, parts: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
        cross, diagonal = parts[0]
        for more_cross, more_diagonal in parts[1:]:
            cross += more_cross
            diagonal += more_diagonal
        cross = cross.reshape(-1, len(self.alpha))
        means = self.mean + cross @ self.alpha
        variance = diagonal.ravel() - self.sigma.inverse_forms(cross, overwrite=True)
        return means, np.maximum(variance, 0.0)


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
        if len(which) == 0:
            return np.repeat(self.path(rows)[:, np.newaxis], self.kernel.levels, axis=1)
        # every row has as many others; a row itself is one with a variable at the value it has
        values = self._around(rows, np.column_stack([level.reshape(len(rows), -1), held[:, 0]]))
        out = np.repeat(values[:, -1:], self.kernel.levels, axis=1)
        out[which, level] = values[:, :-1].ravel()
        return out

    def _around(self, rows: Rows, level: Index) -> Floats:
        """(P, J), in blocks."""
        out = np.empty(level.shape)
        width = min(CHUNK, level.shape[1])
        height = CHUNK // width
        for top in range(0, len(rows), height):
            some = slice(top, top + height)
            for left in range(0, level.shape[1], width):
                part = level[some, left : left + width]
                moments = [each.around(rows[some], part) for each in self.predictors]
                out[some, left : left + width] = self.combine(moments).reshape(part.shape)
        return out
