"""A sum of product kernels taken apart: what windows add to the parts of a posterior (`anova.py`).

    W(x, x') = sum_r s_r prod_i T_ri[x_i, x'_i]

| symbol | meaning                                                              | shape        |
|--------|----------------------------------------------------------------------|--------------|
| R      | kernels of the sum                                                   |              |
| T_i    | a variable's table under each of them                                | (R, k, k)    |
| e      | s_r times the product over all variables of the mean of T_i[., X_mi] | (R, N)       |
| r_i    | coordinates of T_i[., X_mi], over that mean                          | (R, k-1, N)  |
| Q      | mean over x of the product of two kernels of the sum, at X_m and X_n | (N, N)       |

Averages of a product are products of averages: the part of (i, j) is e r_i r_j, and Q is a product
of tables again, those of the mean over v of T_ri[v, .] T_si[v, .]. Averaged over a variable as well
it has another table there, so that what this changes, in a weighted sum over all pairs of results,
follows from the sums of the weights over the results of each pair of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercbo.arrays import Floats, Rows, sum_of
from mercbo.explaining.orders import Axes, LowOrders, Squares
from mercbo.inference import Data
from mercbo.kernels.windows import Summand

# Coordinates of a variable up to which r_i is kept: those of more values are in few pairs.
KEPT = 32


class Stack:
    """The sum of some product kernels, at the rows of `data`."""

    def __init__(self, data: Data, summands: Sequence[Summand], axes: Axes) -> None:
        self.data, self.summands, self.axes = data, summands, axes
        self.scales = np.array([each.amplitude for each in summands])  # (R,)
        # per part (R, v, k, k)
        self.tables = [
            np.exp(np.array(logs)) for logs in zip(*(each.tables for each in summands), strict=True)
        ]
        own: dict[int, Floats] = {}
        for part, tables in zip(data.kernel.parts, self.tables, strict=True):
            own |= {i: tables[:, at] for at, i in enumerate(part.variables.tolist())}
        self.by_variable = [own[i] for i in range(len(own))]  # T_i
        self._centred: dict[int, Floats] = {}

    def gram(self, rows: Rows, hot: Floats) -> Floats:
        """(A, B): of rows with one-hot rows."""
        return sum_of(each.gram(rows, hot) for each in self.summands)

    # -- parts ---------------------------------------------------------------------------------

    def cross(self, chosen: tuple[int, ...]) -> Floats:
        """Covariance of a part's coordinates with f at the data, (c, N)."""
        own = self.averages[:, np.newaxis]
        for i in chosen:
            own = own[:, :, np.newaxis] * self.centred(i)[:, np.newaxis]
            own = own.reshape(len(own), own.shape[1] * own.shape[2], own.shape[3])
        return np.asarray(own.sum(axis=0))

    def prior(self, chosen: tuple[int, ...]) -> Floats:
        """Prior covariance of a part's coordinates, (c, c)."""
        own = (self.scales * np.prod(self._grand, axis=0))[:, np.newaxis, np.newaxis]
        for i in chosen:
            ratio = self._apart[i]
            own = own[:, :, np.newaxis, :, np.newaxis] * ratio[:, np.newaxis, :, np.newaxis]
            side = own.shape[1] * own.shape[2]
            own = own.reshape(len(own), side, side)
        return np.asarray(own.sum(axis=0))

    @cached_property
    def averages(self) -> Floats:
        """e."""
        means = [table.mean(axis=1) for table in self.by_variable]
        each = [mean[:, self.data.rows[:, i]] for i, mean in enumerate(means)]
        return np.asarray(self.scales[:, np.newaxis] * np.prod(each, axis=0))

    def centred(self, i: int) -> Floats:
        """r_i."""
        if i in self._centred:
            return self._centred[i]
        table, at = self.by_variable[i], self.data.rows[:, i]
        found = (self.axes.bases[i].T @ table / table.mean(axis=1, keepdims=True))[:, :, at]
        if found.shape[1] <= KEPT:
            self._centred[i] = found
        return np.asarray(found)

    @cached_property
    def _grand(self) -> list[Floats]:
        """(R,) of each variable: the mean of its table."""
        return [table.mean(axis=(1, 2)) for table in self.by_variable]

    @cached_property
    def _apart(self) -> list[Floats]:
        """(R, k-1, k-1) of each variable: the coordinates of its table, over its mean."""
        each = zip(self.axes.bases, self.by_variable, self._grand, strict=True)
        return [b.T @ table @ b / mean[:, np.newaxis, np.newaxis] for b, table, mean in each]

    def low_orders(self) -> list[LowOrders]:
        """Of each kernel of the sum."""
        sizes = range(len(self.axes.sizes))
        factors = np.concatenate([self.centred(i) for i in sizes], axis=1)  # (R, d, N)
        return [
            LowOrders(e, e * own, own, e) for e, own in zip(self.averages, factors, strict=True)
        ]

    # -- mean squares over all x ---------------------------------------------------------------

    def prior_square(self) -> Squares:
        """Prior expectation of the mean square."""
        each = [np.einsum("rkk->r", table) / table.shape[-1] for table in self.by_variable]
        own = self.scales * np.prod(each, axis=0)
        gone = [own @ (1.0 - m / d) for m, d in zip(self._grand, each, strict=True)]
        return Squares(float(own.sum()), np.array(gone))

    def squares(self, pull: Floats) -> Squares:
        """The sum of `pull`, symmetric, times the mean over x of W(x, X_m) W(x, X_n)."""
        pairs = [(r, s) for r in range(len(self.scales)) for s in range(r + 1)]
        parts = [self._product(r, self, s, pull) * (1.0 if r == s else 2.0) for r, s in pairs]
        return sum(parts[1:], parts[0])

    def mixed(self, other: Stack, pull: Floats) -> Squares:
        """The same of W(x, X_m) W'(x, X_n), W' another sum at the same rows."""
        pairs = np.ndindex(len(self.scales), len(other.scales))
        parts = [self._product(r, other, s, pull) for r, s in pairs]
        return sum(parts[1:], parts[0])

    def _product(self, r: int, other: Stack, s: int, pull: Floats) -> Squares:
        """The same of one kernel of each sum."""
        data, kernel = self.data, self.data.kernel
        left, right = [t[r] for t in self.tables], [t[s] for t in other.tables]  # (v, k, k)
        both = [a.swapaxes(1, 2) @ b / a.shape[1] for a, b in zip(left, right, strict=True)]
        means = kernel.product([np.log(table) for table in both], data.rows, data.hot)  # Q
        weight = self.scales[r] * other.scales[s] * pull * means
        gone = np.zeros(kernel.variables)
        spread = weight @ data.hot  # (N, L)
        for part, a, b, table in zip(kernel.parts, left, right, both, strict=True):
            counts = data.hot[:, part.levels].transpose(1, 2, 0) @ spread[:, part.levels].swapaxes(
                0, 1
            )
            apart = a.mean(axis=1)[:, :, np.newaxis] * b.mean(axis=1)[:, np.newaxis]
            gone[part.variables] = (counts * (1.0 - apart / table)).sum(axis=(1, 2))
        return Squares(float(weight.sum()), gone)


@dataclass(frozen=True)
class Held:
    """A sum of product kernels of which only the amplitude differs from state to state."""

    stack: Stack  # of amplitude 1, shared by all states
    amplitude: float

    def gram(self, rows: Rows, hot: Floats) -> Floats:
        return self.amplitude * self.stack.gram(rows, hot)

    def cross(self, chosen: tuple[int, ...]) -> Floats:
        return self.amplitude * self.stack.cross(chosen)

    def prior(self, chosen: tuple[int, ...]) -> Floats:
        return self.amplitude * self.stack.prior(chosen)

    def low_orders(self) -> list[LowOrders]:
        return [each.scaled(self.amplitude) for each in self.stack.low_orders()]

    def prior_square(self) -> Squares:
        return self.stack.prior_square() * self.amplitude

    def mixed(self, other: Stack, pull: Floats) -> Squares:
        return self.stack.mixed(other, pull) * self.amplitude
