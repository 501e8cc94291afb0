"""A posterior taken apart: the constant, the effect of each variable, the interaction of each pair.

Averages of f over the values of variables (all values of a variable count alike, whether or not a
constraint allows them) split every function into parts that add up to it,

    f(x) = f_0 + sum_i f_i(x_i) + sum_{i<j} f_ij(x_i, x_j) + ...,

each part with mean zero over each of its variables. A part is a linear functional of f, so under
the posterior it is Gaussian, with mean and covariance in closed form. Where a variable is one
factor of the kernel, the part of i is the sum of its Mercer terms of order 1 and that of (i, j) of
those of order 2; the binary encoding, where a variable is several factors, is handled as well.

| symbol | meaning                                                                   | shape     |
|--------|---------------------------------------------------------------------------|-----------|
| X      | the data, index rows                                                      | (N, n)    |
| P_i    | a variable's kernel over its mean, as polynomial in t: prod_f (1 + t M_f) | (q, k, k) |
| U_i    | orthonormal basis of the functions of a variable that have mean zero      | (k, k-1)  |
| C      | covariance of the coordinates of a part with f at the data                | (c, N)    |

The powers of t count factors: cut off at t^m, the product over all variables is the kernel of order
<= m (`posterior="truncated"`); with t = 1, and then q = 1, it is the full one. A posterior knows
sums of such kernels (`Term`), and perhaps three more kinds of terms, each with parts in closed form
too: effects with variances of their own (`ridges.py`), windows (`stacks.py`), and what is pooled
(`pooled.py`).

Variances (Sobol's decomposition) are posterior expectations: E[mean over x of f_i(x)^2] and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercbo.arrays import Floats, kron, sum_of
from mercbo.explaining.explanatory import OpenPosterior
from mercbo.explaining.orders import Axes, LowOrders, Squares, low_squares
from mercbo.explaining.pooled import PoolParts
from mercbo.explaining.ridges import RidgeParts
from mercbo.explaining.stacks import Held, Stack
from mercbo.kernel import Kernel, Part
from mercbo.posterior import Posterior

# Coordinates of all pairs together that are looked at, and those of a single pair.
MOST_COORDINATES, MOST_OF_A_PAIR = 20_000, 1_000


def times(a: Floats, b: Floats) -> Floats:
    """The product of two polynomials in (s, t), coefficients first, cut off where they are."""
    if a.shape[:2] == b.shape[:2] == (1, 1):
        return a * b
    rows, columns = max(a.shape[0], b.shape[0]), max(a.shape[1], b.shape[1])
    out = np.zeros((rows, columns, *np.broadcast_shapes(a.shape[2:], b.shape[2:])))
    for i, j in np.ndindex(a.shape[:2]):
        for di, dj in np.ndindex(min(b.shape[0], rows - i), min(b.shape[1], columns - j)):
            out[i + di, j + dj] += a[i, j] * b[di, dj]
    return out


def over(a: Floats, b: Floats) -> Floats:
    """The polynomial c, cut off where `a` is, with ``times(b, c) == a``."""
    if a.shape[:2] == b.shape[:2] == (1, 1):
        return np.asarray(a / b)
    out = np.zeros((*a.shape[:2], *np.broadcast_shapes(a.shape[2:], b.shape[2:])))
    for i, j in np.ndindex(a.shape[:2]):
        rest = a[i, j]
        for di, dj in np.ndindex(min(b.shape[0], i + 1), min(b.shape[1], j + 1)):
            if (di, dj) != (0, 0):
                rest = rest - b[di, dj] * out[i - di, j - dj]
        out[i, j] = rest / b[0, 0]
    return out


def _total(polynomial: Floats) -> Floats:
    return np.asarray(polynomial.sum(axis=(0, 1)))


def _variable_table(part: Part, w: Floats, order: int | None) -> Floats:
    """P of one variable, (q, 1, k, k), from the weights (d,) of its features."""
    degree = 0 if order is None else order
    table = np.zeros((degree + 1, 1, part.size, part.size))
    table[0, 0] = 1.0
    for member in part.member.T:  # its factors
        factor = (part.psi * (w * member)) @ part.psi.T
        if order is None:
            table = table * (1.0 + factor)
        else:
            ones = np.ones_like(factor)
            table = times(table, np.stack([ones, factor])[:, np.newaxis])
    return table


@dataclass(frozen=True)
class Term:
    """One summand of a covariance: scale * (the product over variables of P_i, at t = 1)."""

    scale: float
    tables: tuple[Floats, ...]  # one P per variable, in the order of the space

    @classmethod
    def of(cls, kernel: Kernel, w: Floats, scale: float, order: int | None) -> Term:
        tables: dict[int, Floats] = {}
        order = None if order is None else min(order, kernel.n)  # no term has more factors
        for part in kernel.parts:
            for variable, features in zip(part.variables.tolist(), part.features, strict=True):
                tables[variable] = _variable_table(part, w[features], order)
        return cls(scale, tuple(tables[i] for i in range(len(tables))))

    @cached_property
    def means(self) -> tuple[Floats, ...]:
        """P averaged over one of its two arguments, (q, 1, k)."""
        return tuple(table.mean(axis=2) for table in self.tables)

    @cached_property
    def grand(self) -> tuple[Floats, ...]:
        """P averaged over both, (q, 1)."""
        return tuple(mean.mean(axis=2) for mean in self.means)

    def product(self, factors: list[Floats]) -> Floats:
        out = factors[0]
        for factor in factors[1:]:
            out = times(out, factor)
        return out

    @cached_property
    def grand_total(self) -> Floats:
        return self.product(list(self.grand))


def terms_of(posterior: Posterior) -> list[Term]:
    """The covariance of the modelled function, without noise, as a sum of terms."""
    kernel, model, w = posterior.kernel, posterior.model, posterior.w
    spread = w * posterior.spread
    if model.posterior == "truncated":
        return [Term.of(kernel, spread, posterior.scale, model.order)]
    full = Term.of(kernel, w, posterior.scale, None)
    if model.weights == "identity":
        return [full]
    return [
        full,
        Term.of(kernel, spread, posterior.scale, model.order),
        Term.of(kernel, w, -posterior.scale, model.order),
    ]


def windows_of(posterior: Posterior, axes: Axes) -> Held | None:
    """The windows of the kernel, where it has any; they are those of a full kernel."""
    if isinstance(posterior, OpenPosterior):
        return posterior.windows
    own = posterior.summands[1:]
    return Held(Stack(posterior.data, own, axes), 1.0) if own else None


@dataclass(frozen=True)
class Gauss:
    """Mean and variance of each value of a part; a pair's are flattened, (k_i k_j,)."""

    mean: Floats
    variance: Floats


class Decomposition:
    """The parts of one posterior, in the standardised (and warped) units of its data."""

    def __init__(self, posterior: Posterior) -> None:
        self.posterior = posterior
        self.rows = posterior.data.rows
        self.axes = Axes(posterior.kernel)
        self.sizes, self.bases = self.axes.sizes, self.axes.bases
        self.prior_mean = posterior.hyper.mean
        self.terms = terms_of(posterior)
        self.sigma = posterior._sigma
        self.alpha = self.sigma.solve(posterior.centred)  # (N,)
        self._ratios: dict[tuple[int, int], Floats] = {}
        # effects and pairs with variances of their own, beside the one term of a full kernel
        self.ridges = (
            RidgeParts(
                posterior.ridges, posterior.kernel, self.rows, bases=self.bases,
                tables=[table[0, 0] for table in self.terms[0].tables],
            )
            if isinstance(posterior, OpenPosterior)
            else None
        )  # fmt: skip
        self.windows = windows_of(posterior, self.axes)
        hot = posterior.data.hot
        self.pools = [PoolParts(pool, hot, self.axes) for pool in posterior.pools]
        # per term: the product over all variables of the averages at the data, (q, 1, N)
        self._everything = [
            term.product([m[:, :, self.rows[:, i]] for i, m in enumerate(term.means)])
            for term in self.terms
        ]

    # -- parts ---------------------------------------------------------------------------------

    def constant(self) -> tuple[float, float]:
        """Mean and variance of f_0, the average of f over the whole space."""
        cross = self._cross(())
        prior = float(self._prior(())[0, 0])
        half = self.sigma.half_solve(cross.T)
        mean = self.prior_mean + float(cross[0] @ self.alpha)
        return mean, max(prior - float((half**2).sum()), 0.0)

    def main(self, i: int) -> Gauss:
        """f_i at each value of the variable."""
        return self._parts([(i,)])[0]

    def interactions(self, i: int, others: list[int]) -> list[Gauss]:
        """f_ij at each pair of values, for each j of `others`."""
        return self._parts([(i, j) for j in others])

    def _parts(self, chosen: list[tuple[int, ...]]) -> list[Gauss]:
        crosses = [self._cross(each) for each in chosen]
        halves = self.sigma.half_solve(np.concatenate([np.zeros((0, len(self.rows))), *crosses]).T)
        ends = np.cumsum([len(cross) for cross in crosses])
        return [
            self._gauss(each, cross @ self.alpha, half)
            for each, cross, half in zip(
                chosen, crosses, np.split(halves, ends[:-1], axis=1), strict=True
            )
        ]

    def _gauss(self, chosen: tuple[int, ...], mean: Floats, half: Floats) -> Gauss:
        basis = np.ones((1, 1))
        for i in chosen:
            basis = kron(basis, self.bases[i])
        covariance = self._prior(chosen) - half.T @ half
        variance = ((basis @ covariance) * basis).sum(axis=1)
        return Gauss(basis @ mean, np.maximum(variance, 0.0))

    def _cross(self, chosen: tuple[int, ...]) -> Floats:
        """C of a part, (c, N)."""
        total = np.zeros((1, len(self.rows)))
        for number, term in enumerate(self.terms):
            own = self._everything[number][:, :, np.newaxis]
            for i in chosen:
                own = times(own[:, :, :, np.newaxis], self._centred(number, i)[:, :, np.newaxis])
                own = own.reshape(*own.shape[:2], own.shape[2] * own.shape[3], len(self.rows))
            total = total + term.scale * _total(own)
        return sum_of([total, *(each.cross(chosen) for each in self._added)])

    @cached_property
    def _added(self) -> list[RidgeParts | Held | PoolParts]:
        """What the covariance has beside `terms`."""
        found = (self.ridges, self.windows, *self.pools)
        return [each for each in found if each is not None]

    def _centred(self, number: int, i: int) -> Floats:
        """(q, 1, k-1, N): what takes the place of a variable's average where it is not averaged."""
        if (number, i) not in self._ratios:
            term, at = self.terms[number], self.rows[:, i]
            own = (self.bases[i].T @ term.tables[i])[..., at]
            self._ratios[number, i] = over(own, term.means[i][:, :, np.newaxis, at])
        return self._ratios[number, i]

    def _prior(self, chosen: tuple[int, ...]) -> Floats:
        """Prior covariance of a part's coordinates, (c, c)."""
        total = np.zeros((1, 1))
        for number, term in enumerate(self.terms):
            own = term.grand_total[:, :, np.newaxis, np.newaxis]
            for i in chosen:
                ratio = self._prior_ratios[number][i]
                own = times(
                    own[:, :, :, np.newaxis, :, np.newaxis], ratio[:, :, np.newaxis, :, np.newaxis]
                )
                side = own.shape[2] * own.shape[3]
                own = own.reshape(*own.shape[:2], side, side)
            total = total + term.scale * _total(own)
        return sum_of([total, *(each.prior(chosen) for each in self._added)])

    @cached_property
    def _prior_ratios(self) -> list[list[Floats]]:
        """Per term and variable (q, 1, k-1, k-1), as `_centred` on both sides."""
        return [
            [
                over(basis.T @ table @ basis, grand[:, :, np.newaxis, np.newaxis])
                for basis, table, grand in zip(self.bases, term.tables, term.grand, strict=True)
            ]
            for term in self.terms
        ]

    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of variables with more than one value; where they are too many, those whose
        interaction is the largest by its mean."""
        varied = [i for i, k in enumerate(self.sizes) if k > 1]
        found = [(i, j) for at, i in enumerate(varied) for j in varied[at + 1 :]]
        sizes = {(i, j): (self.sizes[i] - 1) * (self.sizes[j] - 1) for i, j in found}
        found = [pair for pair in found if sizes[pair] <= MOST_OF_A_PAIR]
        if sum(sizes[pair] for pair in found) <= MOST_COORDINATES:
            return found
        found.sort(key=self._strength, reverse=True)
        within = np.cumsum([sizes[pair] for pair in found]) <= MOST_COORDINATES
        return sorted(pair for pair, fits in zip(found, within.tolist(), strict=True) if fits)

    def _strength(self, pair: tuple[int, int]) -> float:
        mean = self._cross(pair) @ self.alpha
        return float(mean @ mean) / (self.sizes[pair[0]] * self.sizes[pair[1]])

    # -- variances -----------------------------------------------------------------------------

    def partial_variance(self) -> Squares:
        """E[Var_x f], but for what `variances` adds to it."""
        every = self._second(())
        own = [every - self._second((i,)) for i in range(len(self.sizes))]
        mean, spread = self.constant()
        found = Squares(every - (mean - self.prior_mean) ** 2 - spread, np.array(own))
        return sum(self._further(), found)

    def _second(self, averaged: tuple[int, ...]) -> float:
        """Of K, and of what effects have of their own: E[mean over x of f^2], f averaged over some
        variables."""
        return self._prior_square(averaged) + float((self.pull * self._squares(averaged)).sum())

    @cached_property
    def pull(self) -> Floats:
        """(N, N): alpha alpha' - Sigma^-1, by which the data change mean squares over x."""
        return np.asarray(np.outer(self.alpha, self.alpha) - self.sigma.inverse())

    def _further(self) -> list[Squares]:
        """What windows and pooling add to mean squares, but for windows with windows."""
        if self.windows is None and not self.pools:
            return []
        whole = Stack(self.posterior.data, self.posterior.summands[:1], self.axes)
        effects = [] if self.ridges is None else [self.ridges.low_orders()]
        windows = [] if self.windows is None else self.windows.low_orders()
        found = [self._low(one, two) * 2.0 for one in windows for two in effects]
        if self.windows is not None:
            found += [self.windows.prior_square(), self.windows.mixed(whole, self.pull) * 2.0]
        for pool in self.pools:
            own = pool.low_orders()
            found += [pool.prior_square(), self._low(own, own)]
            others = [*whole.low_orders(), *windows, *effects]
            found += [self._low(own, other) * 2.0 for other in others]
        return found

    def _low(self, one: LowOrders, two: LowOrders) -> Squares:
        return low_squares(one, two, self.pull, self.axes)

    def _prior_square(self, averaged: tuple[int, ...]) -> float:
        """Prior expectation of the mean square of f averaged over some variables."""
        total = 0.0
        for term in self.terms:
            factors = [
                term.grand[i] if i in averaged else np.einsum("qrkk->qr", table) / table.shape[-1]
                for i, table in enumerate(term.tables)
            ]
            total += term.scale * float(_total(term.product(factors)))
        return total if self.ridges is None else total + self.ridges.prior_square(averaged)

    def _squares(self, averaged: tuple[int, ...]) -> Floats:
        """(N, N): the mean over x of k(x, X_m) k(x, X_n), k averaged over some variables."""
        total = np.zeros((len(self.rows), len(self.rows)))
        for (a, b), everything in self._square_products.items():
            one, two = self.terms[a], self.terms[b]
            product = everything
            for i in averaged:
                product = over(product, self._square(a, b, i))
                left = one.means[i][:, :, self.rows[:, i], np.newaxis]
                right = two.means[i].swapaxes(0, 1)[:, :, np.newaxis, self.rows[:, i]]
                product = times(product, times(left, right))
            total += one.scale * two.scale * _total(product)
        if self.ridges is not None:
            mixed = self.terms[0].scale * self.ridges.mixed_squares(averaged)
            total += mixed + mixed.T + self.ridges.squares(averaged)
        return total

    @cached_property
    def _square_products(self) -> dict[tuple[int, int], Floats]:
        found = {}
        for a, b in np.ndindex(len(self.terms), len(self.terms)):
            product = self._square(a, b, 0)
            for i in range(1, len(self.sizes)):
                product = times(product, self._square(a, b, i))
            found[a, b] = product
        return found

    def _square(self, a: int, b: int, i: int) -> Floats:
        """(q, q', N, N): the mean over a variable's values v of P(v, X_mi) P'(v, X_ni)."""
        one = self.terms[a].tables[i][:, 0]  # (q, k, k)
        two = self.terms[b].tables[i][:, 0]
        mean = np.einsum("qvm,rvn->qrmn", one, two) / one.shape[-1]
        at = self.rows[:, i]
        return np.asarray(mean[:, :, at[:, np.newaxis], at])


def variances(parts: Sequence[Decomposition]) -> Squares:
    """E[Var_x f], averaged over posteriors that count alike, and what each variable has of it: all
    parts that it is in.

    Windows are held from one posterior to the next (`explanatory.py`), and what they have with one
    another is what takes longest: it is worked out once, for the sum of the weights of all.
    """
    found = [part.partial_variance() for part in parts]
    shared: dict[int, tuple[Stack, Floats]] = {}
    for part in parts:
        if part.windows is not None:
            stack, weight = part.windows.stack, part.windows.amplitude**2 * part.pull
            _, before = shared.get(id(stack), (stack, 0.0))
            shared[id(stack)] = stack, before + weight
    found += [stack.squares(weight) for stack, weight in shared.values()]
    return sum(found[1:], found[0]) * (1.0 / len(parts))
