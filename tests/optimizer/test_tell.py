"""What tell takes: points and results of any form, replicates, odd results; and best."""

import numpy as np
import pandas as pd
import pytest
from support.optimizer import (
    FOUR,
    INFERENCES,
    MAP_FIRST,
    MIXED,
    P,
    Q,
    as_tuples,
    make,
    plain,
    score,
    told,
)

from mercbo import Binary, Integer, Model, NoResults, Observation, Optimizer, Space

# -- tell --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "values"),
    [
        ([P, Q], [3.0, 4]),
        ((P, Q), (3.0, 4.0)),
        ([["x", 2], ["y", 1]], np.array([3.0, 4.0])),
        (np.array([["x", 2], ["y", 1]], dtype=object), np.array([3, 4])),
        (pd.DataFrame([P, Q]), pd.Series([3.0, 4.0], index=[7, 3])),
        (pd.DataFrame([P, Q])[["n", "a"]], [np.float32(3.0), np.int8(4)]),
    ],
    ids=["dicts", "tuple", "lists", "array", "frame", "frame of other order"],
)
def test_several_points_are_told_in_any_form(points, values):
    opt = make(FOUR)
    opt.tell(points, values)
    assert opt.observations == [Observation(P, 3.0), Observation(Q, 4.0)]
    assert [type(o.value) for o in opt.observations] == [float, float]


@pytest.mark.parametrize("point", [P, ["x", 2], ("x", 2), np.array(["x", 2], dtype=object)])
@pytest.mark.parametrize(
    "value", [3.0, 3, np.float64(3), np.float32(3), np.int64(3), np.array(3.0)]
)
def test_one_point_is_told_in_any_form(point, value):
    opt = make(FOUR)
    opt.tell(point, value)
    assert opt.observations == [Observation(P, 3.0)]


def test_a_list_of_one_takes_a_list_of_one():
    opt = make(FOUR)
    opt.tell([P], [3.0])
    opt.tell(pd.DataFrame([Q]), [4.0])
    assert opt.observations == [Observation(P, 3.0), Observation(Q, 4.0)]


def test_nothing_told_changes_nothing():
    opt = make(FOUR)
    before = opt.to_dict()
    opt.tell([], [])
    assert opt.to_dict() == before


def test_results_come_in_any_order_and_clear_what_is_pending():
    opt = make()
    a, b, c = opt.ask(3)
    opt.tell([c, a], [3.0, 1.0])
    assert opt.pending == [b]
    opt.tell(b, 2.0)
    assert opt.pending == []
    assert opt.observations == [Observation(c, 3.0), Observation(a, 1.0), Observation(b, 2.0)]


def test_points_never_asked_for_are_welcome():
    opt = make(FOUR)
    asked = opt.ask()
    others = [p for p in FOUR.points(FOUR.enumerate_rows()) if p != asked]
    opt.tell(others, [1.0, 2.0, 3.0])
    assert [o.point for o in opt.observations] == others
    assert opt.pending == [asked]


def test_values_come_back_as_the_space_has_them():
    opt = make(Space({"x": Binary(), "n": Integer(0, 3)}))
    opt.tell(np.array([[1.0, 2.0]]), [0.5])
    (seen,) = opt.observations
    assert [type(v) for v in seen.point.values()] == [int, int]


def test_nan_and_none_mark_a_failed_point():
    opt = make(FOUR)
    asked = opt.ask(2)
    opt.tell(asked, [None, float("nan")])
    assert opt.failed == asked
    assert opt.pending == []
    assert opt.observations == []
    with pytest.raises(NoResults, match="no best"):
        _ = opt.best


def test_failures_and_results_mix_in_one_call():
    opt = make(FOUR)
    opt.tell([P, Q], [np.nan, 1.0])
    assert opt.failed == [P]
    assert opt.observations == [Observation(Q, 1.0)]


def test_a_failed_point_that_succeeds_later_is_no_longer_failed():
    opt = make(FOUR)
    opt.tell(P, None)
    opt.tell(P, 2.0)
    assert opt.failed == []
    assert opt.best == Observation(P, 2.0)


def test_a_failure_at_a_measured_point_keeps_its_results():
    opt = make(FOUR)
    opt.tell(P, 2.0)
    opt.tell(P, None)
    assert opt.observations == [Observation(P, 2.0)]
    assert opt.failed == []


def test_failed_points_are_never_regressed_on():
    rows = MIXED.enumerate_rows()
    plain, failing = told(MIXED, [1.0, 3.0, 2.0, 5.0]), told(MIXED, [1.0, 3.0, 2.0, 5.0])
    failing.tell(MIXED.points(rows[10:14]), [None] * 4)
    every = MIXED.points(rows)
    assert np.array_equal(plain.predict(every).mean, failing.predict(every).mean)
    assert np.array_equal(plain.predict(every).std, failing.predict(every).std)


# -- replicates --------------------------------------------------------------------------------


def test_replicates_stay_apart():
    opt = make(FOUR)
    opt.tell([P, P], [1.0, 3.0])
    opt.tell(P, 2.0)
    assert [o.value for o in opt.observations] == [1.0, 3.0, 2.0]
    assert [o.point for o in opt.observations] == [P] * 3


def test_the_model_uses_replicates():
    space = Space.binary(3)
    points = space.points(space.enumerate_rows())
    once, often = told(space, [0.0, 1.0, 2.0, 3.0]), told(space, [0.0, 1.0, 2.0, 3.0])
    often.tell([points[0]] * 8, [3.0] * 8)
    # eight results of 3 against one of 0: the mean there must be nearer to 3 than to 0
    assert once.predict(points[0]).mean[0] < 1.5 < often.predict(points[0]).mean[0]


def test_replicates_that_disagree_leave_more_doubt_than_one_that_agree():
    space = Space.binary(3)
    points = space.points(space.enumerate_rows())
    agree, differ = told(space, [0.0, 1.0, 2.0, 3.0]), told(space, [0.0, 1.0, 2.0, 3.0])
    agree.tell(points[:4], [0.0, 1.0, 2.0, 3.0])
    differ.tell(points[:4], [3.0, 2.0, 1.0, 0.0])
    assert (differ.predict(points[:4]).std > agree.predict(points[:4]).std).all()


@pytest.mark.parametrize("inference", INFERENCES)
def test_ask_goes_on_after_identical_rows(inference):
    opt = make(FOUR, model=Model(inference=inference))
    opt.tell([P] * 5, [1.0, 1.0, 1.0, 2.0, 1.5])
    opt.tell([Q] * 2, [4.0, 4.0])
    asked = opt.ask(2)
    assert {tuple(p.values()) for p in asked} == {("x", 1), ("y", 2)}


# -- best --------------------------------------------------------------------------------------


def test_best_is_the_lowest_or_the_highest_single_value():
    for direction, wanted in (("minimize", 1.0), ("maximize", 9.0)):
        opt = make(FOUR, direction=direction)
        opt.tell([P, Q, P], [4.0, 1.0, 9.0])
        assert opt.best.value == wanted
        assert opt.best.point == (Q if wanted == 1.0 else P)


def test_the_first_of_equal_values_is_the_best():
    opt = make(FOUR)
    opt.tell([Q, P], [1.0, 1.0])
    assert opt.best == Observation(Q, 1.0)


# -- odd results -------------------------------------------------------------------------------


@pytest.mark.parametrize("inference", MAP_FIRST)
@pytest.mark.parametrize("values", [[2.5], [2.5] * 5, [0.0] * 5, [1e12] * 4, [1e-12] * 4])
def test_one_result_and_constant_results_are_enough_to_go_on(values, inference):
    opt = told(MIXED, values, n_initial=1, model=Model(inference=inference))
    asked = opt.ask(3)
    assert len(set(as_tuples(asked))) == 3
    mean, std = opt.predict(asked)
    assert np.isfinite(std).all()
    assert (std > 0).all()
    # nothing but this value was ever seen, so nothing else is expected
    np.testing.assert_allclose(mean, values[0], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    ("size", "inference"),
    [
        *((size, "map") for size in (1e12, 1e-12, 1e300, 1e-300, -1e12)),
        pytest.param(1e300, "hmc", marks=pytest.mark.slow),
        pytest.param(1e-300, "hmc", marks=pytest.mark.slow),
        pytest.param(1e300, "slice", marks=pytest.mark.slow),
        pytest.param(1e-300, "slice", marks=pytest.mark.slow),
    ],
)
def test_results_of_any_size_work(size, inference):
    opt = make(n_initial=2, model=Model(inference=inference))
    for _ in range(4):
        point = opt.ask()
        opt.tell(point, size * score(MIXED, point))
    values = np.array([o.value for o in opt.observations])
    mean, std = opt.predict([o.point for o in opt.observations])
    assert opt.best.value == values.min()
    assert np.isfinite(mean).all()
    # the posterior mean of a zero-mean process shrinks: it stays within the range, widened once
    assert (np.abs(mean / abs(size) - values.mean() / abs(size)) <= np.ptp(values / size)).all()
    assert (std > 0).all()
    assert (std <= 10 * np.ptp(values / size) * abs(size)).all()


@pytest.mark.parametrize("values", [[1.7e308, -1.7e308, -1.7e308], [1.7e308, 1.6e308, 1.7e308]])
def test_the_largest_floats_work(values):
    opt = told(MIXED, values, n_initial=1)
    asked = opt.ask(2)
    assert len(set(as_tuples(asked))) == 2
    assert np.isfinite(opt.predict(asked).mean).all()


@pytest.mark.parametrize("values", [[5e-324, 0.0, 1e-323], [1e-310, 2e-310, 0.0]])
def test_the_smallest_floats_work(values):
    asked = told(MIXED, values, n_initial=1).ask(2)
    assert len(set(as_tuples(asked))) == 2


@pytest.mark.parametrize(
    ("power", "model"), [(40, Model()), (-40, plain()), (990, plain()), (-990, Model())]
)
def test_suggestions_do_not_depend_on_the_unit_of_the_results(power, model):
    """A power of two changes no rounding, so the suggestions are the same to the last bit."""
    usual, scaled = make(model=model), make(model=model)
    for _ in range(7):
        point = usual.ask()
        assert scaled.ask() == point
        usual.tell(point, score(MIXED, point))
        scaled.tell(point, score(MIXED, point) * 2.0**power)


@pytest.mark.parametrize("size", [1.0, 1e-200, 5e-324])
def test_errors_far_larger_than_the_results_work(size):
    opt = make(n_initial=1)
    opt.tell(MIXED.points(MIXED.enumerate_rows()[:3]), [size, 0.0, 0.0], std=[1e200, None, 1.0])
    asked = opt.ask(2)
    assert len(set(as_tuples(asked))) == 2
    assert np.isfinite(opt.predict(asked).mean).all()


@pytest.mark.parametrize("sentinel", [1e12, pytest.param(1e300, marks=pytest.mark.slow)])
def test_numbers_that_stand_for_a_failure_do_not_drown_the_results(sentinel):
    opt = Optimizer(Space.binary(10), seed=0, model=Model(inference="map"))
    for _ in range(36):
        point = opt.ask()
        opt.tell(point, sentinel if point["x0"] and point["x1"] else float(sum(point.values())))
    assert opt.best.value <= 1.0
