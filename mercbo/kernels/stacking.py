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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercbo.arrays import Floats, Index, Mask, Rows
from mercbo.kernel import Kernel
from mercbo.kernels.windows import Summand

# Products between points, kernels and results that are held at a time: 4 MB.
ENTRIES = 1 << 19


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
        logs = np.empty((len(rows), len(self.summands), self.kernel.levels))
        for part, tables in zip(self.kernel.parts, self._tables, strict=True):
            looked = tables[np.arange(len(part.variables)), rows[:, part.variables]]  # (P, v, k, S)
            logs[:, :, part.levels] = np.moveaxis(looked, 3, 1)
        q = np.exp(logs.reshape(-1, self.kernel.levels) @ self.hot.T)
        return q.reshape(*logs.shape[:2], -1) * self._amplitudes[:, np.newaxis]

    @cached_property
    def _amplitudes(self) -> Floats:
        return np.array([each.amplitude for each in self.summands])

    @cached_property
    def _tables(self) -> list[Floats]:
        """T of each part."""
        return [np.stack(tables, axis=3) for tables in zip(*self._log_tables, strict=True)]

    @property
    def _log_tables(self) -> list[Sequence[Floats]]:
        return [each.tables for each in self.summands]

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
