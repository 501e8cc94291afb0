"""Effects and pairs of variables with prior variances of their own, beside a product kernel.

    B(x, x') = scale * (1 + v S_1 + v^2 S_2),  S_1 = sum_i E_i[x_i, x'_i],  S_2 = sum_{i<j} E_i E_j

| symbol | meaning                                                                     | shape   |
|--------|-----------------------------------------------------------------------------|---------|
| E_i    | covariance of a variable's effect: mean 0, mean square 1 over its values    | (k, k)  |
| G_i    | mean over v of E_i[v, X_mi] E_i[v, X_ni]                                    | (N, N)  |
| R_i    | mean over v of T_i[v, X_mi] E_i[v, X_ni], over the mean of T_i[v, X_mi]     | (N, N)  |

The parts of B (`anova.py`) are its summands, as each E_i has mean zero; sums over pairs are those
of Newton, (S_1^2 - sum_i E_i^2) / 2. The model of an explanation (`explanatory.py`) is K + B.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercbo.arrays import Floats, Rows, kron
from mercbo.explaining.orders import LowOrders
from mercbo.kernel import Kernel


def effect_tables(kernel: Kernel) -> list[Floats]:
    """E_i, per part (v, k, k): for a path the pseudo-inverse of its Laplacian, a random walk."""
    tables = []
    for part in kernel.parts:
        k = part.size
        if part.graph == "path" and k > 1:
            one = (part.psi * (1.0 / part.lam / (1.0 / part.lam).sum())) @ part.psi.T
        else:
            one = (k * np.eye(k) - 1.0) / max(k - 1, 1)
        tables.append(np.broadcast_to(one, (len(part.variables), k, k)))
    return tables


def pairs_of(total: Floats, squares: Floats) -> Floats:
    """Newton: the sum over pairs of products, from the sum and the sum of squares."""
    return 0.5 * (total**2 - squares)


def sums_at(kernel: Kernel, rows: Rows, hot: Floats) -> tuple[Floats, Floats]:
    """S_1 and S_2, rows against one-hot rows."""
    tables = effect_tables(kernel)
    one = kernel.sum_tables(tables, rows, hot)
    return one, pairs_of(one, kernel.sum_tables([table**2 for table in tables], rows, hot))


@dataclass(frozen=True)
class Ridges:
    """The prior B of effects and pairs."""

    scale: float
    v: float

    @classmethod
    def of(cls, kernel: Kernel, effects: float, pairs: float) -> Ridges:
        """From the variance of all effects together and that of all pairs. A single variable has
        no pairs; `pairs` then governs the constant only."""
        n = max(sum(len(part.variables) for part in kernel.parts if part.size > 1), 1)
        v = pairs / max(n * (n - 1) // 2, 1) / (effects / n)
        return cls(effects / n / v, v)

    def covariances(self, kernel: Kernel, rows: Rows, hot: Floats) -> tuple[float, Floats, Floats]:
        """That of the constant, of the effects and of the pairs, rows against one-hot rows."""
        return self.weighted(*sums_at(kernel, rows, hot))

    def weighted(self, one: Floats, two: Floats) -> tuple[float, Floats, Floats]:
        """The same from S_1 and S_2."""
        return self.scale, self.scale * self.v * one, self.scale * self.v**2 * two


class RidgeParts:
    """What B adds to the parts of the posterior of a product kernel T at `rows`
    (`anova.Decomposition`).

    tables
        T of each variable, (k, k).
    bases
        Orthonormal functions of mean zero of each variable, (k, k-1).
    """

    def __init__(
        self,
        ridges: Ridges,
        kernel: Kernel,
        rows: Rows,
        *,
        tables: Sequence[Floats],
        bases: Sequence[Floats],
    ) -> None:
        self.ridges, self.rows, self.bases = ridges, rows, bases
        effects: dict[int, Floats] = {}
        for part, table in zip(kernel.parts, effect_tables(kernel), strict=True):
            effects |= dict(zip(part.variables.tolist(), table, strict=True))
        self.effects = [effects[i] for i in range(len(effects))]
        self.varied = [i for i, table in enumerate(self.effects) if len(table) > 1]
        self.tables = tables

    def _weight(self, order: int) -> float:
        return self.ridges.scale * self.ridges.v**order if order <= 2 else 0.0

    def cross(self, chosen: tuple[int, ...]) -> Floats:
        """Covariance of a part's coordinates with f at the data, (c, N)."""
        own = np.ones((1, len(self.rows)))
        for i in chosen:
            own = (own[:, np.newaxis] * self._at_data[i]).reshape(-1, len(self.rows))
        return self._weight(len(chosen)) * own

    def prior(self, chosen: tuple[int, ...]) -> Floats:
        """Prior covariance of a part's coordinates, (c, c)."""
        own: Floats = np.ones((1, 1))
        for i in chosen:
            own = kron(own, self._effects_apart[i])
        return self._weight(len(chosen)) * own

    @cached_property
    def _at_data(self) -> list[Floats]:
        """(k-1, N) of each variable: covariance of the coordinates of its effect with the data."""
        each = zip(self.bases, self.effects, strict=True)
        return [(basis.T @ one)[:, self.rows[:, i]] for i, (basis, one) in enumerate(each)]

    @cached_property
    def _effects_apart(self) -> list[Floats]:
        """(k-1, k-1) of each variable: covariance of the coordinates of its effect."""
        return [b.T @ one @ b for b, one in zip(self.bases, self.effects, strict=True)]

    def low_orders(self) -> LowOrders:
        """All of B is of order <= 2."""
        factors, ones = np.concatenate(self._at_data), np.ones(len(self.rows))
        constant, effects, pairs = (self._weight(order) for order in range(3))
        return LowOrders(constant * ones, effects * factors, factors, pairs * ones)

    def prior_square(self, averaged: tuple[int, ...]) -> float:
        """Prior expectation of the mean square, averaged over some variables."""
        left = sum(i not in averaged for i in self.varied)
        return sum(self._weight(m) * c for m, c in enumerate([1, left, left * (left - 1) // 2]))

    # -- mean squares over all x, (N, N) -------------------------------------------------------

    def squares(self, averaged: tuple[int, ...]) -> Floats:
        """The mean over x of B(x, X_m) B(x, X_n), B averaged over some variables."""
        weights = [self._weight(order) ** 2 for order in range(3)]
        return _low_orders(weights, self._own_sums, [self._own(i) for i in averaged])

    def mixed_squares(self, averaged: tuple[int, ...]) -> Floats:
        """The mean over x of T(x, X_m) B(x, X_n), both averaged over some variables."""
        weights = [self._weight(order) for order in range(3)]
        low = _low_orders(weights, self._mixed_sums, [self._mixed(i) for i in averaged])
        return np.asarray(self._averages[:, np.newaxis] * low)

    @cached_property
    def _averages(self) -> Floats:
        """(N,): the mean over x of T(x, X_m)."""
        each = [table.mean(axis=0)[self.rows[:, i]] for i, table in enumerate(self.tables)]
        return np.asarray(np.prod(each, axis=0))

    @cached_property
    def _own_sums(self) -> tuple[Floats, Floats]:
        return _sums(self._own(i) for i in self.varied)

    @cached_property
    def _mixed_sums(self) -> tuple[Floats, Floats]:
        return _sums(self._mixed(i) for i in self.varied)

    def _own(self, i: int) -> Floats:
        """G_i."""
        effects = self.effects[i]
        return self._looked(effects @ effects / len(effects), i)

    def _mixed(self, i: int) -> Floats:
        """R_i."""
        table, effects = self.tables[i], self.effects[i]
        both = table.T @ effects / len(table)
        return self._looked(both / table.mean(axis=0)[:, np.newaxis], i)

    def _looked(self, table: Floats, i: int) -> Floats:
        at = self.rows[:, i]
        return np.asarray(table[at[:, np.newaxis], at])


def _sums(each: Iterable[Floats]) -> tuple[Floats, Floats]:
    """The sum and the sum of squares."""
    one, two = np.zeros(()), np.zeros(())
    for matrix in each:
        one, two = one + matrix, two + matrix**2
    return one, two


def _low_orders(
    weights: Sequence[float], sums: tuple[Floats, Floats], dropped: Sequence[Floats]
) -> Floats:
    """A weighted sum of 1, the sum over variables and the sum over pairs, some dropped."""
    one, two = sums
    for matrix in dropped:
        one, two = one - matrix, two - matrix**2
    return np.asarray(weights[0] + weights[1] * one + weights[2] * pairs_of(one, two))
