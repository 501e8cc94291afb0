"""Several product kernels at once, between points and results: what a sum over windows asks for.

| symbol | meaning                                                                  | shape        |
|--------|--------------------------------------------------------------------------|--------------|
| S      | kernels of the sum                                                       |              |
| q      | each kernel between a point and the results, its amplitude included      | (P, S, N)    |
| T      | of a part: log of the factor of value x with c, all kernels side by side | (v, k, k, S) |
| own    | log of the factor of a level with itself                                 | (L, S)       |

Where variable i of a point goes from value a to b, kernel s is multiplied at every result by
exp(T[i, b, c, s] - T[i, a, c, s]), c being the result's value of that variable. So the sum over
kernels is, for each value c, one matrix product of these ratios and q, of which the results that
have the value are taken: as many products as there are values, in place of as many passes over all
neighbours and results as there are kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercbo.arrays import Floats, Index, Mask, Rows
from mercbo.kernel import Kernel
from mercbo.kernels.windows import Summand

# Products between points, kernels and results that are held at a time: 4 MB.
ENTRIES = 1 << 19
# Entries of Gram matrices that are worked on together: half a megabyte stays in the cache.
CACHED = 1 << 16


def products(kernel: Kernel, log_tables: Sequence[Floats], rows: Rows, hot: Floats) -> Floats:
    """(S, A, B): `Kernel.product` of several kernels, whose tables are (S, v, k, k) per part."""
    count = len(log_tables[0]) if log_tables else 0
    out = np.empty((count, len(rows), len(hot)))
    for some in _blocks(count, len(rows) * len(hot)):
        looked = np.empty((some.stop - some.start, len(rows), kernel.levels))
        for part, tables in zip(kernel.parts, log_tables, strict=True):
            place, value = np.arange(len(part.variables)), rows[:, part.variables]
            found = tables[some, place, value]  # (S, A, v, k)
            looked[:, :, part.span] = found.reshape(*found.shape[:2], part.levels.size)
        logs = np.matmul(looked, hot.T, out=out[some])
        np.exp(logs, out=logs)
    return out


def contracted(
    kernel: Kernel, gradients: Sequence[Floats], pull: Floats, grams: Floats, hot: Floats
) -> Floats:
    """(S, n): `Kernel.contract` of pull * gram for several Gram matrices (S, N, N), of kernels
    whose gradients are (S, v, f, k, k) per part."""
    out = np.zeros((len(grams), kernel.n))
    for some in _blocks(len(grams), pull.size):
        spread = (pull * grams[some]) @ hot  # (S, N, L)
        for part, gradient in zip(kernel.parts, gradients, strict=True):
            shape = len(hot), *part.levels.shape
            left = hot[:, part.span].reshape(shape).transpose(1, 2, 0)  # (v, k, N)
            right = spread[:, :, part.span].reshape(-1, *shape).transpose(0, 2, 1, 3)
            # (v, k, N) @ (S, v, N, k)
            out[some, part.factors] = np.einsum("svab,svfab->svf", left @ right, gradient[some])
    return out


def _blocks(count: int, entries: int) -> Iterator[slice]:
    """Some of the kernels at a time, with so many entries each."""
    step = max(1, CACHED // max(1, entries))
    for first in range(0, count, step):
        yield slice(first, min(count, first + step))


def pays(kernel: Kernel, summands: Sequence[Summand]) -> bool:
    """Whether there are more kernels than values, and no symmetries to average them over."""
    most = max((part.size for part in kernel.parts), default=1)
    return most < len(summands) and len(kernel.images(np.zeros((1, kernel.variables), int))) == 1


@dataclass(frozen=True)
class StackedCovariance:
    """The sum of some product kernels, as `drawing.prediction.Covariance` is of one."""

    kernel: Kernel
    summands: Sequence[Summand]
    hot: Floats  # (N, L)

    def at(self, rows: Rows) -> tuple[Floats, Floats]:
        """With the results (R, N), and with themselves (R,)."""
        step = max(1, ENTRIES // (len(self.summands) * max(1, len(self.hot))))
        parts = [self._products(rows[i : i + step]) for i in range(0, len(rows), step)]
        empty = np.zeros((0, len(self.hot)))
        own = self._own[self.kernel.held(rows)].sum(axis=1)  # (R, S)
        cross = np.concatenate([empty, *(part.sum(axis=1) for part in parts)])
        return cross, np.exp(own) @ self._amplitudes

    def around(self, rows: Rows, level: Index) -> tuple[Floats, Floats]:
        """The same (P, J, N) and (P, J) of the rows, one variable at the value of a level (P, J);
        a column of levels has one variable."""
        q, held = self._products(rows), self.kernel.held(rows)
        variable = self.kernel.level_variable[level[0]]
        old = held[:, variable]
        moved = np.empty((*level.shape, len(self.hot)))
        for number, part in enumerate(self.kernel.parts):
            inside = np.flatnonzero(np.isin(variable, part.variables))
            if len(inside):
                moved[:, inside] = self._moved(number, q, old[:, inside], level[:, inside])
        own = self._own[held].sum(axis=1)[:, np.newaxis] + self._own[level] - self._own[old]
        return moved, np.exp(own) @ self._amplitudes

    def _moved(self, number: int, q: Floats, old: Index, new: Index) -> Floats:
        """(P, J, N): of neighbours by the variables of one part."""
        levels, tables = self.kernel.parts[number].levels, self._tables[number]
        place, was = np.divmod(old - levels[0, 0], levels.shape[1])
        # (k, P, J, S): products are quick where what they sum over is contiguous
        ratio = np.exp(tables[place, new - levels[place, 0]] - tables[place, was])
        ratio = np.ascontiguousarray(np.moveaxis(ratio, 2, 0))
        moved = ratio[0] @ q
        for value in range(1, len(ratio)):
            np.copyto(moved, ratio[value] @ q, where=self._has[levels[place[0], value]])
        return np.asarray(moved)

    def _products(self, rows: Rows) -> Floats:
        """q."""
        found = products(self.kernel, self._log_tables, rows, self.hot)
        found *= self._amplitudes[:, np.newaxis, np.newaxis]
        return found.transpose(1, 0, 2)

    @cached_property
    def _amplitudes(self) -> Floats:
        return np.array([each.amplitude for each in self.summands])

    @cached_property
    def _log_tables(self) -> list[Floats]:
        """Per part (S, v, k, k)."""
        return [np.stack(part) for part in zip(*(s.tables for s in self.summands), strict=True)]

    @cached_property
    def _tables(self) -> list[Floats]:
        """T of each part."""
        return [np.ascontiguousarray(np.moveaxis(part, 0, 3)) for part in self._log_tables]

    @cached_property
    def _own(self) -> Floats:
        own = np.zeros((self.kernel.levels, len(self.summands)))
        for part, tables in zip(self.kernel.parts, self._tables, strict=True):
            own[part.levels] = np.einsum("vkks->vks", tables)
        return own

    @cached_property
    def _has(self) -> Mask:
        """(L, N): whether a result has a level."""
        return np.ascontiguousarray(self.hot.T > 0.5)
