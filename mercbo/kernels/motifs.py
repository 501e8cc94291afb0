"""Motifs: what a few letters in a row do wherever they stand.

A protein binds to the same short stretch of DNA at any place of a sequence; a step of a process
spoils the next one at any stage. A kernel over all variables learns that anew at every place. So it
may get one more term, for a function h that adds up what each stretch of W letters is worth:

    P(x, x')  =  sum_s sum_s'  prod_j T(x_{s+j}, x'_{s'+j}),   j = 0 .. W - 1,

s and s' being where a stretch begins, and T one where two letters are the same and exp(-c) where
they are not (`reading.py` says which variables are read). Where the letters are those of DNA, a
stretch may also be read from the other strand: P(x, x') + P(x, x' reversed and complemented) then
stands for P. Which terms there are is decided in `fitting/structured.py`.

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

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercbo.arrays import Floats, Index, Rows
from mercbo.features import Coefficients
from mercbo.kernel import Kernel
from mercbo.kernels.reading import Reading, counts_of

# Entries of what rows have in common with all stretches that are held at a time: 8 MB.
ENTRIES = 1 << 20


@dataclass(frozen=True)
class Motifs:
    """The hyper-parameters a and c, and how many strands are read."""

    amplitude: float
    contrast: float
    strands: int = 1


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
        code = self.reading.code(rows)
        shared = self.cross(code, self.between)
        return np.asarray(np.sqrt(np.take_along_axis(shared, code, axis=1).sum(axis=1)))

    @cached_property
    def between(self) -> Floats:
        """(codes + 1, codes + 1): prod_j T of two stretches, on all strands; nothing of one that is
        not there."""
        alone = self._covariance(np.eye(self.reading.codes)) / self.motifs.amplitude
        return np.pad(alone, (0, 1))

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
        counts = counts_of(self.reading.code(rows), self.reading.codes).T / self.roots(rows)
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
        kernel, worth = self.term.kernel, np.append(self.worth, 0.0)[:, np.newaxis]
        value = np.tile(kernel.level_rank, (len(rows), 1))
        step = max(1, ENTRIES // (len(self.term.reading.variables) * len(worth)))
        out = np.empty((len(rows), kernel.levels))
        for i in range(0, len(rows), step):
            some = slice(i, i + step)
            around = Around(self.term, rows[some], kernel.level_variable, value[some])
            out[some] = around.values(worth)[:, :, 0]
        return out


class Around:
    """The stretches of some rows when one variable (J,) takes some value (P, J), given by its place
    in the shared order."""

    def __init__(self, term: MotifTerm, rows: Rows, variable: Index, value: Index) -> None:
        reading = term.reading
        place = np.full(term.kernel.variables, len(reading.variables))
        place[reading.variables] = np.arange(len(reading.variables))
        which, power = reading.around  # (n + 1, W)
        self.term = term
        self.at = place[variable]  # (J,)
        self.code = reading.code(rows)
        padded = np.column_stack([self.code, np.full(len(rows), reading.codes)])
        self.old = padded[:, which]  # (P, n + 1, W): the stretches that have each place
        step = value - term.kernel.ranked(rows)[:, variable]
        # (P, J, W): what becomes of them
        self.new = self.old[:, self.at] + step[:, :, np.newaxis] * power[self.at]

    def values(self, worth: Floats) -> Floats:
        """(P, J, N): h / R for worths (codes + 1, N)."""
        out = self._kept(worth)[:, self.at]
        for j in range(self.new.shape[2]):
            out += worth[self.new[:, :, j]]
        out /= self._roots()[:, :, np.newaxis]
        return out

    def _kept(self, worth: Floats) -> Floats:
        """(P, n + 1, N): the sum of worths over the stretches that do not have each place."""
        kept = np.repeat(
            self.term.cross(self.code, worth)[:, np.newaxis], self.old.shape[1], axis=1
        )
        for j in range(self.old.shape[2]):
            kept -= worth[self.old[:, :, j]]
        return kept

    def _roots(self) -> Floats:
        """(P, J): R. With K what stretches have in common, k those that are kept and b the new
        ones, it is the root of k K k + 2 b K k + b K b."""
        between, new, letters = self.term.between, self.new, self.new.shape[2]
        shared = self._kept(between)  # (P, n + 1, codes + 1): K k
        kept = np.take_along_axis(shared, self.code[:, np.newaxis], axis=2).sum(axis=2)
        kept -= np.take_along_axis(shared, self.old, axis=2).sum(axis=2)  # k K k
        row = np.arange(len(new))[:, np.newaxis]
        total = kept[:, self.at]
        for i in range(letters):
            total += 2.0 * shared[row, self.at, new[:, :, i]]
            total += between[new[:, :, i], new[:, :, i]]
            for j in range(i):
                total += 2.0 * between[new[:, :, i], new[:, :, j]]
        return np.asarray(np.sqrt(total))


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
        kernel = self.term.kernel
        variable, value = kernel.level_variable[level[0]], kernel.level_rank[level]
        moved = Around(self.term, rows, variable, value).values(self._told)
        return moved, np.full(level.shape, self.term.motifs.amplitude)
