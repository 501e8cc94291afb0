"""`Averaged`: the diffusion kernel averaged over a group of symmetries.

| symbol | meaning                                                                       | shape  |
|--------|-------------------------------------------------------------------------------|--------|
| K      | the product kernel of `kernel.py`, contrasts tied over the orbits of factors  |        |
| K_G    | mean over g of K(g x, x'): the covariance of a function averaged over images  |        |
| r      | root of K_G(x, x) / K(x, x): 1 where x is its own image under all of G        |        |
| R_g    | what g does to the single-factor features: F(g x) = F(x) R_g                  | (D, D) |

With tied contrasts K(g x, g x') = K(x, x') for every g, so that K_G is symmetric in x and x' and
positive semidefinite, and every function it can describe is the same at all images of a point.

K_G is larger where x is its own image, and improvement would be looked for there: of 40 points
asked for in runs on DNA, 21 to 37 were palindromes. The kernel of the model is therefore
K_G(x, x') / (r(x) r(x')), of the same diagonal as K. Its process is h / r with h of covariance K_G:
still symmetric, since r is.

Draws are of h, which is a sum of Mercer features: G keeps the order of a feature, so the part of
K_G of order <= m is the average of that part of K, and prior draws are averaged by their
coefficients, as is what the data add. h is quadratic where a draw without symmetries is. A
covariance costs as many of K as G has elements; the matrices that are factored stay (N, N).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mercbo.arrays import Floats, Index, Mask, Rows
from mercbo.domain.group import Group, factor_map
from mercbo.encoding import Encoding
from mercbo.kernel import Kernel

# Entries of a covariance with images that are held at a time.
ENTRIES = 1 << 16


def kernel_of(encoding: Encoding, group: Group) -> Kernel:
    """The kernel of a space, averaged over its symmetries where it has any."""
    return Kernel(encoding) if group.is_trivial else Averaged(encoding, group)


class Averaged(Kernel):
    """The kernel of a space with symmetries."""

    def __init__(self, encoding: Encoding, group: Group) -> None:
        super().__init__(encoding)
        self.group = group
        self.orbit_of = self._orbits()  # (n,): the number of each factor's orbit
        self._orbit_sizes = np.bincount(self.orbit_of)

    def compact(self, rows: Rows) -> tuple[Kernel, Rows]:
        return self, rows  # images of the rows have other values

    def images(self, rows: Rows) -> Rows:
        return self.group.images(rows)

    def hot_images(self, hot: Floats) -> list[Floats]:
        return [hot[:, before] for before in self._level_before]

    def tied(self, values: Floats) -> Floats:
        own = np.bincount(self.orbit_of, weights=values[: self.n]) / self._orbit_sizes
        return np.concatenate([own[self.orbit_of], values[self.n :]])

    def symmetrised(self, main: Floats, pair: Floats) -> tuple[Floats, Floats]:
        count = len(self.group)
        averaged = sum((r @ main for r in self._rotations), np.zeros_like(main)) / count
        # R pair R' with `pair` symmetric
        both = sum((r @ (r @ pair).T for r in self._rotations), np.zeros_like(pair)) / count
        return averaged, 0.5 * (both + both.T)

    def closed(self, allowed: Mask) -> Mask:
        return np.asarray(np.any([allowed[np.ix_(s, s)] for s in self.group.source], axis=0))

    # -- Gram matrices -------------------------------------------------------------------------

    def roots(self, log_tables: Sequence[Floats], rows: Rows) -> Floats:
        """r."""
        own = super().diagonal(log_tables, rows)
        return np.sqrt(self._average(log_tables, rows) / own)

    def gram(self, log_tables: Sequence[Floats], rows: Rows, hot: Floats) -> Floats:
        total = np.zeros((len(rows), len(hot)))
        for images in self._stacks(rows, len(hot)):
            found = self.product(log_tables, _flat(images), hot)
            total += found.reshape(len(images), *total.shape).sum(axis=0)
        total /= len(self.group) * self.roots(log_tables, rows)[:, np.newaxis]
        return np.asarray(total / self.roots(log_tables, self.rows_of(hot)))

    def _average(self, log_tables: Sequence[Floats], rows: Rows) -> Floats:
        """(A,): K_G between each row and itself."""
        images = self.images(rows)
        logs = np.zeros(images.shape[:2])
        for part, table in zip(self.parts, log_tables, strict=True):
            at = np.arange(len(part.variables))
            logs += table[at, images[:, :, part.variables], rows[:, part.variables]].sum(axis=2)
        return np.asarray(np.exp(logs).mean(axis=0))

    def truncated_gram(
        self, w: Floats, scale: float, order: int, rows: Rows, hot: Floats
    ) -> Floats:
        """That of h."""
        total = np.zeros((len(rows), len(hot)))
        for images in self._stacks(rows, len(hot)):
            found = super().truncated_gram(w, scale, order, _flat(images), hot)
            total += found.reshape(len(images), *total.shape).sum(axis=0)
        return total / len(self.group)

    def slopes(
        self, beta: Floats, amplitude: float, pull: Floats, gram: Floats, rows: Rows, hot: Floats
    ) -> Floats:
        tables, gradients = self.log_tables(beta), self.log_table_gradients(beta)
        root, average = self.roots(tables, rows), self._average(tables, rows)
        # r is a function of the contrasts too: 2 d log r = d log K_G(x, x) - d log K(x, x)
        by_root = (pull * gram).sum(axis=1)
        inner = amplitude * pull / np.outer(root, root) - np.diag(by_root / average)
        total = self.contract(gradients, np.diag(by_root), hot)
        for images in self._stacks(rows, len(hot)):
            found = self.product(tables, _flat(images), hot).reshape(len(images), *inner.shape)
            weight = _flat(inner * found / len(self.group))
            total += self.contract(gradients, weight, hot, self.onehot(_flat(images)))
        return total

    def _stacks(self, rows: Rows, columns: int) -> Iterator[Rows]:
        """The images of some rows, as many elements at a time as make arrays of a good size."""
        images = self.images(rows)
        step = max(1, ENTRIES // max(len(rows) * columns, 1))
        for first in range(0, len(images), step):
            yield images[first : first + step]

    # -- what the group does -------------------------------------------------------------------

    @cached_property
    def _level_before(self) -> list[Index]:
        """Per element (L,): the level that becomes each level."""
        first = self.held(np.zeros((1, len(self.group.sizes)), dtype=np.int64))[0]
        return [
            first[source[self.level_variable]] + _inverse(maps, self.group.sizes)[
                self.level_variable, self.level_value
            ]
            for source, maps in zip(self.group.source, self.group.maps, strict=True)
        ]  # fmt: skip

    @cached_property
    def _rotations(self) -> list[Any]:
        """Per element R_g, sparse: a block for each variable."""
        from scipy.sparse import csr_matrix

        where = self._owners
        found = []
        for source, maps in zip(self.group.source, self.group.maps, strict=True):
            rotation = np.zeros((self.features, self.features))
            for i, s in enumerate(source.tolist()):
                (psi, own, _), (before, features, _) = where[i], where[s]
                if psi.shape[1] == 0:
                    continue
                block = np.linalg.lstsq(before, psi[maps[i, : len(psi)]], rcond=None)[0]
                rotation[np.ix_(features, own)] = np.where(np.abs(block) < 1e-12, 0.0, block)
            found.append(csr_matrix(rotation))
        return found

    @cached_property
    def _owners(self) -> dict[int, tuple[Floats, Index, Index]]:
        """Per variable: psi at its values, its features and its factors."""
        return {
            int(variable): (
                part.psi if part.rank is None else part.psi[part.rank[at]],
                part.features[at],
                part.factors[at],
            )
            for part in self.parts
            for at, variable in enumerate(part.variables)
        }

    def _orbits(self) -> Index:
        label = np.arange(self.n)
        variables = list(self.group.variables.values())
        for source, maps in zip(self.group.source, self.group.maps, strict=True):
            for i, s in enumerate(source.tolist()):
                after, before = self._owners[i][2], self._owners[s][2]
                becomes = factor_map(variables[i], maps[i, : variables[i].size])
                if len(after) == 0 or becomes is None:  # one value: no factor
                    continue
                for old, new in zip(before, after[becomes], strict=True):
                    label[label == label[old]] = label[new]
        return np.unique(label, return_inverse=True)[1].astype(np.intp)


def _flat(stacked: Any) -> Any:
    """(a, b, c) -> (a b, c)."""
    return stacked.reshape(stacked.shape[0] * stacked.shape[1], stacked.shape[2])


def _inverse(maps: Rows, sizes: Rows) -> Rows:
    """(n, kmax): the value that becomes each value."""
    out = np.zeros_like(maps)
    for i, k in enumerate(sizes.tolist()):
        out[i, maps[i, :k]] = np.arange(k)
    return out
