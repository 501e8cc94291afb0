"""Products of three and four bits made quadratic, so that every backend can take them.

| symbol   | meaning                                                                     |
|----------|-----------------------------------------------------------------------------|
| monomial | a rising tuple of columns: the product of these bits                        |
| product  | an auxiliary bit w that stands for x y                                      |
| P        | the strength of a product: P (x y - 2 x w - 2 y w + 3 w) is 0 where w = x y |
|          | and at least P elsewhere                                                    |

x y z becomes w z, and x y z t becomes w w'; products are of given bits only, never of products. The
rest of the form is then linear in w, with a field between -(sum of its negative coefficients) and
the sum of its positive ones. P is the larger of the two sums: putting a wrong w right never costs,
whatever the other bits are, so that the minimum over w is the function of the bits alone.

dimod's `make_quadratic` does the same with one strength for all products. This one keeps each as
weak as it may be, and chooses products by sorted columns, never by the order of a set: the same
problem comes out in every process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from mercbo.arrays import Bits, Floats
from mercbo.drawing.higher import Terms
from mercbo.encoding import Encoding
from mercbo.features import Quadratic, affine
from mercbo.kernel import Kernel

Monomial: TypeAlias = tuple[int, ...]

# Added to each strength, relative to it, so that a wrong product always costs.
MARGIN = 1e-2


@dataclass(frozen=True)
class Reduced:
    """A quadratic form over bits and products, which come after them."""

    form: Quadratic
    products: tuple[Monomial, ...] = ()  # each of two bits

    @property
    def width(self) -> int:
        """The number of bits that are no products."""
        return len(self.form.linear) - len(self.products)

    def product_bits(self, bits: Bits) -> Bits:
        """(N, products): what the products are at some bits."""
        columns = np.array(self.products, dtype=np.intp).reshape(-1, 2)
        return np.asarray(bits[:, columns[:, 0]] * bits[:, columns[:, 1]])


def monomials(
    kernel: Kernel, w: Floats, terms: Terms, coefficients: Floats, encoding: Encoding
) -> dict[Monomial, float]:
    """The sum of the terms as a polynomial of bits: equal at every feasible point. Products of
    two bits of a one-hot group, which are 0 there, are left out."""
    origin, slope = affine(kernel, w, encoding)
    group_of = {int(c): number for number, group in enumerate(encoding.groups) for c in group}
    found: dict[Monomial, float] = {}
    for number, factors in enumerate(terms.sets):
        own = [np.flatnonzero(kernel.factor_of == factor) for factor in factors]
        tensor = coefficients[terms.owner == number].reshape([len(f) for f in own])
        choices: list[list[int | None]] = []
        for features in own:
            columns = np.flatnonzero(slope[:, features].any(axis=1))
            values = np.vstack([origin[features], slope[np.ix_(columns, features)]])
            # the first axis is done with and becomes the last, as bits in place of features
            tensor = np.tensordot(tensor, values, axes=(0, 1))
            choices.append([None, *columns.tolist()])
        for place in zip(*np.nonzero(tensor), strict=True):
            chosen = {c[i] for c, i in zip(choices, place, strict=True)} - {None}
            bits = tuple(sorted(b for b in chosen if b is not None))
            groups = [group_of[b] for b in bits if b in group_of]
            if len(set(groups)) == len(groups):
                found[bits] = found.get(bits, 0.0) + float(tensor[place])
    return found


def reduced(form: Quadratic, polynomial: Mapping[Monomial, float]) -> Reduced:
    """The sum of a form and a polynomial of order <= 4 over the same bits, made quadratic."""
    splits = _split([m for m in sorted(polynomial) if len(m) > 2])
    products = tuple(sorted({part for split in splits.values() for part in split if len(part) > 1}))
    width = len(form.linear)
    column = {product: width + i for i, product in enumerate(products)}
    linear = np.append(form.linear, np.zeros(len(products)))
    coupling = np.zeros((len(linear), len(linear)))
    coupling[:width, :width] = form.coupling
    offset = form.offset
    sums = np.zeros((len(linear), 2))  # negative and positive coefficients on each column
    for monomial, value in polynomial.items():
        if len(monomial) == 0:
            offset += value
        elif len(monomial) == 1:
            linear[monomial] += value
        else:
            pair = monomial
            if len(monomial) > 2:
                pair = tuple(column[p] if len(p) > 1 else p[0] for p in splits[monomial])
                sums[list(pair), int(value > 0)] += abs(value)
            _couple(coupling, pair, value)
    for factors, product in column.items():
        _tie(linear, coupling, factors, product, (1.0 + MARGIN) * float(sums[product].max()))
    return Reduced(Quadratic(float(offset), linear, coupling), products)


def _tie(
    linear: Floats, coupling: Floats, factors: Monomial, product: int, strength: float
) -> None:
    _couple(coupling, factors, strength)
    for factor in factors:
        _couple(coupling, (factor, product), -2.0 * strength)
    linear[product] += 3.0 * strength


def _couple(coupling: Floats, pair: Monomial, value: float) -> None:
    i, j = pair
    coupling[i, j] += value
    coupling[j, i] += value


def _split(listed: list[Monomial]) -> dict[Monomial, tuple[Monomial, Monomial]]:
    """How each monomial is a product of two: those that are in use already are preferred, then
    those that many monomials have."""
    common: Counter[Monomial] = Counter(p for m in listed for p in combinations(m, 2))
    used: set[Monomial] = set()
    chosen = {}
    for monomial in listed:
        best = max(_halves(monomial), key=lambda halves: _merit(halves, used, common))
        used.update(half for half in best if len(half) > 1)
        chosen[monomial] = best
    return chosen


def _merit(
    halves: tuple[Monomial, Monomial], used: set[Monomial], common: Counter[Monomial]
) -> tuple[int, int]:
    return sum(int(half in used) for half in halves), sum(common[half] for half in halves)


def _halves(monomial: Monomial) -> list[tuple[Monomial, Monomial]]:
    """Ways to make a pair and the rest of 3 or 4 bits, each once."""
    ways: list[tuple[Monomial, Monomial]] = [
        (pair, tuple(b for b in monomial if b not in pair)) for pair in combinations(monomial, 2)
    ]
    return ways if len(monomial) == 3 else ways[:3]
