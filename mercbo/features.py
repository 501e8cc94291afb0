"""Mercer features of order <= m, and the way from a sample's coefficients to a quadratic form.

| symbol | meaning                                                                  | shape  |
|--------|--------------------------------------------------------------------------|--------|
| F      | weighted single-factor features sqrt(w_j) psi_j(x) at N points           | (N, D) |
| Phi    | all features of order <= m: products of F over at most m factors         | (N, d) |
| q      | a point's bits in some encoding                                          | (B,)   |

A function of order <= 2 is  f = constant + F . main + F pair F' / 2  with `pair` symmetric and, but
for what is pooled (`kernels/pooling.py`), zero between features of one factor. Any function of a
variable is affine in its bits, so F is affine in q and f is quadratic in q, for every kind of
variable (paper, eqs. 13 to 16).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mercbo.arrays import Floats, Index, Mask, Rows
from mercbo.encoding import Encoding
from mercbo.kernel import Kernel
from mercbo.kernels.interactions import Stated, between_variables


def single(kernel: Kernel, w: Floats, rows: Rows) -> Floats:
    """F (N, D): the weighted features of one factor each."""
    out, rows = np.zeros((len(rows), kernel.features)), kernel.ranked(rows)
    for part in kernel.parts:
        out[:, part.features] = part.psi[rows[:, part.variables]]
    return out * np.sqrt(w)


def single_of_hot(kernel: Kernel, w: Floats, hot: Floats) -> Floats:
    """F (N, D) of one-hot rows (N, L)."""
    out = np.zeros((len(hot), kernel.features))
    for part in kernel.parts:
        out[:, part.features] = hot[:, part.ordered] @ part.psi
    return out * np.sqrt(w)


def mercer(singles: Floats, factor_of: Index, order: int) -> Floats:
    """Phi (N, d): the constant, then every product over at most `order` different factors.

    Law: over all orders, Phi Phi' is the full kernel divided by s2 * prod_i a_i.
    """
    features = np.ascontiguousarray(singles.T)  # (D, N): a term is a row, which is quick to fetch
    products = [np.ones((1, len(singles)))]
    for short, added in mercer_steps(tuple(factor_of.tolist()), order):
        products.append(products[-1][short] * features[added])
    return np.asarray(np.concatenate(products).T)


# Descent on a draw of order 3 or more asks for the same few again and again.
@lru_cache(maxsize=8)
def mercer_steps(factor_of: tuple[int, ...], order: int) -> list[tuple[Index, Index]]:
    """For m = 1..order: which terms of m - 1 features go on, and by which feature. No term has
    more features than there are factors.

    >>> [len(short) for short, _ in mercer_steps(tuple(range(200)), 2)]
    [200, 19900]
    """
    factors = np.array(factor_of, dtype=np.intp)
    last = np.full(1, -1)  # the factor of the last feature of each term
    steps = []
    for _ in range(_highest(factor_of, order)):
        short, added = np.nonzero(factors[np.newaxis, :] > last[:, np.newaxis])
        steps.append((short, added))
        last = factors[added]
    return steps


def mercer_terms(factor_of: Index, order: int) -> list[Index]:
    """For m = 0..order an array (number of terms, m) of the features that each term multiplies.

    >>> [len(t) for t in mercer_terms(np.arange(200), 2)]
    [1, 200, 19900]
    """
    terms = [np.zeros((1, 0), dtype=np.intp)]
    for short, added in mercer_steps(tuple(factor_of.tolist()), order):
        terms.append(np.column_stack([terms[-1][short], added]).astype(np.intp))
    return terms


def term_count(factor_of: Index, order: int) -> int:
    """The number of terms of order <= `order`, without listing them.

    >>> term_count(np.arange(200), 3)
    1333501
    """
    order = _highest(factor_of.tolist(), order)
    counts = [1] + [0] * order
    for features in np.bincount(factor_of).tolist():
        for m in range(order, 0, -1):
            counts[m] += features * counts[m - 1]
    return sum(counts)


def _highest(factor_of: Sequence[int], order: int) -> int:
    """The highest order up to `order` that has terms: they multiply different factors."""
    return min(order, len(set(factor_of)))


def between_factors(factor_of: Index) -> Mask:
    """(D, D): whether two features belong to different factors, so that their product counts."""
    return np.asarray(factor_of[:, np.newaxis] != factor_of[np.newaxis, :])


def pair_mask(kernel: Kernel, interactions: Stated | None) -> Mask:
    """(D, D): whether the product of two features is in a draw. The bits of one variable
    interact whatever is stated: they are a function of that variable."""
    mask = between_factors(kernel.factor_of)
    if interactions is None:
        return mask
    allowed = kernel.closed(between_variables(interactions, kernel.names))
    allowed = allowed | np.eye(kernel.variables, dtype=np.bool_)
    return np.asarray(mask & allowed[np.ix_(kernel.variable_of, kernel.variable_of)])


def paired_gram(
    kernel: Kernel, w: Floats, scale: float, mask: Mask, rows: Rows, hot: Floats
) -> Floats:
    """Phi Phi' of the constant, the features of one factor and the products that `mask` (D, D)
    has, which are few."""
    first, second = np.nonzero(np.triu(mask))

    def paired(singles: Floats) -> Floats:
        return np.column_stack([singles, singles[:, first] * singles[:, second]])

    right = paired(single_of_hot(kernel, w, hot)).T
    images = kernel.images(rows)
    left = sum(paired(single(kernel, w, image)) for image in images) / len(images)
    return np.asarray(scale * (1.0 + left @ right))


@dataclass(frozen=True)
class Coefficients:
    """A function of order <= 2 in the features of one state of the hyper-parameters."""

    constant: float
    main: Floats  # (D,)
    pair: Floats  # (D, D), symmetric
    inside: bool = False  # whether there are pairs inside a factor

    def __add__(self, other: Coefficients) -> Coefficients:
        return Coefficients(
            self.constant + other.constant,
            self.main + other.main,
            self.pair + other.pair,
            self.inside or other.inside,
        )

    def __sub__(self, other: Coefficients) -> Coefficients:
        return Coefficients(
            self.constant - other.constant,
            self.main - other.main,
            self.pair - other.pair,
            self.inside or other.inside,
        )

    def value(self, singles: Floats) -> Floats:
        """f at points given by their F (N, D)."""
        curved = np.einsum("nd,nd->n", singles @ self.pair, singles)
        return np.asarray(self.constant + singles @ self.main + 0.5 * curved)


@dataclass(frozen=True)
class Quadratic:
    """E(q) = offset + linear . q + q' coupling q / 2 over bits q."""

    offset: float
    linear: Floats  # (B,)
    coupling: Floats  # (B, B), symmetric, zero on the diagonal

    def energy(self, bits: Floats) -> Floats:
        curved = np.einsum("nb,nb->n", bits @ self.coupling, bits)
        return np.asarray(self.offset + bits @ self.linear + 0.5 * curved)


def quadratic(
    kernel: Kernel, w: Floats, coefficients: Coefficients, encoding: Encoding
) -> Quadratic:
    """The same function over the bits of `encoding`: equal at every feasible point.

    `encoding` is the kernel's own or the native layout of the same space. Couplings inside a
    one-hot group never act on a feasible point and are left out.
    """
    origin, slope = affine(kernel, w, encoding)
    bent = coefficients.pair @ origin
    linear = slope @ (coefficients.main + bent)
    coupling = slope @ coefficients.pair @ slope.T
    linear += 0.5 * np.diag(coupling)  # q * q = q
    np.fill_diagonal(coupling, 0.0)
    for block in encoding.blocks:
        if block.code == "one-hot":
            coupling[block.columns[:, :, np.newaxis], block.columns[:, np.newaxis, :]] = 0.0
    offset = coefficients.constant + coefficients.main @ origin + 0.5 * origin @ bent
    return Quadratic(float(offset), linear, 0.5 * (coupling + coupling.T))


def affine(kernel: Kernel, w: Floats, encoding: Encoding) -> tuple[Floats, Floats]:
    """F = origin + q @ slope: origin (D,), slope (B, D)."""
    origin = np.zeros(kernel.features)
    slope = np.zeros((encoding.width, kernel.features))
    for part, block in zip(kernel.parts, encoding.blocks, strict=True):
        if block.code == "none":
            continue
        psi = part.own_psi
        if block.code == "one-hot":
            steps = psi
        else:  # the codeword of zero bits, and what each bit alone adds to it
            origin[part.features] = psi[..., 0, :]
            steps = psi[..., 1 << np.arange(block.columns.shape[1]), :] - psi[..., :1, :]
        slope[block.columns[:, :, np.newaxis], part.features[:, np.newaxis, :]] = steps
    root = np.sqrt(w)
    return origin * root, slope * root
