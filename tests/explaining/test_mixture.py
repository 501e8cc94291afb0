"""Mixtures of normals: their moments and quantiles, against those of many draws."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from mercbo.explaining.mixture import Mixture

SKEWED = Mixture(np.array([[0.0, 1.0], [5.0, 1.0]]), np.array([[1.0, 4.0], [0.01, 4.0]]))


def test_moments_and_quantiles_are_those_of_draws() -> None:
    rng, count = np.random.default_rng(0), 200_000
    which = rng.integers(2, size=count)
    draws = SKEWED.means[which] + np.sqrt(SKEWED.variances[which]) * rng.normal(size=(count, 2))
    sd = np.sqrt(SKEWED.variance)
    assert np.all(np.abs(draws.mean(axis=0) - SKEWED.mean) < 4 * sd / np.sqrt(count))
    np.testing.assert_allclose(draws.var(axis=0), SKEWED.variance, rtol=4 * np.sqrt(2 / count))
    for share in (0.1, 0.45, 0.9):
        rate = (draws <= SKEWED.quantile(share)).mean(axis=0)
        assert np.all(np.abs(rate - share) < 4 * np.sqrt(share * (1 - share) / count))


def test_states_that_agree_are_one_normal() -> None:
    expected = 1.0 + 2.0 * NormalDist().inv_cdf(0.9)
    assert SKEWED.quantile(0.9)[1] == pytest.approx(expected)
    one = Mixture(SKEWED.means[:1], SKEWED.variances[:1])
    assert one.quantile(0.9).tolist() == [pytest.approx(NormalDist().inv_cdf(0.9)), expected]


def test_what_is_certain_is_its_mean() -> None:
    certain = Mixture(np.array([[2.0]]), np.array([[0.0]]))
    assert (certain.quantile(0.01)[0], certain.quantile(0.99)[0]) == (2.0, 2.0)
    assert (certain.below(1.9)[0], certain.below(2.1)[0]) == (0.0, 1.0)
    both = Mixture.together([certain, certain])
    assert both.means.shape == (1, 2)
