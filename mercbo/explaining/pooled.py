"""What is pooled taken apart: what p S + q S^2 adds to the parts of a posterior (`anova.py`).

S(x, x') = u(x) . u(x') with u(x) = sum_i phi_i(x_i), of which every summand has mean zero. So with
g_i(v) = phi_i(v) . u(X_m), the covariance with the result at X_m is

    p sum_i g_i(x_i)  +  q (sum_i g_i(x_i)^2 + 2 sum_{i<j} g_i(x_i) g_j(x_j)),

whose parts are the constant q u' M u, the effects p g_i + q (g_i^2 - u' M_i u), and the pairs
2 q g_i g_j. Unlike in a product kernel, they depend on all the values of X_m: what a value did
elsewhere counts for it here. A priori the effects of like variables are correlated, and so are
pairs that share a variable; the parts one by one, and mean squares over x (in which different parts
do not mix), need the covariances inside a part only.

| symbol | meaning                                                   | shape    |
|--------|-----------------------------------------------------------|----------|
| u      | the totals of `kernels/pooling.py` at the data            | (N, U)   |
| phi_i  | what each value of a variable adds to them                | (k, U)   |
| M_i, M | mean over v of phi_i(v) phi_i(v)'; the sum over variables | (U, U)   |
| g_i    | phi_i u'                                                  | (k, N)   |
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mercbo.arrays import Floats, kron
from mercbo.explaining.orders import Axes, LowOrders, Squares
from mercbo.kernels.pooling import Pool


class PoolParts:
    """What a pool adds to the parts, at one-hot rows (N, L)."""

    def __init__(self, pool: Pool, hot: Floats, axes: Axes) -> None:
        self.linear, self.curved = pool.pooling.linear, pool.pooling.curved
        self.axes, self.told = axes, pool.totals(hot)  # u
        phi: dict[int, Floats] = {}
        for part in pool.kernel.parts:
            steps = pool.coordinates.step[part.levels]  # (v, k, U)
            phi |= dict(zip(part.variables.tolist(), steps, strict=True))
        self.phi = [phi[i] for i in range(len(phi))]
        self.moments = [each.T @ each / len(each) for each in self.phi]  # M_i
        self.moment = np.sum(self.moments, axis=0)  # M

    def cross(self, chosen: tuple[int, ...]) -> Floats:
        """Covariance of a part's coordinates with f at the data, (c, N); no part is above order
        2."""
        if not chosen:
            square = ((self.told @ self.moment) * self.told).sum(axis=1)  # u' M u
            return np.asarray(self.curved * square[np.newaxis])
        if len(chosen) == 1:
            (i,) = chosen
            squared = self.axes.bases[i].T @ (self.phi[i] @ self.told.T) ** 2
            return np.asarray(self.linear * self._factors[i] + self.curved * squared)
        i, j = chosen
        pair = self._factors[i][:, np.newaxis] * self._factors[j]
        return 2.0 * self.curved * pair.reshape(-1, len(self.told))

    @cached_property
    def _factors(self) -> list[Floats]:
        """(k-1, N): the coordinates of each g_i."""
        return [basis.T @ phi @ self.told.T for basis, phi in self._each]

    @property
    def _each(self) -> list[tuple[Floats, Floats]]:
        return list(zip(self.axes.bases, self.phi, strict=True))

    def prior(self, chosen: tuple[int, ...]) -> Floats:
        """Prior covariance of a part's coordinates, (c, c)."""
        if not chosen:
            return np.full((1, 1), self.curved * _trace(self.moment, self.moment))
        bases = [self.axes.bases[i] for i in chosen]
        phis = [self.phi[i] for i in chosen]
        if len(chosen) == 1:
            alike = phis[0] @ phis[0].T
            return np.asarray(
                bases[0].T @ (self.linear * alike + self.curved * alike**2) @ bases[0]
            )
        one, two = (b.T @ phi for b, phi in zip(bases, phis, strict=True))  # (k-1, U)
        mixed = one @ two.T  # of a value of the first with one of the second
        swapped = np.einsum("ad,cb->abcd", mixed, mixed).reshape(mixed.size, mixed.size)
        return np.asarray(2.0 * self.curved * (kron(one @ one.T, two @ two.T) + swapped))

    def low_orders(self) -> LowOrders:
        """All of it is of order <= 2."""
        variables = range(len(self.phi))
        effects = np.concatenate([self.cross((i,)) for i in variables])
        factors, weight = np.concatenate(self._factors), np.full(len(self.told), 2.0 * self.curved)
        return LowOrders(self.cross(())[0], effects, factors, weight)

    def prior_square(self) -> Squares:
        """Prior expectation of the mean square: of the constant, each effect and each pair."""
        sizes = np.array([np.trace(each) for each in self.moments])  # (n,)
        inside = np.array([_trace(each, each) for each in self.moments])
        fourth = np.array([(np.sum(phi**2, axis=1) ** 2).mean() for phi in self.phi])
        effects = self.linear * sizes + self.curved * (fourth - inside)
        between = np.array([_trace(each, self.moment) for each in self.moments]) - inside
        pairs = 2.0 * self.curved * (sizes * (sizes.sum() - sizes) + between)  # with all others
        total = float(self.prior(())[0, 0] + effects.sum() + 0.5 * pairs.sum())
        return Squares(total, effects + pairs)


def _trace(a: Floats, b: Floats) -> float:
    """That of a b, both symmetric."""
    return float((a * b).sum())
