"""The output warp: its inverse, its slope, what it does to moments, and when it is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from mercbo import Model, Optimizer, Space
from mercbo.encoding import Encoding
from mercbo.inference import Data
from mercbo.kernel import Kernel
from mercbo.warp import SHAPES, Warp

Y = np.random.default_rng(0).gamma(1.0, size=200)


@pytest.mark.parametrize("shape", [None, *SHAPES])
def test_there_and_back(shape: float | None) -> None:
    warp = Warp.of(shape, Y)
    np.testing.assert_allclose(warp.inverse(warp(Y)), Y, atol=1e-9)
    assert (np.diff(warp(np.sort(Y))) >= 0).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_warped_results_are_standardised_and_the_slope_is_the_derivative(shape: float) -> None:
    warp = Warp.of(shape, Y)
    z = warp(Y)
    assert z.mean() == pytest.approx(0.0, abs=1e-9)
    assert z.std() == pytest.approx(1.0)
    step = 1e-6
    numerical = (warp(Y + step) - warp(Y)) / step
    np.testing.assert_allclose(np.exp(warp.log_slope(z)), numerical, rtol=1e-3)


def test_moments_are_those_of_samples() -> None:
    warp = Warp.of(0.3, Y)
    mean, sd = np.array([0.2, -1.0]), np.array([0.5, 0.1])
    draws = warp.inverse(mean + sd * np.random.default_rng(1).standard_normal((400_000, 2)))
    found = warp.moments(mean, sd)
    np.testing.assert_allclose(found[0], draws.mean(axis=0), rtol=5e-3)
    np.testing.assert_allclose(found[1], draws.std(axis=0), rtol=2e-2)


def test_moments_stay_finite_far_from_the_data() -> None:
    moments = Warp.of(0.1, Y).moments(np.array([1e3, -1e3]), np.array([1e3, 10.0]))
    assert np.isfinite(moments).all()


def test_results_that_are_mostly_the_best_are_left_alone() -> None:
    assert Warp.of(0.1, np.array([0.0, 0.0, 0.0, 5.0])) == Warp()
    assert Warp.of(0.1, np.zeros(0)) == Warp()


def test_known_errors_go_through_the_slope() -> None:
    kernel = Kernel(Encoding(Space.binary(3)))
    rows = Space.binary(3).enumerate_rows()
    data = Data(kernel, rows, Y[:8], np.full(8, 0.01)).warped(0.3)
    nudged = data.warp(Y[:8] + 0.01) - data.y
    assert data.error == pytest.approx(nudged, rel=0.05)


# -- in a model --------------------------------------------------------------------------------


def told(change, model: Model | None = None) -> Optimizer:  # type: ignore[no-untyped-def]
    """An optimizer with 80 results of `change` of a quadratic function that a process fits."""
    opt = Optimizer(Space.binary(10), model=model, seed=0)
    rng = np.random.default_rng(3)
    rows = opt.space.sample_rows(80, rng=rng)
    spins = 1 - 2 * rows
    couplings = rng.standard_normal((10, 10))
    values = spins @ rng.standard_normal(10) + ((spins @ couplings) * spins).sum(axis=1) / 3
    opt.tell(opt.space.points(rows), change(values / values.std()))
    return opt


def test_skewed_results_are_warped_and_straight_ones_are_not() -> None:
    assert told(lambda v: np.exp(2.0 * v))._model_of_now().fit.warp is not None
    assert told(lambda v: v)._model_of_now().fit.warp is None
    assert told(lambda v: np.exp(2 * v), Model(warp="none"))._model_of_now().fit.warp is None


def test_a_warp_predicts_skewed_results_better() -> None:
    def errors(model: Model) -> float:
        opt = told(lambda v: np.exp(2.0 * v), model)
        rows, values = opt._history.rows, opt._history.values
        half = Optimizer(opt.space, model=model, seed=0)
        half.tell(opt.space.points(rows[:60]), values[:60])
        mean = half.predict(opt.space.points(rows[60:])).mean
        return float(np.median(np.abs(np.log(np.maximum(mean, 1e-9)) - np.log(values[60:]))))

    assert errors(Model()) < 0.5 * errors(Model(warp="none"))


def test_predictions_are_in_the_units_of_the_results() -> None:
    opt = told(lambda v: 1e4 * np.exp(2.0 * v))
    found = opt.predict([o.point for o in opt.observations])
    values = np.array([o.value for o in opt.observations])
    assert np.corrcoef(found.mean, values)[0, 1] > 0.99
    assert (found.std >= 0).all()


def test_maximising_warps_the_other_tail() -> None:
    opt = Optimizer(Space.binary(10), direction="maximize", seed=0)
    low = told(lambda v: np.exp(2.0 * v))
    points, values = zip(*[(o.point, -o.value) for o in low.observations], strict=True)
    opt.tell(list(points), list(values))
    assert opt.ask() == low.ask()


def test_the_shape_is_saved(tmp_path) -> None:  # type: ignore[no-untyped-def]
    opt = told(lambda v: np.exp(2.0 * v))
    opt.ask()
    opt.save(tmp_path / "run.json")
    again = Optimizer.load(tmp_path / "run.json")
    assert again._state.committed.warp == opt._state.committed.warp is not None
    assert again.ask() == opt.ask()
