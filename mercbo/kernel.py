"""Graph spectra and the diffusion kernel: what it means for two points to be alike.

| symbol | meaning                                                                | shape      |
|--------|------------------------------------------------------------------------|------------|
| n      | factors: variables of the model, each with a graph and a beta          |            |
| L      | levels: values of all variables side by side                           |            |
| D      | single-factor features, sum over factors of (k - 1)                    |            |
| lam    | Laplacian eigenvalues of a factor without the zero                     | (k-1,)     |
| psi    | eigenvectors times sqrt(k): mean square 1 over the values              | (k, k-1)   |
| w      | exp(-beta lam)                                                         | (D,)       |
| M      | sum_j w_j psi_j psi_j', the non-constant part of a factor's kernel     | (k, k)     |
| T      | a (1 + M), a = 1 / (1 + sum_j w_j): a factor's kernel, mean diagonal 1 | (k, k)     |
| c      | contrast: -log of the correlation that one difference leaves           | (n,)       |

The kernel is K(x, x') = s2 * prod_i T_i[x_i, x'_i] (paper, eq. 4), a product of table look-ups.
A *sum* of look-ups over the variables is one matrix product with the one-hot rows, so products
are taken through logarithms and nothing loops over observations or variables.

`contrast` is a better coordinate than beta for fitting: for binary and categorical variables
log K = -sum_i c_i [x_i != x'_i], exactly. For a path graph c is defined by its slowest mode,
w_1 = tanh(c/2), which agrees at k = 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from mercbo.arrays import Floats, Index, Mask, Rows
from mercbo.encoding import Block, Encoding

# Rounding in the spectral sum is about 1e-16; entries of T below this are not told from zero.
TABLE_FLOOR = 1e-18
# Of paths of so many values and more, only the values that are in the data are looked at in a fit.
LONG_PATH = 64
# Up to so many values the table of a path is a product with those of its modes, which takes less
# time than a Fourier transform.
SHORT_PATH = 32
# Newton's identities subtract large powers; above this order they lose too many digits.
NEWTON_ORDER = 4


Made = TypeVar("Made")


def once_per_kernel(make: Callable[[Kernel], Made]) -> Callable[[Kernel], Made]:
    """A function of a kernel that remembers its value as long as the kernel lives. The value must
    not refer to the kernel."""
    known: WeakKeyDictionary[Kernel, Made] = WeakKeyDictionary()

    @wraps(make)
    def made(kernel: Kernel) -> Made:
        if kernel not in known:
            known[kernel] = make(kernel)
        return known[kernel]

    return made


def spectrum(graph: str, size: int) -> tuple[Floats, Floats]:
    """Non-zero Laplacian eigenvalues (k-1,) and scaled eigenvectors (k, k-1) of a graph.

    The cosine (DCT-II) vectors are the eigenvectors of the path; any orthonormal basis
    orthogonal to the constant serves the complete graph, so it shares them.
    """
    j = np.arange(1, size)
    psi = np.sqrt(2.0) * np.cos(np.pi * np.outer(np.arange(size) + 0.5, j) / size)
    if graph == "path":
        return 2.0 - 2.0 * np.cos(np.pi * j / size), psi
    return np.full(size - 1, float(size)), psi


@dataclass(frozen=True)
class Part:
    """One block of variables as the kernel sees it.

    | symbol    | meaning                                               | shape     |
    |-----------|-------------------------------------------------------|-----------|
    | variables | positions of the block's variables in a row           | (v,)      |
    | factors   | positions of their factors among the n                | (v, f)    |
    | levels    | positions of their values among the L                 | (v, k)    |
    | features  | positions of their features among the D               | (v, d)    |
    | lam       | eigenvalue of each feature                            | (d,)      |
    | psi       | value of each feature at each value of the variable   | (k, d)    |
    | owner     | which of the variable's factors a feature belongs to  | (d,)      |
    | places    | where each value stands among those of its graph      | (k,)      |
    | rank      | row of psi of each declared value; None: as declared  | (v, k)    |

    Like variables have one psi: the same feature has the same value at the same value of each of
    them, whatever order they declare (`encoding.shared_orders`).
    """

    graph: str
    size: int
    variables: Index
    factors: Index
    levels: Index
    features: Index
    lam: Floats
    psi: Floats
    owner: Index
    places: Index
    rank: Index | None = None

    @cached_property
    def own_psi(self) -> Floats:
        """psi at the declared values: (v, k, d), or (k, d) for all variables."""
        return self.psi if self.rank is None else self.psi[self.rank]

    @property
    def ordered(self) -> Index:
        """(v, k): the levels in the shared order of values, that of the rows of psi."""
        if self.rank is None:
            return self.levels
        return np.take_along_axis(self.levels, np.argsort(self.rank, axis=1), axis=1)

    @property
    def is_long(self) -> bool:
        return self.graph == "path" and self.size >= LONG_PATH

    @property
    def member(self) -> Floats:
        """(d, f): 1 where the feature belongs to the factor."""
        owned = self.owner[:, np.newaxis] == np.arange(self.factors.shape[1])
        return np.asarray(owned, dtype=np.float64)

    @property
    def span(self) -> slice:
        """The levels, which are side by side: a slice is many times as fast as their positions."""
        return slice(int(self.levels[0, 0]), int(self.levels[-1, -1]) + 1)

    @cached_property
    def modes(self) -> Floats:
        """(d, k k): psi(x) psi(x') of each feature."""
        both = self.psi[:, np.newaxis, :] * self.psi
        return np.ascontiguousarray(both.reshape(-1, self.psi.shape[1]).T)

    @property
    def arity(self) -> int:
        """The number of values of one factor: 2 where the factors are bits."""
        return self.size if self.factors.shape[1] == 1 else 2

    @property
    def differs(self) -> Floats:
        """(f, k, k): 1 where two values of the variable differ in the factor."""
        if self.factors.shape[1] == 1:
            return 1.0 - np.eye(self.size)[np.newaxis]
        bits = self.psi.T  # (f, k), plus and minus one
        return 0.5 * (1.0 - bits[:, :, np.newaxis] * bits[:, np.newaxis, :])


class Kernel:
    """The diffusion kernel on a space, with one beta per factor (the space's geometry only:
    betas, amplitude and noise are passed in)."""

    def __init__(self, encoding: Encoding) -> None:
        parts: list[Part] = []
        n = levels = features = 0
        for block in encoding.blocks:
            lam, psi, owner = _block_spectrum(block)
            v, k, f, d = len(block.variables), block.size, block.factors_each, len(lam)
            parts.append(
                Part(
                    graph=block.graph,
                    size=k,
                    variables=block.variables,
                    factors=n + np.arange(v * f).reshape(v, f),
                    levels=levels + np.arange(v * k).reshape(v, k),
                    features=features + np.arange(v * d).reshape(v, d),
                    lam=lam,
                    psi=psi,
                    owner=owner,
                    places=np.arange(k),
                    rank=_rank([encoding.ranks[i] for i in block.variables]),
                )
            )
            n, levels, features = n + v * f, levels + v * k, features + v * d
        self.parts = tuple(parts)
        self.n = n
        self.levels = levels
        self.features = features
        self.variables = encoding.variables
        self.names = encoding.names
        self.values = encoding.values
        self.alike = encoding.alike
        # (D,) factor, variable, eigenvalue of each feature; (n,) constants of the coordinate
        self.factor_of = np.zeros(features, dtype=np.intp)
        self.variable_of = np.zeros(features, dtype=np.intp)
        self.arity = np.zeros(n)
        self.slowest = np.zeros(n)
        self.lam = np.zeros(features)
        self._name_levels()
        for part in self.parts:
            if part.factors.size:
                self.lam[part.features] = part.lam
                self.factor_of[part.features] = part.factors[:, part.owner]
                self.variable_of[part.features] = part.variables[:, np.newaxis]
                path = part.graph == "path"
                self.arity[part.factors] = 2 if path else part.arity
                self.slowest[part.factors] = part.lam[0]

    def _name_levels(self) -> None:
        """Set three arrays (L,): the variable of each level, its value in the declared order, and
        its value in the order that like variables share."""
        self.level_variable = np.zeros(self.levels, dtype=np.intp)
        self.level_value = np.zeros(self.levels, dtype=np.int64)
        self.level_rank = np.zeros(self.levels, dtype=np.int64)
        for part in self.parts:
            self.level_variable[part.levels] = part.variables[:, np.newaxis]
            self.level_value[part.levels] = np.arange(part.size)
            self.level_rank[part.ordered] = np.arange(part.size)

    def ranked(self, rows: Rows) -> Rows:
        """Rows with each value's place in the order that like variables share: equal entries of
        like variables are equal values."""
        if all(part.rank is None for part in self.parts):
            return rows
        rows = rows.copy()
        for part in self.parts:
            if part.rank is not None:
                own = rows[:, part.variables]
                rows[:, part.variables] = part.rank[np.arange(len(part.variables)), own]
        return rows

    def rougher(self, power: float) -> Kernel:
        """The kernel with exp(-beta L^power) for every path, `power` from 0 to 1, L its Laplacian.

        That is a diffusion too, one that jumps, so that no entry of T is negative. The lower the
        power, the less the fast modes are held back: at 0 all values are equally far apart. The
        contrast keeps its meaning, w_1 = tanh(c/2).
        """
        other = copy(self)
        other.parts = tuple(
            replace(part, lam=part.lam**power) if part.graph == "path" else part
            for part in self.parts
        )
        other.lam, other.slowest = self.lam.copy(), self.slowest.copy()
        for part in other.parts:
            if part.factors.size:
                other.lam[part.features] = part.lam
                other.slowest[part.factors] = part.lam[0]
        return other

    def compact(self, rows: Rows) -> tuple[Kernel, Rows]:
        """The kernel on those values of long paths that some rows have, and the rows with each
        value's number among these values, in the shared order.

        Betas and contrasts keep their meaning. A table of all pairs of 500 values would be wasted
        on 20 of them."""
        if not any(part.is_long for part in self.parts):
            return self, rows
        other, ranked, rows = copy(self), self.ranked(rows), rows.copy()
        parts, other.levels = [], 0
        for part in self.parts:
            size, psi, places = part.size, part.psi, part.places
            if part.is_long:
                # two values at least: with one, it would be no variable
                own = ranked[:, part.variables]
                used = np.union1d([0, 1], own)
                rows[:, part.variables] = np.searchsorted(used, own)
                size, psi, places = len(used), psi[used], places[used]
            levels = other.levels + np.arange(len(part.variables) * size).reshape(-1, size)
            rank = None if part.is_long else part.rank
            parts.append(replace(part, size=size, psi=psi, levels=levels, places=places, rank=rank))
            other.levels += levels.size
        other.parts = tuple(parts)
        other._name_levels()
        return other, rows

    # -- coordinates ---------------------------------------------------------------------------

    def contrast(self, beta: Floats) -> Floats:
        """c of each factor from its beta."""
        w = np.exp(-beta * self.slowest)
        return np.log1p((self.arity - 1) * w) - np.log(-np.expm1(-beta * self.slowest))

    def beta(self, contrast: Floats) -> Floats:
        """The beta of each factor from its contrast: the inverse of `contrast`."""
        same = np.exp(-contrast)
        log_w = np.where(
            contrast < 1.0,
            np.log(-np.expm1(-np.minimum(contrast, 1.0))),
            np.log1p(-np.exp(-np.maximum(contrast, 1.0))),
        ) - np.log1p((self.arity - 1) * same)
        return np.asarray(-log_w / self.slowest)

    # -- tables --------------------------------------------------------------------------------

    def onehot(self, rows: Rows) -> Floats:
        """(N, L): 1 where the row has the level."""
        hot = np.zeros((len(rows), self.levels))
        for part in self.parts:
            chosen = part.levels[np.arange(len(part.variables)), rows[:, part.variables]]
            np.put_along_axis(hot, chosen, 1.0, axis=1)
        return hot

    def held(self, rows: Rows) -> Index:
        """(N, variables): the level of each variable of each row."""
        held = np.zeros(rows.shape, dtype=np.intp)
        for part in self.parts:
            held[:, part.variables] = part.levels[:, 0] + rows[:, part.variables]
        return held

    def rows_of(self, hot: Floats) -> Rows:
        """The rows of one-hot rows: the inverse of `onehot`."""
        rows = np.zeros((len(hot), self.variables), dtype=np.int64)
        for part in self.parts:
            rows[:, part.variables] = hot[:, part.levels].argmax(axis=2)
        return rows

    def weights(self, beta: Floats) -> Floats:
        """w of each feature, (D,)."""
        return np.exp(-beta[self.factor_of] * self.lam)

    def log_scale(self, w: Floats) -> float:
        """log prod_i a_i."""
        return float(-np.log1p(np.bincount(self.factor_of, weights=w, minlength=self.n)).sum())

    def power_tables(self, w: Floats, power: int) -> list[Floats]:
        """Per part (v, k, k): the sum over a variable's factors of M ** power, elementwise."""
        return [
            (_factor_tables(part, w[part.features]) ** power).sum(axis=1) for part in self.parts
        ]

    def log_tables(self, beta: Floats) -> list[Floats]:
        """Per part (..., v, k, k): log of the variable's kernel, for betas (..., n)."""
        contrast = self.contrast(beta)
        tables = []
        for part in self.parts:
            if part.graph == "path":
                tables.append(_path_log_table(part, np.exp(-beta[..., part.factors] * part.lam)))
            else:
                tables.append(-np.tensordot(contrast[..., part.factors], part.differs, axes=1))
        return tables

    def log_factor_table(self, part: Part, factor: int, position: int, beta: float) -> Floats:
        """(k, k): log T of one factor, the `position`-th of its variable."""
        if part.graph == "path":
            return np.asarray(_path_log_table(part, np.exp(-beta * part.lam)[np.newaxis])[0])
        lam, arity = self.slowest[factor], self.arity[factor]
        w = np.exp(-beta * lam)
        contrast = np.log1p((arity - 1) * w) - np.log(-np.expm1(-beta * lam))
        return np.asarray(-contrast * part.differs[position])

    def log_table_gradients(self, beta: Floats) -> list[Floats]:
        """Per part (..., v, f, k, k): the derivative of `log_tables` by the log of each contrast,
        for betas (..., n)."""
        contrast = self.contrast(beta)
        gradients = []
        for part in self.parts:
            c = contrast[..., part.factors, np.newaxis, np.newaxis]  # (..., v, f, 1, 1)
            if part.graph == "path":
                # lam_1 beta = -log tanh(c/2), so d beta / d log c = -c / (lam_1 sinh c)
                by_beta = _path_log_table_by_beta(part, beta[..., part.factors])
                chain = -c / (part.lam[0] * np.sinh(np.minimum(c, 500.0)))
                gradients.append(chain * by_beta[..., np.newaxis, :, :])
            else:
                gradients.append(-c * part.differs)
        return gradients

    def sum_tables(self, tables: Sequence[Floats], rows: Rows, hot: Floats) -> Floats:
        """(A, B): sum over variables of tables[x_i, x'_i], rows against one-hot rows (B, L)."""
        looked = np.zeros((len(rows), self.levels))
        for part, table in zip(self.parts, tables, strict=True):
            found = table[np.arange(len(part.variables)), rows[:, part.variables]]  # (A, v, k)
            looked[:, part.span] = found.reshape(len(rows), part.levels.size)
        return np.asarray(looked @ hot.T)

    # -- Gram matrices (unit amplitude) --------------------------------------------------------

    def product(self, log_tables: Sequence[Floats], rows: Rows, hot: Floats) -> Floats:
        """The product of the factors' kernels, (A, B)."""
        return np.exp(self.sum_tables(log_tables, rows, hot))

    def gram(self, log_tables: Sequence[Floats], rows: Rows, hot: Floats) -> Floats:
        """The full kernel, (A, B): the product, or what symmetries make of it."""
        return self.product(log_tables, rows, hot)

    def diagonal(self, log_tables: Sequence[Floats], rows: Rows) -> Floats:
        """The full kernel between each row and itself, (A,)."""
        total = np.zeros(len(rows))
        for part, table in zip(self.parts, log_tables, strict=True):
            own = rows[:, part.variables]
            total += table[np.arange(len(part.variables)), own, own].sum(axis=1)
        return np.exp(total)

    def slopes(
        self, beta: Floats, amplitude: float, pull: Floats, gram: Floats, rows: Rows, hot: Floats
    ) -> Floats:
        """(n,): sum over all pairs of `pull` * d gram / d log c_i, `gram` being the full kernel
        of this amplitude at the rows."""
        del amplitude, rows  # `gram` and the one-hot rows say all
        return self.contract(self.log_table_gradients(beta), pull * gram, hot)

    # -- symmetries: none here, see `kernels/averaging.py` -------------------------------------

    def images(self, rows: Rows) -> Rows:
        """(|G|, N, variables): the rows under every symmetry, themselves first."""
        return rows[np.newaxis]

    def hot_images(self, hot: Floats) -> list[Floats]:
        """The same for one-hot rows (N, L), one array per symmetry."""
        return [hot]

    def roots(self, log_tables: Sequence[Floats], rows: Rows) -> Floats | None:
        """(A,): what the average over the symmetries was divided by at each row; None where
        there was none."""
        del log_tables, rows
        return None

    def closed(self, allowed: Mask) -> Mask:
        """(variables, variables): these pairs and what the symmetries make of them."""
        return allowed

    def tied(self, values: Floats) -> Floats:
        """A coordinate per factor (and more after these): averaged where symmetries tie them."""
        return values

    def symmetrised(self, main: Floats, pair: Floats) -> tuple[Floats, Floats]:
        """Coefficients of F averaged over the symmetries: of the main effects, of the pairs."""
        return main, pair

    def truncated_gram(
        self, w: Floats, scale: float, order: int, rows: Rows, hot: Floats
    ) -> Floats:
        """Phi Phi' of the features of order <= `order`, without the features.

        With p_r = sum_i M_i ** r (elementwise), Newton's identities give the elementary
        symmetric sums e_m = sum over m different factors of the product of their M.
        """
        order = min(order, self.n)
        if order > NEWTON_ORDER:
            return scale * self._elementary(w, order, rows, hot)
        powers = [self.sum_tables(self.power_tables(w, r), rows, hot) for r in range(1, order + 1)]
        elementary = [np.ones((len(rows), len(hot)))]
        for m in range(1, order + 1):
            terms = [(-1) ** (r - 1) * elementary[m - r] * powers[r - 1] for r in range(1, m + 1)]
            elementary.append(sum(terms[1:], terms[0]) / m)
        return scale * sum(elementary[1:], elementary[0])

    def _elementary(self, w: Floats, order: int, rows: Rows, hot: Floats) -> Floats:
        """e_0 + ... + e_order, one factor after another: slower than Newton's identities, but a
        sum without cancellation."""
        sums = np.zeros((order + 1, len(rows), len(hot)))
        sums[0] = 1.0
        for part in self.parts:
            tables = _factor_tables(part, w[part.features])  # (v, f, k, k)
            for variable in range(len(part.variables)):
                column = rows[:, part.variables[variable]]
                for table in tables[variable]:
                    sums[1:] += table[column] @ hot[:, part.levels[variable]].T * sums[:-1]
        return np.asarray(sums.sum(axis=0))

    def contract(
        self,
        gradients: Sequence[Floats],
        weight: Floats,
        hot: Floats,
        left_hot: Floats | None = None,
    ) -> Floats:
        """(n,): sum of `weight` * d log K / d log c_i over all pairs, in one pass; the pairs are
        of `left_hot` (by default `hot`) and `hot`."""
        left_hot = hot if left_hot is None else left_hot
        spread = weight @ hot  # (N, L)
        out = np.zeros(self.n)
        for part, gradient in zip(self.parts, gradients, strict=True):
            left = left_hot[:, part.span].reshape(-1, *part.levels.shape).transpose(1, 2, 0)
            right = spread[:, part.span].reshape(-1, *part.levels.shape).transpose(1, 0, 2)
            # (v, k, N) @ (v, N, k)
            out[part.factors] = np.einsum("vab,vfab->vf", left @ right, gradient)
        return out


def _rank(ranks: Sequence[Index]) -> Index | None:
    """The ranks of some variables as one array (v, k); None if all are in the shared order."""
    if all((rank == np.arange(len(rank))).all() for rank in ranks):
        return None
    return np.stack(ranks)


def _block_spectrum(block: Block) -> tuple[Floats, Floats, Index]:
    if block.code == "none":
        return np.zeros(0), np.zeros((1, 0)), np.zeros(0, dtype=np.intp)
    if block.code == "binary":
        bits = block.codebook.astype(float)
        return np.full(bits.shape[1], 2.0), 1.0 - 2.0 * bits, np.arange(bits.shape[1])
    lam, psi = spectrum(block.graph, block.size)
    return lam, psi, np.zeros(block.size - 1, dtype=np.intp)


def _factor_tables(part: Part, w: Floats) -> Floats:
    """(v, f, k, k): M of each factor, from the weights (v, d) of its features."""
    weighted = w[:, np.newaxis, :] * part.member.T  # (v, f, d)
    return np.asarray((part.psi * weighted[:, :, np.newaxis, :]) @ part.psi.T)


def _path_sum(part: Part, weights: Floats) -> Floats:
    """(..., v, k, k): sum over the features of a path of weights (..., v, d) times psi psi'."""
    shape = (*weights.shape[:-1], part.size, part.size)
    flat = weights.reshape(-1, weights.shape[-1])
    made = flat @ part.modes if part.size <= SHORT_PATH else _fourier_sum(part, flat)
    return np.asarray(made.reshape(shape))


def _fourier_sum(part: Part, weights: Floats) -> Floats:
    """The same of weights (v, d).

    psi_m(x) psi_m(x') = cos(pi m (x - x') / k) + cos(pi m (x + x' + 1) / k) for a path of k values,
    so that a Fourier transform of the weights has it all: k^2 steps, where a product takes k^3.
    """
    length = len(part.lam) + 1
    padded = np.pad(weights, ((0, 0), (1, 1)))
    cosines = length * np.fft.irfft(padded, n=2 * length, axis=1)  # (v, 2k): by the distance
    if part.size < length:  # some of the values only
        left, right = part.places[:, np.newaxis], part.places
        return np.asarray(cosines[:, np.abs(left - right)] + cosines[:, left + right + 1])
    # a row of the table is the row above it, moved by one
    both_ways = np.concatenate([cosines[:, length - 1 : 0 : -1], cosines[:, :length]], axis=1)
    apart = sliding_window_view(both_ways, length, axis=1)[:, ::-1]
    return np.asarray(apart + sliding_window_view(cosines[:, 1:], length, axis=1))


def _path_log_table(part: Part, w: Floats) -> Floats:
    table = _path_sum(part, w)
    table += 1.0
    np.maximum(table, TABLE_FLOOR, out=table)  # in place: a table may have millions of entries
    table /= 1.0 + w.sum(axis=-1)[..., np.newaxis, np.newaxis]
    return np.log(table, out=table)


def _path_log_table_by_beta(part: Part, beta: Floats) -> Floats:
    w = np.exp(-beta * part.lam)  # (..., v, d)
    table = 1.0 + _path_sum(part, w)
    slope = -_path_sum(part, part.lam * w)
    norm = (part.lam * w).sum(axis=-1) / (1.0 + w.sum(axis=-1))
    return np.asarray(slope / np.maximum(table, TABLE_FLOOR) + norm[..., np.newaxis, np.newaxis])
