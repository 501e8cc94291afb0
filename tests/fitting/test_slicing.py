"""Slice sampling leaves densities invariant, and COMBO's priors are those written down."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest, multivariate_normal

from mercbo import NumericalError, Ordinal, Space
from mercbo.encoding import Encoding
from mercbo.fitting.slicing import (
    BURN_IN,
    Chain,
    amplitude_prior,
    fit_slice,
    log_horseshoe_beta,
    log_horseshoe_noise,
    slice_update,
)
from mercbo.inference import Data, Fit, Hyper
from mercbo.kernel import Kernel


@pytest.mark.slow
@pytest.mark.parametrize("width", [0.3, 1.0, 5.0])
def test_updates_leave_a_two_humped_density_invariant(width: float) -> None:
    rng = np.random.default_rng(0)

    def density(x: float) -> float:
        return float(np.logaddexp(-0.5 * (x + 2) ** 2, np.log(0.5) - 0.5 * ((x - 2) / 0.5) ** 2))

    def exact(size: int) -> np.ndarray:
        # masses: 1 * 1 and 0.5 * 0.5, so 0.8 and 0.2
        left = rng.random(size) < 0.8
        return np.where(left, rng.normal(-2, 1, size), rng.normal(2, 0.5, size))

    start = exact(4000)
    moved = np.array([slice_update(density, float(x), width=width, rng=rng) for x in start])
    assert (moved != start).mean() > 0.95
    reference = exact(200_000)
    # 0.1 % level; a wrong sampler shifts mass between the humps
    assert kstest(moved, reference).pvalue > 1e-3


def test_priors_are_combos() -> None:
    assert log_horseshoe_beta(0.0) == pytest.approx(np.log(np.log(1 + 2 * 25)))
    assert log_horseshoe_noise(0.0) == pytest.approx(np.log(np.log(1.01)))
    # two binary variables at beta = 1: mean(exp(-lam)) = (1 + e^-2) / 2 each
    centre, sd = amplitude_prior(Kernel(Encoding(Space.binary(2))), 1.0)
    mean = (1 + np.exp(-2)) / 2
    low, high = 2 * np.log(mean), 2 * (np.log(mean) + 2)
    assert centre == pytest.approx((low + high) / 2)
    assert sd == pytest.approx((high - low) / 4)


def chain_data(size: int = 25) -> Data:
    space = Space.binary(4)
    rng = np.random.default_rng(1)
    rows = space.sample_rows(size, rng=rng)
    y = (rows[:, 0] - rows[:, 1] + 0.1 * rng.standard_normal(size)).astype(float)
    return Data(Kernel(Encoding(space)), rows, (y - y.mean()) / y.std())


def test_product_of_factors_stays_in_step_with_the_betas() -> None:
    data = chain_data()
    chain = Chain(data, None)
    rng = np.random.default_rng(2)
    for _ in range(3):
        chain.sweep(rng=rng)
    fresh = chain.tables.log_product(chain.tables.log_tables(np.exp(chain.log_beta)))
    np.testing.assert_allclose(chain.log_product, fresh, atol=1e-9)


def test_irrelevant_variables_get_larger_betas() -> None:
    """A large beta smooths a variable away; averaged over the chain it must show."""
    data = chain_data(60)
    chain, rng = Chain(data, None), np.random.default_rng(3)
    kept = []
    for _ in range(60):
        chain.sweep(rng=rng)
        kept.append(np.exp(-2 * np.exp(chain.log_beta)))  # w of each variable
    w = np.mean(kept[10:], axis=0)
    assert w[:2].min() > w[2:].max()


def test_burn_in_then_ten_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    count = []
    monkeypatch.setattr(Chain, "sweep", lambda _, *, rng: count.append(rng))
    data, rng = chain_data(), np.random.default_rng(4)
    first = fit_slice(data, None, sweeps=10, rng=rng)
    assert len(count) == BURN_IN == 100
    fit_slice(data, first, sweeps=7, rng=rng)
    assert len(count) == BURN_IN + 7 == 107


def test_the_state_is_carried_over() -> None:
    data, rng = chain_data(), np.random.default_rng(5)
    first = fit_slice(data, None, sweeps=10, rng=rng)
    chain = Chain(data, first.hypers[0])
    np.testing.assert_allclose(chain.hyper().beta, first.hypers[0].beta)


def test_likelihood_counts_known_errors() -> None:
    """At several states of a chain, against the density with every variance written out."""
    error = np.random.default_rng(6).uniform(0.1, 1.5, 25)
    error[::3] = np.nan
    data = replace(chain_data(), error=error)
    chain, rng = Chain(data, None), np.random.default_rng(7)
    for _ in range(3):
        chain.sweep(rng=rng)
        hyper = chain.hyper()
        noise = np.where(np.isnan(error), hyper.noise, error**2)
        product = np.exp(chain.tables.log_product(chain.tables.log_tables(hyper.beta)))
        cov = hyper.amplitude * (product + 1e-6 * np.eye(25)) + np.diag(noise)
        expected = multivariate_normal(np.full(25, hyper.mean), cov).logpdf(data.y)
        factor = chain._factor(np.exp(chain.log_product), chain.log_amplitude, chain.log_noise)
        constant = -0.5 * 25 * np.log(2 * np.pi)
        assert chain._likelihood(factor) == pytest.approx(expected - constant, rel=1e-9)


def test_where_all_errors_are_known_the_likelihood_does_not_see_the_noise() -> None:
    chain = Chain(replace(chain_data(), error=np.full(25, 0.3)), None)
    little, much = (chain._factor(np.exp(chain.log_product), 0.0, noise) for noise in (-10.0, 2.0))
    assert (little.lower == much.lower).all()


def test_errors_of_zero_are_held_at_the_floor() -> None:
    data = replace(chain_data(), error=np.zeros(25))  # 25 results on 16 points: they contradict
    fit = fit_slice(data, None, sweeps=10, rng=np.random.default_rng(8))
    hyper = fit.hypers[0]
    assert np.isfinite([*hyper.beta, hyper.amplitude, hyper.noise, hyper.mean]).all()
    chain = Chain(data, hyper)
    lower = chain._factor(np.exp(chain.log_product), chain.log_amplitude, chain.log_noise).lower
    least = hyper.amplitude * (1 + 1e-6) + 1e-6
    # the squared norms of the rows are the diagonal, without jitter
    np.testing.assert_allclose((lower**2).sum(axis=1), least, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_chain_over_ordinal_variables_keeps_the_covariance_positive_definite(seed: int) -> None:
    """With a small beta, T of two distant values is zero but for rounding. What is left of the
    product without one factor must be the other factor all the same."""
    rng = np.random.default_rng(seed)
    space = Space({"a": Ordinal(range(23)), "b": Ordinal(range(23))})
    data = Data(Kernel(Encoding(space)), space.sample_rows(28, rng=rng), rng.standard_normal(28))
    start = Hyper(np.exp([-3.0, -3.0]), amplitude=1.0, noise=1e-3, mean=0.0)
    chain, lowest = Chain(data, start), []
    factor = chain._factor

    def watched(product, log_amplitude, log_noise):  # type: ignore[no-untyped-def]
        lowest.append(np.linalg.eigvalsh(product)[0] / product.max())
        return factor(product, log_amplitude, log_noise)

    chain._factor = watched  # type: ignore[method-assign]
    chain.sweep(rng=rng)
    assert min(lowest) > -1e-12


def test_slice_sampler_takes_a_matrix_that_cannot_be_factored_for_zero_density() -> None:
    def density(value: float) -> float:
        if value > 0.5:
            raise NumericalError("not positive definite")
        return -0.5 * value**2

    rng, value, met = np.random.default_rng(0), 0.0, []
    for _ in range(200):
        value = slice_update(density, value, width=1.0, rng=rng)
        met.append(value)
    assert max(met) <= 0.5
    assert min(met) < -0.5


def test_chain_starts_anew_if_its_last_state_cannot_be_evaluated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    factor, data = Chain._factor, chain_data()

    def failing(self, product, log_amplitude, log_noise):  # type: ignore[no-untyped-def]
        if log_noise < -8.0:
            raise NumericalError("not positive definite")
        return factor(self, product, log_amplitude, log_noise)

    monkeypatch.setattr(Chain, "_factor", failing)
    stuck = Hyper(np.ones(4), amplitude=1.0, noise=1e-5, mean=0.0)
    previous = Fit((stuck,), seen=20, cold=7)
    found = fit_slice(data, previous, sweeps=1, rng=np.random.default_rng(0))
    fresh = fit_slice(data, None, sweeps=1, rng=np.random.default_rng(0))
    assert found.to_dict() == fresh.to_dict()
    assert found.cold == len(data)
