"""Interactions of three and four variables that a draw keeps beside the quadratic ones.

| symbol | meaning                                                                      | shape  |
|--------|------------------------------------------------------------------------------|--------|
| set    | 3 or 4 different factors                                                     |        |
| term   | a product of features, one of each factor of a set; a set has all of its own |        |
| alpha  | Sigma^-1 (y - mean) of the full process                                      | (N,)   |
| c      | mean coefficient of a term, of features of mean square 1                     |        |

There are too many sets to keep all. Kept are those that explain most by the posterior mean: the sum
of c^2 over the terms of a set is the variance of its part of the mean over the whole space. Sets
and not single terms are chosen, because the features of a categorical variable are no more than a
basis. The choice follows from the data and the hyper-parameters, not from the draw, so that a draw
of the kept coefficients is an exact one.

All c of order 3 are one matrix product of pairs of features with features, those of order 4 one of
pairs with pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from mercbo.arrays import Floats, Index, Mask
from mercbo.errors import SettingError
from mercbo.features import Coefficients, between_factors
from mercbo.kernel import Kernel

# Pairs of features: their square is looked through for order 4.
MOST_PAIRS = 5000
# Entries of that square held at a time.
CHUNK = 1 << 21


@dataclass(frozen=True)
class Terms:
    """The terms of some sets. Column j of a row of `columns` is the feature of the j-th factor;
    the number of features, which stands for a factor 1, fills terms of order 3."""

    sets: tuple[tuple[int, ...], ...]
    columns: Index  # (T, 4)
    owner: Index  # (T,): the set of each term
    features: int

    @classmethod
    def of(cls, kernel: Kernel, sets: tuple[tuple[int, ...], ...]) -> Terms:
        own = [np.flatnonzero(kernel.factor_of == factor).tolist() for factor in range(kernel.n)]
        columns, owner = [], []
        for number, factors in enumerate(sets):
            for chosen in product(*(own[f] for f in factors)):
                columns.append([*chosen, *[kernel.features] * (4 - len(chosen))])
                owner.append(number)
        shaped = np.array(columns, dtype=np.intp).reshape(-1, 4)
        return cls(sets, shaped, np.array(owner, dtype=np.intp), kernel.features)

    def __len__(self) -> int:
        return len(self.columns)

    def products(self, singles: Floats) -> Floats:
        """(N, T): each term at points given by their F (N, D)."""
        return np.asarray(self._slots(singles).prod(axis=0))

    def fields(self, singles: Floats, coefficients: Floats) -> Floats:
        """(N, D): the derivative of the sum of the terms by each feature. The sum is linear in the
        features of one factor, so that this times a change of them is how it changes."""
        slots = self._slots(singles)
        total = np.zeros((len(singles), self.features + 1))
        for slot, incidence in enumerate(self._incidence):
            others = np.delete(slots, slot, axis=0).prod(axis=0) * coefficients  # (N, T)
            total += (incidence @ others.T).T
        return total[:, :-1]

    def _slots(self, singles: Floats) -> Floats:
        """(4, N, T)."""
        with_one = np.column_stack([singles, np.ones(len(singles))])
        return np.asarray(with_one[:, self.columns].transpose(2, 0, 1))

    @cached_property
    def _incidence(self) -> list[Any]:
        """Per slot (D + 1, T), sparse: 1 where the term has the feature in this slot."""
        from scipy.sparse import csr_matrix

        count = len(self)
        shape = (self.features + 1, count)
        return [
            csr_matrix((np.ones(count), (column, np.arange(count))), shape)
            for column in self.columns.T
        ]


@dataclass(frozen=True)
class WithTerms:
    """Coefficients of order <= 2, and of some terms above."""

    low: Coefficients
    theta: Floats  # (T,)


def select(
    kernel: Kernel, w: Floats, singles: Floats, alpha: Floats, *, order: int, count: int
) -> Terms:
    """The `count` sets of 3 up to `order` factors that explain most, best first; fewer where
    there are no more. `singles` is F at the data."""
    found: list[tuple[float, tuple[int, ...]]] = []
    for sets, explained in _explained(kernel, singles * np.sqrt(w), alpha, order):
        best = np.argsort(-explained, kind="stable")[:count]
        found += [(float(explained[i]), tuple(sets[i].tolist())) for i in best]
        found = sorted(found, key=lambda pair: (-pair[0], pair[1]))[:count]
    return Terms.of(kernel, tuple(factors for _, factors in found))


def _explained(
    kernel: Kernel, scaled: Floats, alpha: Floats, order: int
) -> Iterator[tuple[Index, Floats]]:
    """Sets (S, m), and the sum of c^2 over the terms of each up to a common factor, in parts."""
    factor_of = kernel.factor_of
    first, second = np.nonzero(np.triu(between_factors(factor_of)))
    # (factors of the pair, in rising order), sorted so that the pairs of two factors are together
    low, high = np.sort([factor_of[first], factor_of[second]], axis=0)
    together = np.lexsort((high, low))
    first, second, low, high = (a[together] for a in (first, second, low, high))
    if order > 3 and len(first) > MOST_PAIRS:
        raise SettingError(
            f"order={order} would look through the square of {len(first):,} pairs of features, "
            f"at most {MOST_PAIRS:,} are; use order=3"
        )
    pairs = scaled[:, first] * scaled[:, second]  # (N, pairs)
    starts = np.flatnonzero(np.r_[True, (np.diff(low) != 0) | (np.diff(high) != 0)][: len(low)])
    two = np.column_stack([low[starts], high[starts]])  # (sets of two, 2)
    singles_of = _starts(factor_of)
    for part in _parts(starts, len(low), max(CHUNK // max(len(low), 1), 1)):
        columns = slice(starts[part.start], starts[part.stop] if part.stop < len(starts) else None)
        left = pairs[:, columns] * alpha[:, np.newaxis]
        inside = starts[part] - starts[part.start]
        yield _sets(left.T @ scaled, inside, singles_of, two[part], factor_of[singles_of][:, None])
        if order > 3:
            yield _sets(left.T @ pairs, inside, starts, two[part], two)


def _sets(
    c: Floats, left: Index, right: Index, first: Index, second: Index
) -> tuple[Index, Floats]:
    """From coefficients c to sets: `left` and `right` say where the features of each set of
    factors `first` and `second` begin; sets in rising order are taken, which are all, each once."""
    if len(left) == 0 or len(right) == 0:
        return np.zeros((0, first.shape[1] + second.shape[1]), dtype=np.intp), np.zeros(0)
    explained = np.add.reduceat(np.add.reduceat(c**2, left, axis=0), right, axis=1)
    rising: Mask = first[:, -1][:, np.newaxis] < second[:, 0]
    i, j = np.nonzero(rising)
    return np.column_stack([first[i], second[j]]), explained[i, j]


def _starts(factor_of: Index) -> Index:
    """Where the features of each factor begin; they lie together."""
    return np.flatnonzero(np.r_[True, np.diff(factor_of) != 0][: len(factor_of)])


def _parts(starts: Index, total: int, most: int) -> Iterator[slice]:
    """Ranges of whole sets of about `most` columns each."""
    ends = np.r_[starts[1:], total]
    begin = 0
    while begin < len(starts):
        end = int(np.searchsorted(ends, starts[begin] + most, side="right"))
        end = max(end, begin + 1)
        yield slice(begin, end)
        begin = end
