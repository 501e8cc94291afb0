"""Draws with some interactions of order 3 and 4: chosen by the posterior, exact, and quadratic in
bits and products of bits."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from support.moments import Given, exact_moments

from mercbo import (
    Binary,
    Categorical,
    Exactly,
    Flip,
    Model,
    Optimizer,
    Ordinal,
    SettingError,
    Space,
)
from mercbo.drawing.higher import Terms, select
from mercbo.drawing.samples import neighbours_of
from mercbo.features import mercer_terms, single
from mercbo.inference import Data, Hyper
from mercbo.posterior import Posterior

SPACES = {
    "binary": Space.binary(5),
    "mixed": Space(
        {"a": Categorical(range(3)), "b": Ordinal(range(3)), "c": Binary(), "d": Binary()}
    ),
    "coded": Space(
        {
            "a": Categorical(range(3), encoding="binary"),
            "b": Categorical(["x", "y", "z"]),
            "c": Binary(),
        }
    ),
    "bound": Space(
        {f"x{i}": Binary() for i in range(5)}, [Exactly(2, [f"x{i}" for i in range(4)])]
    ),
}


@pytest.fixture(params=SPACES.values(), ids=list(SPACES))
def space(request: pytest.FixtureRequest) -> Space:
    return request.param


def state(data: Data) -> Hyper:
    beta = np.random.default_rng(1).uniform(0.1, 0.5, data.kernel.n)
    return Hyper(beta, amplitude=1.7, noise=0.05, mean=0.3)


def kept(posterior: Posterior) -> Terms:
    return posterior._kept


@pytest.mark.parametrize("order", [3, 4])
def test_the_sets_that_explain_most_are_kept(space: Space, order: int, make_data) -> None:
    """Against all terms one by one."""
    data = make_data(space, 9)
    hyper = state(data)
    kernel, w = data.kernel, data.kernel.weights(hyper.beta)
    alpha = np.random.default_rng(0).normal(size=9)
    singles = single(kernel, w, data.rows)
    explained: dict[tuple[int, ...], float] = {}
    for terms in mercer_terms(kernel.factor_of, order)[3:]:
        for term in terms:
            c = np.sqrt(w[term]).prod() * (alpha @ singles[:, term].prod(axis=1))
            factors = tuple(kernel.factor_of[term].tolist())
            explained[factors] = explained.get(factors, 0.0) + c**2
    wanted = sorted(explained, key=lambda f: -explained[f])
    for count in (1, 3, 100):
        found = select(kernel, w, singles, alpha, order=order, count=count)
        assert list(found.sets) == wanted[:count]


@pytest.mark.parametrize("order", [3, 4])
def test_law_3_the_kept_terms_have_their_exact_posterior(
    space: Space, order: int, make_data
) -> None:
    data = make_data(space, 7)
    hyper, rows = state(data), space.enumerate_rows()
    posterior = Posterior(Model(order=order, terms=2, refine=False), data, hyper)
    kernel, w = data.kernel, data.kernel.weights(hyper.beta)
    chosen = set(kept(posterior).sets)
    assert len(chosen) == min(2, len(list(combinations(range(kernel.n), 3))))

    def phi(at: np.ndarray) -> np.ndarray:
        singles = single(kernel, w, at)
        parts = mercer_terms(kernel.factor_of, order)
        terms = [t for part in parts[:3] for t in part]
        terms += [
            t for part in parts[3:] for t in part if tuple(kernel.factor_of[t].tolist()) in chosen
        ]
        columns = [singles[:, t].prod(axis=1) for t in terms]
        scale = hyper.amplitude * np.exp(kernel.log_scale(w))
        return np.sqrt(scale) * np.column_stack(columns)

    full = kernel.gram(kernel.log_tables(hyper.beta), data.rows, data.hot)
    sigma = hyper.amplitude * full + hyper.noise * np.eye(len(data))
    at_rows, at_data = phi(rows), phi(data.rows)
    gain = at_rows @ at_data.T @ np.linalg.inv(sigma)
    mean, cov = exact_moments(lambda rng: posterior.draw(rng=rng).value(rows))
    np.testing.assert_allclose(mean, hyper.mean + gain @ (data.y - hyper.mean), atol=1e-8)
    wanted = at_rows @ at_rows.T - gain @ at_data @ at_rows.T
    np.testing.assert_allclose(cov, wanted, atol=1e-8)


def test_paths_are_unchanged_in_the_mean_and_known_around_points(space: Space, make_data) -> None:
    data = make_data(space, 7)
    posterior = Posterior(Model(order=4, terms=3), data, state(data))
    rows = space.sample_rows(6, rng=np.random.default_rng(0))
    mean = posterior.draw(rng=Given()).path(rows)  # type: ignore[arg-type]
    np.testing.assert_allclose(mean, posterior.predict(rows)[0], atol=1e-9)
    for model in (posterior.model, Model(order=4, terms=3, refine=False)):
        sample = Posterior(model, data, state(data)).draw(rng=np.random.default_rng(1))
        around = sample.path_neighbours(rows)
        wanted = sample.path(neighbours_of(data.kernel, rows)).reshape(around.shape)
        np.testing.assert_allclose(around, wanted, atol=1e-9)


def told(space: Space, model: Model, size: int = 12, **options: object) -> Optimizer:
    opt = Optimizer(space, model=model, n_initial=1, seed=0, **options)  # type: ignore[arg-type]
    points = space.sample(size, rng=np.random.default_rng(0))
    opt.tell(points, np.random.default_rng(1).standard_normal(size))
    return opt


@pytest.mark.parametrize("order", [3, 4])
def test_law_2_and_no_wrong_bits_are_lower(space: Space, order: int) -> None:
    draw = told(space, Model(order=order, terms=2)).draw()
    values = []
    for point in space.points(feasible_rows(space)):
        sample = draw.encode(point)
        assert set(sample) == set(draw.bqm.variables)
        values.append(draw.value(point))
        assert draw.bqm.energy(sample) == pytest.approx(values[-1], rel=1e-9, abs=1e-9)
        assert draw.decode(sample) == point
    assert draw.reduced.products
    lowest = min(values)
    bits = (np.arange(2**10)[:, np.newaxis] >> np.arange(10)) & 1
    rng, names = np.random.default_rng(0), list(draw.bqm.variables)
    guesses = rng.integers(0, 2, (4000, len(names)))
    if len(names) <= 10:
        guesses = bits[: 2 ** len(names), : len(names)]
    assert draw.bqm.energies((guesses, names)).min() >= lowest - 1e-9


def feasible_rows(space: Space) -> np.ndarray:
    rows = space.enumerate_rows()
    return rows[space.region.allows(rows)]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["graph-cut", "cp-sat", "annealing", "exhaustive"])
def test_backends_take_such_draws(space: Space, backend: str) -> None:
    opt = told(space, Model(order=4, terms=2), size=6, backend=backend)
    found = opt.ask(2)
    assert len(found) == 2
    assert found[0] != found[1]


def test_cp_sat_proves_the_minimum_of_the_kept_terms() -> None:
    from mercbo_backends import CpSat

    space = SPACES["mixed"]
    draw = told(space, Model(order=3, terms=2)).draw()
    lowest = min(draw.value(p) for p in space.points(space.enumerate_rows()))
    found = CpSat().sample_cqm(draw.constrained)
    assert found.first.energy == pytest.approx(lowest, abs=1e-6)
    assert draw.value(draw.decode(found.first.sample)) == pytest.approx(lowest, abs=1e-6)


def test_an_interaction_of_three_is_in_the_problem() -> None:
    """y is a product of three spins: order 2 cannot hold it, one kept set does."""
    space = Space.binary(4)
    rows = space.enumerate_rows()
    y = np.prod(1.0 - 2.0 * rows[:, [0, 1, 3]], axis=1)
    opt = Optimizer(space, model=Model(order=3, terms=1), n_initial=1, seed=0)
    opt.tell(space.points(rows), y)
    draw = opt.draw()
    assert kept(opt._model_of_now().posteriors[0]).sets == ((0, 1, 3),)
    assert np.corrcoef([draw.value(p) for p in space.points(rows)], y)[0, 1] > 0.99


def test_they_are_saved_and_loaded(tmp_path) -> None:
    opt = told(Space.binary(5), Model(order=4, terms=4))
    opt.save(tmp_path / "run.json")
    again = Optimizer.load(tmp_path / "run.json")
    assert again.model == opt.model
    assert again.ask(2) == opt.ask(2)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"terms": 0, "order": 3}, "terms=0 is not a whole number"),
        ({"terms": True, "order": 3}, "terms=True is not a whole number"),
        ({"terms": 5}, "order=2"),
        ({"terms": 5, "order": 5}, "order=5"),
        ({"terms": 5, "order": 3, "posterior": "truncated"}, "posterior='projected'"),
        ({"terms": 5, "order": 3, "weights": "hierarchical"}, "weights='identity'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict, complaint: str) -> None:
    with pytest.raises(SettingError, match=complaint):
        Model(**settings)


def test_symmetries_and_too_many_pairs_are_refused() -> None:
    with pytest.raises(SettingError, match="not averaged"):
        Optimizer(Space.binary(4, symmetries=[Flip()]), model=Model(order=3, terms=2))
    opt = told(Space.binary(120), Model(order=4, terms=2), size=3)
    with pytest.raises(SettingError, match="7,140 pairs"):
        opt.draw()
