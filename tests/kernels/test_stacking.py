"""Several kernels at once, held to one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import SMALL

from mercbo import Binary, Integer, Reversal, Space
from mercbo.arrays import sum_of
from mercbo.drawing.prediction import Covariance, covariances_of
from mercbo.encoding import Encoding
from mercbo.kernel import Kernel
from mercbo.kernels import stacking
from mercbo.kernels.averaging import kernel_of
from mercbo.kernels.stacking import StackedCovariance
from mercbo.kernels.windows import Summand, Windows, summands

WINDOWS = Windows(amplitude=0.8, sharpness=2.5, reach=0.4)


def some_kernels(kernel: Kernel) -> list[Summand]:
    beta = np.random.default_rng(1).uniform(0.1, 0.8, kernel.n)
    return summands(kernel, beta, 1.7, WINDOWS)


@pytest.mark.parametrize("name", SMALL)
def test_a_stack_is_the_sum_of_its_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    space, rng = SMALL[name], np.random.default_rng(2)
    kernel = Kernel(Encoding(space))
    hot = kernel.onehot(space.sample_rows(9, rng=rng))
    rows = space.sample_rows(4, rng=rng)
    each = some_kernels(kernel)
    stacked = StackedCovariance(kernel, each, hot)
    alone = [Covariance(kernel, one.tables, one.amplitude, hot) for one in each]
    monkeypatch.setattr(stacking, "ENTRIES", 2 * len(each) * len(hot))  # blocks of two rows
    check(stacked.at(rows), [one.at(rows) for one in alone])
    level = np.tile(np.arange(kernel.levels), (len(rows), 1))
    check(stacked.around(rows, level), [one.around(rows, level) for one in alone])
    # some columns only, as where there are too many for one block
    level = level[:, 1::2]
    check(stacked.around(rows, level), [one.around(rows, level) for one in alone])


@pytest.mark.parametrize("name", SMALL)
def test_products_and_slopes_of_several_kernels_are_those_of_each(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacking, "CACHED", 2 * 4 * 7)  # two kernels at a time
    space, rng = SMALL[name], np.random.default_rng(2)
    kernel = Kernel(Encoding(space))
    rows = space.sample_rows(7, rng=rng)
    hot, betas = kernel.onehot(rows), rng.uniform(0.1, 0.8, (3, kernel.n))
    found = stacking.products(kernel, kernel.log_tables(betas), rows[:4], hot)
    wanted = [kernel.product(kernel.log_tables(beta), rows[:4], hot) for beta in betas]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    pull, grams = rng.standard_normal((7, 7)), rng.standard_normal((3, 7, 7))
    slopes = stacking.contracted(kernel, kernel.log_table_gradients(betas), pull, grams, hot)
    alone = [
        kernel.contract(kernel.log_table_gradients(beta), pull * gram, hot)
        for beta, gram in zip(betas, grams, strict=True)
    ]
    np.testing.assert_allclose(slopes, alone, atol=1e-12)


def check(found: tuple, parts: list[tuple]) -> None:
    for now, wanted in zip(found, zip(*parts, strict=True), strict=True):
        np.testing.assert_allclose(now, sum_of(wanted), rtol=1e-12)


@pytest.mark.parametrize(
    ("space", "stacked"),
    [
        (Space.binary(6), True),
        (Space({"a": Binary(), "b": Integer(0, 40)}), False),  # 41 values, 3 kernels
        (Space.binary(6, symmetries=[Reversal()]), False),
    ],
)
def test_kernels_are_stacked_where_they_are_more_than_values(space: Space, stacked: bool) -> None:
    kernel = kernel_of(Encoding(space), space.group)
    hot = kernel.onehot(space.sample_rows(3, rng=np.random.default_rng(0)))
    found = covariances_of(kernel, some_kernels(kernel), [], [], hot)
    kinds = {type(each) for each in found}
    assert kinds == {StackedCovariance if stacked else Covariance}
