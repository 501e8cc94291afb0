"""Pooling: terms of the kernel for how often values occur, with the laws of the others."""

from __future__ import annotations

import numpy as np
import pytest
from support.laws import check_paths, check_quadratic_form
from support.moments import exact_moments
from support.neighbours import check_neighbours

from mercbo import Binary, Categorical, Integer, Model, Optimizer, Ordinal, Space
from mercbo.asking.trust import Trust
from mercbo.encoding import Encoding
from mercbo.inference import Data, Hyper
from mercbo.kernel import Kernel
from mercbo.kernels.pooling import (
    MOST_COORDINATES,
    MOST_MODES,
    Coordinates,
    Pool,
    Pooling,
    is_poolable,
)
from mercbo.kernels.windows import Windows
from mercbo.posterior import Posterior

LETTERS = list("ACG")
SPACES = {
    "binary": Space.binary(5),
    "letters": Space({f"s{i}": Categorical(LETTERS) for i in range(3)}),
    "ordered": Space({f"n{i}": Integer(1, 3) for i in range(4)}),
    "coded": Space({f"s{i}": Categorical(range(4), encoding="binary") for i in range(3)}),
    "letters in several orders": Space(
        {f"s{i}": Categorical(list(order)) for i, order in enumerate(["ACG", "GAC", "CGA"])}
    ),
    "numbers in both orders": Space(
        {f"n{i}": Ordinal(order) for i, order in enumerate([[1, 2, 3], [3, 2, 1], [1, 2, 3]])}
    ),
    "two groups and others": Space(
        {**{f"b{i}": Binary() for i in range(3)}, "n": Integer(0, 2), "one": Integer(3, 3)}
        | {f"s{i}": Categorical(LETTERS) for i in range(3)}
    ),
}
POOLING = Pooling(linear=0.7, curved=0.4)


@pytest.fixture(params=SPACES, ids=list(SPACES))
def space(request: pytest.FixtureRequest) -> Space:
    return SPACES[request.param]


@pytest.fixture(params=[None, Windows(0.8, 2.5, 0.4)], ids=["alone", "with windows"])
def state(request: pytest.FixtureRequest, space: Space, make_data) -> tuple[Data, Hyper]:
    data = make_data(space, 9)
    beta = np.random.default_rng(1).uniform(0.1, 0.8, data.kernel.n)
    return data, Hyper(beta, 1.7, 0.05, 0.3, windows=request.param, pooling=POOLING)


def kernel_of(space: Space) -> Kernel:
    return Kernel(Encoding(space))


# -- the coordinates ---------------------------------------------------------------------------


def test_it_depends_on_how_often_each_value_occurs_and_on_nothing_else() -> None:
    kernel = kernel_of(SPACES["letters"])
    rows = np.array([[0, 1, 2], [2, 0, 1], [0, 0, 1], [1, 0, 0]])
    gram = Pool(kernel, POOLING).gram(rows, kernel.onehot(rows))
    np.testing.assert_allclose(gram[0], gram[1], atol=1e-12)
    np.testing.assert_allclose(gram[2], gram[3], atol=1e-12)
    assert gram[0, 2] != pytest.approx(gram[2, 2])


def test_the_prior_variance_of_the_linear_part_is_p_on_average(space: Space) -> None:
    kernel, rows = kernel_of(space), space.enumerate_rows()
    assert Pool(kernel, Pooling(0.7, 0.0)).diagonal(rows).mean() == pytest.approx(0.7)


def test_variables_are_alike_that_have_the_same_values() -> None:
    words = {f"s{i}": Categorical(LETTERS) for i in range(3)}
    other = {f"t{i}": Categorical(["x", "y", "z"]) for i in range(2)}
    assert Coordinates.of(kernel_of(Space(words))).count == 2
    assert Coordinates.of(kernel_of(Space({**words, **other}))).count == 2  # two are too few
    more = {**other, "t2": Categorical(["x", "y", "z"])}
    assert Coordinates.of(kernel_of(Space({**words, **more}))).count == 4
    ordered = {f"o{i}": Ordinal(LETTERS) for i in range(3)}
    assert Coordinates.of(kernel_of(Space({**words, **ordered}))).count == 4
    assert not is_poolable(kernel_of(Space(other)))
    # a binary code with codewords left over has features whose mean is not zero
    coded = {f"c{i}": Categorical(range(5), encoding="binary") for i in range(4)}
    assert not is_poolable(kernel_of(Space(coded)))


def test_a_long_path_has_its_slow_modes_and_a_large_alphabet_is_not_pooled() -> None:
    long = Coordinates.of(kernel_of(Space({f"n{i}": Integer(1, 100) for i in range(3)})))
    assert long.count == MOST_MODES
    slow = np.abs(long.mix).max(axis=0)
    assert (np.diff(slow) < 0).all()  # the faster a mode, the less it counts
    wide = range(MOST_COORDINATES + 2)
    assert not is_poolable(kernel_of(Space({f"s{i}": Categorical(wide) for i in range(3)})))


# -- laws --------------------------------------------------------------------------------------


def test_law_1_its_features_are_its_kernel(space: Space) -> None:
    """u and all products of two of its entries, with the variances p and q."""
    kernel, rows = kernel_of(space), space.enumerate_rows()
    hot = kernel.onehot(rows)
    u = hot @ Coordinates.of(kernel).step
    products = np.einsum("na,nb->nab", u, u).reshape(len(u), -1)
    phi = np.column_stack([np.sqrt(0.7) * u, np.sqrt(0.4) * products])
    np.testing.assert_allclose(phi @ phi.T, Pool(kernel, POOLING).gram(rows, hot), atol=1e-12)


def test_law_3_draws_have_the_moments_of_the_closed_form(state, space: Space) -> None:
    """What is drawn is the part of order <= 2 of the process, pooled terms and all."""
    data, hyper = state
    rows, drawn = space.enumerate_rows()[::3], Posterior(Model(refine=False), data, hyper)
    low = drawn._drawn(rows, data.hot, 1.0)
    full = drawn._covariance(data.rows, data.hot) + hyper.noise * np.eye(len(data))
    gain = low @ np.linalg.inv(full)
    mean = hyper.mean + gain @ (data.y - hyper.mean)
    cov = drawn._drawn(rows, data.kernel.onehot(rows), 1.0) - gain @ low.T
    found = exact_moments(lambda rng: drawn.draw(rng=rng).value(rows))
    for moment, wanted in zip(found, (mean, cov), strict=True):
        np.testing.assert_allclose(moment, wanted, atol=1e-9)


def test_paths_have_the_mean_of_the_process(state, space: Space) -> None:
    check_paths(*state, space.enumerate_rows()[::3])


def test_law_2_the_quadratic_form_is_the_drawn_function(state, space: Space) -> None:
    check_quadratic_form(*state, space)


def test_neighbours_are_as_if_each_were_looked_at(state, space: Space) -> None:
    data, hyper = state
    rows = space.sample_rows(4, rng=np.random.default_rng(3))
    check_neighbours(Posterior(Model(), data, hyper), rows)


# -- what it is for ----------------------------------------------------------------------------


def test_the_trust_region_is_wider_where_what_is_pooled_reaches_far(make_data) -> None:
    """A rugged function alone keeps draws near; the same on a slope that all variables share
    does not."""
    data = make_data(Space.binary(12), 20)
    beta = data.kernel.beta(np.full(12, 1.5))
    rugged = Hyper(beta, 1.0, 1e-3, 0.0)
    sloped = Hyper(beta, 0.05, 1e-3, 0.0, pooling=Pooling(3.0, 1e-3))
    regions = [
        Trust.around(np.ones(12, dtype=np.int64), [Posterior(Model(), data, hyper)])
        for hyper in (rugged, sloped)
    ]
    zeros = np.zeros((1, 12), dtype=np.int64)
    near, far = (region is None or bool(region.holds(zeros)[0]) for region in regions)
    assert not near
    assert far


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_it_finds_what_is_best_taken_everywhere(seed: int) -> None:
    """A discount makes the use of one treatment at all stations best: a mixture is worse than
    either of two, and changing one station at a time from one to the other only costs. 15 random
    results are enough to go there."""
    stations = 24
    space = Space({f"station{i}": Categorical(["none", "old", "new"]) for i in range(stations)})

    def cost(point: dict) -> float:
        taken = list(point.values())
        old, new = taken.count("old"), taken.count("new")
        return 3.0 * taken.count("none") + old * (1.9 - 0.03 * old) + new * (2.0 - 0.036 * new)

    def best_of(model: Model) -> dict:
        opt = Optimizer(space, seed=seed, n_initial=15, model=model)
        for _ in range(25):
            point = opt.ask()
            opt.tell(point, cost(point))
        return opt.best.point

    assert list(best_of(Model()).values()) == ["new"] * stations
    alone = Model(pooling="none", motifs="none")  # stretches of one letter would tell as much
    assert cost(best_of(alone)) > cost(dict.fromkeys(range(stations), "new")) + 5.0


def test_coordinates_are_made_once_for_a_kernel() -> None:
    first, second = (Kernel(Encoding(Space.binary(4))) for _ in range(2))
    assert Coordinates.of(first) is Coordinates.of(first)
    assert Coordinates.of(first) is not Coordinates.of(second)
