"""cancel, forget, amend and tell(std=): what they change, what they refuse."""

import copy
import json
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from support.optimizer import FOUR, MIXED, P, Q, make, reloaded, run, score, told

from mercbo import (
    MercboError,
    Model,
    NoResults,
    Observation,
    Optimizer,
    PointError,
    ResultError,
    Space,
)
from mercbo.record import snapshot

pytestmark = pytest.mark.usefixtures("poor_fits")

EVERY = MIXED.points(MIXED.enumerate_rows())
R, S = {"a": "x", "n": 1}, {"a": "y", "n": 2}


def same_model(one: Optimizer, other: Optimizer) -> None:
    """The same data, in the same order, give the same model to the last bit."""
    for mine, theirs in zip(one.predict(EVERY), other.predict(EVERY), strict=True):
        np.testing.assert_array_equal(mine, theirs)


FORMS = {
    "dict": lambda points: points[0],
    "row": lambda points: list(points[0].values()),
    "array": lambda points: np.array(list(points[0].values()), dtype=object),
    "dicts": lambda points: points,
    "rows": lambda points: [list(p.values()) for p in points],
    "frame": pd.DataFrame,
}
SINGLE = ("dict", "row", "array")

# -- cancel ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_cancelled_points_are_pending_no_more_and_may_come_again(form):
    opt = make(FOUR)
    asked = opt.ask(3)
    opt.cancel(FORMS[form](asked[:2]))
    assert opt.pending == (asked[1:] if form in SINGLE else asked[2:])
    opt.ask(4 - len(opt.pending))
    assert len(opt.pending) == 4


def test_cancelling_does_not_touch_results_or_the_model():
    opt = told(MIXED, [1.0, 2.0, 4.0])
    twin = told(MIXED, [1.0, 2.0, 4.0])
    opt.cancel(opt.ask(2))
    same_model(opt, twin)
    assert opt.observations == twin.observations


# -- forget ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_forgotten_points_are_as_if_never_told(form):
    values = [score(MIXED, p) for p in EVERY[:10]]
    opt, twin = make(), make()
    opt.tell(EVERY[:10], values)
    opt.forget(FORMS[form](EVERY[3:5]))
    gone = 4 if form in SINGLE else 5
    kept = [i for i in range(10) if not 3 <= i < gone]
    twin.tell([EVERY[i] for i in kept], [values[i] for i in kept])
    assert opt.to_dict() == twin.to_dict()
    same_model(opt, twin)
    assert opt.ask(3) == twin.ask(3)


def test_forgetting_drops_replicates_and_failures():
    opt = make(FOUR)
    opt.tell([P, Q, P, R], [1.0, 2.0, 3.0, None])
    opt.forget([P, R])
    assert opt.observations == [Observation(Q, 2.0)]
    assert opt.failed == []
    assert opt.best == Observation(Q, 2.0)


def test_forgetting_everything_starts_anew():
    opt = told(FOUR, [1.0, 2.0, 3.0], n_initial=2)
    opt.ask()
    opt.forget([o.point for o in opt.observations])
    with pytest.raises(NoResults):
        _ = opt.best
    with pytest.raises(NoResults):
        opt.predict(P)
    assert len(opt.ask(3)) == 3


# -- amend -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inference", "form", "looked"),
    [("map", "dict", False), ("map", "row", True), ("map", "array", True), ("hmc", "dict", True)],
)
def test_an_amended_run_is_one_told_the_right_value_from_the_start(inference, form, looked):
    values = [score(MIXED, p) for p in EVERY[:8]]
    opt, twin = (make(model=Model(inference=inference)) for _ in range(2))
    opt.tell(EVERY[:8], [*values[:3], 1e6, *values[4:]])
    if looked:
        opt.ask(2)
        opt.best, opt.predict(EVERY)
    opt.amend(FORMS[form](EVERY[3:4]), values[3])
    twin.tell(EVERY[:8], values)
    assert opt.observations == twin.observations
    assert opt.best == twin.best
    same_model(opt, twin)


@pytest.mark.slow
def test_a_slip_among_many_results_leaves_no_trace():
    """A fit on more than 100 results stands for a while; not for results that were corrected."""
    space = Space.binary(9)
    points = space.points(np.random.default_rng(0).permutation(space.enumerate_rows())[:120])
    values = [score(space, p) for p in points]
    opt, twin = make(space), make(space)
    opt.tell(points, [1e6, *values[1:]])
    opt.ask()
    opt.amend(points[0], values[0])
    twin.tell(points, values)
    np.testing.assert_array_equal(opt.predict(points).mean, twin.predict(points).mean)
    opt.tell(points[0], 1e6)
    opt.ask()
    opt.forget(points[0])
    twin.forget(points[0])
    np.testing.assert_array_equal(opt.predict(points).mean, twin.predict(points).mean)


def test_amending_replaces_all_results_of_a_point_in_the_place_of_the_first():
    opt = make(FOUR)
    opt.tell([P, Q, P], [1.0, 2.0, 3.0])
    opt.amend(P, 5)
    assert opt.observations == [Observation(P, 5.0), Observation(Q, 2.0)]


def test_a_result_becomes_a_failure_and_back():
    opt = make(FOUR)
    opt.tell([P, Q], [1.0, 2.0])
    opt.amend(P, None)
    assert opt.failed == [P]
    assert opt.observations == [Observation(Q, 2.0)]
    opt.amend(P, 7.0)
    assert opt.failed == []
    assert opt.observations == [Observation(Q, 2.0), Observation(P, 7.0)]


@pytest.mark.parametrize("value", [4.0, None])
def test_amend_replaces_notes_or_keeps_them(value, tmp_path):
    url = f"sqlite:///{tmp_path / 'run.db'}"
    opt = Optimizer(FOUR, storage=url, seed=0)
    opt.tell(P, 2.0, notes={"who": "Ann"})

    def notes():
        """The notes of the run, which are those of its log and of its saved state."""
        (found,) = opt.records()
        assert [found] == Optimizer.open(url).records() == reloaded(opt, tmp_path).records()
        return found.notes

    for given, expected in (
        (None, {"who": "Ann"}),
        ({"lot": [7]}, {"lot": [7]}),
        (None, {"lot": [7]}),
        ({}, {}),
    ):
        opt.amend(P, value, notes=given)
        assert notes() == expected
    with pytest.raises(ResultError, match="expected a mapping of names to values, got 'Ann'"):
        opt.amend(P, 9.0, notes="Ann")
    assert opt.records()[0].value == value


def test_an_amended_point_is_still_pending_if_it_was():
    opt = make(FOUR, repeats="allow", n_initial=1)
    opt.tell(FOUR.points(FOUR.enumerate_rows()), [1.0, 2.0, 3.0, 4.0])
    asked = opt.ask()
    opt.amend(asked, 0.5)
    assert opt.pending == [asked]


def test_amending_may_change_the_error_alone():
    opt, twin = told(MIXED, [1.0, 5.0, 2.0, 3.0]), make()
    opt.amend(EVERY[1], 5.0, std=3.0)
    twin.tell(EVERY[:4], [1.0, 5.0, 2.0, 3.0], std=[None, 3.0, None, None])
    same_model(opt, twin)
    assert opt.to_dict() == twin.to_dict()


def test_amending_keeps_the_error_of_an_only_result():
    opt = make(FOUR)
    opt.tell([P, Q, Q], [1.0, 2.0, 3.0], std=[0.3, 0.4, 0.4])
    opt.amend(P, 1.5)
    opt.amend(Q, 2.5)  # in place of two, which may have had different ones
    np.testing.assert_array_equal(opt._history.errors, [0.3, np.nan])
    opt.amend(P, 1.5, std=np.nan)
    np.testing.assert_array_equal(opt._history.errors, [np.nan, np.nan])
    opt.amend(P, 1.5, std=0.3)
    opt.amend(P, None)
    opt.amend(P, 1.0)
    assert np.isnan(opt._history.errors).all()


def test_corrections_go_through_a_file(tmp_path):
    opt = make(n_initial=2)
    asked = run(opt, 6)
    pending = opt.ask(2)
    opt.amend(asked[0], 2.5, std=0.25)
    opt.forget(asked[1])
    opt.cancel(pending[0])
    back = reloaded(opt, tmp_path)
    assert back.to_dict() == opt.to_dict()
    assert back.ask(3) == opt.ask(3)


# -- errors of measurements --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "values", "std", "wanted"),
    [
        (P, 1.0, 0.5, [0.5]),
        (["x", 2], 1.0, np.float32(0.5), [0.5]),
        (P, 1.0, None, [None]),
        ([P, Q], [1.0, 2.0], 0.5, [0.5, 0.5]),
        ([P, Q], [1.0, 2.0], [0.5, None], [0.5, None]),
        ([P, Q], [1.0, None], [0.5, 0.25], [0.5]),
        (pd.DataFrame([P, Q]), [1.0, 2.0], pd.Series([0.5, np.nan]), [0.5, None]),
        ([["x", 2], ["y", 1]], [1.0, 2.0], np.array([0.0, 0.25]), [0.0, 0.25]),
    ],
)
def test_errors_are_told_in_any_form(points, values, std, wanted):
    opt = make(FOUR)
    opt.tell(points, values, std=std)
    assert opt.to_dict()["errors"] == wanted


def test_a_result_of_large_error_is_trusted_less():
    values = [score(MIXED, p) for p in EVERY[:12]]
    values[5] += 10.0
    means = []
    for std in (0.01, 1.0, 10.0, 1e3):
        opt = make()
        opt.tell(EVERY[:12], values, std=[0.01] * 5 + [std] + [0.01] * 6)
        means.append(abs(opt.predict(EVERY[5]).mean[0] - values[5]))
    assert means == sorted(means)
    assert means[0] < 1.0 < 5.0 < means[-1]


@pytest.mark.parametrize("scale", [1e3, 2.0**-30])
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_errors_are_in_the_units_of_the_results(scale, direction):
    values = np.array([score(MIXED, p) for p in EVERY[:10]])
    std = np.linspace(0.05, 0.5, 10)
    plain, scaled = make(direction=direction), make(direction=direction)
    plain.tell(EVERY[:10], values, std=std)
    scaled.tell(EVERY[:10], scale * values, std=scale * std)
    # rounding of the data, grown by the steps of a fit that stops at about 1e-5
    for mine, theirs in zip(plain.predict(EVERY), scaled.predict(EVERY), strict=True):
        np.testing.assert_allclose(scale * mine, theirs, rtol=1e-3, atol=1e-4 * scale)


@pytest.mark.parametrize("std", [0.0, 1e-300, 1e10, 1e200, 1e308])
@pytest.mark.parametrize("size", [1.0, 1e-300])
def test_errors_of_any_size_work(std, size):
    opt = make(n_initial=1)
    opt.tell(EVERY[:4], [size, 2 * size, 3 * size, 1.5 * size], std=[None, std, None, None])
    assert np.isfinite(opt.predict(EVERY)).all()
    assert opt.ask() not in EVERY[:4]


# -- wrong calls change nothing ----------------------------------------------------------------


@cache
def begun() -> Optimizer:
    opt = make(FOUR, n_initial=1)
    opt.tell([P, P], [1.0, 2.0], std=[0.5, None])
    opt.tell(Q, None)
    opt.ask(fixed={"a": "x", "n": 1})
    return opt


@cache
def next_point() -> tuple:
    return tuple(halfway().ask().items())


def halfway() -> Optimizer:
    """P measured twice, Q failed, one more pending, one untouched."""
    return copy.deepcopy(begun())


BAD_POINTS = [
    ({"a": "x"}, "missing variable ['n']"),
    ({**P, "n": 9}, "'n': 9"),
    ({**P, "m": 1}, "unknown variable 'm'"),
    (["x"], "a row of 1 values came"),
    (None, "got None"),
    ("x2", "got 'x2'"),
    (pd.DataFrame([{"a": "x"}]), "missing variable ['n']"),
    ([P, {**P, "n": 9}], "point 1: 'n': 9"),
]
WRONG = [
    *(
        (name, (points, *rest), PointError, message)
        for name, rest in (
            ("tell", (1.0,)),
            ("amend", (1.0,)),
            ("forget", ()),
            ("cancel", ()),
            ("retry", ()),
            ("predict", ()),
        )
        for points, message in BAD_POINTS
    ),
    ("amend", (S, 1.0), PointError, f"{S} has no result to amend"),
    ("amend", (R, 1.0), PointError, f"{R} has no result to amend"),
    ("amend", ([P, Q], [1.0, 2.0]), PointError, "one point was wanted, 2 came"),
    ("amend", ([P], [1.0]), PointError, "one point was wanted, a list came"),
    ("amend", ([], []), PointError, "one point was wanted, 0 came"),
    ("amend", (P, "1"), ResultError, "'1' is not a number"),
    ("amend", (P, [1.0]), ResultError, "one point takes one result"),
    ("amend", (P, float("inf")), ResultError, "inf is infinite"),
    ("forget", (S,), PointError, f"{S} has no result to forget"),
    ("forget", ([P, Q, R],), PointError, f"point 2: {R} has no result to forget"),
    ("cancel", (P,), PointError, f"{P} is not pending"),
    ("cancel", ([R, S],), PointError, f"point 1: {S} is not pending"),
    ("retry", (P,), PointError, f"{P} has not failed"),
    ("retry", ([Q, P],), PointError, f"point 1: {P} has not failed"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "error", "message"), WRONG)
def test_a_wrong_call_says_why_and_changes_nothing(name, given, error, message):
    opt = halfway()
    before = opt.to_dict()
    with pytest.raises(error, match=re.escape(message)):
        getattr(opt, name)(*given)
    assert opt.to_dict() == before
    assert opt.ask() == dict(next_point())


@pytest.mark.parametrize("std", [-1.0, float("inf"), "0.5", [0.5], 1j, [0.5, -1.0], {0: 1.0}])
@pytest.mark.parametrize("points", [S, [S, R]], ids=["one", "several"])
def test_a_wrong_error_changes_nothing(points, std):
    opt = halfway()
    before = opt.to_dict()
    with pytest.raises(ResultError, match="std"):
        opt.tell(points, 1.0 if points is S else [1.0, 2.0], std=std)
    if points is S:
        with pytest.raises(ResultError, match="std"):
            opt.amend(P, 1.0, std=std)
    assert opt.to_dict() == before


@pytest.mark.parametrize("name", ["forget", "cancel", "retry"])
@pytest.mark.parametrize("nothing", [[], pd.DataFrame({"a": [], "n": []})], ids=["list", "frame"])
def test_no_points_change_nothing(name, nothing):
    opt = halfway()
    before = opt.to_dict()
    getattr(opt, name)(nothing)
    assert opt.to_dict() == before


def test_the_errors_are_mercbo_errors():
    for _, _, error, _ in WRONG:
        assert issubclass(error, MercboError)


# -- files of the first version ----------------------------------------------------------------


def first_version(**changes) -> dict:
    """A file as version 1 wrote it, before constraints, repeats, errors and retries."""
    return {
        "format": "mercbo run",
        "version": 1,
        "space": {
            "variables": {
                "a": {"kind": "categorical", "values": ["x", "y"], "encoding": "one-hot"},
                "n": {"kind": "integer", "low": 1, "high": 2},
            }
        },
        "direction": "maximize",
        "backend": "graph-cut",
        "model": {
            "order": 2,
            "posterior": "projected",
            "weights": "identity",
            "inference": "map",
            "refine": True,
        },
        "n_initial": 2,
        "entropy": 7,
        "asked": 3,
        "points": [P],
        "values": [1.5],
        "failed": [Q],
        "pending": [R],
        "fit": None,
        "fresh": False,
        **changes,
    }


def test_a_file_of_version_1_still_loads(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(first_version()), encoding="utf-8")
    opt = Optimizer.load(path)
    assert opt.space == FOUR
    assert opt.observations == [Observation(P, 1.5)]
    assert (opt.failed, opt.pending) == ([Q], [R])
    model = Model(inference="map")  # the default of that version
    assert (opt.repeats, opt.direction, opt.model) == ("never", "maximize", model)
    assert opt._state.answered == 2  # of 3 asked for, one is pending
    assert opt.ask() == S
    opt.save(path)
    assert snapshot.read(path)["version"] == snapshot.VERSION
    assert Optimizer.load(path).to_dict() == opt.to_dict()


def test_an_empty_file_of_version_1_still_loads(tmp_path):
    nothing = {name: [] for name in ("points", "values", "failed", "pending")}
    path = tmp_path / "run.json"
    path.write_text(json.dumps(first_version(**nothing, asked=0)), encoding="utf-8")
    assert len(Optimizer.load(path).ask(4)) == 4
