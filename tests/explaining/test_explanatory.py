"""The model of an explanation: its density, its covariance and its states."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from mercbo import Binary, Categorical, Model, Optimizer, Ordinal, Space
from mercbo.domain.variables import Point
from mercbo.explaining.explanatory import (
    POWERS,
    OpenPosterior,
    Seen,
    averaged,
    open_bounds,
    open_posterior,
    open_prior,
    opened,
    unpacked,
)
from mercbo.explaining.further import Further
from mercbo.explaining.ridges import Ridges, effect_tables
from mercbo.fitting.kinds import POOLING
from mercbo.inference import Data, Hyper, fit_map
from mercbo.kernels.motifs import Motifs
from mercbo.kernels.pooling import Pooling
from mercbo.kernels.windows import Windows
from mercbo.posterior import Posterior

SPACE = Space({"a": Categorical(["p", "q", "r"]), "b": Ordinal([1, 2, 3, 4]), "c": Binary()})
ALIKE = Space({**{n: Ordinal([1, 2, 5]) for n in "abc"}, **{n: Binary() for n in "xyzw"}})
TERMS = {
    "no more": {},
    "windows": {"windows": Windows(0.9, 1.5, 0.4)},
    "pooling": {"pooling": Pooling(0.7, 0.5)},
    "windows and pooling": {"windows": Windows(0.9, 1.5, 0.4), "pooling": Pooling(0.7, 0.5)},
}
PLAIN = Further((), None)


def placed(make_data, random_beta, power: float, terms: str) -> tuple[Data, Further, np.ndarray]:
    """Results, some of known error, the further terms of a state, and some z."""
    data = make_data(ALIKE, 12)
    state = Hyper(random_beta(data.kernel), 1.1, 0.03, 0.0, **TERMS[terms])
    further = Further.of(data.kernel, state)
    z = opened(data.kernel, state, further)
    z = z + 0.5 * np.random.default_rng(0).normal(size=len(z))
    error = np.where(np.arange(12) < 3, 0.2, np.nan)
    return replace(data, kernel=data.kernel.rougher(power), error=error), further, z


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("power", POWERS)
def test_the_gradient_is_that_of_the_density(
    make_data, random_beta, power: float, terms: str
) -> None:
    data, further, z = placed(make_data, random_beta, power, terms)
    seen = Seen.of(further, data)
    _, gradient, _ = seen.density(data, z)
    assert len(gradient) == len(z) == data.kernel.n + 4 + len(further.centres)
    for i, step in enumerate(1e-5 * np.eye(len(z))):
        rise = seen.density(data, z + step)[0] - seen.density(data, z - step)[0]
        assert gradient[i] == pytest.approx(rise / 2e-5, abs=1e-6)


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("power", POWERS)
def test_the_density_is_that_of_the_posteriors_covariance(
    make_data, random_beta, power: float, terms: str
) -> None:
    data, further, z = placed(make_data, random_beta, power, terms)
    posterior = open_posterior(Model(), data, z, further, further.stack(data))
    sigma = posterior._covariance(data.rows, data.hot)
    sigma += np.diag(data.noise(posterior.hyper.noise))
    expected = -0.5 * (data.y @ np.linalg.solve(sigma, data.y) + np.linalg.slogdet(sigma)[1])
    found = Seen.of(further, data).density(data, z)[0] - open_prior(z, further.centres)[0]
    assert found == pytest.approx(expected, abs=1e-8)
    assert (posterior.windows is None, not posterior.pools) == tuple(
        name not in TERMS[terms] for name in ("windows", "pooling")
    )


def test_what_a_fit_leaves_to_motifs_is_pooled_in_an_explanation(make_data, random_beta) -> None:
    data = make_data(Space({f"s{i}": Categorical(range(3)) for i in range(6)}), 12)
    state = Hyper(random_beta(data.kernel), 1.1, 0.03, 0.0, motifs=Motifs(0.5, 0.7))
    further = Further.of(data.kernel, state)
    assert further.kinds == (POOLING,)
    assert opened(data.kernel, state, further)[-2:].tolist() == POOLING.start.tolist()
    assert Further.of(data.kernel, state.plain).kinds == ()
    assert Further.of(data.kernel, state, Model(pooling="none").learned).kinds == ()


def test_windows_begin_as_those_of_the_fit(make_data, random_beta) -> None:
    """With the amplitude of the fit, the covariance of windows is the optimizer's."""
    data = make_data(ALIKE, 12)
    state = Hyper(random_beta(data.kernel), 1.1, 0.03, 0.0, **TERMS["windows and pooling"])
    further = Further.of(data.kernel, state)
    z = opened(data.kernel, state, further)
    low, high = open_bounds(data.kernel, further).T
    assert np.all((low < z) & (z < high))
    weighted = np.exp(z[-3:, np.newaxis, np.newaxis]) * further.matrices(data)
    own = Posterior(Model(), data, state)
    windows = sum(each.gram(data.rows, data.hot) for each in own.summands[1:])
    np.testing.assert_allclose(weighted[0], windows, rtol=1e-9)
    np.testing.assert_allclose(
        weighted[1] + weighted[2], own.pools[0].gram(data.rows, data.hot), atol=1e-12
    )


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
    seen = Seen.of(PLAIN, data)
    logs = np.array([seen.density(data, z)[0] for z in tried])
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


# -- functions of counts, and of neighbours ----------------------------------------------------

COUNTS = Space({f"x{i}": Categorical(["none", "old", "new"]) for i in range(14)})
WORTH = {"none": 0.0, "old": 0.6, "new": -0.5}


def by_counts(point: Point) -> float:
    taken = list(point.values())
    return sum(WORTH[value] for value in taken) + 0.15 * (taken.count("new") - 5) ** 2


def true_effects() -> dict[object, float]:
    """Of every variable alike: with b the number of "new" among the 13 others, whose mean is 13/3,
    a "new" more adds 0.15 ((b - 4)^2 - (b - 5)^2) = 0.15 (2 b - 9)."""
    raw = {**WORTH, "new": WORTH["new"] + 0.15 * (26 / 3 - 9)}
    return {value: each - sum(raw.values()) / 3 for value, each in raw.items()}


def told_by_counts(seed: int, **settings: str) -> Optimizer:
    rng = np.random.default_rng(seed)
    opt = Optimizer(COUNTS, seed=seed, model=Model(warp="none", **settings))
    points = COUNTS.sample(45, rng=rng)
    opt.tell(points, [by_counts(p) + 0.3 * rng.normal() for p in points])
    return opt


def skill(opt: Optimizer, space: Space, objective) -> float:
    """The share of variance at new points that an explanation's predictions leave open."""
    opt.explain()
    points = space.sample(200, rng=np.random.default_rng(99))
    truth = np.array([objective(p) for p in points])
    now = opt._model_of_now()
    means = [each.predict(space.rows(points))[0] for each in now._averaged]
    predicted = now.units.value(np.mean(means, axis=0))
    return float(np.mean((predicted - truth) ** 2) / np.var(truth))


@pytest.mark.slow
def test_pooled_effects_are_nearer_to_the_truth() -> None:
    truth = true_effects()
    errors = {"learn": [], "none": []}
    inside = []
    for seed, pooling in itertools.product(range(3), errors):
        opt = told_by_counts(seed, pooling=pooling)
        found = opt.explain(level=0.8)
        posterior = opt._model_of_now()._averaged[0]
        assert (posterior.hyper.pooling is None) == (pooling == "none")
        errors[pooling] += [(each.estimate - truth[each.value]) ** 2 for each in found.effects]
        if pooling == "learn":
            inside += [each.low <= truth[each.value] <= each.high for each in found.effects]
    assert np.mean(errors["learn"]) < 0.2 * np.mean(errors["none"])
    # effects of like variables are not independent: as many as there are values and functions are
    assert np.mean(inside) > 0.8 - 3 * np.sqrt(0.8 * 0.2 / 9)


@pytest.mark.slow
def test_points_are_predicted_better_with_the_terms_of_the_fit() -> None:
    with_it, without = (told_by_counts(0, pooling=each) for each in ("learn", "none"))
    assert skill(with_it, COUNTS, by_counts) < 0.2 * skill(without, COUNTS, by_counts)


@pytest.mark.slow
def test_windows_explain_what_neighbours_do() -> None:
    space, found = Space.binary(12), {}
    tables = np.random.default_rng(5).standard_normal((10, 2, 2, 2))

    def chain(point: Point) -> float:
        bits = [int(each) for each in point.values()]
        return float(sum(tables[i][tuple(bits[i : i + 3])] for i in range(10)))

    points = space.sample(110, rng=np.random.default_rng(3))
    for windows in ("learn", "none"):
        opt = Optimizer(space, seed=0, model=Model(warp="none", windows=windows, pooling="none"))
        opt.tell(points, [chain(p) for p in points])
        found[windows] = skill(opt, space, chain)
        assert all(
            (p.windows is None) == (windows == "none") for p in opt._model_of_now()._averaged
        )
    assert found["learn"] < 0.7 * found["none"]


def test_the_same_seed_gives_the_same_explanation() -> None:
    one, two = (told_by_counts(0) for _ in range(2))
    first = one.explain()
    assert one._model_of_now().fit.hypers[0].pooling is not None
    assert first.effects == two.explain().effects
    assert first.importance == two.explain().importance
    assert first.pairs == one.explain().pairs
