"""Motifs: what a few letters in a row do wherever they stand.

A protein binds to the same short stretch of DNA at any place of a sequence; a step of a process
spoils the next one at any stage. A kernel over all variables learns that anew at every place. So it
may get one more term, for a function h that adds up what each stretch of W letters is worth:

    P(x, x')  =  sum_s sum_s'  prod_j T(x_{s+j}, x'_{s'+j}),   j = 0 .. W - 1,

s and s' being where a stretch begins, and T one where two letters are the same and exp(-c) where
they are not. The variables that are read are the longest row of neighbours with the same unordered
values, in the order in which the space lists them. Where the letters are those of DNA, a stretch
may also be read from the other strand: P(x, x') + P(x, x' reversed and complemented) then stands
for P. Which terms there are is decided in `fitting/structured.py`.

P(x, x) is the larger the more x repeats itself, and improvement would be looked for there: of the
first 20 points asked for in runs on DNA, ten were AAAAAAAA, CTCTCTCT and the like. The kernel is
therefore a P(x, x') / (R(x) R(x')), of the same variance everywhere, and its function h / R.

| symbol | meaning                                                                      | shape    |
|--------|------------------------------------------------------------------------------|----------|
| a      | prior variance                                                               |          |
| c, t   | contrast: -log of what a letter that differs leaves; t = exp(-c)             |          |
| k, W   | letters of the alphabet; of a stretch                                        |          |
| S      | stretches of W letters: places that are read, less W - 1                     |          |
| R      | the root of P(x, x)                                                          | (N,)     |
| tau    | the mean of T over two letters, (1 + (k - 1) t) / k                          |          |
| code   | number of the letters of a stretch, written to the base k                    | (N, S)   |
| worth  | of each code: h is the sum of it over the stretches of a point               | (k^W,)   |
| e_r    | of two rows: sum over their stretches of how many sets of r places agree     | (A, B)   |

With T = t + (1 - t) [same], P is sum_r t^(W-r) (1-t)^r e_r, and its derivative by t a sum of the
same e_r: these are found once for all steps of a fit.

T is also tau + (1 - t) ([same] - 1/k), the constant and what has mean zero over the letters. So P
falls apart into Mercer features like any other kernel here: what is of order m has m factors of the
second kind, weighed by tau^(W-m) (1-t)^m. The part of order <= 2 of h has the same coefficients
wherever a stretch begins. In a draw's quadratic problem it is divided by the R of a typical point;
its path, of all orders, by its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from mercbo.arrays import Floats, Index, Rows
from mercbo.features import Coefficients
from mercbo.kernel import Kernel

# Letters of a stretch. On 32 simulated microarrays of 8 letters, stretches of four were better than
# no motifs (20 wins, 8 ties, 4 losses after 120 evaluations), those of five no better than four.
LETTERS = 4
# Neighbours that are read at least (fewer hold a motif at hardly more than one place) and at most.
FEWEST, MOST = 6, 64
# Codes of stretches at most: a large alphabet is read in shorter ones.
MOST_CODES = 1024
# Stretches are counted in a dense table up to so many codes, in a sparse one beyond.
DENSE = 256
# Sets of letters whose agreements with themselves are remembered: those of one step of a descent
# are asked for once for each state of the hyper-parameters.
REMEMBERED = 8
# What stands on the other strand of DNA.
OPPOSITE = {"A": "T", "C": "G", "G": "C", "T": "A"}


@dataclass(frozen=True)
class Motifs:
    """The hyper-parameters a and c, and how many strands are read."""

    amplitude: float
    contrast: float
    strands: int = 1


@dataclass(frozen=True, eq=False)
class Reading:
    """Which variables are read, and in stretches of how many letters."""

    variables: Index  # (n,), neighbours in the space
    size: int  # k
    letters: int  # W
    psi: Floats  # (k, d)
    features: Index  # (n, d)
    levels: Index  # (n, k)
    opposite: Index | None  # (k,): each letter's on the other strand, where there is one
    _known: dict[tuple[bytes, int, int], Floats] = field(default_factory=dict, repr=False)

    @staticmethod
    @lru_cache(maxsize=8)  # a kernel is the same all along a run, and a fit asks for it each step
    def of(kernel: Kernel) -> Reading | None:
        """None where too few neighbours have the same letters."""
        found = max(_stretches(kernel), key=len, default=np.zeros(0, dtype=np.intp))
        part = next((p for p in kernel.parts if len(found) and found[0] in p.variables), None)
        if part is None or not FEWEST <= len(found) <= MOST:
            return None
        letters = LETTERS
        while part.size**letters > MOST_CODES:
            letters -= 1
        if letters < 2:
            return None
        where = np.searchsorted(part.variables, found)
        return Reading(
            found, part.size, letters, part.psi, part.features[where], part.levels[where],
            _opposite(kernel.values[found[0]]),
        )  # fmt: skip

    @property
    def starts(self) -> int:
        """S."""
        return len(self.variables) - self.letters + 1

    @property
    def codes(self) -> int:
        return int(self.size**self.letters)

    @property
    def powers(self) -> Index:
        """(W,): what a letter is worth in a code, by its place in the stretch."""
        return self.size ** np.arange(self.letters - 1, -1, -1)

    @property
    def axes(self) -> tuple[int, ...]:
        """The shape of a table of codes with an axis for each place."""
        return (self.size,) * self.letters

    def spelt(self, rows: Rows, strand: int = 0) -> Rows:
        """(N, n): the letters of one strand or of the other."""
        letters = rows[:, self.variables]
        return letters if strand == 0 else self._other(letters)

    def _other(self, letters: Rows) -> Rows:
        assert self.opposite is not None
        return self.opposite[letters[..., ::-1]]

    def windows(self, rows: Rows, strand: int = 0) -> Rows:
        """(N, S, W): the letters of each stretch."""
        return sliding_window_view(self.spelt(rows, strand), self.letters, axis=1)

    def code(self, rows: Rows) -> Index:
        return np.asarray(self.windows(rows) @ self.powers)

    def own_agreements(self, letters: Rows, strand: int) -> Floats:
        """(N, W + 1): how many pairs of stretches of the same letters (N, n), the second read from
        one of the strands, agree at so many places. Remembered: states differ in t alone."""
        asked = letters.tobytes(), len(letters), strand
        found = self._known.get(asked)
        if found is None:
            found = self._own_agreements(letters, strand)
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[asked] = found
        return found

    def _own_agreements(self, letters: Rows, strand: int) -> Floats:
        starts = self.starts
        small = letters.astype(np.int8 if self.size <= 127 else np.int64)
        there = small if strand == 0 else self._other(letters).astype(small.dtype)
        same = (small[:, :, np.newaxis] == there[:, np.newaxis]).view(np.int8)
        agreed = same[:, :starts, :starts].copy()
        for j in range(1, self.letters):
            agreed += same[:, j : j + starts, j : j + starts]
        flat = agreed.reshape(len(letters), -1)
        return np.stack([(flat == m).sum(axis=1) for m in range(self.letters + 1)], axis=1) * 1.0

    @cached_property
    def turned(self) -> Index:
        """(codes,): each stretch's code on the other strand."""
        letters = np.stack(np.unravel_index(np.arange(self.codes), self.axes), axis=1)
        return np.asarray(self._other(letters) @ self.powers)

    @cached_property
    def around(self) -> tuple[Index, Index]:
        """(n + 1, W) each: the stretches that have a place, and what a letter is worth in their
        codes. Near the ends there are fewer, and none behind the last place, for variables that
        are not read; those that are not there have the number S, and no worth."""
        place = np.arange(len(self.variables) + 1)[:, np.newaxis]
        start = place - np.arange(self.letters)
        there = (start >= 0) & (start < self.starts) & (place < len(self.variables))
        return np.where(there, start, self.starts), np.where(there, self.powers, 0)


def _stretches(kernel: Kernel) -> Iterator[Index]:
    """Neighbours with the same unordered values, one-hot or bits."""
    for part in kernel.parts:
        if part.graph == "path" or part.factors.shape[1] != 1 or part.size < 2:
            continue
        kind = kernel.alike[part.variables]
        breaks = (np.diff(part.variables) != 1) | (np.diff(kind) != 0)
        yield from np.split(part.variables, np.flatnonzero(breaks) + 1)


def _opposite(values: tuple[Any, ...]) -> Index | None:
    if set(values) != set(OPPOSITE):
        return None
    return np.array([values.index(OPPOSITE[value]) for value in values], dtype=np.intp)


# -- what a fit needs --------------------------------------------------------------------------


def agreements(reading: Reading, rows: Rows, strand: int = 0) -> Floats:
    """(W + 1, N, N): e_r of rows with each other, the second read from one of the strands."""
    left, right = reading.windows(rows), reading.windows(rows, strand)
    out = np.zeros((reading.letters + 1, len(rows), len(rows)))
    for count in range(reading.letters + 1):
        for places in combinations(range(reading.letters), count):
            powers, chosen = reading.size ** np.arange(count), list(places)
            codes = left[:, :, chosen] @ powers, right[:, :, chosen] @ powers
            out[count] += _shared(*codes, reading.size**count)
    return out


def _shared(left: Index, right: Index, codes: int) -> Floats:
    """(A, B): pairs of a code of one row (A, S) and one of another (B, S) that are the same."""
    if codes <= DENSE:
        return np.asarray(_counts(left, codes) @ _counts(right, codes).T)
    from scipy.sparse import csr_array

    def table(each: Index) -> Any:
        rows = np.repeat(np.arange(len(each)), each.shape[1])
        ones = np.ones(each.size)
        return csr_array((ones, (rows, each.ravel())), shape=(len(each), codes))

    return np.asarray((table(left) @ table(right).T).toarray())


def _counts(code: Index, codes: int) -> Floats:
    """(N, codes): how often a row has each code."""
    flat = code + codes * np.arange(len(code))[:, np.newaxis]
    counts = np.bincount(flat.ravel(), minlength=codes * len(code))
    return np.asarray(counts, dtype=np.float64).reshape(len(code), codes)


def normalised(agreed: Floats, t: float) -> tuple[Floats, Floats]:
    """P / (R R') from e_r (W + 1, N, N), and its derivative by t."""
    letters = len(agreed) - 1
    r = np.arange(letters + 1)
    weight = t ** (letters - r) * (1.0 - t) ** r
    # of t^a (1-t)^b, where a power of zero has no slope
    rise = (letters - r) * t ** np.maximum(letters - r - 1, 0) * (1.0 - t) ** r
    fall = r * t ** (letters - r) * (1.0 - t) ** np.maximum(r - 1, 0)
    total, change = (np.tensordot(each, agreed, axes=1) for each in (weight, rise - fall))
    root = np.sqrt(np.diagonal(total))
    lost = np.diagonal(change) / (2.0 * root**2)
    scale = 1.0 / np.outer(root, root)
    total *= scale
    change *= scale
    change -= total * (lost[:, np.newaxis] + lost)
    return total, change


# -- the term ----------------------------------------------------------------------------------


class MotifTerm:
    """The term under one state of the hyper-parameters."""

    def __init__(self, kernel: Kernel, motifs: Motifs) -> None:
        reading = Reading.of(kernel)
        assert reading is not None  # it would not have been fitted
        self.kernel = kernel
        self.motifs = motifs
        self.reading = reading
        self.t = float(np.exp(-motifs.contrast))
        self.tau = (1.0 + (reading.size - 1) * self.t) / reading.size
        starts = reading.starts
        # R of a random point, but for what its two strands have in common
        self.typical = np.sqrt(starts + (starts * motifs.strands - 1) * starts * self.mean)

    @property
    def mean(self) -> float:
        """Of a product of W factors T."""
        return float(self.tau**self.reading.letters)

    def roots(self, rows: Rows) -> Floats:
        """R."""
        return self.roots_of(self.reading.spelt(rows))

    def roots_of(self, letters: Rows) -> Floats:
        """R of the letters (N, n) that are read."""
        total = np.zeros(len(letters))
        for strand in range(self.motifs.strands):
            agreed = self.reading.own_agreements(letters, strand)
            total += agreed @ self.t ** np.arange(self.reading.letters, -1, -1)
        return np.sqrt(total)

    def gram(self, rows: Rows, hot: Floats) -> Floats:
        """(A, B): of rows with one-hot rows."""
        return self.cross(self.reading.code(rows), self.told(hot)) / self.roots(rows)[:, np.newaxis]

    def diagonal(self, rows: Rows) -> Floats:
        """(A,): of each row with itself."""
        return np.full(len(rows), self.motifs.amplitude)

    def told(self, hot: Floats) -> Floats:
        """(codes + 1, N): the worth of stretches in the covariance with each of one-hot rows; none
        of the code behind the last, which stands for a stretch that is not there."""
        rows = self.kernel.rows_of(hot)
        counts = _counts(self.reading.code(rows), self.reading.codes).T / self.roots(rows)
        return np.concatenate([self._covariance(counts), np.zeros((1, len(hot)))])

    def cross(self, code: Index, worth: Floats) -> Floats:
        """(A, N): the sum of worths (codes + 1, N) over the stretches (A, S) of each row."""
        out = worth[code[:, 0]]
        for column in code.T[1:]:
            out += worth[column]
        return out

    def _covariance(self, counts: Floats) -> Floats:
        """(codes, N): for each code the sum over others of counts (codes, N) times a prod_j T, on
        all strands."""
        size, t = self.reading.size, self.t
        if self.motifs.strands > 1:
            counts = counts + counts[self.reading.turned]
        for j in range(self.reading.letters):
            split = counts.reshape(size**j, size, -1)
            counts = (1.0 - t) * split + t * split.sum(axis=1, keepdims=True)
        return self.motifs.amplitude * counts.reshape(self.reading.codes, -1)

    # -- the part of order <= 2 ----------------------------------------------------------------

    @property
    def _variances(self) -> tuple[float, float, float]:
        """A priori, of the coefficients of a stretch's worth: of the constant, of psi at a place,
        of a product at two. [same] - 1/k is the sum of psi psi' over k."""
        one, letters = (1.0 - self.t) / self.reading.size, self.reading.letters
        share = [self.mean, self.tau ** (letters - 1) * one, self.tau ** (letters - 2) * one**2]
        of_all, of_one, of_two = self.motifs.amplitude * np.array(share)
        return float(of_all), float(of_one), float(of_two)

    def low_gram(self, rows: Rows, hot: Floats) -> Floats:
        """(A, B): covariance of the part of order <= 2, divided by R like the whole."""
        others = self.kernel.rows_of(hot)
        left = self.low_features(rows) / self.roots(rows)[:, np.newaxis]
        return np.asarray(left @ (self.low_features(others) / self.roots(others)[:, np.newaxis]).T)

    def low_features(self, rows: Rows) -> Floats:
        """(N, ...): sums over stretches of 1, of psi at each place and of products at each two,
        weighed by the roots of their prior variances: the part of order <= 2 of a P is their
        product."""
        strands = self.motifs.strands
        found = [self._own_features(rows, strand) for strand in range(strands)]
        return np.asarray(sum(found[1:], found[0]) / np.sqrt(strands))

    def _own_features(self, rows: Rows, strand: int) -> Floats:
        of_all, of_one, of_two = np.sqrt(self._variances)
        psi = self.reading.psi[self.reading.windows(rows, strand)]  # (N, S, W, d)
        first, second = np.triu_indices(self.reading.letters, 1)
        pairs = np.einsum("nspa,nspb->npab", psi[:, :, first], psi[:, :, second], optimize=True)
        flat = [
            np.full((len(rows), 1), of_all * self.reading.starts),
            of_one * psi.sum(axis=1).reshape(len(rows), -1),
            of_two * pairs.reshape(len(rows), -1),
        ]
        return np.concatenate(flat, axis=1)

    def prior_worth(self, rng: np.random.Generator) -> Floats:
        """(codes,): the part of order <= 2 of a stretch's worth, drawn a priori."""
        reading, psi = self.reading, self.reading.psi
        of_all, of_one, of_two = np.sqrt(self._variances)
        letters, modes = reading.letters, psi.shape[1]
        out = np.full(reading.axes, of_all * rng.standard_normal())
        main = of_one * rng.standard_normal((letters, modes)) @ psi.T  # (W, k)
        pairs = of_two * rng.standard_normal((letters, letters, modes, modes))
        for i in range(letters):
            out += _along(reading, main[i], i)
            for j in range(i + 1, letters):
                out += _along(reading, psi @ pairs[i, j] @ psi.T, i, j)
        worth = out.ravel()
        if self.motifs.strands > 1:
            worth = (worth + worth[reading.turned]) / np.sqrt(2.0)
        return worth

    def data_worth(self, hot: Floats, v: Floats) -> Floats:
        """(codes,): that of all orders in the covariance with one-hot rows (N, L), times `v`."""
        rows = self.kernel.rows_of(hot)
        code = self.reading.code(rows)
        weights = np.repeat(v / self.roots(rows), code.shape[1])
        counts = np.bincount(code.ravel(), weights=weights, minlength=self.reading.codes)
        return self._covariance(np.asarray(counts, dtype=np.float64)[:, np.newaxis])[:, 0]

    def low_coefficients(self, worth: Floats) -> Coefficients:
        """The part of order <= 2 of what stretches are worth, divided by the R of a typical point,
        as coefficients of the unweighted features psi."""
        reading, features = self.reading, self.reading.features
        table = worth.reshape(reading.axes) / self.typical
        whole = np.zeros(self.kernel.features)
        both = np.zeros((self.kernel.features, self.kernel.features))
        for i in range(reading.letters):
            left = features[i : i + reading.starts]  # (S, d): in each stretch, place i
            whole[left] += _mean_but(table, i) @ reading.psi / reading.size
            for j in range(i + 1, reading.letters):
                right = features[j : j + reading.starts]
                pair = reading.psi.T @ _mean_but(table, i, j) @ reading.psi / reading.size**2
                both[left[:, :, np.newaxis], right[:, np.newaxis]] += pair
        return Coefficients(float(reading.starts * table.mean()), whole, both + both.T)

    def at(self, rows: Rows, worth: Floats) -> Floats:
        """h / R from what stretches are worth."""
        return np.asarray(worth[self.reading.code(rows)].sum(axis=1) / self.roots(rows))


def _along(reading: Reading, values: Floats, *places: int) -> Floats:
    """Values by the letters at some places, for a table of codes."""
    shape = [reading.size if j in places else 1 for j in range(reading.letters)]
    return values.reshape(shape)


def _mean_but(table: Floats, *places: int) -> Floats:
    """The mean of a table of codes over all letters but those at some places."""
    others = tuple(j for j in range(table.ndim) if j not in places)
    return np.asarray(table.mean(axis=others))


@dataclass(frozen=True)
class MotifSum:
    """h / R, as `samples.KernelSum`."""

    term: MotifTerm
    worth: Floats  # (codes,)

    def value(self, rows: Rows) -> Floats:
        return self.term.at(rows, self.worth)

    def neighbours(self, rows: Rows) -> Floats:
        """(P, L)."""
        levels = np.tile(np.arange(self.term.kernel.levels), (len(rows), 1))
        worth = np.append(self.worth, 0.0)[:, np.newaxis]
        return around(self.term, worth, rows, levels)[:, :, 0]


def around(term: MotifTerm, worth: Floats, rows: Rows, level: Index) -> Floats:
    """(P, J, N): h / R for worths (codes + 1, N) of the rows, one variable at the value of a level
    (P, J); a column of levels has one variable."""
    kernel, reading = term.kernel, term.reading
    variable, value = kernel.level_variable[level[0]], kernel.level_value[level]
    place = np.full(kernel.variables, len(reading.variables))
    place[reading.variables] = np.arange(len(reading.variables))
    which, power = reading.around  # (n + 1, W)
    code = reading.code(rows)
    padded = np.column_stack([code, np.full(len(rows), reading.codes)])
    # without the stretches that have a place: (P, n + 1, N)
    kept = np.repeat(term.cross(code, worth)[:, np.newaxis], len(which), axis=1)
    for j in range(reading.letters):
        kept -= worth[padded[:, which[:, j]]]
    at = place[variable]  # (J,)
    step = value - rows[:, variable]
    out = kept[:, at]
    for j in range(reading.letters):
        out += worth[padded[:, which[at, j]] + step * power[at, j]]
    out /= _roots_around(term, rows, at, value)[:, :, np.newaxis]
    return out


def _roots_around(term: MotifTerm, rows: Rows, at: Index, value: Index) -> Floats:
    """(P, J): R of the rows, a place at some value; a place behind the last stays as it is."""
    letters = term.reading.spelt(rows)
    padded = np.column_stack([letters, np.zeros(len(rows), dtype=letters.dtype)])
    moved = np.repeat(padded, len(at), axis=0)
    moved[np.arange(len(moved)), np.tile(at, len(rows))] = value.ravel()
    return term.roots_of(np.ascontiguousarray(moved[:, :-1])).reshape(value.shape)


@dataclass(frozen=True)
class MotifCovariance:
    """Between points and results, as `drawing.prediction.Covariance`."""

    term: MotifTerm
    hot: Floats  # (N, L)

    @cached_property
    def _told(self) -> Floats:
        return self.term.told(self.hot)

    def at(self, rows: Rows) -> tuple[Floats, Floats]:
        """With the results (R, N), and with themselves (R,)."""
        cross = self.term.cross(self.term.reading.code(rows), self._told)
        cross /= self.term.roots(rows)[:, np.newaxis]
        return cross, self.term.diagonal(rows)

    def around(self, rows: Rows, level: Index) -> tuple[Floats, Floats]:
        """The same (P, J, N) and (P, J) of the rows, one variable at the value of a level (P, J);
        a column of levels has one variable."""
        moved = around(self.term, self._told, rows, level)
        return moved, np.full(level.shape, self.term.motifs.amplitude)
