"""Standardised units, there and back, and what a surrogate averages."""

from __future__ import annotations

import numpy as np
import pytest

from mercbo import Model, Space
from mercbo.drawing.surrogate import MOST_ERROR, Surrogate, Units, within_reach
from mercbo.encoding import Encoding
from mercbo.kernel import Kernel
from mercbo.record.history import History


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_units_go_there_and_back(sign: float, scale: float) -> None:
    values = scale * np.array([0.1, -1.5, 0.7, 1.2])
    units = Units.of(values, sign)
    y = units.standardised(values)
    assert y.mean() == pytest.approx(0.0, abs=1e-12)
    assert y.std() == pytest.approx(1.0)
    assert (np.argsort(y) == np.argsort(sign * values)).all()
    np.testing.assert_allclose(units.value(y), values, rtol=1e-12, atol=1e-12 * scale)
    assert units.deviation(np.ones(1))[0] == pytest.approx(scale * (values / scale).std())


@pytest.mark.parametrize("values", [[], [3.0], [2.0, 2.0], [0.0, 0.0]])
def test_values_without_a_spread_have_units(values: list[float]) -> None:
    units = Units.of(np.array(values), 1.0)
    assert units.spread == 1.0
    assert (units.standardised(np.array(values)) == 0).all()


def test_errors_are_scaled_capped_and_left_out_where_none_is_known() -> None:
    units = Units.of(np.array([0.0, 4.0]), 1.0)
    found = units.standardised_errors(np.array([1.0, np.nan, 1e300]))
    assert found is not None
    assert found[0] == pytest.approx(1.0 / 2.0)
    assert np.isnan(found[1])
    assert found[2] == pytest.approx(MOST_ERROR)
    assert units.standardised_errors(np.full(3, np.nan)) is None


def test_a_prediction_averages_the_states_of_the_hyper_parameters() -> None:
    """The variance of a mixture is the mean variance plus the variance of the means."""
    space = Space.binary(5)
    rng = np.random.default_rng(0)
    rows = space.enumerate_rows()[::3]
    history = History.empty(5).told(
        rows, rng.standard_normal(len(rows)), np.full(len(rows), np.nan)
    )
    surrogate = Surrogate(
        Model(inference="hmc"), Kernel(Encoding(space)), history, 1.0, None, keep=False, rng=rng
    )
    every = [posterior.predict(rows) for posterior in surrogate.posteriors]
    assert len(every) > 1
    means, variances = (np.array(part) for part in zip(*every, strict=True))
    mean, std = surrogate.predict(rows)
    np.testing.assert_allclose(mean, means.mean(axis=0))
    np.testing.assert_allclose(std**2, variances.mean(axis=0) + means.var(axis=0))


def test_a_kept_fit_is_the_fit() -> None:
    space = Space.binary(3)
    history = History.empty(3).told(space.enumerate_rows(), np.arange(8.0), np.full(8, np.nan))
    make = (Model(), Kernel(Encoding(space)), history, 1.0)
    rng = np.random.default_rng(0)
    first = Surrogate(*make, None, keep=False, rng=rng)
    assert Surrogate(*make, first.fit, keep=True, rng=rng).fit is first.fit
    assert Surrogate(*make, None, keep=True, rng=rng).fit is not None


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("far", [1e12, 1e20, 1e300, np.finfo(float).max])
def test_a_result_far_off_leaves_the_others_apart(far: float, sign: float) -> None:
    values = sign * np.append(np.linspace(-1.0, 2.0, 30), [far, far])
    near = within_reach(values, sign)
    np.testing.assert_array_equal(near[:-2], values[:-2])
    assert (sign * near[-2:] > 1e6).all()
    y = Units.of(near, sign).standardised(near)
    assert len(np.unique(y[:-2])) == 30
    assert y[-2] == y[-1] == y.max()


ROUNDED = 0.3 + 1e-16 * np.arange(-9, 11)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [3.0],
        [1.0, 1.0, 1.0, 1e300],
        [0.0, 1.0, 1e6],
        [-1e300, 1e300],
        [*np.linspace(0, 1, 30), -1e300],  # the best so far
        [*np.linspace(0, 1, 10), *np.geomspace(1e12, 1e14, 9)],  # too many to be slips
        [*ROUNDED, 1.0, 2.0, 3.0],  # most are the same
    ],
)
def test_results_that_can_be_told_apart_stay_as_they_are(values: list[float]) -> None:
    np.testing.assert_array_equal(within_reach(np.array(values), 1.0), values)
