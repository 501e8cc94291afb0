"""What ask promises: law 5, the initial design, large spaces and the direction."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.optimizer import (
    MAP_FIRST,
    MIXED,
    Wrapped,
    all_points,
    as_tuples,
    make,
    plain,
    run,
    score,
    told,
)
from support.states import without_batches

from mercbo import (
    Binary,
    Categorical,
    Integer,
    Model,
    Observation,
    Optimizer,
    Ordinal,
    Space,
    SpaceExhausted,
)

# -- ask: law 5 --------------------------------------------------------------------------------


def test_ask_gives_a_dict_of_plain_values_and_ask_k_a_list():
    opt = make()
    one, several, single = opt.ask(), opt.ask(3), opt.ask(1)
    assert list(one) == list(MIXED.names)
    assert [type(p) for p in several] == [dict] * 3
    assert [type(p) for p in single] == [dict]
    run(opt, 4)
    allowed = {name: [(type(v), v) for v in var.values] for name, var in MIXED.variables.items()}
    for point in (one, *several, *single, opt.ask()):
        assert all((type(v), v) in allowed[name] for name, v in point.items())


@pytest.mark.parametrize(
    "space",
    [
        pytest.param(MIXED, marks=pytest.mark.slow),
        Space.binary(4),
        Space({"a": Integer(1, 9)}),
        Space({"a": Categorical(list("abcdef"), encoding="binary"), "b": Integer(0, 1)}),
        Space({"a": Categorical(["only"])}),
        Space({"a": Ordinal([None, 1, "x"]), "b": Categorical([True, 2.5, "y"])}),
    ],
    ids=["mixed", "binary", "integer", "code of 6", "one point", "odd values"],
)
def test_a_small_space_is_enumerated_completely_and_then_exhausted(space):
    opt = make(space, model=Model())
    asked = as_tuples(run(opt, space.size))
    assert len(asked) == len(set(asked)) == space.size
    assert set(asked) == all_points(space)
    with pytest.raises(SpaceExhausted) as caught:
        opt.ask()
    assert caught.value.left == 0


@pytest.mark.parametrize(
    "model",
    [
        plain(order=1),
        plain(order=3),
        plain(posterior="truncated"),
        plain(weights="hierarchical"),
        plain(refine=False),
        plain(inference="hmc"),
    ],
    ids=str,
)
def test_every_model_enumerates_a_space_without_a_repeat(model):
    space = Space({"a": Categorical(["p", "q", "r"], encoding="binary"), "b": Integer(0, 2)})
    assert set(as_tuples(run(make(space, model=model), space.size))) == all_points(space)


@pytest.mark.slow
def test_the_paper_model_enumerates_a_space_without_a_repeat():
    space = Space({"a": Categorical(["p", "q", "r"], encoding="binary"), "b": Integer(0, 3)})
    asked = run(make(space, model=Model.paper()), space.size)
    assert set(as_tuples(asked)) == all_points(space)


@pytest.mark.parametrize("before", [0, 3, 9])
def test_k_asked_are_k_distinct_unseen_points(before):
    opt = make()
    known = as_tuples(run(opt, before))
    batch = as_tuples(opt.ask(12))
    assert len(set(batch)) == 12
    assert not set(batch) & set(known)
    assert set(batch) <= all_points(MIXED)


@pytest.mark.parametrize("before", [0, 4])
def test_a_batch_of_all_that_is_left_empties_the_space(before):
    opt = make()
    known = as_tuples(run(opt, before))
    batch = as_tuples(opt.ask(MIXED.size - before))
    assert set(batch) | set(known) == all_points(MIXED)
    assert len(batch) == MIXED.size - before


def test_told_failed_and_pending_points_do_not_come_back():
    opt = make()
    points = MIXED.points(MIXED.enumerate_rows())
    opt.tell(points[:10], [float(i) for i in range(10)])
    opt.tell(points[10:16], [None, float("nan")] * 3)
    pending = opt.ask(6)
    rest = opt.ask(8)
    assert set(as_tuples(pending + rest)) == set(as_tuples(points[16:]))


def test_every_point_pending_exhausts_the_space():
    opt = make(Space.binary(3))
    opt.ask(8)
    with pytest.raises(SpaceExhausted, match="1 asked for, 0 left") as caught:
        opt.ask()
    assert caught.value.left == 0
    assert len(opt.pending) == 8


def test_every_point_failed_exhausts_the_space():
    space = Space.binary(2)
    opt = make(space)
    opt.tell(space.points(space.enumerate_rows()), [None] * 4)
    with pytest.raises(SpaceExhausted):
        opt.ask()
    assert opt.observations == []


def test_too_many_asked_for_says_how_many_are_left():
    opt = make(Space.binary(3))
    run(opt, 3)
    before = opt.to_dict()
    with pytest.raises(SpaceExhausted, match="6 asked for, 5 left") as caught:
        opt.ask(6)
    assert caught.value.left == 5
    assert opt.to_dict() == before
    assert len(opt.ask(5)) == 5


def test_a_told_pending_point_does_not_count_twice():
    opt = make(Space.binary(2))
    point = opt.ask()
    opt.tell([point, point], [1.0, 2.0])
    opt.tell(point, None)
    assert len(opt.ask(3)) == 3


@pytest.mark.parametrize(
    ("before", "model"), [(0, plain()), (2, plain(inference="hmc")), (5, plain()), (5, Model())]
)
def test_ask_k_gives_what_k_asks_would(before, model):
    batch, single = (make(model=model) for _ in range(2))
    run(batch, before)
    run(single, before)
    assert batch.ask(4) == [single.ask() for _ in range(4)]
    assert without_batches(batch) == without_batches(single)
    assert run(batch, 2) == run(single, 2)


def test_ask_before_any_tell_gives_distinct_points_for_ever():
    opt = make(n_initial=2)
    asked = [tuple(opt.ask().values()) for _ in range(MIXED.size)]
    assert set(asked) == all_points(MIXED)


def test_changing_a_suggestion_changes_nothing_inside():
    opt = make()
    point = opt.ask()
    wanted = dict(point)
    point["base"] = "changed"
    opt.pending[0]["base"] = "changed"
    assert opt.pending == [wanted]


# -- the initial design ------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "wanted"), [(1, 5), (5, 5), (12, 12), (300, 20)])
def test_the_default_number_of_initial_points(n, wanted):
    assert Optimizer(Space.binary(n), seed=0).n_initial == wanted


def test_the_model_takes_over_after_the_initial_points():
    solver = Wrapped()
    opt = make(backend=solver, n_initial=4)
    run(opt, 4)
    assert solver.calls == 0
    run(opt, 2)
    assert solver.calls == 2


def test_told_and_pending_points_count_as_initial_points():
    solver = Wrapped()
    opt = told(MIXED, [1.0, 2.0], backend=solver, n_initial=4)
    opt.ask(2)
    assert solver.calls == 0
    opt.ask()
    assert solver.calls == 1


def test_failed_points_do_not_count_as_initial_points():
    solver = Wrapped()
    opt = told(MIXED, [None] * 5, backend=solver, n_initial=2)
    run(opt, 2)
    assert solver.calls == 0
    opt.ask()
    assert solver.calls == 1


def test_the_initial_design_depends_on_the_seed():
    assert make(seed=1).ask(4) == make(seed=1).ask(4)
    assert make(seed=1).ask(4) != make(seed=2).ask(4)


# -- many variables ----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_thousand_variables_work():
    space = Space.binary(1000)
    opt = make(space, n_initial=2)
    asked = run(opt, 2) + opt.ask(2)
    assert len(set(as_tuples(asked))) == 4
    assert all(len(p) == 1000 for p in asked)


@pytest.mark.parametrize(
    "space",
    [
        Space.binary(300),
        pytest.param(
            Space({f"c{i}": Categorical(range(20)) for i in range(40)}), marks=pytest.mark.slow
        ),
        Space({f"c{i}": Categorical(range(5), encoding="binary") for i in range(20)}),
    ],
    ids=["300 binary", "40 x 20", "20 codes of 5"],
)
def test_spaces_far_too_large_to_list_work(space):
    opt = make(space, n_initial=2)
    asked = run(opt, 3) + opt.ask(2)
    assert len(set(as_tuples(asked))) == 5
    assert space.points(space.rows(asked)) == asked


@pytest.mark.slow
def test_two_wide_integers_are_optimised():
    """A problem of 4,002 bits would have eight million couplings."""
    opt = make(
        Space({"a": Integer(0, 2000), "b": Integer(0, 2000)}),
        n_initial=5,
        model=Model(inference="map"),
    )
    for _ in range(20):
        point = opt.ask()
        opt.tell(point, (point["a"] / 1000 - 0.7) ** 2 + (point["b"] / 1000 - 1.2) ** 2)
    assert opt.best.value < 0.01  # one point in 127


# -- direction ---------------------------------------------------------------------------------


@pytest.mark.parametrize("inference", MAP_FIRST)
def test_maximize_mirrors_minimize(inference):
    low = make(model=Model(inference=inference))
    high = make(model=Model(inference=inference), direction="maximize")
    for _ in range(6):
        point = low.ask()
        assert high.ask() == point
        low.tell(point, score(MIXED, point))
        high.tell(point, -score(MIXED, point))
    every = MIXED.points(MIXED.enumerate_rows())
    assert np.array_equal(low.predict(every).mean, -high.predict(every).mean)
    assert np.array_equal(low.predict(every).std, high.predict(every).std)
    assert low.best == Observation(high.best.point, -high.best.value)


@pytest.mark.parametrize(("direction", "wanted"), [("minimize", min), ("maximize", max)])
def test_the_optimum_of_a_quadratic_is_found_in_half_the_space(direction, wanted):
    space = Space({"a": Integer(0, 5), "b": Categorical(["x", "y", "z"]), "c": Binary()})
    opt = make(space, direction=direction, n_initial=5)
    run(opt, 18)
    every = [score(space, p) for p in space.points(space.enumerate_rows())]
    assert opt.best.value == wanted(every)


def test_threads_that_share_an_optimizer_get_different_points() -> None:
    opt = Optimizer(Space.binary(10), seed=0, n_initial=3)
    opt.tell(opt.ask(5), [1.0, 2.0, 3.0, 4.0, 5.0])

    def step(number: int) -> tuple:
        point = opt.ask()
        opt.tell(point, float(number))
        return tuple(point.values())

    with ThreadPoolExecutor(4) as pool:
        points = list(pool.map(step, range(12)))
    assert len(set(points)) == 12
    assert len(opt.observations) == 17
    assert opt.pending == []
    assert copy.deepcopy(opt).ask() == opt.ask()
