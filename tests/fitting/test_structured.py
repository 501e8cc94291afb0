"""Which terms a fit has: windows where neighbours act together, pooling where like variables do
alike, and neither elsewhere."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import pytest

from mercbo import Binary, Categorical, Integer, Model, Optimizer, Ordinal, Permutation, Space
from mercbo.encoding import Encoding
from mercbo.fitting.kinds import MOTIFS, POOLING, STRANDS, WINDOWS, kinds_of
from mercbo.fitting.structured import (
    bounds,
    chart_of,
    fit_warm,
    packed,
    structured_density,
    unpacked,
    with_structure,
)
from mercbo.inference import Data, Fit, fit_map, log_density
from mercbo.kernel import Kernel

STAGES = 12
ALL = (WINDOWS, MOTIFS, POOLING)  # at once; strands stand in the place of motifs
# the first tells in the fast part
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]

some_kinds = pytest.mark.parametrize(
    "kinds", [(WINDOWS,), (MOTIFS,), (POOLING,), ALL], ids=["windows", "motifs", "pooling", "all"]
)


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


def alike(seed: int):
    """A function on bits of how many are set, and a little of which."""
    own = 0.3 * np.random.default_rng(seed).standard_normal(STAGES)

    def cost(rows: np.ndarray) -> np.ndarray:
        return 0.3 * (rows.sum(axis=1) - 8.0) ** 2 + rows @ own

    return cost


def repeated(seed: int):
    """A function on bits in which each acts together with the next two, alike at all places."""
    table = np.random.default_rng(seed).standard_normal((2, 2, 2))

    def cost(rows: np.ndarray) -> np.ndarray:
        return np.sum([table[tuple(rows[:, i : i + 3].T)] for i in range(STAGES - 2)], axis=0)

    return cost


def motifs_of(opt: Optimizer) -> Any:
    opt.ask()
    return opt._model_of_now().fit.hypers[0].motifs


def windows_of(opt: Optimizer) -> Any:
    opt.ask()
    return opt._model_of_now().fit.hypers[0].windows


def pooling_of(opt: Optimizer) -> Any:
    opt.ask()
    return opt._model_of_now().fit.hypers[0].pooling


def with_windows(data: Data, plain: Fit, before: Any = None) -> Fit:
    return with_structure(data, plain, before, (WINDOWS,))


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
                **{f"e{i}": Categorical(range(3)) for i in range(6)},
            }
        ),
        Space(
            {"a": Categorical(range(4), encoding="binary"), **{f"b{i}": Binary() for i in range(6)}}
        ),
    ],
    ids=["binary", "mixed", "coded"],
)
@pytest.mark.parametrize(
    "kinds", [(WINDOWS,), (MOTIFS,), (POOLING,), ALL], ids=["windows", "motifs", "pooling", "all"]
)
def test_the_gradient_is_that_of_the_density(space: Space, kinds, make_data) -> None:
    data = make_data(space, 12)
    rng = np.random.default_rng(1)
    own = np.concatenate([kind.start for kind in kinds])
    tail = [0.1, np.log(0.05), *(own + 0.3 * rng.standard_normal(len(own)))]
    z = np.append(np.log(0.3) + 0.5 * rng.standard_normal(data.kernel.n), tail)
    step, density = 1e-6, chart_of(kinds).density
    slopes = [
        (density(data, z + move)[0] - density(data, z - move)[0]) / (2 * step)
        for move in step * np.eye(len(z))
    ]
    np.testing.assert_allclose(density(data, z)[1], slopes, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(
    "kinds", [(WINDOWS,), (MOTIFS,), (POOLING,), ALL], ids=["windows", "motifs", "pooling", "all"]
)
def test_packing_is_undone(kinds, make_data) -> None:
    kernel = make_data(Space.binary(7), 5).kernel
    own = np.concatenate([kind.start for kind in kinds]) + 0.2
    z = np.concatenate([np.linspace(-2.0, 0.0, 7), [0.2, -4.0], own])
    hyper = unpacked(kernel, z, 0.5, kinds)
    assert kinds_of(hyper) == kinds
    assert hyper.mean == 0.5
    np.testing.assert_allclose(packed(kernel, hyper), z, atol=1e-12)
    assert len(bounds(kernel, kinds)) == len(z)


def test_without_terms_the_density_is_the_plain_one(make_data) -> None:
    data = make_data(Space.binary(7), 12)
    z = np.append(np.linspace(-2.0, 0.0, 7), [0.2, -4.0])
    for found, wanted in zip(structured_density(data, z, ()), log_density(data, z), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
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


@pytest.mark.parametrize("seed", SEEDS)
def test_pooling_is_found_where_like_variables_do_alike(seed: int) -> None:
    """From few results, and points far from all of them are predicted well by it."""
    cost = alike(seed)
    data = results(cost, 20, seed)
    plain = fit_map(data, None)
    found = with_structure(data, plain, None)
    assert kinds_of(found.hypers[0]) == (POOLING,)
    assert _error(cost, data, found) < 0.5 * _error(cost, data, plain)


def test_both_are_found_where_there_are_both() -> None:
    both = lambda rows: chain(1)(rows) + 2.0 * alike(1)(rows)  # noqa: E731
    data = results(both, 80)
    found = with_structure(data, fit_map(data, None), None)
    assert kinds_of(found.hypers[0]) == (WINDOWS, POOLING)


@pytest.mark.parametrize("function", [scattered, dense])
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_changes_where_they_do_not(seed: int, function) -> None:
    data = results(function(seed), 60, seed)
    plain = fit_map(data, None)
    assert with_structure(data, plain, None) is plain


@pytest.mark.parametrize(
    "model",
    [
        Model(warp="none", inference="map"),
        pytest.param(Model(warp="none"), marks=pytest.mark.slow),
    ],
    ids=["map", "auto"],
)
def test_an_old_fit_does_not_speak_for_windows(model: Model, monkeypatch) -> None:
    """A wild result changes the scale of all others, and the fit without windows is from before.
    That it came is no reason to look for windows either."""
    cost = dense(1)
    tried = []

    def counted(data: Data, *others: Any, **options: Any) -> Fit:
        tried.append(len(data))
        return with_structure(data, *others, **options)

    monkeypatch.setattr("mercbo.model.with_structure", counted)
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
    assert model.fit(results(dense(1), 95), fit, rng=rng).hypers[0].is_plain


def test_pooling_is_given_up_where_it_no_longer_explains() -> None:
    model, rng = Model(inference="map"), np.random.default_rng(0)
    fit = model.fit(results(alike(1), 40), None, rng=rng)
    assert fit.hypers[0].pooling is not None
    assert model.fit(results(dense(1), 95), fit, rng=rng).hypers[0].is_plain


def test_samples_say_how_much_is_pooled_and_need_no_evidence_for_it() -> None:
    """Where hyper-parameters are sampled, what is pooled is sampled along: little of it where like
    variables do not do alike, most of what there is where they do."""
    little, much = (
        Model(windows="none").fit(results(cost, 60), None, rng=np.random.default_rng(0))
        for cost in (dense(1), alike(1))
    )
    assert {kinds_of(hyper) for hyper in little.hypers} == {(POOLING,)}
    assert len(little.hypers) == len(much.hypers) == 7
    linear = [np.array([hyper.pooling.linear for hyper in fit.hypers]) for fit in (little, much)]
    assert 4.0 * linear[0][0] < linear[1][0]  # of the best states
    assert 2.0 * np.exp(np.log(linear[0]).mean()) < np.exp(np.log(linear[1]).mean())


def test_where_windows_are_chosen_pooling_is_too() -> None:
    """With windows nothing is sampled, and pooling has to show its worth."""
    data = results(chain(1), 60)
    found = with_structure(data, fit_map(data, None), None, sampled=True)
    assert kinds_of(found.hypers[0]) == (WINDOWS,)


def test_a_chain_goes_on_with_pooling() -> None:
    """Samples behind the best state have it too; a fit of more results keeps the older ones."""
    model = Model(warp="none")
    fit = model.fit(results(alike(1), 40), None, rng=np.random.default_rng(0))
    assert len(fit.hypers) == 7
    assert {kinds_of(hyper) for hyper in fit.hypers} == {(POOLING,)}
    again = model.fit(results(alike(1), 41), fit, rng=np.random.default_rng(1))
    assert again.hypers[1:5] == fit.hypers[3:]
    assert len(again.hypers) == 7


def test_noise_does_not_keep_windows_from_being_tried_again(monkeypatch) -> None:
    """Where most is noise every fit is a fresh one, which is no choice of windows."""
    tried = []

    def counted(data: Data, plain: Fit, *_: Any, **__: Any) -> Fit:
        tried.append(len(data))
        return plain

    monkeypatch.setattr("mercbo.model.with_structure", counted)
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
    density = chart_of((WINDOWS,)).density
    start = density(more, packed(more.kernel, first.hypers[0]))[0]
    again = fit_warm(more, first)
    assert again.seen == 90
    assert density(more, packed(more.kernel, again.hypers[0]))[0] > start


def test_an_optimizer_learns_them_unless_told_not_to() -> None:
    space, cost = Space.binary(STAGES), chain(1)
    assert windows_of(told(space, cost, 60)) is not None
    assert pooling_of(told(space, alike(1), 30)) is not None
    for model in (
        Model(windows="none", pooling="none"),
        Model(inference="hmc"),
        Model(posterior="truncated"),
        Model(interactions="chain"),
        Model(order=3, terms=4),
    ):
        assert windows_of(told(space, cost, 60, model=model)) is None, model
        assert pooling_of(told(space, alike(1), 30, model=model)) is None, model


def test_a_space_with_symmetries_has_none() -> None:
    names = list(Space.binary(STAGES).variables)
    space = Space({name: Binary() for name in names}, symmetries=[Permutation(names[:2])])
    assert windows_of(told(space, chain(1), 60)) is None
    assert pooling_of(told(space, alike(1), 30)) is None


@pytest.mark.parametrize(
    ("function", "found"), [(chain, windows_of), (alike, pooling_of), (repeated, motifs_of)]
)
def test_law_2_the_exported_problem_is_the_drawn_function(function, found) -> None:
    space = Space.binary(STAGES)
    opt = told(space, function(1), 60)
    assert found(opt) is not None
    draw = opt.draw()
    points = space.points(np.array(list(product((0, 1), repeat=STAGES)))[::37])
    energies = [draw.bqm.energy(draw.encode(point)) for point in points]
    np.testing.assert_allclose(energies, [draw.value(point) for point in points], rtol=1e-9)


@pytest.mark.parametrize(
    ("function", "found"), [(chain, windows_of), (alike, pooling_of), (repeated, motifs_of)]
)
def test_law_6_a_run_goes_on_as_it_would_have(function, found, tmp_path) -> None:
    space, cost = Space.binary(STAGES), function(2)
    opt = told(space, cost, 40)
    assert found(opt) is not None
    opt.save(tmp_path / "run.json")
    again = Optimizer.load(tmp_path / "run.json")
    for _ in range(4):
        point, other = opt.ask(), again.ask()
        assert point == other
        value = float(cost(space.rows([point]))[0])
        opt.tell(point, value)
        again.tell(other, value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "found"), [(chain, windows_of), (alike, pooling_of), (repeated, motifs_of)]
)
def test_a_batch_is_the_same_with_workers(function, found) -> None:
    space, cost = Space.binary(STAGES), function(1)
    alone, threads, processes = (told(space, cost, 60, acquisition="thompson") for _ in range(3))
    batch = alone.ask(10)
    with ThreadPoolExecutor(2) as executor:
        assert threads.ask(10, executor=executor) == batch
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        assert processes.ask(10, executor=executor) == batch
    assert found(alone) is not None


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_the_warp_is_chosen_together_with_pooling(seed: int) -> None:
    """A square of a count is skewed, so a logarithm fits it better alone; pooled it is quadratic as
    it is, and the first suggestion is as good as any."""
    space = Space.binary(40)
    rows = np.random.default_rng(seed).integers(0, 2, (60, 40))
    opt = Optimizer(space, seed=seed)
    opt.tell(space.points(rows), ((rows.sum(axis=1) - 14.0) ** 2).tolist())
    assert abs(sum(opt.ask().values()) - 14) <= 1
    assert opt._model_of_now().fit.warp is None


def test_a_strained_fit_with_pooling_goes_on() -> None:
    """A wild result that no warp may mend: the chain is not begun anew, and what is pooled is
    fitted to what came."""
    model, cost = Model(warp="none"), alike(1)
    fit = model.fit(results(cost, 100), None, rng=np.random.default_rng(0))
    assert fit.hypers[0].pooling is not None
    for size in (108, 116):
        data = results(cost, size)
        y = data.y.copy()
        y[107] = 1e3
        wild = Data(data.kernel, data.rows, (y - y.mean()) / y.std())
        before, fit = fit, model.fit(wild, fit, rng=np.random.default_rng(size))
        assert fit.hypers[0].pooling not in (None, before.hypers[0].pooling)
        assert fit.hypers[1:5] == before.hypers[3:]


# -- motifs ------------------------------------------------------------------------------------

BASES = Space({f"base{i}": Categorical(list("ACGT")) for i in range(8)})


def stretches(seed: int, size: int, letters: int, length: int, *, turned: bool = False):
    """Random rows, and a function that adds up what each three letters in a row are worth, on
    either strand where they are `turned`."""
    rows = np.random.default_rng([seed, 2]).integers(0, letters, (size, length))
    worth = np.random.default_rng(seed).standard_normal((letters,) * 3)

    def read(rows: np.ndarray) -> np.ndarray:
        return sum(worth[tuple(rows[:, i : i + 3].T)] for i in range(length - 2))

    return rows, read(rows) + (read(3 - rows[:, ::-1]) if turned else 0.0)


def test_the_gradient_with_both_strands_is_that_of_the_density(make_data) -> None:
    data = make_data(BASES, 12)
    z = np.concatenate([np.linspace(-2.0, 0.0, 8), [0.2, -3.0], np.log([0.5, 0.8])])
    step, density = 1e-6, chart_of((STRANDS,)).density
    slopes = [
        (density(data, z + move)[0] - density(data, z - move)[0]) / (2 * step)
        for move in step * np.eye(len(z))
    ]
    np.testing.assert_allclose(density(data, z)[1], slopes, atol=1e-6, rtol=1e-6)
    hyper = unpacked(data.kernel, z, 0.0, (STRANDS,))
    assert kinds_of(hyper) == (STRANDS,)
    assert hyper.terms != unpacked(data.kernel, z, 0.0, (MOTIFS,)).terms  # another chain
    np.testing.assert_allclose(packed(data.kernel, hyper), z, atol=1e-12)


def fitted_kinds(space: Space, rows: np.ndarray, y: np.ndarray, *, sampled: bool) -> tuple:
    data = Data(Kernel(Encoding(space)), rows, (y - y.mean()) / y.std())
    return kinds_of(with_structure(data, fit_map(data, None), None, sampled=sampled).hypers[0])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("turned", [False, True])
def test_evidence_says_how_many_strands_are_read(seed: int, turned: bool) -> None:
    rows, y = stretches(seed, 60, 4, 8, turned=turned)
    found = fitted_kinds(BASES, rows, y, sampled=False)
    assert (STRANDS in found) == turned
    assert (MOTIFS in found) != turned


def test_letters_have_motifs_until_the_evidence_is_against_them_and_bits_do_not() -> None:
    """Of a function of single places; with motifs, pooling is not assumed."""
    rng = np.random.default_rng(0)
    letters, bits = rng.integers(0, 3, (120, STAGES)), rng.integers(0, 2, (15, STAGES))
    y = rng.standard_normal((STAGES, 3))[np.arange(STAGES), letters].sum(axis=1)
    space = Space({f"place{i}": Categorical(range(3)) for i in range(STAGES)})
    assert fitted_kinds(space, letters[:15], y[:15], sampled=True) == (MOTIFS,)
    assert fitted_kinds(space, letters, y, sampled=True) == (POOLING,)
    assert fitted_kinds(Space.binary(STAGES), bits, y[:15], sampled=True) == (POOLING,)


@pytest.mark.parametrize("seed", SEEDS)
def test_bits_have_motifs_where_the_evidence_is_for_them(seed: int) -> None:
    rows, y = stretches(seed, 60, 2, STAGES)
    assert MOTIFS in fitted_kinds(Space.binary(STAGES), rows, y, sampled=True)


def test_an_optimizer_reads_motifs_unless_told_not_to() -> None:
    rows, y = stretches(1, 40, 4, 8)
    for model, there in ((Model(), True), (Model(motifs="none"), False)):
        opt = Optimizer(BASES, seed=0, model=model)
        opt.tell(BASES.points(rows), y.tolist())
        opt.ask()
        hypers = opt._model_of_now().fit.hypers
        assert all((hyper.motifs is not None) == there for hyper in hypers)
        draw = opt.draw()
        for point in BASES.sample(20, rng=np.random.default_rng(1)):
            assert draw.bqm.energy(draw.encode(point)) == pytest.approx(draw.value(point), rel=1e-9)
