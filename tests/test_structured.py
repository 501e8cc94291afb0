"""Whether a fit has windows: where neighbours act together, and only there."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import pytest

from mercbo import Binary, Categorical, Integer, Model, Optimizer, Ordinal, Permutation, Space
from mercbo.encoding import Encoding
from mercbo.inference import Data, Fit, fit_map
from mercbo.kernel import Kernel
from mercbo.windowed import (
    START,
    bounds,
    fit_warm,
    packed,
    unpacked,
    windowed_density,
    with_windows,
)

STAGES = 12


def chain(seed: int):
    """A function on bits in which each acts together with the next two, and no others."""
    tables = np.random.default_rng(seed).standard_normal((STAGES - 2, 2, 2, 2))

    def cost(rows: np.ndarray) -> np.ndarray:
        windows = [tables[i][tuple(rows[:, i : i + 3].T)] for i in range(STAGES - 2)]
        return np.sum(windows, axis=0)

    return cost


def scattered(seed: int):
    """The same, but the variables of each term are anywhere."""
    order = np.random.default_rng([seed, 1]).permuted(
        np.tile(np.arange(STAGES), (STAGES - 2, 1)), axis=1
    )[:, :3]
    tables = np.random.default_rng(seed).standard_normal((STAGES - 2, 2, 2, 2))

    def cost(rows: np.ndarray) -> np.ndarray:
        return np.sum(
            [t[tuple(rows[:, at].T)] for t, at in zip(tables, order, strict=True)], axis=0
        )

    return cost


def dense(seed: int):
    """A function on bits in which all pairs act together."""
    coupling = np.random.default_rng(seed).standard_normal((STAGES, STAGES))

    def cost(rows: np.ndarray) -> np.ndarray:
        spins = 1 - 2 * rows
        return np.einsum("ni,ij,nj->n", spins, coupling, spins)

    return cost


def results(cost, size: int, seed: int = 0) -> Data:
    rows = np.random.default_rng([seed, 2]).integers(0, 2, (size, STAGES))
    y = cost(rows)
    return Data(Kernel(Encoding(Space.binary(STAGES))), rows, (y - y.mean()) / y.std())


def told(space: Space, cost, size: int, **settings: Any) -> Optimizer:
    opt = Optimizer(space, seed=0, **settings)
    rows = np.unique(np.random.default_rng(5).integers(0, 2, (size, STAGES)), axis=0)
    opt.tell(space.points(rows), cost(rows).tolist())
    return opt


def windows_of(opt: Optimizer) -> Any:
    opt.ask()
    return opt._surrogate.fit.hypers[0].windows


@pytest.mark.parametrize(
    "space",
    [
        Space.binary(7),
        Space(
            {
                "a": Categorical(list("ACGT")),
                "b": Ordinal([1, 2, 5]),
                "c": Binary(),
                "d": Integer(1, 4),
            }
        ),
        Space({"a": Categorical(range(4), encoding="binary"), "b": Binary(), "c": Binary()}),
    ],
    ids=["binary", "mixed", "coded"],
)
def test_the_gradient_is_that_of_the_density(space: Space, make_data) -> None:
    data = make_data(space, 12)
    rng = np.random.default_rng(1)
    tail = [0.1, np.log(0.05), *(START + 0.3 * rng.standard_normal(3))]
    z = np.append(np.log(0.3) + 0.5 * rng.standard_normal(data.kernel.n), tail)
    step = 1e-6
    slopes = [
        (windowed_density(data, z + move)[0] - windowed_density(data, z - move)[0]) / (2 * step)
        for move in step * np.eye(len(z))
    ]
    np.testing.assert_allclose(windowed_density(data, z)[1], slopes, atol=1e-6, rtol=1e-6)


def test_packing_is_undone(make_data) -> None:
    kernel = make_data(Space.binary(7), 5).kernel
    z = np.append(np.linspace(-2.0, 0.0, 7), [0.2, -4.0, -1.0, 0.5, 0.7])
    np.testing.assert_allclose(packed(kernel, unpacked(kernel, z)), z, atol=1e-12)
    assert len(bounds(kernel)) == len(z)


@pytest.mark.parametrize("seed", range(3))
def test_windows_are_found_where_neighbours_act_together(seed: int) -> None:
    """And what was not measured is predicted with at most half the squared error."""
    cost = chain(seed)
    data = results(cost, 60, seed)
    plain = fit_map(data, None)
    found = with_windows(data, plain, None)
    assert found.hypers[0].windows is not None
    assert _error(cost, data, found) < 0.5 * _error(cost, data, plain)


def _error(cost, data: Data, fit: Fit) -> float:
    from mercbo.posterior import Posterior

    rows = np.array(list(product((0, 1), repeat=STAGES)))
    raw = cost(data.rows)
    wanted = (cost(rows) - raw.mean()) / raw.std()
    mean, _ = Posterior(Model(), data, fit.hypers[0]).predict(rows)
    return float(((mean - wanted) ** 2).mean())


@pytest.mark.parametrize("function", [scattered, dense])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_changes_where_they_do_not(seed: int, function) -> None:
    data = results(function(seed), 60, seed)
    plain = fit_map(data, None)
    assert with_windows(data, plain, None) is plain


@pytest.mark.parametrize("model", [Model(warp="none"), Model(warp="none", inference="map")])
def test_an_old_fit_does_not_speak_for_windows(model: Model, monkeypatch) -> None:
    """A wild result changes the scale of all others, and the fit without windows is from before.
    That it came is no reason to look for windows either."""
    cost = dense(1)
    tried = []

    def counted(data: Data, *others: Any) -> Fit:
        tried.append(len(data))
        return with_windows(data, *others)

    monkeypatch.setattr("mercbo.model.with_windows", counted)
    fit = model.fit(results(cost, 120), None, rng=np.random.default_rng(0))
    for size in (121, 122):
        data = results(cost, size)
        y = data.y.copy()
        y[120] = 1e3
        wild = Data(data.kernel, data.rows, (y - y.mean()) / y.std())
        fit = model.fit(wild, fit, rng=np.random.default_rng(size))
        assert with_windows(wild, fit, None).hypers[0].windows is None
    assert tried == [120]


def test_windows_are_given_up_where_they_no_longer_explain() -> None:
    model, rng = Model(inference="map"), np.random.default_rng(0)
    fit = model.fit(results(chain(1), 60), None, rng=rng)
    assert fit.hypers[0].windows is not None
    assert model.fit(results(dense(1), 95), fit, rng=rng).hypers[0].windows is None


def test_noise_does_not_keep_windows_from_being_tried_again(monkeypatch) -> None:
    """Where most is noise every fit is a fresh one, which is no choice of windows."""
    tried = []

    def counted(data: Data, plain: Fit, _: Any) -> Fit:
        tried.append(len(data))
        return plain

    monkeypatch.setattr("mercbo.model.with_windows", counted)
    model, fit = Model(inference="map"), None
    rows = np.random.default_rng(1).integers(0, 2, (100, STAGES))
    y = np.random.default_rng(2).standard_normal(100)
    kernel = Kernel(Encoding(Space.binary(STAGES)))
    for size in range(20, 100, 5):
        fit = model.fit(Data(kernel, rows[:size], y[:size]), fit, rng=np.random.default_rng(size))
    assert tried == [20, 30, 45, 70]


def test_few_results_or_variables_have_none(make_data) -> None:
    few = results(chain(0), 9)
    plain = fit_map(few, None)
    assert with_windows(few, plain, None) is plain
    short = make_data(Space.binary(5), 30)
    plain = fit_map(short, None)
    assert with_windows(short, plain, None) is plain


def test_a_fit_goes_on_from_the_last() -> None:
    cost = chain(0)
    first = with_windows(results(cost, 60), fit_map(results(cost, 60), None), None)
    more = results(cost, 90)
    start = windowed_density(more, packed(more.kernel, first.hypers[0]))[0]
    again = fit_warm(more, first)
    assert again.seen == 90
    assert windowed_density(more, packed(more.kernel, again.hypers[0]))[0] > start


def test_an_optimizer_learns_them_unless_told_not_to() -> None:
    space, cost = Space.binary(STAGES), chain(1)
    assert windows_of(told(space, cost, 60)) is not None
    for model in (
        Model(windows="none"),
        Model(inference="hmc"),
        Model(posterior="truncated"),
        Model(interactions="chain"),
        Model(order=3, terms=4),
    ):
        assert windows_of(told(space, cost, 60, model=model)) is None, model


def test_a_space_with_symmetries_has_none() -> None:
    names = list(Space.binary(STAGES).variables)
    space = Space({name: Binary() for name in names}, symmetries=[Permutation(names[:2])])
    assert windows_of(told(space, chain(1), 60)) is None


def test_law_2_the_exported_problem_is_the_drawn_function() -> None:
    space = Space.binary(STAGES)
    opt = told(space, chain(1), 60)
    assert windows_of(opt) is not None
    draw = opt.draw()
    points = space.points(np.array(list(product((0, 1), repeat=STAGES)))[::37])
    energies = [draw.bqm.energy(draw.encode(point)) for point in points]
    np.testing.assert_allclose(energies, [draw.value(point) for point in points], rtol=1e-9)


def test_law_6_a_run_goes_on_as_it_would_have(tmp_path) -> None:
    space, cost = Space.binary(STAGES), chain(2)
    opt = told(space, cost, 40)
    assert windows_of(opt) is not None
    opt.save(tmp_path / "run.json")
    again = Optimizer.load(tmp_path / "run.json")
    for _ in range(4):
        point, other = opt.ask(), again.ask()
        assert point == other
        value = float(cost(space.rows([point]))[0])
        opt.tell(point, value)
        again.tell(other, value)


def test_a_batch_is_the_same_with_workers() -> None:
    space, cost = Space.binary(STAGES), chain(1)
    alone, threads, processes = (told(space, cost, 60, acquisition="thompson") for _ in range(3))
    batch = alone.ask(10)
    with ThreadPoolExecutor(2) as executor:
        assert threads.ask(10, executor=executor) == batch
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        assert processes.ask(10, executor=executor) == batch
    assert windows_of(alone) is not None
