"""The output warp: its inverse, its slope, what it does to moments, and when it is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from mercbo import Model, Optimizer, SettingError, Space
from mercbo.encoding import Encoding
from mercbo.fitting.warp import IDENTITY, NAMES, QUANTILES, Warp
from mercbo.inference import Data, fit_map
from mercbo.kernel import Kernel
from mercbo.model import is_strained, likeliest

Y = np.random.default_rng(0).gamma(1.0, size=200)
# results beside which a wild one is a million times their spread away
CROWD = 1e-6 * np.random.default_rng(1).standard_normal(49)
WILD = {"above": np.append(CROWD, 7.0), "below": np.append(CROWD, -7.0)}


@pytest.mark.parametrize("name", [None, *NAMES])
def test_there_and_back(name: str | None) -> None:
    warp = Warp.of(name, Y)
    assert warp.name == name
    np.testing.assert_allclose(warp.inverse(warp(Y)), Y, atol=1e-9)
    assert (np.diff(warp(np.sort(Y))) > 0).all()
    # beyond the results, too
    beyond = np.array([-3.0, -2.0, 2.0, 3.0])
    np.testing.assert_allclose(warp(warp.inverse(beyond)), beyond, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_warped_results_are_standardised_and_the_slope_is_the_derivative(name: str) -> None:
    warp = Warp.of(name, Y)
    z = warp(Y)
    assert z.mean() == pytest.approx(0.0, abs=1e-9)
    assert z.std() == pytest.approx(1.0)
    step = 1e-6
    numerical = (warp(Y + step) - warp(Y)) / step
    found = np.exp(warp.log_slope(z))
    differ = ~np.isclose(found, numerical, rtol=1e-3)
    # ranks have a slope on either side of each quantile
    assert differ.sum() <= (len(QUANTILES) + 2 if name.startswith("ranks") else 0)


@pytest.mark.parametrize("name", NAMES)
def test_moments_are_those_of_samples(name: str) -> None:
    warp = Warp.of(name, Y)
    mean, sd = np.array([0.2, -0.5]), np.array([0.5, 0.1])
    draws = warp.inverse(mean + sd * np.random.default_rng(1).standard_normal((100_000, 2)))
    found = warp.moments(mean, sd)
    # the mean of that many draws is off by their spread over sqrt(100,000); the quadrature of a
    # curve with corners by somewhat more
    np.testing.assert_allclose(found[0], draws.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(found[1], draws.std(axis=0), rtol=0.06)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("y", [Y, *WILD.values()], ids=["plain", *WILD])
def test_moments_stay_finite_far_from_the_data(name: str, y: np.ndarray) -> None:
    moments = Warp.of(name, y).moments(np.array([1e3, -1e3]), np.array([1e3, 10.0]))
    assert np.isfinite(moments).all()


@pytest.mark.parametrize("name", [None, *NAMES])
def test_the_middle_is_that_of_samples(name: str | None) -> None:
    warp = Warp.of(name, Y)
    mean, sd = np.array([0.2, -0.5]), np.array([0.5, 0.1])
    draws = warp.inverse(mean + sd * np.random.default_rng(1).standard_normal((100_000, 2)))
    median, half = warp.middle(mean, sd)
    # a share of that many draws has a standard deviation of at most 0.0016
    np.testing.assert_allclose((draws <= median).mean(axis=0), 0.5, atol=4 * 0.0016)
    within = (draws > warp.inverse(mean - sd)) & (draws <= warp.inverse(mean - sd) + 2 * half)
    np.testing.assert_allclose(within.mean(axis=0), 0.6827, atol=4 * 0.0016)


def test_results_that_are_mostly_the_same_are_left_alone() -> None:
    for name in NAMES:
        assert Warp.of(name, np.array([0.0, 0.0, 0.0, 0.0, 5.0])) == IDENTITY
        assert Warp.of(name, np.zeros(0)) == Warp.of(name, np.ones(1)) == IDENTITY


def test_a_log_spreads_the_good_end() -> None:
    z = Warp.of("log:0.03", Y)(np.quantile(Y, [0.0, 0.1, 0.9, 1.0]))
    assert z[1] - z[0] > z[3] - z[2]


def test_a_power_of_one_is_a_straight_line() -> None:
    np.testing.assert_allclose(Warp.of("power:1", Y)(Y), (Y - Y.mean()) / Y.std())


@pytest.mark.parametrize("y", WILD.values(), ids=WILD)
def test_tails_and_ranks_tame_both_ends(y: np.ndarray) -> None:
    assert is_strained(y)
    for name in ("tails:1", "ranks:1"):
        assert not is_strained(Warp.of(name, y)(y))


def test_pure_ranks_are_the_normal_scores_at_the_quantiles() -> None:
    from scipy.special import ndtri

    y = np.random.default_rng(2).permutation(np.arange(99.0)) ** 3
    warp = Warp.of("ranks:1", y)
    v = warp.centre + warp.spread * warp(np.sort(y))
    at = np.array([0, 24, 49, 74, 98])
    # a quantile lies between two results
    np.testing.assert_allclose(v[at], ndtri((at + 0.5) / 99), atol=0.02)


@pytest.mark.parametrize("name", ["", "log", "log:", "log:x", "log:inf", "wave:1", "log:0.3:1"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="is not the name of a warp, such as 'log:3'"):
        Warp.of(name, Y)


def test_no_warp_costs_nothing_and_ranks_cost_the_most() -> None:
    assert IDENTITY.cost(100) == 0.0
    costs = {name: Warp.of(name, Y).cost(100) for name in NAMES}
    assert min(costs.values()) > 0
    assert costs["ranks:1"] > costs["log:1"] == costs["tails:1"]


def test_known_errors_go_through_the_slope() -> None:
    kernel = Kernel(Encoding(Space.binary(3)))
    rows = Space.binary(3).enumerate_rows()
    data = Data(kernel, rows, Y[:8], np.full(8, 0.01)).warped("log:0.3")
    nudged = data.warp(Y[:8] + 0.01) - data.y
    assert data.error == pytest.approx(nudged, rel=0.05)


# -- by evidence -------------------------------------------------------------------------------


def data_of(y: np.ndarray) -> Data:
    """Results at as many points of six bits, the first of a fixed order."""
    rows = Space.binary(6).enumerate_rows()[np.random.default_rng(0).permutation(64)[: len(y)]]
    return Data(Kernel(Encoding(Space.binary(6))), rows, y)


def smooth(size: int) -> np.ndarray:
    """What a linear function gives there."""
    rows = data_of(np.zeros(size)).rows
    y = (1.0 - 2.0 * rows) @ np.array([1.0, 0.8, 0.7, 0.5, 0.4, 0.3])
    return np.asarray((y - y.mean()) / y.std())


@pytest.mark.parametrize(
    ("change", "families"),
    [
        (lambda v: v, {None}),
        (lambda v: np.exp(2 * v), {"log"}),
        (lambda v: -np.exp(2 * v), {"power", "ranks", "tails"}),
        (lambda v: np.sinh(2.5 * v), {"tails", "ranks"}),
    ],
    ids=["straight", "exponential", "exponential downwards", "both tails"],
)
def test_evidence_finds_what_bent_the_results(change, families: set) -> None:  # type: ignore[no-untyped-def]
    bent = change(smooth(48))
    data = data_of((bent - bent.mean()) / bent.std())
    chosen = likeliest(data, fit_map(data, None).hypers[0], NAMES)
    assert (chosen and chosen.partition(":")[0]) in families


def test_noise_alone_is_not_warped() -> None:
    y = np.random.default_rng(4).standard_normal(60)
    data = data_of((y - y.mean()) / y.std())
    assert likeliest(data, fit_map(data, None).hypers[0], NAMES) is None


def test_a_wild_result_calls_for_another_warp_at_once() -> None:
    data = data_of(smooth(40))
    rng = np.random.default_rng(0)
    first = Model().fit(data, None, rng=rng)
    assert first.warp is None
    for wild in (1e6, -1e6):
        y = np.append(smooth(40), wild)
        told = data_of((y - y.mean()) / y.std())
        assert not first.is_due(len(told))
        assert Model().fit(told, first, rng=rng).warp is not None
        assert Model(warp="none").fit(told, first, rng=rng).warp is None


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
