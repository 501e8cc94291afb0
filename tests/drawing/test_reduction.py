"""Polynomials of bits made quadratic: the same function, whatever the products do."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import dimod
import numpy as np
import pytest

from mercbo.drawing.reduction import reduced
from mercbo.features import Quadratic

WIDTH = 5


def states(width: int) -> np.ndarray:
    return (np.arange(2**width)[:, np.newaxis] >> np.arange(width)) & 1


def random_polynomial(seed: int, count: int = 8) -> tuple[Quadratic, dict]:
    rng = np.random.default_rng(seed)
    coupling = np.triu(rng.normal(size=(WIDTH, WIDTH)), 1)
    form = Quadratic(float(rng.normal()), rng.normal(size=WIDTH), coupling + coupling.T)
    every = [m for size in range(5) for m in combinations(range(WIDTH), size)]
    chosen = rng.choice(len(every), count, replace=False)
    return form, {every[i]: float(rng.normal()) for i in chosen}


def value(form: Quadratic, polynomial: dict, bits: np.ndarray) -> np.ndarray:
    """The sum of the two, by dimod."""
    poly = dimod.BinaryPolynomial(polynomial, dimod.BINARY)
    extra = [poly.energy(dict(enumerate(row))) for row in bits.tolist()]
    return form.energy(bits.astype(float)) + np.array(extra)


@pytest.mark.parametrize("seed", range(10))
def test_the_minimum_over_products_is_the_polynomial(seed: int) -> None:
    form, polynomial = random_polynomial(seed)
    made = reduced(form, polynomial)
    bits, others = states(WIDTH), states(len(made.products))
    wanted = value(form, polynomial, bits)
    right = np.column_stack([bits, made.product_bits(bits)])
    np.testing.assert_allclose(made.form.energy(right.astype(float)), wanted, atol=1e-9)
    for row, known, right_products in zip(bits, wanted, right[:, WIDTH:], strict=True):
        every = np.column_stack([np.tile(row, (len(others), 1)), others]).astype(float)
        energies = made.form.energy(every)
        assert energies.min() > known - 1e-9
        wrong = (others != right_products).any(axis=1)
        assert (energies[wrong] > known).all()


def test_strengths_are_below_that_of_one_for_all() -> None:
    """A weak monomial beside a strong one has a weak product."""
    form = Quadratic(0.0, np.zeros(6), np.zeros((6, 6)))
    made = reduced(form, {(0, 1, 2): 100.0, (3, 4, 5): -1.0})
    assert made.products == ((0, 1), (3, 4))
    np.testing.assert_allclose(made.form.linear[6:], [3 * 101.0, 3 * 1.01])


def test_products_are_shared() -> None:
    form = Quadratic(0.0, np.zeros(6), np.zeros((6, 6)))
    cubes = {(0, 1, other): 1.0 for other in range(2, 6)}
    assert reduced(form, cubes).products == ((0, 1),)
    assert reduced(form, {**cubes, (0, 1, 2, 3): 1.0}).products == ((0, 1), (2, 3))


def test_low_orders_need_no_products() -> None:
    form, _ = random_polynomial(0)
    made = reduced(form, {(): 1.0, (2,): 2.0, (0, 3): -3.0})
    assert made.products == ()
    bits = states(WIDTH).astype(float)
    wanted = form.energy(bits) + 1.0 + 2.0 * bits[:, 2] - 3.0 * bits[:, 0] * bits[:, 3]
    np.testing.assert_allclose(made.form.energy(bits), wanted)


@pytest.mark.slow
def test_the_reduction_does_not_hang_on_the_order_of_hashes() -> None:
    """Law 6: the same products in another process, which hashes strings otherwise."""
    code = (
        "from tests.drawing.test_reduction import random_polynomial, reduced;"
        "print(reduced(*random_polynomial(3, 16)).products)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == str(reduced(*random_polynomial(3, 16)).products)
