"""Leave-one-out in closed form against really leaving out, and the calibration that it counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercbo import Model, Optimizer, Space
from mercbo.explaining.crossval import Calibration, _explained, moments
from mercbo.inference import Hyper
from mercbo.posterior import Posterior


@pytest.mark.parametrize("error", [None, 0.2])
def test_predictions_are_those_without_the_result(make_data, random_beta, error) -> None:
    data = make_data(Space.binary(5), 12)
    if error is not None:
        data = replace(data, error=np.where(np.arange(12) < 4, error, np.nan))
    hyper = Hyper(random_beta(data.kernel), 1.3, 0.1, 0.2)
    mean, deviation = moments(Posterior(Model(), data, hyper))
    noise = data.noise(hyper.noise)
    for left in range(12):
        others = np.arange(12) != left
        some = None if data.error is None else data.error[others]
        fewer = replace(data, rows=data.rows[others], y=data.y[others], error=some)
        expected, variance = Posterior(Model(), fewer, hyper).predict(data.rows[[left]])
        assert mean[left] == pytest.approx(expected[0], abs=1e-9)
        assert deviation[left] == pytest.approx(np.sqrt(variance[0] + noise[left]), abs=1e-9)


def told(direction: str = "minimize", noise: float = 0.3) -> Optimizer:
    space = Space.binary(6)
    opt = Optimizer(space, direction=direction, seed=0, model=Model(warp="none"))
    rng = np.random.default_rng(1)
    points = space.sample(40, rng=rng)
    opt.tell(points, [100 + 10 * (3 * p["x0"] - p["x1"] + noise * rng.normal()) for p in points])
    return opt


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_results_come_in_the_users_units(direction: str) -> None:
    opt = told(direction)
    check = opt.explain(level=0.9).check
    assert [each.observed for each in check.results] == [o.value for o in opt.observations]
    assert [each.point for each in check.results] == [o.point for o in opt.observations]
    assert all(each.low < each.predicted < each.high for each in check.results)
    inside = sum(each.low <= each.observed <= each.high for each in check.results)
    assert inside == next(c.inside for c in check.calibration if c.stated == 0.9)
    # the noise is 3, the signal's standard deviation 16
    assert check.r2 > 0.8


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("wrong", [-40.0, 40.0])
def test_a_wrong_result_has_the_largest_residual(direction: str, wrong: float) -> None:
    opt = told(direction)
    residuals = [each.residual for each in opt.explain().check.results]
    assert max(map(abs, residuals)) < 4  # 40 results
    assert np.std(residuals) == pytest.approx(1.0, abs=0.3)
    seventh = opt.observations[7]
    opt.tell(seventh.point, seventh.value + wrong)  # the noise has a standard deviation of 3
    *others, last = [each.residual for each in opt.explain().check.results]
    assert np.sign(last) == np.sign(wrong)
    assert abs(last) > 3
    assert abs(last) > max(map(abs, others))


def test_constant_results_are_explained_by_nothing() -> None:
    opt = Optimizer(Space.binary(3), seed=0)
    opt.tell([[0, 0, 0], [1, 1, 1]], [5.0, 5.0])
    assert opt.explain().check.r2 == 0.0


def test_a_rate_says_how_far_it_may_be_off() -> None:
    counted = Calibration(0.5, 30, 100)
    assert counted.rate == 0.3
    assert counted.tolerance == pytest.approx(0.1)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e307])
def test_what_is_explained_does_not_depend_on_the_unit(size: float) -> None:
    rng = np.random.default_rng(0)
    values, predicted = rng.uniform(0.5, 1.0, 40), rng.uniform(0.5, 1.0, 40)
    assert _explained(size * values, size * predicted) == pytest.approx(
        1.0 - ((values - predicted) ** 2).sum() / ((values - values.mean()) ** 2).sum()
    )
