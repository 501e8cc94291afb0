"""`Limits`: linear limits on bits, how closely they hold, and what they are in whole numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercbo.arrays import Bits, Floats, Index, Mask, Rows

# A limit holds when it is broken by no more than rounding does, relative to its coefficients: sums
# of some thousand terms are off by 1e-13. Sums of whole numbers are exact up to 2^53.
SLACK, WHOLE_SLACK, MOST_EXACT = 1e-12, 1e-6, 2.0**53
# Whole coefficients add up to at most this, unless told otherwise: 64 bits hold any sum.
MOST_WHOLE = 2.0**52
# A limit's coefficients are made whole by the smallest of these that leaves them exact.
EXACT_SCALES = [10.0**k for k in range(7)]
# Limits from which moves are checked against those that they touch only.
SPARSE_FROM = 64


@dataclass(frozen=True)
class Limits:
    """low <= matrix @ bits <= high."""

    matrix: Floats  # (m, B)
    low: Floats  # (m,)
    high: Floats  # (m,)

    @classmethod
    def none(cls, width: int) -> Limits:
        return cls(np.zeros((0, width)), np.zeros(0), np.zeros(0))

    @classmethod
    def stack(cls, rows: Sequence[tuple[Floats, float, float]], width: int) -> Limits:
        if not rows:
            return cls.none(width)
        matrix, low, high = zip(*rows, strict=True)
        return cls(np.stack(matrix), np.array(low), np.array(high))

    def __len__(self) -> int:
        return len(self.low)

    @cached_property
    def slack(self) -> Floats:
        """(m,): what a limit may be broken by and still holds."""
        total = np.abs(self.matrix).sum(axis=1)
        exact = (self.matrix == np.round(self.matrix)).all(axis=1) & (total <= MOST_EXACT)
        slack = SLACK * total
        return np.asarray(np.where(exact, np.minimum(slack, WHOLE_SLACK), slack))

    @cached_property
    def size(self) -> Floats:
        """(m,): the largest coefficient of each limit, 1 where it has none."""
        largest = np.abs(self.matrix).max(axis=1, initial=0.0)
        return np.where(largest > 0, largest, 1.0)

    def holds(self, sides: Floats) -> Mask:
        """Whether left-hand sides (..., m) are all within the limits."""
        slack = self.slack
        return np.asarray(((sides >= self.low - slack) & (sides <= self.high + slack)).all(axis=-1))

    def broken(self, sides: Floats) -> Mask:
        """(..., m): which limits do not hold."""
        slack = self.slack
        return np.asarray((sides < self.low - slack) | (sides > self.high + slack))

    def some(self, chosen: Mask) -> Limits:
        return Limits(self.matrix[chosen], self.low[chosen], self.high[chosen])

    @cached_property
    def touching(self) -> Index:
        """(B, q): the limits that each bit is in, padded with m, the number of limits."""
        counts = (self.matrix != 0).sum(axis=0)
        out = np.full((self.matrix.shape[1], int(counts.max(initial=0))), len(self))
        for bit, count in enumerate(counts.tolist()):
            out[bit, :count] = np.flatnonzero(self.matrix[:, bit])
        return out

    @property
    def are_sparse(self) -> bool:
        """Whether it pays to look only at the limits that a move touches."""
        return len(self) > SPARSE_FROM and 4 * self.touching.shape[1] < len(self)

    def hold_after(
        self, sides: Floats, states: Index, changes: Sequence[tuple[Index, Floats]]
    ) -> Mask:
        """(K,): whether the limits still hold after some bits change, where they held before.

        `states` (K,) says which row of `sides` (R, m) each change starts from; `changes` are bits
        (K,) with what is added to them (K,). Only limits that the bits are in are looked at.
        """
        matrix, low, high = self._padded
        padded = np.column_stack([sides, np.zeros(len(sides))])
        fine = np.ones(len(states), dtype=np.bool_)
        for bits, _ in changes:
            rows = self.touching[bits]  # (K, q)
            after = padded[states[:, np.newaxis], rows]
            for other, step in changes:
                after = after + step[:, np.newaxis] * matrix[rows, other[:, np.newaxis]]
            fine &= ((after >= low[rows]) & (after <= high[rows])).all(axis=1)
        return fine

    @cached_property
    def _padded(self) -> tuple[Floats, Floats, Floats]:
        """The matrix and both bounds with their slack, and one more limit that always holds."""
        matrix = np.concatenate([self.matrix, np.zeros((1, self.matrix.shape[1]))])
        return (
            matrix,
            np.append(self.low - self.slack, -np.inf),
            np.append(self.high + self.slack, np.inf),
        )

    def excess(self, sides: Floats) -> Floats:
        """By how much left-hand sides (..., m) break the limits, relative to the coefficients."""
        over = np.maximum(self.low - sides, 0.0) + np.maximum(sides - self.high, 0.0)
        over = np.where(over <= self.slack, 0.0, over)
        return np.asarray((over / self.size).sum(axis=-1))

    def satisfied(self, states: Bits) -> Mask:
        return self.holds(states.astype(float) @ self.matrix.T)

    def whole(
        self, number: int, *, most: float = MOST_WHOLE
    ) -> tuple[Rows, int | None, int | None]:
        """One limit in whole numbers: coefficients, low and high (None: no such side).

        The scale is one that makes the coefficients whole, if there is one and if their sum stays
        below `most`; the limit then says the same. Otherwise they are rounded, and what that may
        change is given to both sides, so that no feasible state is lost.
        """
        row, low, high = self.matrix[number], float(self.low[number]), float(self.high[number])
        scale = min(exact_scale(row), most / max(float(np.abs(row).sum()), 1e-300))
        whole = np.round(row * scale)
        loose = float(np.abs(row * scale - whole).sum() + self.slack[number] * scale) + 1e-6
        if scale != 1.0:  # products and sums of floating-point numbers are rounded themselves
            loose += 8.0 * np.finfo(float).eps * float(np.abs(row).sum()) * scale
        beyond = 4.0 * most  # no sum gets there, and no solver takes a bound of more than 64 bits

        def clipped(bound: float) -> float:
            return min(max(bound, -beyond), beyond)

        return (
            whole.astype(np.int64),
            math.ceil(clipped(low * scale - loose)) if low > -math.inf else None,
            math.floor(clipped(high * scale + loose)) if high < math.inf else None,
        )


def exact_scale(numbers: Floats) -> float:
    """The smallest factor that makes the numbers whole: a power of ten, or that over the smallest
    of them (thirds become ones); where none does, one that keeps twelve digits."""
    sizes = np.abs(numbers[numbers != 0])
    if len(sizes) == 0:
        return 1.0
    # what rounding changes in a number, and in one that is the difference of larger ones
    rounding = np.maximum(1e-12 * np.abs(numbers), 1e-15 * sizes.max())
    for unit in (1.0, float(sizes.min())):
        for power in EXACT_SCALES:
            scale = power / unit
            if scale * float(sizes.max()) > 1e300:
                break
            scaled = numbers * scale
            if np.all(np.abs(scaled - np.round(scaled)) <= rounding * scale):
                return scale
    return 1e12 / float(sizes.max())
