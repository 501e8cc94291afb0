"""Large batches: draws in blocks, and searches that the workers of an executor make."""

import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from support.optimizer import MIXED, as_tuples, make, plain, reloaded, run, score, told

from mercbo import (
    Binary,
    Categorical,
    Integer,
    Linear,
    Model,
    Optimizer,
    Ordinal,
    SettingError,
    Space,
    SpaceExhausted,
    Where,
)
from mercbo.linalg import PANEL

pytestmark = pytest.mark.usefixtures("poor_fits")

LARGER = Space(
    {
        **{f"b{i}": Binary() for i in range(6)},
        "c": Categorical(["A", "C", "G"], encoding="binary"),
        "o": Ordinal([1, 2, 5]),
        "n": Integer(0, 3),
    }
)
LIMITED = Space(
    LARGER.variables, constraints=[Linear({f"b{i}": i + 1 for i in range(6)}, "<=", 12)]
)


@pytest.fixture(scope="module")
def threads():
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2) as executor:
        yield executor


def some_results(space: Space, count: int = 20, **options) -> Optimizer:
    opt = make(space, **options)
    rng = np.random.default_rng(4)
    points = space.points(np.unique(space.sample_rows(count, rng=rng), axis=0))
    opt.tell(points, [score(space, point) for point in points])
    return opt


def with_failures() -> Optimizer:
    opt = some_results(LARGER, acquisition="thompson")
    opt.tell(LARGER.points(LARGER.sample_rows(6, rng=np.random.default_rng(5))), [None] * 6)
    return opt


SITUATIONS = {
    "free": lambda: some_results(LARGER, model=Model()),
    "limited": lambda: some_results(LIMITED, acquisition="thompson"),
    "failures": with_failures,
    "states": lambda: some_results(LARGER, model=plain(inference="hmc"), acquisition="thompson"),
    "order 3": lambda: some_results(LARGER, model=plain(order=3), acquisition="thompson"),
    "repeats": lambda: some_results(MIXED, 12, repeats="allow", acquisition="thompson"),
    "exact": lambda: some_results(MIXED, 8, backend="exhaustive", acquisition="thompson"),
    "before the model": lambda: told(MIXED, [1.0], n_initial=8),
    "short of points": lambda: some_results(MIXED, 12, acquisition="thompson"),
}


SLOWER = {"order 3", "states", "failures", "limited"}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=pytest.mark.slow) if k in SLOWER else k for k in SITUATIONS],
)
def test_an_executor_changes_nothing(kind, threads, processes):
    alone, by_threads, by_processes = (SITUATIONS[kind]() for _ in range(3))
    # two parts of a search, of which one begins in the middle of a block of draws
    wanted = alone.ask(10)
    assert by_threads.ask(10, executor=threads) == wanted
    assert by_processes.ask(10, executor=processes) == wanted
    assert by_processes.to_dict() == by_threads.to_dict() == alone.to_dict()


def test_a_batch_of_several_blocks_is_what_single_asks_give():
    batch, single = (some_results(LARGER, acquisition="thompson") for _ in range(2))
    run(batch, 3), run(single, 3)  # blocks do not begin where batches do
    assert batch.ask(18) == [single.ask() for _ in range(18)]
    assert len(set(as_tuples(batch.pending))) == 18


def test_searches_that_are_lost_with_their_workers_are_made_here():
    first, second = (some_results(LARGER, acquisition="thompson") for _ in range(2))
    broken = ProcessPoolExecutor(1, initializer=os._exit, initargs=(1,))
    assert second.ask(4, executor=broken) == first.ask(4)
    broken.shutdown()


def test_what_cannot_be_sent_is_refused_and_nothing_is_marked(threads, processes):
    space = Space(LARGER.variables, constraints=[Where(lambda p: p["b0"] + p["b1"] < 2, name="w")])
    opt, twin = (some_results(space, acquisition="thompson") for _ in range(2))
    with pytest.raises(SettingError, match="cannot be sent to other processes"):
        opt.ask(4, executor=processes)
    assert opt.pending == []
    assert opt.ask(4, executor=threads) == twin.ask(4)


def test_what_is_no_executor_is_refused():
    with pytest.raises(SettingError, match="expected a thread or process pool"):
        make().ask(4, executor=3)


# -- diversity -----------------------------------------------------------------------------------


def least_distance(points: list[dict]) -> int:
    return min(
        sum(a != b for a, b in zip(p.values(), q.values(), strict=True))
        for i, p in enumerate(points)
        for q in points[:i]
    )


@pytest.mark.parametrize(
    ("space", "acquisition"),
    [
        (LARGER, "thompson"),
        (LIMITED, "ei"),
        pytest.param(LARGER, "ei", marks=pytest.mark.slow),
        pytest.param(LIMITED, "thompson", marks=pytest.mark.slow),
    ],
    ids=["free-thompson", "limited-ei", "free-ei", "limited-thompson"],
)
def test_points_differ_as_much_as_wanted_from_each_other_and_from_pending_ones(space, acquisition):
    opt = some_results(space, acquisition=acquisition)
    first = opt.ask(2)
    batch = opt.ask(5, diversity=4)
    assert min(least_distance([*batch, p]) for p in first) >= 4
    assert all(space.region.allows(space.rows(batch)))
    assert len(opt.pending) == 7


def test_the_initial_design_keeps_apart_too():
    batch = make(LARGER, n_initial=20).ask(6, diversity=5)
    assert least_distance(batch) >= 5


def test_a_diverse_point_is_the_lowest_of_its_draw_that_is_far_enough():
    opt = some_results(LARGER, acquisition="thompson")
    other = opt.ask()
    draw, rows = opt.draw(), LARGER.enumerate_rows()
    far = (rows != LARGER.rows(other)).sum(axis=1) >= 6
    new = ~opt._history.are(rows, {k: k for k in opt._history.seen(repeats=False)})
    wanted = rows[far & new][draw.sample.path(rows[far & new]).argmin()]
    assert LARGER.rows(opt.ask(diversity=6)).tolist() == [wanted.tolist()]


def test_more_diverse_points_than_there_are_is_an_error_that_says_how_many_there_were():
    opt = some_results(Space.binary(5), 6)
    with pytest.raises(SpaceExhausted, match=r"3 asked for, 2 found.*less than 5 variables") as why:
        opt.ask(3, diversity=5)
    assert (why.value.left, opt.pending) == (2, [])
    assert least_distance(opt.ask(2, diversity=5)) == 5
    with pytest.raises(SpaceExhausted):
        opt.ask(diversity=5)
    opt.ask(3)  # without it there are more


def test_of_a_space_too_large_to_list_it_is_proven_that_no_more_are_left():
    opt = some_results(Space.binary(16), 6)
    with pytest.raises(SpaceExhausted) as why:
        opt.ask(5, diversity=12)
    assert why.value.left == 2


@pytest.mark.parametrize(
    ("diversity", "wanted"),
    [(0, "at least 1"), (True, "at least 1"), (2.5, "at least 1"), (4, "differ in at most 3")],
)
def test_a_diversity_that_cannot_be_is_refused(diversity, wanted):
    opt = make()
    with pytest.raises(SettingError, match=f"diversity={diversity}.*{wanted}"):
        opt.ask(2, diversity=diversity)
    assert opt.pending == []


# -- long histories ------------------------------------------------------------------------------


def test_a_run_whose_factors_grew_suggests_what_a_loaded_one_does(tmp_path):
    opt = some_results(Space.binary(12), PANEL + 30, acquisition="thompson")
    for _ in range(3):
        asked = opt.ask(2)
        opt.tell(asked, [score(opt.space, point) for point in asked])
    assert reloaded(opt, tmp_path).ask(3) == opt.ask(3)
