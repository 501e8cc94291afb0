"""The constant, the effects and the pairs of a kernel: its parts of order <= 2 at the data.

As a function of x, the covariance with the result at X_m has parts (`anova.py`). Of every kernel of
an explanation those of order <= 2 have one form: a constant c, effects a_i(x_i), and pairs
s b_i(x_i) b_j(x_j), which are products.

| symbol | meaning                                                             | shape    |
|--------|---------------------------------------------------------------------|----------|
| U_i    | orthonormal basis of the functions of a variable that have mean zero | (k, k-1) |
| d      | coordinates of all variables side by side, sum of (k - 1)           |          |
| c      | covariance of the constant with f at the data                       | (N,)     |
| a      | that of the coordinates of the effects                              | (d, N)   |
| b, s   | that of the coordinates of a pair: s times the product of two rows  | (d, N)   |
| G      | weights of pairs of results                                         | (N, N)   |
| h_i    | the mean over x_i of b_i(x_i), at X_m, and b'_i(x_i), at X_n        | (N, N)   |

So the mean over x of the product of two kernels, of which one has no parts above order 2, is
c c' + sum_i a_i . a'_i / k_i + s s' sum_{i<j} h_i h_j, and sums over pairs are those of Newton.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercbo.arrays import Floats, Index
from mercbo.kernel import Kernel, spectrum


class Axes:
    """The coordinates of the parts of a space: U of every variable."""

    def __init__(self, kernel: Kernel) -> None:
        sizes = np.ones(kernel.variables, dtype=np.intp)
        for part in kernel.parts:
            sizes[part.variables] = part.size
        self.sizes: list[int] = sizes.tolist()
        self.bases = [spectrum("path", k)[1] / np.sqrt(k) for k in self.sizes]
        self.owner: Index = np.repeat(np.arange(len(sizes)), sizes - 1)  # (d,)
        self.sharing: Floats = 1.0 / sizes[self.owner]  # (d,): 1 / k
        self.ends: Index = np.cumsum(sizes - 1)

    def by_variable(self, each: Floats) -> Floats:
        """(n,): sums over the coordinates (d,) of each variable."""
        total = np.bincount(self.owner, weights=each, minlength=len(self.sizes))
        return np.asarray(total, dtype=np.float64)

    def apart(self, stacked: Floats) -> list[Floats]:
        """(k-1, N) of each variable, of (d, N)."""
        return np.split(stacked, self.ends[:-1])


@dataclass(frozen=True)
class Squares:
    """A mean square over x (or what adds to one), and what of it is gone when f is averaged over
    one variable: that of all parts that the variable is in."""

    total: float
    own: Floats  # (n,)

    def __add__(self, other: Squares) -> Squares:
        return Squares(self.total + other.total, self.own + other.own)

    def __mul__(self, factor: float) -> Squares:
        return Squares(self.total * factor, self.own * factor)


@dataclass(frozen=True)
class LowOrders:
    """The parts of order <= 2 of one kernel, as functions of x, at each of the data."""

    constant: Floats  # c
    effects: Floats  # a
    factors: Floats  # b
    weight: Floats  # (N,): s

    def scaled(self, factor: float) -> LowOrders:
        return LowOrders(
            factor * self.constant, factor * self.effects, self.factors, factor * self.weight
        )


def low_squares(one: LowOrders, two: LowOrders, pull: Floats, axes: Axes) -> Squares:
    """The sum of G = `pull` times the mean over x of one(x, X_m) two(x, X_n). Of variable i alone
    it has the effect, and the sum over j of h_i h_j."""
    share = axes.sharing[:, np.newaxis]
    effects = axes.by_variable(((one.effects @ pull) * two.effects * share).sum(axis=1))
    weight, factors = pull * np.outer(one.weight, two.weight), two.factors * share
    every = one.factors.T @ factors  # the sum of all h_i
    crossed = axes.by_variable(((one.factors @ (weight * every)) * factors).sum(axis=1))
    pairs = crossed - _alone(axes.apart(one.factors), axes.apart(factors), weight)
    constant = float(one.constant @ pull @ two.constant)
    total = constant + float(effects.sum()) + 0.5 * float(pairs.sum())
    return Squares(total, effects + pairs)


def _alone(one: Sequence[Floats], two: Sequence[Floats], weight: Floats) -> Floats:
    """(n,): the sum of `weight` times h_i^2."""
    found = np.zeros(len(one))
    few = [i for i, rows in enumerate(one) if len(rows) == 1]  # h_i^2 is a product itself
    if few:
        left, right = (np.concatenate([side[i] for i in few]) ** 2 for side in (one, two))
        found[few] = ((left @ weight) * right).sum(axis=1)
    for i in (i for i, rows in enumerate(one) if len(rows) > 1):
        own = one[i].T @ two[i]
        found[i] = np.vdot(weight * own, own)
    return found
