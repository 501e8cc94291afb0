"""The density of the hyper-parameters, its gradient, and the fits made with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal, norm
from support.chains import fit_hmc

from mercbo import Binary, Categorical, Integer, Model, NumericalError, Space
from mercbo import inference as fits
from mercbo.encoding import Encoding
from mercbo.inference import (
    COLD_GROWTH,
    PLAIN,
    Data,
    Fit,
    Hyper,
    bounds_of,
    climb,
    cold_starts,
    fit_map,
    log_density,
    log_prior,
    pack,
    prior,
    sampled,
    unpack,
    with_mean,
)
from mercbo.kernel import Kernel


def test_gradient_is_the_finite_difference(small_space: Space, make_data) -> None:
    data = make_data(small_space, 12)
    rng = np.random.default_rng(3)
    for _ in range(3):
        z = rng.normal(-1.0, 0.7, data.kernel.n + 2)
        _, gradient, _ = log_density(data, z)
        numeric = approx_fprime(z, lambda z: log_density(data, z)[0], 1e-6)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4)


def test_density_is_likelihood_times_prior(mixed: Space, make_data) -> None:
    data = make_data(mixed, 15)
    z = np.random.default_rng(4).normal(-1.0, 0.5, data.kernel.n + 2)
    value, _, mean = log_density(data, z)
    hyper = unpack(data.kernel, z)
    gram = data.kernel.gram(data.kernel.log_tables(hyper.beta), data.rows, data.hot)
    cov = hyper.amplitude * gram + hyper.noise * np.eye(15)
    likelihood = multivariate_normal(np.full(15, mean), cov).logpdf(data.y)
    constant = -0.5 * 15 * np.log(2 * np.pi)
    prior_of_mean = norm.logpdf(mean) + 0.5 * np.log(2 * np.pi)
    expected = likelihood - constant + prior_of_mean + log_prior(z)[0]
    assert value == pytest.approx(expected, rel=1e-9)


def test_best_mean_is_where_the_density_peaks(mixed: Space, make_data) -> None:
    data = make_data(mixed, 10)
    z = np.full(data.kernel.n + 2, -1.0)
    value, _, mean = log_density(data, z)
    hyper = unpack(data.kernel, z)
    gram = data.kernel.gram(data.kernel.log_tables(hyper.beta), data.rows, data.hot)
    cov = hyper.amplitude * gram + hyper.noise * np.eye(10)

    def joint(m: float) -> float:
        return multivariate_normal(np.full(10, m), cov).logpdf(data.y) + norm.logpdf(m)

    assert joint(mean) > max(joint(mean - 1e-3), joint(mean + 1e-3))
    assert np.isfinite(value)


def test_prior_is_the_documented_gaussian() -> None:
    n = 4
    cov = 1.0**2 * np.eye(n) + 1.5**2 * np.ones((n, n))
    z = np.random.default_rng(5).normal(size=n + 2)
    expected = (
        multivariate_normal(np.full(n, np.log(2 / n)), cov).logpdf(z[:n])
        + norm(0, 1.5).logpdf(z[n])
        + norm(np.log(1e-3), 2.0).logpdf(z[n + 1])
    )
    other = np.zeros(n + 2)
    shift = (
        multivariate_normal(np.full(n, np.log(2 / n)), cov).logpdf(other[:n])
        + norm(0, 1.5).logpdf(0)
        + norm(np.log(1e-3), 2.0).logpdf(0)
    )
    assert log_prior(z)[0] - log_prior(other)[0] == pytest.approx(expected - shift)


def test_pack_and_unpack_are_inverse(mixed: Space) -> None:
    kernel = Kernel(Encoding(mixed))
    z = np.random.default_rng(6).normal(-1, 1, kernel.n + 2)
    np.testing.assert_allclose(pack(kernel, unpack(kernel, z)), z, rtol=1e-9)


def quadratic_data(n: int, size: int, seed: int) -> tuple[Data, Data]:
    """Noise-free values of a random quadratic: what is fitted, and what is held out."""
    rng = np.random.default_rng(seed)
    space = Space.binary(n)
    kernel = Kernel(Encoding(space))
    spins = 1.0 - 2.0 * (rows := space.sample_rows(size + 100, rng=rng))
    pairs = rng.standard_normal((n, n)) / n
    y = spins @ rng.standard_normal(n) + np.einsum("ni,ij,nj->n", spins, pairs, spins)
    y = (y - y[:size].mean()) / y[:size].std()
    return Data(kernel, rows[:size], y[:size]), Data(kernel, rows[size:], y[size:])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_collapse_to_noise_on_60_variables_and_150_points(seed: int) -> None:
    from mercbo.posterior import Posterior

    data, held_out = quadratic_data(60, 150, seed)
    hyper = fit_map(data, None).hypers[0]
    assert hyper.noise < 0.3
    mean, _ = Posterior(Model(), data, hyper).predict(held_out.rows)
    # an all-noise fit predicts the mean: correlation 0, with sd 0.1 over 100 points
    assert np.corrcoef(mean, held_out.y)[0, 1] > 0.5


def test_a_collapsed_fit_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mercbo.inference.WARM_ITERATIONS", 0)  # the warm climb stays stuck
    data, _ = quadratic_data(20, 120, 0)
    stuck = Hyper(data.kernel.beta(np.full(20, 1e-4)), amplitude=0.01, noise=0.99, mean=0.0)
    fit = fit_map(data, Fit((stuck,), seen=119, cold=119))
    assert fit.hypers[0].noise < 0.1
    assert fit.cold == 120


def test_a_fit_is_no_worse_than_a_climb_from_each_start() -> None:
    from mercbo.inference import SCREENING

    data, _ = quadratic_data(15, 40, 1)
    reached = [climb(data, start, SCREENING)[0] for start in cold_starts(data.kernel)]
    best = log_density(data, pack(data.kernel, fit_map(data, None).hypers[0]))[0]
    assert max(reached) - min(reached) > 1e-3
    assert best > max(reached)


def test_a_warm_start_costs_fewer_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = quadratic_data(15, 60, 2)
    calls = []
    counted = fits.cholesky  # once for each evaluation of the density
    monkeypatch.setattr(fits, "cholesky", lambda *a: (calls.append(1), counted(*a))[1])
    cold = fit_map(data, None)
    after_cold = len(calls)
    more = Data(data.kernel, data.rows[:61], data.y[:61])
    fit_map(more, cold)
    assert 0 < len(calls) - after_cold < after_cold / 3


def test_cold_fits_come_back_as_the_data_grow() -> None:
    data, _ = quadratic_data(10, 40, 3)
    first = fit_map(Data(data.kernel, data.rows[:20], data.y[:20]), None)
    later = fit_map(Data(data.kernel, data.rows[:21], data.y[:21]), first)
    grown = int(20 * COLD_GROWTH)
    cold = fit_map(Data(data.kernel, data.rows[:grown], data.y[:grown]), later)
    assert (first.cold, later.cold, cold.cold) == (20, 20, grown)


@pytest.mark.parametrize(
    "y", [np.zeros(6), np.array([0.0, 0, 0, 0, 0, 5.0]), np.array([1.0, -1, 1, -1, 1, -1])]
)
def test_awkward_results_give_finite_states(y: np.ndarray) -> None:
    space = Space.binary(4)
    rows = np.repeat(space.sample_rows(3, rng=np.random.default_rng(0)), 2, axis=0)
    data = Data(Kernel(Encoding(space)), rows, y)
    for inference in ("map", "hmc", "slice"):
        fit = Model(inference=inference).fit(data, None, rng=np.random.default_rng(1))
        for hyper in fit.hypers:
            assert np.isfinite(pack(data.kernel, hyper)).all()
            assert np.isfinite(hyper.mean)


def test_hmc_gives_several_states_that_differ_and_stay_in_bounds(make_data, mixed) -> None:
    data = make_data(mixed, 20)
    fit = fit_hmc(data, None, rng=np.random.default_rng(0))
    states = np.array([pack(data.kernel, h) for h in fit.hypers[1:]])
    assert len(states) == 6
    assert len(np.unique(states.round(9), axis=0)) >= 3
    low, high = bounds_of(data.kernel.n).T
    assert all(np.all((z >= low) & (z <= high)) for z in states)


@pytest.mark.slow
def test_hmc_without_data_samples_the_prior() -> None:
    """With a likelihood that says nothing, a long chain has the prior's mean and spread."""
    kernel = Kernel(Encoding(Space.binary(2)))
    data = Data(kernel, np.zeros((1, 2), dtype=np.int64), np.zeros(1))
    flat = lambda _, z: (*log_prior(z), 0.0)  # noqa: E731
    wide = np.array([[-60.0, 60.0]] * 4)
    rng = np.random.default_rng(7)
    z = np.array([np.log(1.0), np.log(1.0), 0.0, np.log(1e-3)])
    state, chain = flat(data, z), []
    for _ in range(20_000):
        z, state, _ = fits.hmc_step(data, z, state, 0.6, wide, density=flat, rng=rng)
        chain.append(z)
    cov = np.zeros((4, 4))
    cov[:2, :2] = np.eye(2) + 1.5**2
    cov[2, 2], cov[3, 3] = 1.5**2, 2.0**2
    draws = np.array(chain)
    # neighbouring states are correlated: count one in ten as independent
    independent = len(draws) / 10
    sd = np.sqrt(np.diag(cov))
    centre = np.array([0.0, 0.0, 0.0, np.log(1e-3)])
    assert (np.abs(draws.mean(axis=0) - centre) < 4 * sd / np.sqrt(independent)).all()
    spread = np.sqrt((np.outer(sd, sd) ** 2 + cov**2) / independent)
    assert (np.abs(np.cov(draws.T) - cov) < 4 * spread).all()


def test_prior_state_is_the_middle_of_the_prior(mixed: Space) -> None:
    kernel = Kernel(Encoding(mixed))
    z = pack(kernel, prior(kernel))
    np.testing.assert_allclose(z[:-2], np.log(2.0 / kernel.n))


# -- known errors ------------------------------------------------------------------------------


def with_errors(data: Data) -> Data:
    """`data` with known errors of very different sizes, except for every third result."""
    error = np.random.default_rng(0).uniform(0.1, 1.5, len(data))
    error[::3] = np.nan
    return replace(data, error=error)


def dense(data: Data, hyper: Hyper) -> np.ndarray:
    """The covariance of the results, its noise written out one by one."""
    gram = data.kernel.gram(data.kernel.log_tables(hyper.beta), data.rows, data.hot)
    noise = [hyper.noise if np.isnan(e) else max(e**2, 1e-6) for e in data.error]
    return hyper.amplitude * gram + np.diag(noise)


def dense_mean(data: Data, hyper: Hyper) -> float:
    """The mode of the mean under its N(0, 1) prior, written out."""
    weights = np.linalg.inv(dense(data, hyper)).sum(axis=0)
    return float(weights @ data.y / (weights.sum() + 1.0))


def test_noise_is_the_level_or_the_square_of_the_error(make_data, mixed) -> None:
    data = make_data(mixed, 4)
    assert (data.noise(0.2) == 0.2).all()
    known = replace(data, error=np.array([0.5, np.nan, 0.0, 2.0]))
    np.testing.assert_allclose(known.noise(0.2), [0.25, 0.2, 1e-6, 4.0])
    nowhere = replace(data, error=np.full(4, np.nan))
    z = np.full(data.kernel.n + 2, -1.0)
    assert log_density(nowhere, z)[0] == log_density(data, z)[0]
    assert (log_density(nowhere, z)[1] == log_density(data, z)[1]).all()


def test_gradient_with_known_errors_is_the_finite_difference(small_space: Space, make_data) -> None:
    data = with_errors(make_data(small_space, 12))
    rng = np.random.default_rng(3)
    for _ in range(3):
        z = rng.normal(-1.0, 0.7, data.kernel.n + 2)
        _, gradient, _ = log_density(data, z)
        numeric = approx_fprime(z, lambda z: log_density(data, z)[0], 1e-6)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4)


def test_density_with_known_errors_is_likelihood_times_prior(mixed: Space, make_data) -> None:
    data = with_errors(make_data(mixed, 15))
    z = np.random.default_rng(4).normal(-1.0, 0.5, data.kernel.n + 2)
    value, _, mean = log_density(data, z)
    cov = dense(data, unpack(data.kernel, z))
    likelihood = multivariate_normal(np.full(15, mean), cov).logpdf(data.y)
    constant = -0.5 * 15 * np.log(2 * np.pi)
    prior_of_mean = norm.logpdf(mean) + 0.5 * np.log(2 * np.pi)
    expected = likelihood - constant + prior_of_mean + log_prior(z)[0]
    assert value == pytest.approx(expected, rel=1e-9)


def test_best_mean_weighs_results_by_their_errors(mixed: Space, make_data) -> None:
    data = with_errors(make_data(mixed, 10))
    z = np.full(data.kernel.n + 2, -1.0)
    hyper = unpack(data.kernel, z)
    expected = dense_mean(data, hyper)
    assert with_mean(data, hyper).mean == pytest.approx(expected, rel=1e-9)
    assert log_density(data, z)[2] == pytest.approx(expected, rel=1e-9)


def test_where_all_errors_are_known_only_the_prior_governs_the_noise(mixed, make_data) -> None:
    data = make_data(mixed, 12)
    data = replace(data, error=np.linspace(0.1, 1.5, 12))
    low = np.full(data.kernel.n + 2, -1.0)
    high = np.append(low[:-1], -6.0)
    by_prior = log_prior(low)[0] - log_prior(high)[0]
    assert log_density(data, low)[0] - log_density(data, high)[0] == pytest.approx(by_prior)
    assert log_density(data, low)[1][-1] == log_prior(low)[1][-1]
    # a gain of 2e-9 of the density, about 20, ends a climb: d^2 / 8 = 4e-8; ten times that d
    _, z = climb(data, low, 100)
    assert z[-1] == pytest.approx(np.log(1e-3), abs=6e-3)


def test_fitted_noise_is_that_of_the_results_of_unknown_error() -> None:
    """Half the results are exact and say so: the noise of the others shows in full."""
    data, _ = quadratic_data(8, 160, 0)
    rng = np.random.default_rng(1)
    exact = np.arange(160) % 2 == 0
    y = data.y + np.where(exact, 0.0, 0.6 * rng.standard_normal(160))
    noisy = Data(data.kernel, data.rows, y, np.where(exact, 1e-3, np.nan))
    # a variance from 80 results has a relative standard error of sqrt(2 / 80) = 0.16
    found = fit_map(noisy, None).hypers[0].noise
    assert abs(found / 0.36 - 1) < 4 * np.sqrt(2 / 80)
    assert fit_map(replace(noisy, error=None), None).hypers[0].noise < 0.36 / 1.5


@pytest.mark.parametrize(("size", "seen"), [(80, 80), (120, 119)], ids=["refit", "left to stand"])
def test_where_all_errors_are_known_a_large_noise_is_no_collapse(
    size: int, seen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mercbo.inference.WARM_ITERATIONS", 0)  # the noise stays where it is
    data, _ = quadratic_data(20, size, 0)
    previous = fit_map(data, None).hypers[0]
    fit = Fit((replace(previous, noise=0.99),), seen=size - 1, cold=size - 1)
    error = np.full(size, 0.1)
    known = fit_map(replace(data, error=error), fit)
    assert (known.seen, known.cold) == (seen, size - 1)
    # one result of unknown error is enough to look again
    one_unknown = np.append(error[1:], np.nan)
    assert fit_map(replace(data, error=one_unknown), fit).cold == size


def test_for_fitting_carries_the_errors(mixed, make_data, monkeypatch) -> None:
    monkeypatch.setattr("mercbo.inference.MOST_FITTED", 10)
    data = with_errors(make_data(mixed, 30))
    fitted = data.for_fitting()
    assert len(fitted) == len(fitted.error) == 10
    error_of = dict(zip(data.y, data.error, strict=True))
    np.testing.assert_array_equal(fitted.error, [error_of[y] for y in fitted.y])
    assert 0 < np.isnan(fitted.error).sum() < 10
    assert replace(data, error=None).for_fitting().error is None


@pytest.mark.parametrize("error", [np.zeros(6), np.array([0.0, np.nan] * 3), np.full(6, 100.0)])
def test_awkward_errors_give_finite_states(error: np.ndarray) -> None:
    space = Space.binary(4)
    # each row twice, with results that differ: errors of zero contradict each other
    rows = np.repeat(space.sample_rows(3, rng=np.random.default_rng(0)), 2, axis=0)
    data = Data(Kernel(Encoding(space)), rows, np.array([1.0, -1, 1, -2, 1, -1]), error)
    for inference in ("map", "hmc"):
        fit = Model(inference=inference).fit(data, None, rng=np.random.default_rng(1))
        for hyper in fit.hypers:
            assert np.isfinite(pack(data.kernel, hyper)).all()
            # amplitude over noise is 1e9 at most, which leaves 1e-6 of rounding, of results of 1
            warped = data.warped(fit.warp)
            assert hyper.mean == pytest.approx(dense_mean(warped, hyper), rel=1e-6, abs=1e-9)


def test_hmc_sees_the_errors(mixed: Space, make_data) -> None:
    data = with_errors(make_data(mixed, 20))
    for hyper in fit_hmc(data, None, rng=np.random.default_rng(0)).hypers:
        assert hyper.mean == pytest.approx(dense_mean(data, hyper), rel=1e-9)


def test_a_chain_bounces_off_the_walls(make_data, mixed) -> None:
    low, high = bounds_of(2).T
    z, momentum = (low + high) / 2, np.ones(4)
    z[0], z[1] = low[0] - 0.25, high[1] + 0.5
    back, turned = fits.reflected(z, momentum, bounds_of(2))
    np.testing.assert_allclose(back[:2], [low[0] + 0.25, high[1] - 0.5])
    np.testing.assert_array_equal(turned, [-1.0, -1.0, 1.0, 1.0])
    # a chain that stands at a wall goes on
    data = make_data(mixed, 3)
    states = [
        pack(data.kernel, h) for h in fit_hmc(data, None, rng=np.random.default_rng(1)).hypers
    ]
    assert len(np.unique(np.round(states[1:], 9), axis=0)) >= 3


def test_samples_stand_for_a_few_more_of_many_results() -> None:
    """As the fit does: a chain moves again when the data have grown by more than that."""
    space, size = Space.binary(8), fits.LAZY_FROM + 50
    kernel = Kernel(Encoding(space))
    rows = space.enumerate_rows()[np.random.default_rng(0).permutation(256)]
    y = (rows - 0.5) @ np.linspace(-1.0, 1.5, 8) + rows[:, 0] * rows[:, 1]

    def states(count: int, previous: fits.Fit | None) -> tuple[fits.Fit, list]:
        data = Data(kernel, rows[:count], y[:count])
        fit = fit_hmc(data, previous, rng=np.random.default_rng(count))
        return fit, [hyper.covariance for hyper in fit.hypers[1:]]

    first, sampled = states(size, None)
    again, same = states(size + 1, first)
    assert same == sampled
    assert (again.seen, again.step) == (first.seen, first.step)
    later = states(int(size * fits.LAZY_GROWTH) + 1, again)[1]
    kept = fits.HMC_SAMPLES - fits.HMC_LATE
    assert later[:kept] == sampled[-kept:]
    assert not set(later[kept:]) & set(sampled)
    # while results are few, each brings a new fit and new samples
    few, sampled = states(30, None)
    assert states(31, few)[1][-1] not in sampled


def test_a_chain_goes_on_where_it_stood() -> None:
    kernel = Kernel(Encoding(Space.binary(5)))
    rows = Space.binary(5).enumerate_rows()[np.random.default_rng(0).permutation(32)]
    y = (rows @ np.array([1.0, -0.5, 0.7, 0.2, 0.4]) - 0.9) / 0.6
    first = fit_hmc(Data(kernel, rows[:20], y[:20]), None, rng=np.random.default_rng(0))
    second = fit_hmc(Data(kernel, rows[:21], y[:21]), first, rng=np.random.default_rng(1))
    assert second.cold == first.cold
    # two new states; the others are the last of before
    assert len(second.hypers) == len(first.hypers)
    for old, kept in zip(first.hypers[3:], second.hypers[1:5], strict=True):
        np.testing.assert_array_equal(old.beta, kept.beta)
    assert not np.array_equal(second.hypers[-1].beta, first.hypers[-1].beta)


def test_fresh_starts_are_screened_on_fewer_results(mixed, make_data, monkeypatch) -> None:
    """The fit itself sees all of them, and reaches what it reaches without screening on fewer."""
    data = make_data(mixed, 60)
    sizes = []
    climb = fits.climb

    def noted(data, start, iterations):
        sizes.append((len(data), iterations))
        return climb(data, start, iterations)

    monkeypatch.setattr(fits, "climb", noted)
    whole = fit_map(data, None)
    monkeypatch.setattr(fits, "MOST_SCREENED", 24)
    sizes.clear()
    fewer = fit_map(data, None)
    screened = [(24, fits.SCREENING)] * len(fits.COLD_STARTS)
    assert sizes == [*screened, (60, fits.COLD_ITERATIONS)]
    reached = [log_density(data, pack(data.kernel, fit.hypers[0]))[0] for fit in (whole, fewer)]
    assert abs(reached[0] - reached[1]) < 0.5  # nats: the same mode


def test_a_fit_looks_only_at_those_values_of_a_long_path_that_have_results(monkeypatch) -> None:
    """Tables of all pairs of 500 values made the first fit take seconds."""
    space = Space({"long": Integer(0, 499), "base": Categorical(range(3)), "wash": Binary()})
    kernel = Kernel(Encoding(space))
    rng = np.random.default_rng(0)
    rows = space.sample_rows(8, rng=rng)
    data = Data(kernel, rows, rng.standard_normal(8))
    z = rng.normal(-1.0, 0.5, kernel.n + 2)
    whole, compact = log_density(data, z), log_density(data.compact, z)
    assert compact[0] == pytest.approx(whole[0], rel=1e-9)
    np.testing.assert_allclose(compact[1], whole[1], rtol=1e-7, atol=1e-9)
    sizes, log_tables = [], Kernel.log_tables

    def watched(self: Kernel, beta: np.ndarray) -> list[np.ndarray]:
        sizes.append(self.levels)
        return log_tables(self, beta)

    monkeypatch.setattr(Kernel, "log_tables", watched)
    sampled(data, fit_map(data, None), None, rng=rng)
    assert len(sizes) > 100
    # only the mean of the one fit that is chosen is taken on the space itself
    assert sum(size >= 500 for size in sizes) <= 1


def test_a_chain_that_new_results_leave_far_behind_starts_anew() -> None:
    """Results that the samples so far cannot explain: each step from there would be refused, and
    all that follows would go by states a thousand below the fit."""
    space = Space.binary(10)
    kernel = Kernel(Encoding(space))
    rows = space.enumerate_rows()[np.random.default_rng(0).permutation(1024)[:90]]
    pull = np.random.default_rng(1).standard_normal((10, 10))
    y = np.einsum("ni,ij,nj->n", rows, pull, rows)
    y[-2:] += 30.0
    y = (y - y.mean()) / y.std()
    first = fit_hmc(Data(kernel, rows[:-2], y[:-2]), None, rng=np.random.default_rng(0))
    data = Data(kernel, rows, y)
    behind = fits.log_density(data, pack(kernel, first.hypers[-1]))[0]
    second = fit_hmc(data, first, rng=np.random.default_rng(1))
    levels = [fits.log_density(data, pack(kernel, hyper))[0] for hyper in second.hypers]
    assert levels[0] - behind > 12 + fits.ASTRAY  # or nothing is tested
    assert min(levels) > levels[0] - 12 - fits.ASTRAY


def test_a_beta_beyond_all_that_is_fitted_has_the_least_contrast() -> None:
    kernel = Kernel(Encoding(Space({"acid": Categorical(range(20)), "b": Binary()})))
    z = pack(kernel, Hyper(np.array([100.0, 0.5]), 1.0, 0.1, 0.0))  # exp(-100 * 20) is 0
    assert z[0] == pytest.approx(fits.CONTRAST_BOUNDS[0])
    assert unpack(kernel, z).beta[1] == pytest.approx(0.5)


def test_sampled_keeps_the_fit_if_a_chain_cannot_start_there(
    mixed: Space, make_data, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object):
        raise NumericalError("not positive definite")

    data = make_data(mixed, 15)
    best = fit_map(data, None)
    found = sampled(
        data, best, None, chart=replace(PLAIN, density=broken), rng=np.random.default_rng(0)
    )
    assert found is best
    assert "not sampled" in caplog.text
