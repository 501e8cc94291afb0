"""Moments at all neighbours at once, held to those of each of them alone."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import SMALL

from mercbo import Binary, Categorical, Flip, Integer, Model, Reversal, Space
from mercbo.asking.improvement import Improvement
from mercbo.drawing import prediction
from mercbo.drawing.samples import neighbours_of
from mercbo.encoding import Encoding
from mercbo.inference import Data, Hyper
from mercbo.kernels.averaging import kernel_of
from mercbo.kernels.pooling import Pooling
from mercbo.kernels.windows import Windows
from mercbo.posterior import Posterior

LETTERS = Categorical(list("ACGT"))
SPACES = {
    **SMALL,
    "alike": Space({f"s{i}": LETTERS for i in range(3)} | {"n": Integer(0, 2), "b": Binary()}),
    "with symmetries": Space.binary(5, symmetries=[Flip(), Reversal()]),
}
TERMS = {
    "plain": {},
    "windows": {"windows": Windows(0.8, 2.5, 0.4)},
    "pooling": {"pooling": Pooling(linear=0.7, curved=0.4)},
    "both": {"windows": Windows(0.8, 2.5, 0.4), "pooling": Pooling(linear=0.7, curved=0.4)},
}
# pooling needs variables that are alike
ALIKE = ("binary", "alike", "with symmetries")
CASES = [(n, t) for n in SPACES for t in TERMS if n in ALIKE or "pooling" not in TERMS[t]]


@pytest.mark.parametrize("chunk", [1024, 20, 3])  # all at once, some rows, some columns of a row
@pytest.mark.parametrize(("name", "terms"), CASES)
def test_improvement_around_rows_is_that_at_each_neighbour(
    name: str, terms: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    space, rng = SPACES[name], np.random.default_rng(3)
    kernel = kernel_of(Encoding(space), space.group)
    rows = space.sample_rows(8, rng=rng)
    data = Data(kernel, rows, rng.standard_normal(len(rows)))
    betas = kernel.beta(np.full(kernel.n, 0.3)), kernel.beta(np.full(kernel.n, 0.7))
    states = [Hyper(beta, 1.7, 0.05, 0.3, **TERMS[terms]) for beta in betas]
    pending = space.sample_rows(2, rng=rng)
    score = Improvement.of([Posterior(Model(), data, state) for state in states], pending, rng=rng)
    some = space.sample_rows(4, rng=rng)
    wanted = score.path(neighbours_of(kernel, some)).reshape(len(some), -1)
    monkeypatch.setattr(prediction, "CHUNK", chunk)
    np.testing.assert_allclose(score.path_neighbours(some), wanted, atol=1e-9)
    assert score.path_neighbours(some[:0]).shape == (0, kernel.levels)
