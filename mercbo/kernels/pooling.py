"""Pooling: what variables do alike that have the same values.

Stations that each take one of the same treatments, bits that each say whether something is kept,
letters of one alphabet: what a value does at one of them says something of what it does at the
others. A kernel over all variables learns each of them alone. So it may get two more terms,

    p S  +  q S^2,   S(x, x') = u(x) . u(x'),

u being how often each value occurs among like variables, in the coordinates of their graph: the
first holds what a value is worth wherever it stands, the second what it is worth the more (or the
less) often it is taken, as a discount, a dose or a balance does. Both are of order <= 2: quadratic
functions of bits. Whether there is pooling is a matter of evidence (`fitting/structured.py`).

| symbol | meaning                                                                       | shape  |
|--------|-------------------------------------------------------------------------------|--------|
| p, q   | prior variances of the linear and of the quadratic part at a random point     |        |
| U      | modes: eigenvectors of the graph of each group of like variables              |        |
| u      | sum over a group of psi, by mode, scaled so that S(x, x) is 1 on average       | (N, U) |
| step   | what a level adds to u                                                        | (L, U) |
| mix    | what a feature psi adds to u                                                  | (D, U) |

A mode of a path counts for less the faster it is, by the inverse of its eigenvalue: what an ordered
value is worth is smooth beforehand. Those of a complete graph count alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercbo.arrays import Floats, Index, Rows
from mercbo.features import Coefficients
from mercbo.kernel import Kernel, Part, once_per_kernel

# What two variables have in common is not told from what each of them does.
FEWEST_ALIKE = 3
# Of a long path only slow modes say what its values have in common.
MOST_MODES = 16
# More modes than this are too many to be learned together.
MOST_COORDINATES = 200


@dataclass(frozen=True)
class Pooling:
    """The hyper-parameters of what is pooled: p and q."""

    linear: float
    curved: float


@dataclass(frozen=True)
class Coordinates:
    """The way from a row to its u."""

    step: Floats  # (L, U)
    mix: Floats  # (D, U)

    @staticmethod
    @once_per_kernel  # every step of a fit asks for them
    def of(kernel: Kernel) -> Coordinates:
        """With no modes where no variables are alike."""
        found = [
            (part, np.flatnonzero(kernel.alike[part.variables] == group))
            for part in kernel.parts
            for group in np.unique(kernel.alike[part.variables])
            if part.features.size and is_centred(part)
        ]
        found = [(part, members) for part, members in found if len(members) >= FEWEST_ALIKE]
        weights = [mode_weights(part) for part, _ in found]
        total = sum(len(each) for each in weights)
        step, mix = np.zeros((kernel.levels, total)), np.zeros((kernel.features, total))
        at = 0
        for (part, members), weight in zip(found, weights, strict=True):
            modes = np.arange(len(weight))
            scale = np.sqrt(weight / (total * len(members)))
            levels, features = part.ordered[members], part.features[members]
            step[levels[:, :, np.newaxis], at + modes] = part.psi[:, modes] * scale
            mix[features[:, modes], at + modes] = scale
            at += len(weight)
        return Coordinates(step, mix)

    @property
    def count(self) -> int:
        return int(self.step.shape[1])


def is_centred(part: Part) -> bool:
    """Whether features have mean zero over the values: those of a binary code have it where no
    codeword is left over."""
    return part.factors.shape[1] == 1 or part.size & (part.size - 1) == 0


def mode_weights(part: Part) -> Floats:
    """(modes,): how much each mode of a group counts, 1 on average."""
    if part.graph != "path":
        return np.ones(len(part.lam))
    slow = 1.0 / part.lam[:MOST_MODES]
    return np.asarray(slow / slow.mean())


class Pool:
    """The pooled terms under one state of the hyper-parameters."""

    def __init__(self, kernel: Kernel, pooling: Pooling) -> None:
        self.kernel = kernel
        self.pooling = pooling
        self.coordinates = Coordinates.of(kernel)

    def of(self, similarity: Floats) -> Floats:
        """The covariance by S."""
        out = self.pooling.curved * similarity
        out += self.pooling.linear
        out *= similarity
        return np.asarray(out)

    def totals(self, hot: Floats) -> Floats:
        """u of one-hot rows."""
        return np.asarray(hot @ self.coordinates.step)

    def gram(self, rows: Rows, hot: Floats) -> Floats:
        """(A, B): of rows with one-hot rows."""
        return self.of(self.totals(self.kernel.onehot(rows)) @ self.totals(hot).T)

    def diagonal(self, rows: Rows) -> Floats:
        """(A,): of each row with itself."""
        totals = self.totals(self.kernel.onehot(rows))
        return self.of(np.einsum("nu,nu->n", totals, totals))

    # -- draws: coefficients of the unweighted features psi ------------------------------------

    def prior_coefficients(self, rng: np.random.Generator) -> Coefficients:
        """u . t + u' T u, with entries of t from N(0, p) and of T from N(0, q)."""
        count, mix = self.coordinates.count, self.coordinates.mix
        linear = np.sqrt(self.pooling.linear) * rng.standard_normal(count)
        curved = np.sqrt(self.pooling.curved) * rng.standard_normal((count, count))
        return Coefficients(0.0, mix @ linear, mix @ (curved + curved.T) @ mix.T, inside=True)

    def data_coefficients(self, hot: Floats, v: Floats) -> Coefficients:
        """The covariance with one-hot rows (N, L), times the weights `v` (N,)."""
        totals, mix = self.totals(hot), self.coordinates.mix
        linear = self.pooling.linear * (totals.T @ v)
        curved = 2.0 * self.pooling.curved * ((totals * v[:, np.newaxis]).T @ totals)
        return Coefficients(0.0, mix @ linear, mix @ curved @ mix.T, inside=True)


@dataclass(frozen=True)
class PooledCovariance:
    """Between points and results, as `drawing.prediction.Covariance`."""

    pool: Pool
    hot: Floats  # (N, L)

    @cached_property
    def _told(self) -> Floats:
        return self.pool.totals(self.hot)

    def at(self, rows: Rows) -> tuple[Floats, Floats]:
        """With the results (R, N), and with themselves (R,)."""
        return self._of(self.pool.totals(self.pool.kernel.onehot(rows)))

    def around(self, rows: Rows, level: Index) -> tuple[Floats, Floats]:
        """The same (P, J, N) and (P, J) of the rows, one variable at the value of a level (P, J);
        a column of levels has one variable."""
        kernel, step = self.pool.kernel, self.pool.coordinates.step
        old = kernel.held(rows)[:, kernel.level_variable[level[0]]]
        here = self.pool.totals(kernel.onehot(rows))[:, np.newaxis]
        return self._of(here + step[level] - step[old])

    def _of(self, totals: Floats) -> tuple[Floats, Floats]:
        own = np.einsum("...u,...u->...", totals, totals)
        return self.pool.of(totals @ self._told.T), self.pool.of(own)


def is_poolable(kernel: Kernel) -> bool:
    """Whether there are variables enough that are alike."""
    return 0 < Coordinates.of(kernel).count <= MOST_COORDINATES
