"""The parts of a posterior against the same parts taken by enumeration of a small space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercbo import Binary, Categorical, Model, Ordinal, Space
from mercbo.explaining.anova import Decomposition, over, times, variances
from mercbo.explaining.explanatory import OpenPosterior
from mercbo.explaining.orders import Axes
from mercbo.explaining.ridges import Ridges
from mercbo.explaining.stacks import Held, Stack
from mercbo.inference import Data, Hyper, diffusions
from mercbo.kernels.pooling import Pooling
from mercbo.kernels.windows import Windows
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


WINDOWS, POOLING = Windows(0.9, 1.5, 0.4), Pooling(0.7, 0.5)
FURTHER = {
    "ridges": {},
    "ridges, windows": {"windows": WINDOWS},
    "ridges, pooling": {"pooling": POOLING},
    "ridges, all": {"windows": WINDOWS, "pooling": POOLING},
}
# the optimizer's own posteriors
OWN = {name.removeprefix("ridges, "): terms for name, terms in FURTHER.items() if terms}


@pytest.fixture(params=[*MODELS, *OWN, *FURTHER])
def posterior(small_space, make_data, random_beta, request) -> Posterior:
    data = make_data(small_space, 9)
    hyper = Hyper(random_beta(data.kernel), amplitude=1.7, noise=0.05, mean=0.3)
    if request.param not in FURTHER:
        hyper = replace(hyper, **OWN.get(request.param, {}))
        return Posterior(MODELS.get(request.param, Model()), data, hyper)
    return opened(data, replace(hyper, **FURTHER[request.param]))


def opened(data: Data, hyper: Hyper) -> OpenPosterior:
    """That of an explanation, with the further terms of `hyper`."""
    rough = replace(data, kernel=data.kernel.rougher(0.5))
    own = diffusions(rough.kernel, hyper)[1:]
    held = Held(Stack(rough, own, Axes(rough.kernel)), 0.6) if own else None
    ridges = Ridges.of(data.kernel, 0.8, 0.4)
    return OpenPosterior(Model(), rough, replace(hyper, windows=None), ridges, held)


def check_parts(space: Space, posterior: Posterior) -> None:
    parts, every = Decomposition(posterior), Enumerated(space, posterior)
    mean, variance = every.moments(())
    assert parts.constant() == pytest.approx((mean[0], variance[0]), rel=1e-8, abs=1e-9)
    for i in range(len(space)):
        found = parts.main(i)
        mean, variance = every.moments((i,))
        np.testing.assert_allclose(found.mean, mean, atol=1e-9)
        np.testing.assert_allclose(found.variance, variance, atol=1e-9)
    for i, j in parts.pairs():
        found = parts.interactions(i, [j])[0]
        mean, variance = every.moments((i, j))
        np.testing.assert_allclose(found.mean, mean, atol=1e-9)
        np.testing.assert_allclose(found.variance, variance, atol=1e-9)


def check_variances(space: Space, posterior: Posterior) -> None:
    found, every = variances([Decomposition(posterior)]), Enumerated(space, posterior)
    assert found.total == pytest.approx(every.variance(()), rel=1e-8, abs=1e-9)
    for i, own in enumerate(found.own):
        expected = every.variance((i,))
        assert found.total - own == pytest.approx(expected, rel=1e-8, abs=1e-9)


def test_parts_are_those_of_the_enumerated_space(small_space: Space, posterior: Posterior) -> None:
    check_parts(small_space, posterior)


def test_variances_are_those_of_the_enumerated_space(
    small_space: Space, posterior: Posterior
) -> None:
    check_variances(small_space, posterior)


def test_variances_of_several_posteriors_are_averaged(make_data, random_beta) -> None:
    """Those of windows are worked out for all of them at once, where they are held."""
    data = make_data(Space.binary(6), 12)
    hyper = Hyper(random_beta(data.kernel), 0.7, 0.05, 0.3, windows=WINDOWS)
    first = opened(data, hyper)
    assert first.windows is not None
    other = OpenPosterior(
        Model(), first.data, replace(first.hyper, amplitude=0.2), first.ridges,
        replace(first.windows, amplitude=1.4),
    )  # fmt: skip
    parts = [Decomposition(each) for each in (first, other, opened(data, hyper))]
    found, each = variances(parts), [variances([part]) for part in parts]
    assert found.total == pytest.approx(np.mean([one.total for one in each]), rel=1e-12)
    np.testing.assert_allclose(found.own, np.mean([one.own for one in each], axis=0), rtol=1e-9)
    assert each[0].total != pytest.approx(each[1].total, rel=0.01)


# Groups of variables that are alike, of every kind that is pooled.
ALIKE = {
    "ordered": {**{n: Ordinal([1, 2, 5]) for n in "abc"}, **{n: Binary() for n in "xyz"}},
    "unordered": {
        **{n: Categorical([*"pqr"]) for n in "abc"},
        "x": Categorical([*"uv"]),
        "y": Binary(),
    },
    "coded": {**{n: Categorical([*"ACGT"], encoding="binary") for n in "abc"}, "x": Binary()},
}


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("terms", [*OWN, *FURTHER])
def test_like_variables_are_taken_apart_too(name: str, terms: str, make_data, random_beta) -> None:
    space = Space(ALIKE[name])
    data = make_data(space, 15)
    hyper = Hyper(random_beta(data.kernel), amplitude=0.8, noise=0.05, mean=0.3)
    hyper = replace(hyper, **{**OWN, **FURTHER}[terms])
    posterior = opened(data, hyper) if terms in FURTHER else Posterior(Model(), data, hyper)
    assert not posterior.pools or posterior.pools[0].coordinates.count > 0
    check_parts(space, posterior)
    check_variances(space, posterior)


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
