"""Neighbour tables hold what one-by-one evaluation gives, for every kind of sample."""

from __future__ import annotations

import numpy as np
import pytest

from mercbo import Model, Space
from mercbo.inference import Hyper
from mercbo.posterior import Posterior

MODELS = {
    "refined": Model(),
    "refined, hierarchical": Model(weights="hierarchical"),
    "quadratic only": Model(refine=False),
    "truncated": Model(posterior="truncated"),
    "order 1": Model(order=1),
    "order 3": Model(order=3),
    "order 3, not refined": Model(order=3, refine=False),
}


@pytest.fixture(params=MODELS, ids=list(MODELS))
def sample_of(request: pytest.FixtureRequest, make_data):
    def make(space: Space):
        data = make_data(space, 11)
        beta = np.random.default_rng(1).uniform(0.1, 1.0, data.kernel.n)
        hyper = Hyper(beta, amplitude=1.3, noise=0.02, mean=-0.4)
        drawn = Posterior(MODELS[request.param], data, hyper)
        return drawn.draw(rng=np.random.default_rng(2)), data.kernel

    return make


def test_neighbours_are_the_path_at_the_neighbours(small_space: Space, sample_of) -> None:
    sample, kernel = sample_of(small_space)
    rows = small_space.enumerate_rows()
    table = sample.path_neighbours(rows)
    for level in range(kernel.levels):
        moved = rows.copy()
        moved[:, kernel.level_variable[level]] = kernel.level_value[level]
        np.testing.assert_allclose(table[:, level], sample.path(moved), atol=1e-9)


def test_without_refinement_path_and_value_are_the_same(make_data, mixed: Space) -> None:
    data = make_data(mixed, 8)
    hyper = Hyper(np.full(data.kernel.n, 0.5), 1.0, 0.1, 0.0)
    rows = mixed.enumerate_rows()
    for model in (Model(refine=False), Model(posterior="truncated")):
        sample = Posterior(model, data, hyper).draw(rng=np.random.default_rng(0))
        np.testing.assert_allclose(sample.path(rows), sample.value(rows), atol=1e-12)


def test_path_differs_from_value_by_orders_above_2_only(make_data) -> None:
    """On binary variables, the difference has no constant, main or pair component."""
    space = Space.binary(5)
    data = make_data(space, 12)
    hyper = Hyper(np.full(5, 0.2), 1.0, 0.01, 0.0)
    sample = Posterior(Model(), data, hyper).draw(rng=np.random.default_rng(0))
    rows = space.enumerate_rows()
    spins = 1.0 - 2.0 * rows
    beyond = sample.path(rows) - sample.value(rows)
    assert np.abs(beyond).max() > 1e-3
    assert abs(beyond.mean()) < 1e-10
    np.testing.assert_allclose(spins.T @ beyond / len(rows), 0, atol=1e-10)
    np.testing.assert_allclose((spins * beyond[:, None]).T @ spins / len(rows), 0, atol=1e-10)
