"""The parts of a posterior against the same parts taken by enumeration of a small space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercbo import Model, Space
from mercbo.explaining.anova import Decomposition, over, times
from mercbo.explaining.explanatory import OpenPosterior
from mercbo.explaining.ridges import Ridges
from mercbo.inference import Hyper
from mercbo.posterior import Posterior

MODELS = {
    "projected": Model(),
    "truncated": Model(posterior="truncated", refine=False),
    "hierarchical": Model(weights="hierarchical"),
    "paper's weights": Model(posterior="truncated", weights="hierarchical", refine=False),
    "order 3": Model(posterior="truncated", order=3, refine=False),
}


class Enumerated:
    """Mean and covariance of f over all points, and projections of them."""

    def __init__(self, space: Space, posterior: Posterior) -> None:
        self.rows = space.enumerate_rows()
        self.shape = tuple(space.sizes.tolist())
        kernel, data = posterior.kernel, posterior.data
        cross = posterior._covariance(self.rows, data.hot)
        self.mean, _ = posterior.predict(self.rows)
        prior = posterior._covariance(self.rows, kernel.onehot(self.rows))
        self.covariance = prior - cross @ posterior._sigma.solve(cross.T)

    def part(self, chosen: tuple[int, ...]) -> np.ndarray:
        """(cells, points): the matrix that takes f to its part of some variables."""
        matrix = np.ones((1, 1))
        for i, size in enumerate(self.shape):
            averaging = np.full((1, size), 1.0 / size)
            matrix = np.kron(matrix, np.eye(size) - averaging if i in chosen else averaging)
        return matrix

    def moments(self, chosen: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        matrix = self.part(chosen)
        return matrix @ self.mean, np.einsum("cp,pq,cq->c", matrix, self.covariance, matrix)

    def variance(self, averaged: tuple[int, ...]) -> float:
        matrix = np.ones((1, 1))
        for i, size in enumerate(self.shape):
            averaging = np.full((1, size), 1.0 / size)
            matrix = np.kron(matrix, averaging if i in averaged else np.eye(size))
        centring = np.eye(len(matrix)) - 1.0 / len(matrix)
        matrix = centring @ matrix
        square = (matrix @ self.mean) ** 2
        return float(np.mean(square + np.einsum("cp,pq,cq->c", matrix, self.covariance, matrix)))


@pytest.fixture(params=[*MODELS, "ridges"])
def posterior(small_space, make_data, random_beta, request) -> Posterior:
    data = make_data(small_space, 9)
    hyper = Hyper(random_beta(data.kernel), amplitude=1.7, noise=0.05, mean=0.3)
    if request.param == "ridges":
        rough = replace(data, kernel=data.kernel.rougher(0.5))
        return OpenPosterior(Model(), rough, hyper, Ridges.of(data.kernel, 0.8, 0.4))
    return Posterior(MODELS[request.param], data, hyper)


def test_parts_are_those_of_the_enumerated_space(small_space: Space, posterior: Posterior) -> None:
    parts, every = Decomposition(posterior), Enumerated(small_space, posterior)
    mean, variance = every.moments(())
    assert parts.constant() == pytest.approx((mean[0], variance[0]), rel=1e-8, abs=1e-9)
    for i in range(len(small_space)):
        found = parts.main(i)
        mean, variance = every.moments((i,))
        np.testing.assert_allclose(found.mean, mean, atol=1e-9)
        np.testing.assert_allclose(found.variance, variance, atol=1e-9)
    for i, j in parts.pairs():
        found = parts.interactions(i, [j])[0]
        mean, variance = every.moments((i, j))
        np.testing.assert_allclose(found.mean, mean, atol=1e-9)
        np.testing.assert_allclose(found.variance, variance, atol=1e-9)


def test_variances_are_those_of_the_enumerated_space(
    small_space: Space, posterior: Posterior
) -> None:
    parts, every = Decomposition(posterior), Enumerated(small_space, posterior)
    assert parts.variance() == pytest.approx(every.variance(()), rel=1e-8, abs=1e-10)
    for i in range(len(small_space)):
        assert parts.variance((i,)) == pytest.approx(every.variance((i,)), rel=1e-8, abs=1e-10)


def test_where_pairs_are_too_many_the_strongest_are_kept(
    make_data, random_beta, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_data(Space.binary(5), 20)
    parts = Decomposition(Posterior(Model(), data, Hyper(random_beta(data.kernel), 1.0, 0.01, 0.0)))
    every = parts.pairs()
    assert len(every) == 10
    strongest = sorted(every, key=lambda p: -np.mean(parts.interactions(p[0], [p[1]])[0].mean ** 2))
    monkeypatch.setattr("mercbo.explaining.anova.MOST_COORDINATES", 4)
    assert parts.pairs() == sorted(strongest[:4])
    monkeypatch.setattr("mercbo.explaining.anova.MOST_OF_A_PAIR", 0)
    assert parts.pairs() == []


def test_a_quotient_of_polynomials_times_the_divisor_gives_the_dividend() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((3, 2, 4)), rng.standard_normal((3, 2, 4))
    b[0, 0] = 1.5
    np.testing.assert_allclose(times(b, over(a, b)), a, atol=1e-12)
    # (1 + s + t)^2 without s^2 and t^2
    square = times(
        np.array([[[1.0], [1.0]], [[1.0], [0.0]]]), np.array([[[1.0], [1.0]], [[1.0], [0.0]]])
    )
    np.testing.assert_allclose(square[..., 0], [[1, 2], [2, 2]])
