"""Law 3: draws have the closed-form mean and covariance, in every mode."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.moments import exact_moments

from mercbo import Binary, Categorical, Model, Ordinal, Space
from mercbo.features import mercer, mercer_terms, single
from mercbo.inference import Data, Hyper
from mercbo.posterior import Posterior

DRAWS = 6000
# The worst of some thousand comparisons, each about normal: 5 standard errors.
SIGMAS = 5.0

SPACES = {
    "binary": Space.binary(4),
    "mixed": Space({"a": Categorical(range(3)), "b": Ordinal(range(3)), "c": Binary()}),
    "coded": Space({"a": Categorical(range(4), encoding="binary"), "b": Binary()}),
}


def setting(space: Space, make_data, seed: int = 0) -> tuple[Data, Hyper]:
    data = make_data(space, 9, seed)
    rng = np.random.default_rng(seed + 1)
    beta = rng.uniform(0.1, 0.8, data.kernel.n)
    return data, Hyper(beta, amplitude=1.7, noise=0.05, mean=0.3)


def with_errors(data: Data) -> Data:
    """`data` with known errors of very different sizes, one of them zero, and two unknown."""
    error = np.geomspace(0.01, 3.0, len(data))
    error[[0, 4, 6]] = 0.0, np.nan, np.nan
    return replace(data, error=error)


def noise_of(data: Data, hyper: Hyper) -> np.ndarray:
    """The covariance of the noise, written out one by one."""
    error = np.full(len(data), np.nan) if data.error is None else data.error
    return np.diag([hyper.noise if np.isnan(e) else max(e**2, 1e-6) for e in error])


def explicit(data: Data, hyper: Hyper, model: Model, rows: np.ndarray):
    """Phi at `rows` (features of order <= m) and the prior variances of theta, written out."""
    kernel = data.kernel
    w = kernel.weights(hyper.beta)
    order = min(model.order, kernel.n)
    scale = hyper.amplitude * np.exp(kernel.log_scale(w))
    phi = np.sqrt(scale) * mercer(single(kernel, w, rows), kernel.factor_of, order)
    if model.weights == "identity":
        return phi, np.ones(phi.shape[1])
    factors = [kernel.factor_of[t] for t in mercer_terms(kernel.factor_of, order)]
    return phi, np.concatenate([np.prod(hyper.beta[f], axis=1) for f in factors])


def closed_form(data: Data, hyper: Hyper, model: Model, rows: np.ndarray):
    """Mean and covariance of the part of order <= m at `rows`, by Gaussian conditioning."""
    kernel = data.kernel
    at_rows, upsilon = explicit(data, hyper, model, rows)
    at_data, _ = explicit(data, hyper, model, data.rows)
    observed = (at_data * upsilon) @ at_data.T
    if model.posterior == "projected":
        full = hyper.amplitude * kernel.gram(kernel.log_tables(hyper.beta), data.rows, data.hot)
        observed = observed + full - at_data @ at_data.T
    sigma = observed + noise_of(data, hyper)
    cross = (at_rows * upsilon) @ at_data.T
    gain = cross @ np.linalg.inv(sigma)
    mean = hyper.mean + gain @ (data.y - hyper.mean)
    return mean, (at_rows * upsilon) @ at_rows.T - gain @ cross.T


def assert_moments(values: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> None:
    """values (draws, points): sample moments within SIGMAS standard errors of the exact ones."""
    draws = len(values)
    variance = np.maximum(np.diag(cov), 0)
    error = np.sqrt(variance / draws) + 1e-9
    assert (np.abs(values.mean(axis=0) - mean) < SIGMAS * error).all()
    spread = np.sqrt((np.outer(variance, variance) + cov**2) / draws) + 1e-9
    assert (np.abs(np.cov(values.T) - cov) < SIGMAS * spread).all()


@pytest.mark.parametrize("space", SPACES.values(), ids=list(SPACES))
@pytest.mark.parametrize("posterior", ["truncated", "projected"])
@pytest.mark.parametrize("weights", ["identity", "hierarchical"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_law_3_draws_have_the_moments_of_the_closed_form(
    space, posterior, weights, order, make_data
) -> None:
    data, hyper = setting(space, make_data)
    model = Model(order=order, posterior=posterior, weights=weights, refine=False)
    rows, drawn = space.enumerate_rows(), Posterior(model, data, hyper)
    found = exact_moments(lambda rng: drawn.draw(rng=rng).value(rows))
    for moment, wanted in zip(found, closed_form(data, hyper, model, rows), strict=True):
        np.testing.assert_allclose(moment, wanted, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("posterior", ["truncated", "projected"])
def test_law_3_random_draws_match_the_closed_form(posterior, make_data) -> None:
    """With random numbers, too."""
    space = SPACES["mixed"]
    data, hyper = setting(space, make_data)
    model = Model(posterior=posterior, refine=False)
    rows, rng = space.enumerate_rows(), np.random.default_rng(2)
    drawn = Posterior(model, data, hyper)
    values = np.array([drawn.draw(rng=rng).value(rows) for _ in range(DRAWS)])
    assert_moments(values, *closed_form(data, hyper, model, rows))


@pytest.mark.parametrize("posterior", ["truncated", "projected"])
@pytest.mark.parametrize("weights", ["identity", "hierarchical"])
@pytest.mark.parametrize("order", [2, 3])
def test_law_3_holds_with_known_errors(posterior, weights, order, make_data) -> None:
    space = SPACES["mixed"]
    data, hyper = setting(space, make_data)
    data = with_errors(data)
    model = Model(order=order, posterior=posterior, weights=weights, refine=False)
    rows, drawn = space.enumerate_rows(), Posterior(model, data, hyper)
    found = exact_moments(lambda rng: drawn.draw(rng=rng).value(rows))
    for moment, wanted in zip(found, closed_form(data, hyper, model, rows), strict=True):
        np.testing.assert_allclose(moment, wanted, atol=1e-9)


@pytest.mark.parametrize("posterior", ["truncated", "projected"])
def test_law_3_all_orders_together_are_the_exact_gp(posterior: str, make_data) -> None:
    space = SPACES["mixed"]
    data, hyper = setting(space, make_data)
    rows, kernel = space.enumerate_rows(), data.kernel
    tables = kernel.log_tables(hyper.beta)
    prior = hyper.amplitude * kernel.gram(tables, rows, kernel.onehot(rows))
    cross = hyper.amplitude * kernel.gram(tables, rows, data.hot)
    sigma = hyper.amplitude * kernel.gram(tables, data.rows, data.hot) + hyper.noise * np.eye(9)
    gain = cross @ np.linalg.inv(sigma)
    mean, cov = hyper.mean + gain @ (data.y - hyper.mean), prior - gain @ cross.T
    model = Model(order=kernel.n, posterior=posterior)
    drawn = Posterior(model, data, hyper)
    found = exact_moments(lambda rng: drawn.draw(rng=rng).value(rows))
    for moment, wanted in zip(found, (mean, cov), strict=True):
        np.testing.assert_allclose(moment, wanted, atol=1e-9)
    predicted, variance = drawn.predict(rows)
    np.testing.assert_allclose(predicted, mean, atol=1e-9)
    np.testing.assert_allclose(variance, np.diag(cov), atol=1e-9)


@pytest.mark.parametrize("posterior", ["truncated", "projected"])
@pytest.mark.parametrize("weights", ["identity", "hierarchical"])
@pytest.mark.parametrize("errors", [False, True], ids=["fitted noise", "known errors"])
def test_prediction_is_gaussian_conditioning(
    posterior: str, weights: str, errors: bool, make_data
) -> None:
    data, hyper = setting(SPACES["mixed"], make_data)
    data = with_errors(data) if errors else data
    rows = SPACES["mixed"].enumerate_rows()
    model = Model(posterior=posterior, weights=weights)
    everything = np.concatenate([rows, data.rows])
    phi, upsilon = explicit(data, hyper, model, everything)
    joint = (phi * upsilon) @ phi.T
    if posterior == "projected":
        kernel = data.kernel
        tables = kernel.log_tables(hyper.beta)
        full = hyper.amplitude * kernel.gram(tables, everything, kernel.onehot(everything))
        joint = joint + full - phi @ phi.T
    m = len(rows)
    gain = joint[:m, m:] @ np.linalg.inv(joint[m:, m:] + noise_of(data, hyper))
    mean, variance = Posterior(model, data, hyper).predict(rows)
    np.testing.assert_allclose(mean, hyper.mean + gain @ (data.y - hyper.mean), atol=1e-9)
    expected = np.diag(joint[:m, :m] - gain @ joint[m:, :m])
    np.testing.assert_allclose(variance, expected, atol=1e-9)


def test_without_data_a_draw_is_from_the_prior(make_data) -> None:
    space = SPACES["mixed"]
    data = make_data(space, 0)
    hyper = Hyper(np.full(data.kernel.n, 0.4), amplitude=1.0, noise=0.01, mean=0.0)
    sample = Posterior(Model(), data, hyper).draw(rng=np.random.default_rng(0))
    rows = space.enumerate_rows()
    np.testing.assert_allclose(sample.path(rows), sample.value(rows), atol=1e-12)
    assert np.std(sample.value(rows)) > 0


def test_with_little_noise_a_path_goes_through_the_data(make_data) -> None:
    """The refined function knows all orders, so it meets the results; order 2 alone cannot."""
    space = Space.binary(6)
    rng = np.random.default_rng(1)
    rows = np.unique(space.sample_rows(40, rng=rng), axis=0)
    kernel = make_data(space, 0).kernel
    data = Data(kernel, rows, rng.standard_normal(len(rows)))
    hyper = Hyper(np.full(6, 0.3), amplitude=1.0, noise=1e-8, mean=0.0)
    sample = Posterior(Model(), data, hyper).draw(rng=rng)
    # at the data: path + r = y, where r is the draw's own part of higher order
    truncated = Posterior(Model(posterior="truncated", refine=False), data, hyper)
    assert np.isfinite(truncated.draw(rng=rng).value(rows)).all()
    gap_path = np.abs(sample.path(rows) - data.y).mean()
    gap_low = np.abs(sample.value(rows) - data.y).mean()
    assert gap_path < gap_low


@pytest.mark.parametrize("posterior", ["truncated", "projected"])
def test_a_result_of_large_error_pulls_less(posterior: str, make_data) -> None:
    """Two opposite results at opposite corners: half-way between them, the surer one wins."""
    kernel = make_data(Space.binary(2), 0).kernel
    corners, between = np.array([[0, 0], [1, 1]]), np.array([[0, 1]])
    hyper = Hyper(np.full(2, 0.4), amplitude=1.0, noise=0.05, mean=0.0)
    model = Model(posterior=posterior)
    predicted = {}
    for error in ((0.5, 0.5), (0.1, 1.0), (1.0, 0.1)):
        data = Data(kernel, corners, np.array([1.0, -1.0]), np.array(error))
        # two variables: order 2 is all there is, so that both posteriors are the exact one
        gram = kernel.gram(kernel.log_tables(0.4 * np.ones(2)), corners, data.hot)
        cross = kernel.gram(kernel.log_tables(0.4 * np.ones(2)), between, data.hot)
        expected = cross @ np.linalg.solve(gram + np.diag(np.square(error)), data.y)
        predicted[error] = Posterior(model, data, hyper).predict(between)[0]
        np.testing.assert_allclose(predicted[error], expected, atol=1e-12)
    assert abs(predicted[0.5, 0.5]) < 1e-12
    assert predicted[0.1, 1.0] > 0.1
    assert predicted[1.0, 0.1] == pytest.approx(-predicted[0.1, 1.0])


@pytest.mark.parametrize("posterior", ["truncated", "projected"])
def test_where_all_errors_are_known_the_fitted_noise_is_of_no_account(posterior, make_data) -> None:
    data, hyper = setting(SPACES["mixed"], make_data)
    data = replace(data, error=np.linspace(0.0, 1.0, len(data)))
    rows, model = SPACES["mixed"].enumerate_rows(), Model(posterior=posterior)
    one, other = (Posterior(model, data, replace(hyper, noise=noise)) for noise in (1e-6, 1.0))
    assert (np.array(one.predict(rows)) == np.array(other.predict(rows))).all()
    drawn = [p.draw(rng=np.random.default_rng(0)).value(rows) for p in (one, other)]
    assert (drawn[0] == drawn[1]).all()


def test_an_error_of_zero_pins_the_function(make_data) -> None:
    """The floor of 1e-6 under the variance leaves a standard deviation of 1e-3 at most."""
    space = Space.binary(4)
    rows = space.enumerate_rows()[::2]
    data = Data(make_data(space, 0).kernel, rows, np.linspace(-1.0, 1.0, 8), np.zeros(8))
    hyper = Hyper(np.full(4, 0.3), amplitude=1.0, noise=0.5, mean=0.0)
    mean, variance = Posterior(Model(), data, hyper).predict(rows)
    # y - mean is 1e-6 Sigma^-1 y, |y| < 2, and no eigenvalue of Sigma is below that of K
    gram = data.kernel.gram(data.kernel.log_tables(hyper.beta), rows, data.hot)
    np.testing.assert_allclose(mean, data.y, atol=2e-6 / np.linalg.eigvalsh(gram)[0])
    # a difference of numbers of size 1 leaves rounding of 1e-15 beside the 1e-6
    assert (variance < 1e-6 + 1e-12).all()


@pytest.mark.parametrize(
    "model", [Model(), Model(order=3), Model(posterior="truncated"), Model.paper()], ids=str
)
@pytest.mark.parametrize("size", [0, 40])
def test_a_draw_is_the_same_to_the_last_bit_alone_and_in_a_block(model, size, make_data) -> None:
    space = SPACES["mixed"]
    data = make_data(space, size, 0)
    hyper = Hyper(np.full(data.kernel.n, 0.3), amplitude=1.7, noise=0.05, mean=0.3)
    posterior, rows = Posterior(model, data, hyper), space.enumerate_rows()
    together = posterior.draws([np.random.default_rng(s) for s in range(19)], first=5)
    for number, sample in enumerate(together):
        alone = posterior.draw(rng=np.random.default_rng(number), turn=5 + number)
        assert np.array_equal(alone.value(rows), sample.value(rows))
        assert np.array_equal(alone.path(rows), sample.path(rows))
        # in another column rounding may differ, and nothing else
        moved = posterior.draw(rng=np.random.default_rng(number))
        np.testing.assert_allclose(moved.path(rows), sample.path(rows), atol=1e-9)
