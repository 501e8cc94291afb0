"""The optimizer: what ask and tell promise, laws 5 and 6, save and load, and every refusal."""

import copy
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import dimod
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mercbo import (
    BackendError,
    Binary,
    Categorical,
    Integer,
    MercboError,
    Model,
    NoResults,
    Observation,
    Optimizer,
    Ordinal,
    PointError,
    ResultError,
    SettingError,
    Space,
    SpaceExhausted,
    StateError,
)

MIXED = Space(
    {
        "base": Categorical(["A", "C", "G", "T", "U"], encoding="binary"),
        "heat": Ordinal([20, 40.5, None]),
        "wash": Binary(),
        "fixed": Categorical(["k"]),
    }
)
INFERENCES = ["map", "hmc", pytest.param("slice", marks=pytest.mark.slow)]
# where the fit matters less than what is around it
MAP_FIRST = ["map", *(pytest.param(name, marks=pytest.mark.slow) for name in ("hmc", "slice"))]


def score(space: Space, point: dict) -> float:
    """An objective with linear and pairwise parts, the same in every process."""
    row = space.rows(point)[0].astype(float)
    return float(np.cos(1 + np.arange(len(row))) @ row + 0.5 * row[0] * row[-1] - row[0])


def make(space: Space = MIXED, **options) -> Optimizer:
    return Optimizer(space, **{"seed": 0, "n_initial": 3, **options})


def run(opt: Optimizer, steps: int) -> list[dict]:
    """`steps` rounds of ask and tell; what was asked."""
    asked = []
    for _ in range(steps):
        asked.append(opt.ask())
        opt.tell(asked[-1], score(opt.space, asked[-1]))
    return asked


def told(space: Space, values: list, **options) -> Optimizer:
    """An optimizer that was told `values` at the first points of the space."""
    opt = make(space, **options)
    opt.tell(space.points(space.enumerate_rows()[: len(values)]), values)
    return opt


def as_tuples(points: list[dict]) -> list[tuple]:
    return [tuple(p.values()) for p in points]


def all_points(space: Space) -> set[tuple]:
    return set(as_tuples(space.points(space.enumerate_rows())))


class Wrapped(dimod.Sampler):
    """A sampler that counts its calls and fails when told to."""

    parameters: dict = {}  # noqa: RUF012
    properties: dict = {}  # noqa: RUF012

    def __init__(self, inner=None):
        self.inner = inner or dimod.ExactSolver()
        self.calls = 0
        self.fail_at = None

    def sample(self, bqm, **keywords):
        self.calls += 1
        if self.calls == self.fail_at:
            raise RuntimeError("the solver's licence has run out")
        return self.inner.sample(bqm, **keywords)


class Stubborn(dimod.Sampler):
    """Answers every problem with the same bit everywhere: infeasible for every one-hot group."""

    parameters: dict = {}  # noqa: RUF012
    properties: dict = {}  # noqa: RUF012

    def __init__(self, bit: int, vartype: str = "BINARY"):
        self.bit, self.vartype = bit, vartype

    def sample(self, bqm, **_keywords):
        filled = np.full((1, bqm.num_variables), self.bit, dtype=np.int8)
        return dimod.SampleSet.from_samples(
            (filled, list(bqm.variables)), vartype=self.vartype, energy=[0.0]
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
        MIXED,
        Space.binary(4),
        Space({"a": Integer(1, 17)}),
        Space({"a": Categorical(list("abcdef"), encoding="binary"), "b": Integer(0, 2)}),
        Space({"a": Categorical(["only"])}),
        Space({"a": Ordinal([None, 1, "x"]), "b": Categorical([True, 2.5, "y"])}),
    ],
    ids=["mixed", "binary", "integer", "code of 6", "one point", "odd values"],
)
def test_a_small_space_is_enumerated_completely_and_then_exhausted(space):
    opt = make(space)
    asked = as_tuples(run(opt, space.size))
    assert len(asked) == len(set(asked)) == space.size
    assert set(asked) == all_points(space)
    with pytest.raises(SpaceExhausted) as caught:
        opt.ask()
    assert caught.value.left == 0


@pytest.mark.parametrize(
    "model",
    [
        Model(order=1),
        Model(order=3),
        Model(posterior="truncated"),
        Model(weights="hierarchical"),
        Model(refine=False),
        Model(inference="hmc"),
    ],
    ids=str,
)
def test_every_model_enumerates_a_space_without_a_repeat(model):
    space = Space({"a": Categorical(["p", "q", "r"], encoding="binary"), "b": Integer(0, 3)})
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


@pytest.mark.parametrize("before", [0, 2, 5])
@pytest.mark.parametrize("inference", ["map", "hmc"])
def test_ask_k_gives_what_k_asks_would(before, inference):
    batch, single = (make(model=Model(inference=inference)) for _ in range(2))
    run(batch, before)
    run(single, before)
    assert batch.ask(4) == [single.ask() for _ in range(4)]
    assert batch.to_dict() == single.to_dict()
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


# -- tell --------------------------------------------------------------------------------------

FOUR = Space({"a": Categorical(["x", "y"]), "n": Integer(1, 2)})
P, Q = {"a": "x", "n": 2}, {"a": "y", "n": 1}


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
    assert opt.failed == [P]


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


# -- refusals change nothing -------------------------------------------------------------------


def halfway() -> Optimizer:
    """A run with results, a failure, pending points and a fitted model."""
    opt = make(FOUR, n_initial=1)
    opt.tell([P, P], [1.0, 2.0])
    opt.tell(Q, None)
    opt.ask()
    return opt


@pytest.mark.parametrize(
    ("points", "values", "error", "message"),
    [
        ([P, Q], [1.0], ResultError, "2 points came with 1 results"),
        ([P], [1.0, 2.0], ResultError, "1 points came with 2 results"),
        ([], [1.0], ResultError, "0 points came with 1 results"),
        ([P, Q], [], ResultError, "2 points came with 0 results"),
        ([P, Q], 1.0, ResultError, "several points came with one result, 1.0"),
        ([P, Q], None, ResultError, "several points came with one result, None"),
        ([P, Q], np.array(1.0), ResultError, "several points came with one result"),
        ([P, Q], "12", ResultError, "'12'"),
        ([P, Q], {0: 1.0, 1: 2.0}, ResultError, "{0: 1.0, 1: 2.0}"),
        ([P, Q], {1.0, 2.0}, ResultError, "{1.0, 2.0}"),
        (P, [1.0], ResultError, "[1.0] is not a number"),
        (P, "1.0", ResultError, "'1.0' is not a number"),
        (P, float("inf"), ResultError, "inf is infinite"),
        (P, -float("inf"), ResultError, "-inf is infinite"),
        (P, 10**400, ResultError, "infinite"),
        (P, 1j, ResultError, "1j is not a number"),
        (P, np.complex128(1 + 2j), ResultError, "is not a number"),
        (P, object, ResultError, "is not a number"),
        ([P, Q], [1.0, np.inf], ResultError, "result 1: inf is infinite"),
        ([P, Q], [np.nan, "x"], ResultError, "result 1: 'x' is not a number"),
        ([P, Q], np.ones((2, 1)), ResultError, "result 0"),
        ([P, Q], [1.0, [2.0, 3.0]], ResultError, "result 1: [2.0, 3.0] is not a number"),
        (P, [1.0, [2.0, 3.0]], ResultError, "[1.0, [2.0, 3.0]] is not a number"),
        ([P, {"a": "x"}], [1.0, 2.0], PointError, "point 1: missing variable ['n']"),
        ({**P, "m": 1}, 1.0, PointError, "unknown variable 'm'"),
        ({**P, "n": 9}, 1.0, PointError, "'n': 9"),
        (["x"], 1.0, PointError, "a row of 1 values came"),
        (None, 1.0, PointError, "got None"),
    ],
)
def test_a_wrong_tell_changes_nothing(points, values, error, message):
    opt, twin = halfway(), halfway()
    before = opt.to_dict()
    with pytest.raises(error, match=re.escape(message)):
        opt.tell(points, values)
    assert opt.to_dict() == before
    assert opt.ask() == twin.ask()


@pytest.mark.parametrize("k", [0, -1, 1.5, "2", True, [1]])
def test_a_wrong_number_asked_for_changes_nothing(k):
    opt = halfway()
    before = opt.to_dict()
    with pytest.raises(SettingError, match=re.escape(f"k={k!r} is not a whole number")):
        opt.ask(k)
    assert opt.to_dict() == before


def test_a_wrong_prediction_changes_nothing():
    opt = halfway()
    before = opt.to_dict()
    with pytest.raises(PointError, match="'n': 9"):
        opt.predict([P, {**P, "n": 9}])
    assert opt.to_dict() == before


@pytest.mark.parametrize("fail_at", [1, 2, 3])
def test_a_solver_that_fails_in_the_middle_of_a_batch_changes_nothing(fail_at):
    solver = Wrapped()
    opt, twin = told(MIXED, [1.0, 2.0, 4.0], backend=solver), told(MIXED, [1.0, 2.0, 4.0])
    twin._sampler = Wrapped()
    before = opt.to_dict()
    solver.fail_at = fail_at
    with pytest.raises(RuntimeError, match="licence"):
        opt.ask(3)
    assert opt.to_dict() == before
    assert opt.ask(3) == twin.ask(3)


def test_a_failed_save_changes_nothing(tmp_path):
    opt, twin = halfway(), halfway()
    before = opt.to_dict()
    with pytest.raises(OSError, match="No such file"):
        opt.save(tmp_path / "missing" / "run.json")
    assert opt.to_dict() == before
    assert opt.ask() == twin.ask()


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


@pytest.mark.parametrize("size", [1e12, 1e-12, 1e300, 1e-300, -1e12])
@pytest.mark.parametrize("inference", MAP_FIRST)
def test_results_of_any_size_work(size, inference):
    opt = make(n_initial=2, model=Model(inference=inference))
    for _ in range(6):
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


@pytest.mark.parametrize("power", [40, -40, 990, -990])
def test_suggestions_do_not_depend_on_the_unit_of_the_results(power):
    """A power of two changes no rounding, so the suggestions are the same to the last bit."""
    plain, scaled = make(), make()
    for _ in range(7):
        point = plain.ask()
        assert scaled.ask() == point
        plain.tell(point, score(MIXED, point))
        scaled.tell(point, score(MIXED, point) * 2.0**power)


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
        Space({f"c{i}": Categorical(range(20)) for i in range(40)}),
        Space({f"c{i}": Categorical(range(5), encoding="binary") for i in range(20)}),
    ],
    ids=["300 binary", "40 x 20", "20 codes of 5"],
)
def test_spaces_far_too_large_to_list_work(space):
    opt = make(space, n_initial=2)
    asked = run(opt, 3) + opt.ask(2)
    assert len(set(as_tuples(asked))) == 5
    assert space.points(space.rows(asked)) == asked


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


# -- predict -----------------------------------------------------------------------------------


def test_predict_needs_a_result():
    opt = make()
    opt.ask()
    with pytest.raises(NoResults, match="nothing can be predicted"):
        opt.predict(MIXED.points(MIXED.enumerate_rows()))


def test_predict_takes_every_form_of_points():
    opt = told(FOUR, [1.0, 2.0, 4.0])
    wanted = opt.predict([P, Q])
    for points in (
        [["x", 2], ["y", 1]],
        np.array([["x", 2], ["y", 1]], dtype=object),
        pd.DataFrame([P, Q]),
    ):
        assert np.array_equal(opt.predict(points).mean, wanted.mean)
        assert np.array_equal(opt.predict(points).std, wanted.std)
    assert opt.predict(P).mean.shape == opt.predict(P).std.shape == (1,)
    # alone or among others a sum may be taken in another order: three terms of at most
    # 1/noise <= 1e6 times the largest value
    atol = 3 * 1e6 * 4.0 * np.finfo(float).eps
    np.testing.assert_allclose(opt.predict(P).mean, wanted.mean[:1], rtol=0, atol=atol)
    assert opt.predict([]).mean.shape == (0,)


def test_predictions_agree_with_what_was_measured_and_doubt_the_rest():
    space = Space.binary(4)
    points = space.points(space.enumerate_rows())
    values = [100.0 + 10 * score(space, p) for p in points]
    opt = make(space)
    opt.tell(points[:12], values[:12])
    seen, unseen = opt.predict(points[:12]), opt.predict(points[12:])
    # a mean is off by more than four of its own standard deviations once in 15,000 times
    assert (np.abs(seen.mean - values[:12]) <= 4 * seen.std + 1e-9 * np.abs(values[:12])).all()
    assert seen.std.max() < unseen.std.min()
    assert seen.std.max() < np.std(values)


@pytest.mark.parametrize("inference", INFERENCES)
def test_predictions_follow_the_unit_of_the_results(inference):
    """A power of two changes no rounding: mean and standard deviation scale with it exactly."""
    values = [1.0, 3.5, -2.0, 0.25, 7.0]
    plain = told(MIXED, values, model=Model(inference=inference))
    scaled = told(MIXED, [1024 * v for v in values], model=Model(inference=inference))
    every = MIXED.points(MIXED.enumerate_rows())
    assert np.array_equal(scaled.predict(every).mean, 1024 * plain.predict(every).mean)
    assert np.array_equal(scaled.predict(every).std, 1024 * plain.predict(every).std)


def test_predictions_follow_the_origin_of_the_results():
    """Four numbers whose largest is a power of two before and after: standardising is exact."""
    values = np.array([8.0, -2.0, 0.5, 3.0])
    plain, moved = told(MIXED, values.tolist()), told(MIXED, (values + 56).tolist())
    every = MIXED.points(MIXED.enumerate_rows())
    rounding = 64 * 8 * np.finfo(float).eps  # a few operations on numbers of at most 64
    np.testing.assert_allclose(
        moved.predict(every).mean, plain.predict(every).mean + 56, rtol=0, atol=rounding
    )
    np.testing.assert_allclose(
        moved.predict(every).std, plain.predict(every).std, rtol=0, atol=rounding
    )


def test_predictions_count_the_doubt_about_the_hyper_parameters():
    """The variance over hyper-parameter states: mean of the variances plus that of the means."""
    values = np.array([8.0, -2.0, 0.5, 3.0, 1.0])
    opt = told(MIXED, values.tolist(), model=Model(inference="hmc"))
    rows = MIXED.enumerate_rows()
    mean, std = opt.predict(MIXED.points(rows))
    states = [posterior.predict(rows) for posterior in opt._model_of_now().posteriors]
    means, variances = np.array(states).transpose(1, 0, 2)
    assert len(states) > 1
    assert (means.var(axis=0) > 0).any()
    wanted = values.std() * np.sqrt(variances.mean(axis=0) + means.var(axis=0))
    # the same few operations on numbers of at most 8, in another order
    rounding = {"rtol": 32 * np.finfo(float).eps, "atol": 8 * 32 * np.finfo(float).eps}
    np.testing.assert_allclose(std, wanted, **rounding)
    np.testing.assert_allclose(mean, values.mean() + values.std() * means.mean(axis=0), **rounding)


# -- law 6: the same seed and history give the same suggestions ---------------------------------


def test_the_same_seed_gives_the_same_run_and_another_seed_another():
    assert run(make(seed=5), 8) == run(make(seed=5), 8)
    assert run(make(seed=5), 8) != run(make(seed=6), 8)


def test_without_a_seed_runs_differ():
    space = Space.binary(100)
    assert make(space, seed=None).ask() != make(space, seed=None).ask()


def test_large_seeds_work():
    assert run(make(seed=2**200), 4) == run(make(seed=2**200), 4)
    assert make(seed=np.uint64(3)).ask() == make(seed=3).ask()


def look(opt: Optimizer) -> None:
    """Everything that may be looked at."""
    every = opt.space.points(opt.space.enumerate_rows())
    opt.draw()
    opt.draw(rng=np.random.default_rng(9)).value(every[0])
    if opt.observations:
        opt.predict(every)
    _ = (opt.pending, opt.failed, repr(opt))


@pytest.mark.parametrize("inference", INFERENCES)
def test_looking_leaves_no_trace(inference):
    """Not in the suggestions nor in what is saved, also among the initial points."""
    blind, looking = (make(n_initial=4, model=Model(inference=inference)) for _ in range(2))
    for _ in range(7):
        look(looking)
        asked = blind.ask()
        assert looking.ask() == asked
        assert looking.to_dict() == blind.to_dict()
        blind.tell(asked, score(MIXED, asked))
        looking.tell(asked, score(MIXED, asked))


@pytest.mark.parametrize("backend", ["graph-cut", "annealing"])
@pytest.mark.parametrize("inference", MAP_FIRST)
def test_looking_does_not_change_the_suggestions(inference, backend):
    space = Space({**MIXED.variables, "n": Integer(0, 4), "d": Categorical(["u", "v", "w"])})
    options = {"n_initial": 7, "model": Model(inference=inference), "backend": backend}
    looking, asked = make(space, **options), []
    for _ in range(11):
        look(looking)
        asked += run(looking, 1)
    assert asked == run(make(space, **options), 11)


def test_looking_does_not_change_the_state():
    opt = told(MIXED, [1.0, 2.0, 4.0, 3.0])
    before = copy.deepcopy(opt.to_dict())
    opt.predict(MIXED.points(MIXED.enumerate_rows()))
    _ = opt.draw().bqm
    assert opt.to_dict() == before


CHILD = """
import json, sys
sys.path.insert(0, {tests!r})
from mercbo import Model, Optimizer
import test_optimizer as t
opt = t.make(seed=11, model=Model(inference={inference!r}))
asked = t.run(opt, 6)
opt.tell(opt.ask(), None)
print(json.dumps(asked + opt.ask(3)))
"""


def in_another_process(code: str, hash_seed: str) -> list[dict]:
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("inference", ["map", pytest.param("slice", marks=pytest.mark.slow)])
def test_another_process_gives_the_same_suggestions(inference):
    code = CHILD.format(tests=str(Path(__file__).parent), inference=inference)
    opt = make(seed=11, model=Model(inference=inference))
    here = run(opt, 6)
    opt.tell(opt.ask(), None)
    here += opt.ask(3)
    assert in_another_process(code, "1") == here


def test_another_process_goes_on_from_a_file(tmp_path):
    opt = make(seed=11)
    run(opt, 6)
    opt.ask(2)
    opt.save(tmp_path / "run.json")
    code = (
        "import json; from mercbo import Optimizer;"
        f"print(json.dumps(Optimizer.load({str(tmp_path / 'run.json')!r}).ask(3)))"
    )
    assert in_another_process(code, "2") == opt.ask(3)


# -- save and load -----------------------------------------------------------------------------


def reloaded(opt: Optimizer, folder: Path, **options) -> Optimizer:
    opt.save(folder / "run.json")
    return Optimizer.load(folder / "run.json", **options)


def test_everything_survives_a_file(tmp_path):
    opt = make(direction="maximize", model=Model(inference="hmc", order=1), seed=2**100)
    opt.tell(MIXED.points(MIXED.enumerate_rows()[:2]), [0.1 + 0.2, 1e-300])
    opt.tell(MIXED.points(MIXED.enumerate_rows()[5:7]), [None, None])
    opt.ask(2)
    back = reloaded(opt, tmp_path)
    assert back.to_dict() == opt.to_dict()
    assert back.space == opt.space
    assert back.model == opt.model
    assert back.observations == opt.observations
    assert back.pending == opt.pending
    assert back.failed == opt.failed
    assert back.best == opt.best
    assert repr(back) == repr(opt)


@pytest.mark.parametrize("inference", INFERENCES)
def test_a_loaded_run_suggests_what_the_saved_one_would_have(inference, tmp_path):
    opt = make(n_initial=2, model=Model(inference=inference))

    def check() -> None:
        back = reloaded(opt, tmp_path)
        assert back.to_dict() == opt.to_dict()
        assert back.ask(2) == copy.deepcopy(opt).ask(2)

    check()  # nothing has happened
    for number in range(3):
        asked = opt.ask(2)
        check()  # right after an ask, with points pending
        opt.tell(asked[0], score(MIXED, asked[0]))
        check()  # right after a tell
        opt.tell(asked[1], None if number % 2 else 3.0)
        check()  # after a failure
        opt.ask()
        check()  # with one that stays pending
        opt.predict(asked)
        opt.draw()
        check()  # after a look at the model


@pytest.mark.parametrize("inference", ["map", "hmc"])
def test_a_run_reloaded_at_every_step_is_the_same_run(inference, tmp_path):
    opt = make(model=Model(inference=inference))
    straight = run(make(model=Model(inference=inference)), 8)
    asked = []
    for _ in range(8):
        opt = reloaded(opt, tmp_path)
        asked.append(opt.ask())
        opt = reloaded(opt, tmp_path)
        opt.tell(asked[-1], score(MIXED, asked[-1]))
    assert asked == straight


def test_predictions_survive_a_file(tmp_path):
    opt = make(n_initial=2)
    run(opt, 6)
    every = MIXED.points(MIXED.enumerate_rows())
    back = reloaded(opt, tmp_path)
    assert np.array_equal(back.predict(every).mean, opt.predict(every).mean)
    assert np.array_equal(back.predict(every).std, opt.predict(every).std)


def test_a_run_with_a_sampler_object_asks_for_it_again(tmp_path):
    opt = make(backend=dimod.ExactSolver(), n_initial=2)
    run(opt, 3)
    opt.save(tmp_path / "run.json")
    with pytest.raises(StateError, match=r"run\.json.*pass it again: backend="):
        Optimizer.load(tmp_path / "run.json")
    back = Optimizer.load(tmp_path / "run.json", backend=dimod.ExactSolver())
    assert back.ask(2) == opt.ask(2)


def test_a_loaded_run_may_change_its_backend(tmp_path):
    opt = make(n_initial=2)
    run(opt, 3)
    solver = Wrapped()
    reloaded(opt, tmp_path, backend=solver).ask()
    assert solver.calls == 1


def test_a_saved_file_is_readable_json_with_the_points_in_the_users_words(tmp_path):
    opt = make()
    opt.tell({"base": "G", "heat": None, "wash": 1, "fixed": "k"}, 1.5)
    opt.save(tmp_path / "run.json")
    data = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert data["points"] == [{"base": "G", "heat": None, "wash": 1, "fixed": "k"}]
    assert data["values"] == [1.5]


@pytest.mark.parametrize("entry", sorted(make().to_dict()))
def test_a_file_without_one_of_its_entries_is_refused(entry, tmp_path):
    opt = make(n_initial=1)
    run(opt, 2)
    opt.save(tmp_path / "run.json")
    data = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    del data[entry]
    (tmp_path / "run.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(StateError, match=r"run\.json"):
        Optimizer.load(tmp_path / "run.json")


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        ("space", {}),
        ("space", None),
        ("direction", "sideways"),
        ("model", {"order": 0}),
        ("model", {"colour": "red"}),
        ("model", None),
        ("n_initial", 0),
        ("entropy", "abc"),
        ("asked", "many"),
        ("points", [{"base": "A"}]),
        ("values", [1.0]),
        ("values", ["a", "b"]),
        ("failed", 3),
        ("pending", [{"base": "X"}]),
        ("fit", {"hypers": 3}),
    ],
)
def test_a_file_with_a_wrong_entry_is_refused(entry, wrong, tmp_path):
    opt = make(n_initial=1)
    run(opt, 2)
    opt.save(tmp_path / "run.json")
    data = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    data[entry] = wrong
    (tmp_path / "run.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(StateError, match=r"run\.json"):
        Optimizer.load(tmp_path / "run.json")


# -- draw --------------------------------------------------------------------------------------


def test_a_draw_is_the_same_until_the_next_ask():
    opt = told(MIXED, [1.0, 2.0, 4.0])
    every = MIXED.points(MIXED.enumerate_rows())
    first, again = opt.draw(), opt.draw()
    assert [first.value(p) for p in every] == [again.value(p) for p in every]
    opt.ask()
    assert [opt.draw().value(p) for p in every[:5]] != [first.value(p) for p in every[:5]]


def test_a_draw_of_another_generator_is_another_draw():
    opt = told(MIXED, [1.0, 2.0, 4.0])
    point = MIXED.points(MIXED.enumerate_rows())[7]
    a, b, c = (opt.draw(rng=np.random.default_rng(s)).value(point) for s in (1, 1, 2))
    assert a == b
    assert a != c


@pytest.mark.parametrize(("inference", "several"), [("map", False), ("hmc", True)])
def test_successive_asks_take_the_hyper_parameter_states_in_turn(inference, several):
    """The same generator gives another draw only where there is another state to draw with."""
    opt = told(MIXED, [1.0, 2.0, 4.0], model=Model(inference=inference))
    every = MIXED.points(MIXED.enumerate_rows())
    drawn = set()
    for _ in range(6):
        draw = opt.draw(rng=np.random.default_rng(1))
        drawn.add(tuple(draw.value(p) for p in every))
        opt.ask()
    assert (len(drawn) > 1) is several


def test_the_next_ask_minimises_the_draw():
    """With an exact solver and no refinement the suggestion is the minimum of `draw()`."""
    space = Space.binary(6)
    checked = 0
    for seed in range(8):
        model = Model(posterior="truncated", refine=False)
        opt = told(space, [3.0, 1.0, 2.0, 5.0], seed=seed, backend=Wrapped(), model=model)
        draw = opt.draw()
        lowest = min(space.points(space.enumerate_rows()), key=draw.value)
        if lowest not in [o.point for o in opt.observations]:
            assert opt.ask() == lowest
            checked += 1
    assert checked >= 4


def test_a_draw_before_any_result_is_one_of_the_prior():
    draw = make().draw()
    values = {draw.value(p) for p in MIXED.points(MIXED.enumerate_rows())}
    assert len(values) > 1
    assert draw.bqm.num_variables > 0


# -- backends ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "backend",
    [
        "graph-cut",
        "annealing",
        dimod.ExactSolver(),
        dimod.RandomSampler(),
        Stubborn(0),
        Stubborn(1),
        Stubborn(-1, "SPIN"),
    ],
    ids=["graph-cut", "annealing", "exact", "random", "zeros", "ones", "spins"],
)
def test_any_sampler_keeps_law_five(backend):
    space = Space(
        {
            "a": Categorical(list("abcde"), encoding="binary"),
            "b": Categorical(["x", "y", "z"]),
            "c": Binary(),
        }
    )
    opt = make(space, backend=backend, n_initial=2)
    asked = as_tuples(run(opt, 6)) + as_tuples(opt.ask(6))
    assert len(set(asked)) == 12
    assert set(asked) <= all_points(space)


def test_a_sampler_that_takes_a_seed_is_seeded():
    first, second = (make(backend=dimod.RandomSampler(), n_initial=1) for _ in range(2))
    assert run(first, 6) == run(second, 6)


def test_a_name_that_is_close_is_offered():
    with pytest.raises(BackendError, match=r"'graphcut'.*did you mean 'graph-cut'"):
        make(backend="graphcut")


@pytest.mark.parametrize("backend", ["", "zzz", None, 3, object()])
def test_what_is_no_backend_is_refused(backend):
    with pytest.raises(BackendError, match=re.escape(f"backend={backend!r}")):
        make(backend=backend)


class Answers:
    """A sampler that answers with whatever it was given."""

    def __init__(self, answer):
        self.answer = answer

    def sample(self, _bqm):
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [{("wash", 1): 1}],
        dimod.SampleSet.from_samples([], "BINARY", energy=[]),
        dimod.SampleSet.from_samples([{"other": 1}], "BINARY", energy=[0.0]),
    ],
    ids=["none", "dicts", "no samples", "other variables"],
)
def test_an_answer_that_cannot_be_used_is_an_error_that_changes_nothing(answer):
    opt = told(MIXED, [1.0, 2.0, 3.0], backend=Answers(answer))
    before = opt.to_dict()
    with pytest.raises(BackendError, match="Answers"):
        opt.ask()
    assert opt.to_dict() == before


# -- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"direction": "max"}, "direction='max' is not one of ['minimize', 'maximize']"),
        ({"direction": "maximise"}, "did you mean 'maximize'?"),
        ({"direction": None}, "direction=None"),
        ({"model": "paper"}, "model='paper' is not a Model"),
        ({"model": Model}, "is not a Model"),
        ({"n_initial": 0}, "n_initial=0 is not a whole number of at least 1"),
        ({"n_initial": 2.5}, "n_initial=2.5"),
        ({"n_initial": True}, "n_initial=True"),
        ({"seed": -1}, "seed=-1 is not a whole number of at least 0"),
        ({"seed": 1.5}, "seed=1.5"),
        ({"seed": "0"}, "seed='0'"),
        ({"seed": True}, "seed=True"),
    ],
)
def test_a_wrong_setting_is_refused_and_quoted(options, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        make(**options)


@pytest.mark.parametrize("space", [None, {"a": Binary()}, Space, [0, 1]])
def test_what_is_no_space_is_refused(space):
    with pytest.raises(SettingError, match="is not a Space"):
        Optimizer(space)


def test_errors_are_mercbo_errors():
    for error in (SpaceExhausted, NoResults, ResultError, SettingError, BackendError, StateError):
        assert issubclass(error, MercboError)


# -- laws 5 and 6 over random histories --------------------------------------------------------

SMALL_VARIABLES = st.one_of(
    st.just(Binary()),
    st.builds(
        lambda k, encoding: Categorical(list("abcde"[:k]), encoding=encoding),
        st.integers(1, 5),
        st.sampled_from(["one-hot", "binary"]),
    ),
    st.builds(lambda k: Ordinal([None, 0.5, "high"][:k]), st.integers(1, 3)),
    st.builds(lambda k: Integer(-1, k), st.integers(-1, 2)),
)
SMALL_SPACES = st.lists(SMALL_VARIABLES, min_size=1, max_size=3).map(
    lambda found: Space({f"v{i}": v for i, v in enumerate(found)})
)
RESULTS = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6))
STEPS = st.one_of(
    st.tuples(st.just("ask"), st.integers(1, 4)),
    st.tuples(st.just("round"), RESULTS),
    st.tuples(st.just("tell"), st.integers(0, 100), RESULTS),
    st.tuples(st.just("fail"), st.integers(0, 100)),
    st.tuples(st.just("prior"), st.integers(0, 10**6), RESULTS),
    st.tuples(st.just("again"), st.integers(0, 100), RESULTS),
    st.tuples(st.just("look")),
    st.tuples(st.just("reload")),
)


class History:
    """An optimizer beside the plainest account of what happened to it."""

    def __init__(self, opt: Optimizer, folder: Path) -> None:
        self.opt, self.folder = opt, folder
        self.observations: list[Observation] = []
        self.failed: list[dict] = []
        self.pending: list[dict] = []

    @property
    def seen(self) -> set[tuple]:
        return set(as_tuples([o.point for o in self.observations] + self.failed + self.pending))

    def ask(self, k: int) -> None:
        seen, before = self.seen, self.opt.to_dict()
        left = self.opt.space.size - len(seen)
        if k > left:
            with pytest.raises(SpaceExhausted) as caught:
                self.opt.ask(k)
            assert caught.value.left == left
            assert self.opt.to_dict() == before
            return
        asked = self.opt.ask(k)
        found = as_tuples(asked)
        assert len(set(found)) == k
        assert not set(found) & seen
        assert set(found) <= all_points(self.opt.space)
        self.pending += asked

    def record(self, point: dict, value: float | None) -> None:
        self.opt.tell(point, value)
        self.pending = [p for p in self.pending if p != point]
        if value is None:
            self.failed = [*self.failed, point] if point not in self.failed else self.failed
        else:
            self.failed = [p for p in self.failed if p != point]
            self.observations.append(Observation(point, value))

    def tell(self, which: int, value: float | None) -> None:
        if self.pending:
            self.record(self.pending[which % len(self.pending)], value)

    def round(self, value: float) -> None:
        self.ask(1)
        self.tell(-1, value)

    def fail(self, which: int) -> None:
        self.tell(which, None)

    def prior(self, which: int, value: float) -> None:
        rows = self.opt.space.enumerate_rows()
        self.record(self.opt.space.points(rows[[which % len(rows)]])[0], value)

    def again(self, which: int, value: float) -> None:
        told = self.failed + [o.point for o in self.observations]
        if told:
            self.record(told[which % len(told)], value)

    def look(self) -> None:
        self.opt.draw()
        if self.observations:
            self.opt.predict(self.observations[0].point)

    def reload(self) -> None:
        self.opt = reloaded(self.opt, self.folder)

    def check(self) -> None:
        assert self.opt.observations == self.observations
        assert self.opt.failed == self.failed
        assert self.opt.pending == self.pending


@given(
    space=SMALL_SPACES,
    steps=st.lists(STEPS, min_size=4, max_size=16),
    n_initial=st.integers(1, 4),
    inference=st.sampled_from(["map", "hmc"]),
    direction=st.sampled_from(["minimize", "maximize"]),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_laws_five_and_six_hold_over_any_history(space, steps, n_initial, inference, direction):
    """Law 5 after each step; and the same steps without looks and reloads ask the same (law 6)."""
    options = {
        "n_initial": n_initial,
        "model": Model(inference=inference),
        "direction": direction,
    }
    with tempfile.TemporaryDirectory() as folder:
        full = History(make(space, **options), Path(folder))
        plain = History(make(space, **options), Path(folder))
        for name, *arguments in steps:
            getattr(full, name)(*arguments)
            full.check()
            if name not in ("look", "reload"):
                getattr(plain, name)(*arguments)
            assert plain.pending == full.pending


@pytest.mark.parametrize(
    "change",
    [
        {"entropy": None},
        {"asked": -1},
        {"fit": {"hypers": [], "seen": 3, "cold": 3}},
        {"fit": {"hypers": [{"beta": [1.0], "amplitude": 1.0, "noise": 0.1, "mean": 0.0}],
                 "seen": 3, "cold": 3}},
        {"values": [1.0]},
        {"direction": "sideways"},
    ],
)  # fmt: skip
def test_a_state_that_was_edited_by_hand_is_refused(change):
    opt = told(MIXED, [1.0, 2.0, 4.0, 3.0])
    with pytest.raises(StateError):
        Optimizer.from_dict({**opt.to_dict(), **change})
    with pytest.raises(StateError, match="not the whole state"):
        Optimizer.from_dict({})
