"""Every refusal of a wrong call or a wrong setting, and that it changes nothing."""

import copy
import re
from functools import cache

import numpy as np
import pytest
from support.optimizer import FOUR, MIXED, P, Q, Wrapped, make, told

from mercbo import (
    BackendError,
    Binary,
    MercboError,
    Model,
    NoResults,
    Optimizer,
    PointError,
    ResultError,
    SettingError,
    Space,
    SpaceExhausted,
    StateError,
)

pytestmark = pytest.mark.usefixtures("poor_fits")

# -- refusals change nothing -------------------------------------------------------------------


@cache
def begun() -> Optimizer:
    opt = make(FOUR, n_initial=1)
    opt.tell([P, P], [1.0, 2.0])
    opt.tell(Q, None)
    opt.ask()
    return opt


@cache
def next_point() -> tuple:
    return tuple(halfway().ask().items())


def halfway() -> Optimizer:
    """A run with results, a failure, pending points and a fitted model."""
    return copy.deepcopy(begun())


@pytest.mark.parametrize(
    ("points", "values", "error", "message"),
    [
        ([P, Q], [1.0], ResultError, "2 points came with 1 results"),
        ([P], [1.0, 2.0], ResultError, "1 points came with 2 results"),
        ([], [1.0], ResultError, "0 points came with 1 results"),
        ([P, Q], [], ResultError, "2 points came with 0 results"),
        ([P, Q], 1.0, ResultError, "a list of points needs a list of results, got 1.0"),
        ([P, Q], None, ResultError, "a list of points needs a list of results, got None"),
        ([P, Q], np.array(1.0), ResultError, "a list of points needs a list of results"),
        ([P, Q], "12", ResultError, "'12'"),
        ([P, Q], {0: 1.0, 1: 2.0}, ResultError, "{0: 1.0, 1: 2.0}"),
        ([P, Q], {1.0, 2.0}, ResultError, "{1.0, 2.0}"),
        (P, [1.0], ResultError, "one point takes one result, a list came: [1.0]"),
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
        (P, [1.0, [2.0, 3.0]], ResultError, "one point takes one result, a list came"),
        ([P, {"a": "x"}], [1.0, 2.0], PointError, "point 1: missing variable ['n']"),
        ({**P, "m": 1}, 1.0, PointError, "unknown variable 'm'"),
        ({**P, "n": 9}, 1.0, PointError, "'n': 9"),
        (["x"], 1.0, PointError, "a row of 1 values came"),
        (None, 1.0, PointError, "got None"),
    ],
)
def test_a_wrong_tell_changes_nothing(points, values, error, message):
    opt = halfway()
    before = opt.to_dict()
    with pytest.raises(error, match=re.escape(message)):
        opt.tell(points, values)
    assert opt.to_dict() == before
    assert opt.ask() == dict(next_point())


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
    opt = halfway()
    before = opt.to_dict()
    with pytest.raises(OSError, match="there is no folder"):
        opt.save(tmp_path / "missing" / "run.json")
    assert opt.to_dict() == before
    assert opt.ask() == dict(next_point())


# -- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"direction": "max"}, "direction='max' is not one of ['minimize', 'maximize']"),
        ({"direction": "maximise"}, "did you mean 'maximize'?"),
        ({"acquisition": "EI"}, "did you mean 'ei'?"),
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


@pytest.mark.parametrize("rng", [3, "0", np.random.RandomState(0)])
def test_draws_take_generators_only(rng):
    with pytest.raises(SettingError, match=r"rng=.* is not a numpy\.random\.Generator"):
        halfway().draw(rng=rng)


@pytest.mark.parametrize("sample", [[0, 1], np.zeros(4), "0101"])
def test_a_sample_is_by_labels(sample):
    with pytest.raises(PointError, match="a sample gives each label of the model its bit"):
        halfway().draw().decode(sample)
