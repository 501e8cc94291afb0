"""The model of an explanation: its density, its covariance and its states."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from mercbo import Binary, Categorical, Model, Optimizer, Ordinal, Space
from mercbo.explaining.explanatory import POWERS, OpenPosterior, averaged, open_density, unpacked
from mercbo.explaining.ridges import Ridges, effect_tables
from mercbo.inference import fit_map

SPACE = Space({"a": Categorical(["p", "q", "r"]), "b": Ordinal([1, 2, 3, 4]), "c": Binary()})


@pytest.mark.parametrize("power", POWERS)
def test_the_gradient_is_that_of_the_density(make_data, power: float) -> None:
    data = make_data(SPACE, 12)
    data = replace(
        data, kernel=data.kernel.rougher(power), error=np.where(np.arange(12) < 3, 0.2, np.nan)
    )
    z = 0.5 * np.random.default_rng(0).normal(size=data.kernel.n + 4)
    _, gradient, _ = open_density(data, z)
    for i, step in enumerate(1e-5 * np.eye(len(z))):
        rise = open_density(data, z + step)[0] - open_density(data, z - step)[0]
        assert gradient[i] == pytest.approx(rise / 2e-5, abs=1e-6)


def test_effects_and_pairs_have_the_variances_asked_for(small_space: Space) -> None:
    kernel = Optimizer(small_space)._kernel
    rows = small_space.enumerate_rows()
    tables = {}
    for part, table in zip(kernel.parts, effect_tables(kernel), strict=True):
        tables |= dict(zip(part.variables.tolist(), table, strict=True))
    each = [tables[i][rows[:, [i]], rows[:, i]] for i in tables if len(tables[i]) > 1]
    for matrix in each:
        np.testing.assert_allclose(matrix.mean(axis=1), 0.0, atol=1e-12)
        assert np.diag(matrix).mean() == pytest.approx(1.0)
        assert np.linalg.eigvalsh(matrix).min() > -1e-9 * len(rows)
    ridges = Ridges.of(kernel, 0.8, 0.4)
    _, effects, pairs = ridges.covariances(kernel, rows, kernel.onehot(rows))
    if each:
        np.testing.assert_allclose(effects, 0.8 / len(each) * sum(each), atol=1e-12)
        assert np.diag(effects).mean() == pytest.approx(0.8)
    if len(each) > 1:
        two = [a * b for a, b in itertools.combinations(each, 2)]
        np.testing.assert_allclose(pairs, 0.4 / len(two) * sum(two), atol=1e-12)
        assert np.diag(pairs).mean() == pytest.approx(0.4)


@pytest.mark.slow
def test_states_come_from_the_density(make_data) -> None:
    """The mean of log noise over many states against that by brute force: a space of one variable
    leaves five coordinates, which importance sampling from the prior covers."""
    data = make_data(Space({"x": Binary()}), 12)
    start = fit_map(data, None).hypers[0]
    draws = [averaged(Model(), data, start, rng=np.random.default_rng(i)) for i in range(12)]
    found = np.array([[np.log(p.hyper.noise) for p in each] for each in draws])
    rng = np.random.default_rng(0)
    spread = np.array([1.8, 1.5, 1.5, 1.5, 1.5])
    centre = np.array([np.log(2.0), 0.0, np.log(0.5), 0.0, np.log(0.1)])
    tried = centre + spread * rng.normal(size=(1500, 5))
    tried = tried[np.all((tried > np.log(1e-4)) & (tried < np.log(12.0)), axis=1)]
    tried = tried[(tried[:, 4] < 0) & (tried[:, 3] > np.log(1e-2))]
    logs = np.array([open_density(data, z)[0] for z in tried])
    logs += 0.5 * (((tried - centre) / spread) ** 2).sum(axis=1)
    weights = np.exp(logs - logs.max())
    expected = float(weights @ tried[:, 4] / weights.sum())
    error = np.std(weights * (tried[:, 4] - expected)) / weights.mean() / np.sqrt(len(tried))
    slack = 4 * np.hypot(found.mean(axis=1).std() / np.sqrt(len(found)), error)
    assert abs(found.mean() - expected) < slack, (found.mean(), expected, slack)


def test_predictions_follow_from_the_covariance(make_data) -> None:
    data = make_data(SPACE, 9)
    hyper, ridges = unpacked(data.kernel, np.zeros(data.kernel.n + 4))
    posterior = OpenPosterior(Model.paper(), data, hyper, ridges)
    rows = SPACE.enumerate_rows()
    _, variance = posterior.predict(rows)
    prior = posterior._covariance(rows, data.kernel.onehot(rows))
    cross = posterior._covariance(rows, data.hot)
    expected = prior - cross @ posterior._sigma.solve(cross.T)
    np.testing.assert_allclose(variance, np.diag(expected), atol=1e-9)


def test_rougher_kernels_are_kernels() -> None:
    kernel = Optimizer(Space({"x": Ordinal(range(6))}))._kernel
    beta = kernel.beta(np.array([0.3]))
    tables = [np.exp(kernel.rougher(power).log_tables(kernel.rougher(power).beta(
        np.array([0.3])))[0][0]) for power in POWERS]  # fmt: skip
    np.testing.assert_allclose(tables[0], np.exp(kernel.log_tables(beta)[0][0]))
    for table in tables:
        assert table.min() > 0
        assert np.linalg.eigvalsh(table).min() > 0
        assert np.trace(table) == pytest.approx(6.0)
    # without order, all values are equally far apart
    assert np.ptp(tables[2][~np.eye(6, dtype=bool)]) == pytest.approx(0.0, abs=1e-12)
    assert np.ptp(tables[1][~np.eye(6, dtype=bool)]) > 0.01
