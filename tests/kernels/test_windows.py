"""Windows: a sum of diffusion kernels, with the laws of one of them."""

from __future__ import annotations

import numpy as np
import pytest
from support.moments import Given, exact_moments
from support.neighbours import check_neighbours

from mercbo import Binary, Categorical, Integer, Model, Ordinal, Space
from mercbo.encoding import Encoding
from mercbo.features import mercer, mercer_terms, single
from mercbo.inference import Data, Hyper
from mercbo.kernel import Kernel
from mercbo.kernels.windows import Windows, contrasts, count, distances, sight, summands
from mercbo.posterior import Posterior

SPACES = {
    "binary": Space.binary(6),
    "mixed": Space({"a": Categorical(range(3)), "b": Ordinal(range(3)), "c": Binary()}),
    "coded": Space({"a": Categorical(range(4), encoding="binary"), "b": Binary(), "c": Binary()}),
    "with one value": Space({"a": Binary(), "b": Integer(3, 3), "c": Categorical(list("xyz"))}),
}
WINDOWS = Windows(amplitude=0.8, sharpness=2.5, reach=0.4)


@pytest.fixture(params=SPACES, ids=list(SPACES))
def space(request: pytest.FixtureRequest) -> Space:
    return SPACES[request.param]


def setting(space: Space, make_data) -> tuple[Data, Hyper]:
    data = make_data(space, 9)
    beta = np.random.default_rng(1).uniform(0.1, 0.8, data.kernel.n)
    return data, Hyper(beta, amplitude=1.7, noise=0.05, mean=0.3, windows=WINDOWS)


def variances(kernel: Kernel, hyper: Hyper, order: int) -> np.ndarray:
    """The prior variance of every Mercer term of order <= `order`: that of each kernel added up."""
    total = 0.0
    for each in summands(kernel, hyper.beta, hyper.amplitude, hyper.windows):
        terms = mercer_terms(kernel.factor_of, order)
        total = total + each.scale * np.concatenate([each.w[t].prod(axis=1) for t in terms])
    return np.asarray(total)


def features(kernel: Kernel, rows: np.ndarray, order: int) -> np.ndarray:
    plain = single(kernel, np.ones(kernel.features), rows)
    return mercer(plain, kernel.factor_of, order)


def test_a_window_sees_what_is_near_its_centre() -> None:
    kernel = Kernel(Encoding(Space.binary(25)))
    away = distances(kernel)
    assert away.shape == (13, 25)
    seen = sight(away, 0.5)
    np.testing.assert_allclose(seen.sum(axis=1), 1.0)
    assert (seen.argmax(axis=1) == np.arange(0, 25, 2)).all()
    np.testing.assert_allclose(seen[3, 8] / seen[3, 6], 0.25)
    each = contrasts(kernel, np.full(25, 0.1), WINDOWS)
    # the sharpness says how far apart points are that differ everywhere
    np.testing.assert_allclose(each.sum(axis=1), 2.5 * 25 * 0.1)


@pytest.mark.parametrize(("variables", "windows"), [(6, 6), (20, 12), (40, 20), (90, 24)])
def test_there_are_a_few_windows(variables: int, windows: int) -> None:
    assert count(Kernel(Encoding(Space.binary(variables)))) == windows


def test_law_1_all_features_together_are_the_kernel(space: Space, make_data) -> None:
    data, hyper = setting(space, make_data)
    kernel, rows = data.kernel, space.enumerate_rows()
    phi = features(kernel, rows, kernel.n)
    covariance = Posterior(Model(), data, hyper)._covariance(rows, kernel.onehot(rows))
    np.testing.assert_allclose((phi * variances(kernel, hyper, kernel.n)) @ phi.T, covariance)


@pytest.mark.parametrize("order", [1, 2])
def test_law_3_draws_have_the_moments_of_the_closed_form(space: Space, order, make_data) -> None:
    data, hyper = setting(space, make_data)
    kernel, rows = data.kernel, space.enumerate_rows()
    drawn = Posterior(Model(order=order, refine=False), data, hyper)
    upsilon = variances(kernel, hyper, order)
    at_rows = features(kernel, rows, order) * np.sqrt(upsilon)
    at_data = features(kernel, data.rows, order) * np.sqrt(upsilon)
    full = drawn._covariance(data.rows, data.hot) + hyper.noise * np.eye(len(data))
    gain = at_rows @ at_data.T @ np.linalg.inv(full)
    mean = hyper.mean + gain @ (data.y - hyper.mean)
    cov = at_rows @ at_rows.T - gain @ at_data @ at_rows.T
    found = exact_moments(lambda rng: drawn.draw(rng=rng).value(rows))
    for moment, wanted in zip(found, (mean, cov), strict=True):
        np.testing.assert_allclose(moment, wanted, atol=1e-9)


def test_paths_have_the_mean_of_the_process(space: Space, make_data) -> None:
    data, hyper = setting(space, make_data)
    rows, posterior = space.enumerate_rows(), Posterior(Model(), data, hyper)
    mean, _ = exact_moments(lambda rng: posterior.draw(rng=rng).path(rows))
    np.testing.assert_allclose(mean, posterior.predict(rows)[0], atol=1e-9)


def test_neighbours_are_as_if_each_were_looked_at(space: Space, make_data) -> None:
    data, hyper = setting(space, make_data)
    rows = space.sample_rows(4, rng=np.random.default_rng(3))
    check_neighbours(Posterior(Model(), data, hyper), rows)


@pytest.mark.parametrize(
    ("values", "contrast"),
    [
        (16, 1e-3),
        (32, 0.2),
        (50, 0.25),
    ],
)
def test_long_paths_give_finite_draws(values: int, contrast: float, make_data) -> None:
    """Their fast modes have no weight in the kernel of all variables, and some in windows."""
    space = Space({f"n{i}": Integer(1, values) for i in range(3)})
    data = make_data(space, 12)
    kernel = data.kernel
    beta = kernel.beta(np.full(kernel.n, contrast))
    windows = Windows(amplitude=0.8, sharpness=20.0, reach=0.1)
    posterior = Posterior(Model(), data, Hyper(beta, 1.2, 0.01, 0.0, windows))
    assert (posterior.w == 0).any()
    sample = posterior.draw(rng=np.random.default_rng(0))
    rows = space.sample_rows(20, rng=np.random.default_rng(1))
    for values_ in (sample.value(rows), sample.path(rows), sample.path_neighbours(rows)):
        assert np.isfinite(values_).all()
    mean = posterior.draw(rng=Given()).path(rows[:2])  # every normal variable at 0
    np.testing.assert_allclose(mean, posterior.predict(rows[:2])[0], atol=1e-8)
