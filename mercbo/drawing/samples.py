"""Functions drawn from the posterior, and their values at all one-variable neighbours at once.

| symbol | meaning                                                                      | shape  |
|--------|------------------------------------------------------------------------------|--------|
| P      | points looked at together                                                    |        |
| L      | levels: column (i, b) of a neighbour table is "variable i takes its value b" |        |
| q      | weights of the data in a kernel sum, times the kernel at the point           | (P, N) |

A sample has two values at a point. `value` is the drawn function of order <= m, which the
acquisition problem holds. `path` is the drawn function with what the data say of *all* orders:
prior draw of order <= m plus k(x, X) v (design: pathwise refinement). Without refinement the two
are the same function. Where the space has symmetries, both are first of the averaged function h
(`kernels/averaging.py`); the path is then divided by its root r, as the model is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.drawing.higher import Terms
from mercbo.features import Coefficients, single
from mercbo.kernel import Kernel, Part
from mercbo.kernels.motifs import MotifSum

# Neighbours of a general function are evaluated this many rows at a time.
CHUNK = 64


class Sample(Protocol):
    """What the rest of an ask needs to know of a drawn function."""

    def value(self, rows: Rows) -> Floats: ...

    def path(self, rows: Rows) -> Floats: ...

    def path_neighbours(self, rows: Rows) -> Floats:
        """(P, L): `path` where one variable takes another value (its own: `path` itself)."""
        ...


@dataclass(frozen=True)
class KernelSum:
    """x -> sum_m weights_m K(x, X_m), K the product kernel of unit amplitude."""

    kernel: Kernel
    tables: Sequence[Floats]
    hot: Floats  # (N, L)
    weights: Floats  # (N,)

    def value(self, rows: Rows) -> Floats:
        return np.asarray(self.kernel.product(self.tables, rows, self.hot) @ self.weights)

    def neighbours(self, rows: Rows) -> Floats:
        """(P, L). Changing x_i from a to b multiplies each K(x, X_m) by T_i[b, .] / T_i[a, .] at
        X_mi, so the terms are summed by the value of X_mi first and looked up afterwards."""
        q = self.kernel.product(self.tables, rows, self.hot) * self.weights
        by_level = q @ self.hot
        out = np.zeros((len(rows), self.kernel.levels))
        for part, table in zip(self.kernel.parts, self.tables, strict=True):
            here = table[np.arange(len(part.variables)), rows[:, part.variables]]  # (P, v, k)
            freed = by_level[:, part.levels] * np.exp(-here)
            # (v, P, k) @ (v, k, k): sum over the values of X_mi
            new = freed.transpose(1, 0, 2) @ np.exp(table)
            out[:, part.levels] = new.transpose(1, 0, 2)
        return out


@dataclass(frozen=True)
class KernelSums:
    """Several of these added up."""

    parts: Sequence[KernelSum | KernelSums | MotifSum]

    def value(self, rows: Rows) -> Floats:
        return np.asarray(sum(part.value(rows) for part in self.parts))

    def neighbours(self, rows: Rows) -> Floats:
        """(P, L)."""
        return np.asarray(sum(part.neighbours(rows) for part in self.parts))


@dataclass(frozen=True)
class Lift:
    """From h to the function that the model describes: x -> mean + (h(x) - mean) / r(x)."""

    kernel: Kernel
    tables: Sequence[Floats]
    mean: float
    reference: float  # r is in units of this, so that h is about as large as the function

    @classmethod
    def of(cls, kernel: Kernel, tables: Sequence[Floats], mean: float, rows: Rows) -> Lift | None:
        """By the roots at some rows; None without symmetries."""
        roots = kernel.roots(tables, rows)
        if roots is None:
            return None
        reference = float(np.sqrt(np.mean(roots**2))) if len(roots) else 1.0
        return cls(kernel, tables, mean, reference)

    def roots(self, rows: Rows) -> Floats:
        return np.asarray(self.kernel.roots(self.tables, rows)) / self.reference

    def value(self, rows: Rows, averaged: Floats) -> Floats:
        return np.asarray(self.mean + (averaged - self.mean) / self.roots(rows))

    def neighbours(self, rows: Rows, averaged: Floats) -> Floats:
        """The same for neighbour tables (P, L)."""
        roots = self.roots(neighbours_of(self.kernel, rows)).reshape(averaged.shape)
        return np.asarray(self.mean + (averaged - self.mean) / roots)


def neighbours_of(kernel: Kernel, rows: Rows) -> Rows:
    """(P * L, n): each row with one variable at the value of each level."""
    moved = np.repeat(rows, kernel.levels, axis=0)
    at = np.tile(np.arange(kernel.levels), len(rows))
    moved[np.arange(len(moved)), kernel.level_variable[at]] = kernel.level_value[at]
    return moved


@dataclass(frozen=True)
class Higher:
    """x -> sum over terms of three or four factors of a coefficient times the term."""

    kernel: Kernel
    w: Floats
    terms: Terms
    coefficients: Floats  # (T,)

    def value(self, rows: Rows) -> Floats:
        singles = single(self.kernel, self.w, rows)
        return np.asarray(self.terms.products(singles) @ self.coefficients)

    def neighbours(self, rows: Rows) -> Floats:
        """(P, L)."""
        if any(part.factors.shape[1] > 1 for part in self.kernel.parts):
            # bits of one variable move together: a term may have several of them
            moved = self.value(neighbours_of(self.kernel, rows))
            return moved.reshape(len(rows), self.kernel.levels)
        singles = single(self.kernel, self.w, rows)
        fields = self.terms.fields(singles, self.coefficients)
        out = np.repeat(self.value(rows)[:, np.newaxis], self.kernel.levels, axis=1)
        for part, _, _, change in changes(self.kernel, self.w, fields, rows):
            out[:, part.levels] += change
        return out


def changes(
    kernel: Kernel, w: Floats, fields: Floats, rows: Rows
) -> Iterator[tuple[Part, Floats, Floats, Floats]]:
    """Per part its features at each value (v, k, d) and at the rows (P, v, d), and how a function
    of these fields (P, D) changes (P, v, k) where one variable takes another value."""
    for part in kernel.parts:
        if part.features.size == 0:
            continue
        psi = part.own_psi * np.sqrt(w[part.features])[:, np.newaxis, :]
        here = psi[np.arange(len(part.variables)), rows[:, part.variables]]
        field = fields[:, part.features]
        change = (field.transpose(1, 0, 2) @ psi.transpose(0, 2, 1)).transpose(1, 0, 2)
        yield part, psi, here, change - np.einsum("pvd,pvd->pv", field, here)[:, :, np.newaxis]


def quadratic_neighbours(
    kernel: Kernel, w: Floats, coefficients: Coefficients, rows: Rows
) -> Floats:
    """(P, L): a function of order <= 2 at all one-variable neighbours."""
    singles = single(kernel, w, rows)
    fields = coefficients.main + singles @ coefficients.pair  # (P, D)
    out = np.repeat(coefficients.value(singles)[:, np.newaxis], kernel.levels, axis=1)
    for part, psi, here, change in changes(kernel, w, fields, rows):
        # bits of one variable that move together, or a variable that is pooled
        if part.factors.shape[1] > 1 or coefficients.inside:
            own = coefficients.pair[part.features[:, :, np.newaxis], part.features[:, np.newaxis]]
            # half of s' own s for each step s from here to a value, the square expanded
            bent = psi @ own  # (v, k, d)
            half = 0.5 * np.einsum("vkd,vkd->vk", bent, psi)
            both = here.transpose(1, 0, 2) @ bent.transpose(0, 2, 1)  # (v, P, k)
            held = half[np.arange(len(part.variables)), rows[:, part.variables]]  # (P, v)
            change = change + half - both.transpose(1, 0, 2) + held[:, :, np.newaxis]
        out[:, part.levels] += change
    return out


@dataclass(frozen=True)
class QuadraticSample:
    """A sample of order <= 2, with or without some terms of higher order: coefficients, and the
    same with the data's part taken out."""

    kernel: Kernel
    w: Floats
    low: Coefficients
    rest: Coefficients
    data_part: KernelSum | KernelSums | None
    lift: Lift | None = None
    higher: Higher | None = None
    higher_rest: Higher | None = None

    def value(self, rows: Rows) -> Floats:
        low = self.low.value(single(self.kernel, self.w, rows))
        return low if self.higher is None else low + self.higher.value(rows)

    def path(self, rows: Rows) -> Floats:
        if self.data_part is None:
            return self.value(rows)
        path = self.rest.value(single(self.kernel, self.w, rows)) + self.data_part.value(rows)
        if self.higher_rest is not None:
            path = path + self.higher_rest.value(rows)
        return path if self.lift is None else self.lift.value(rows, path)

    def path_neighbours(self, rows: Rows) -> Floats:
        plain = self.data_part is None
        low, higher = (self.low, self.higher) if plain else (self.rest, self.higher_rest)
        around = quadratic_neighbours(self.kernel, self.w, low, rows)
        if self.data_part is not None:
            around = around + self.data_part.neighbours(rows)
        if higher is not None:
            around = around + higher.neighbours(rows)
        return around if self.lift is None else self.lift.neighbours(rows, around)


@dataclass(frozen=True)
class GeneralSample:
    """A sample of any order, known by its values only; neighbours are evaluated one by one."""

    kernel: Kernel
    low: Callable[[Rows], Floats]
    beyond: Callable[[Rows], Floats] | None
    lift: Lift | None = None

    def value(self, rows: Rows) -> Floats:
        parts = [self.low(rows[i : i + CHUNK]) for i in range(0, len(rows), CHUNK)]
        return np.concatenate([np.zeros(0), *parts])

    def path(self, rows: Rows) -> Floats:
        if self.beyond is None:
            return self.value(rows)
        parts = [self.beyond(rows[i : i + CHUNK]) for i in range(0, len(rows), CHUNK)]
        path = np.asarray(self.value(rows) + np.concatenate([np.zeros(0), *parts]))
        return path if self.lift is None else self.lift.value(rows, path)

    def path_neighbours(self, rows: Rows) -> Floats:
        moved = neighbours_of(self.kernel, rows)
        return self.path(moved).reshape(len(rows), self.kernel.levels)
