"""Told values and errors -> arrays, with a reason where they cannot be used."""

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from mercbo import ResultError
from mercbo.record.results import is_listed, read_answer, read_errors, read_values

ONE = {"x": 1}
TWO = [{"x": 0}, {"x": 1}]
FORMS = {
    "list": [1.0, 2],
    "tuple": (1, 2.0),
    "array": np.array([1, 2], dtype=np.int8),
    "series": pd.Series([1.0, 2.0], index=[5, 3]),
    "scalars": [np.float32(1), np.array(2.0)],
    "exact numbers": [Fraction(1), Decimal(2)],
}


@pytest.mark.parametrize("read", [read_values, read_errors])
@pytest.mark.parametrize("form", FORMS)
def test_lists_of_any_form_are_read(read, form):
    found = read(TWO, FORMS[form], 2)
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("points", [TWO, [[0], [1]], np.array([[0], [1]]), pd.DataFrame(TWO)])
@pytest.mark.parametrize("read", [read_values, read_errors])
def test_points_of_any_form_take_a_list(read, points):
    assert read(points, [1.0, 2.0], 2).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("point", [ONE, [1], (1,), np.array([1])])
@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.array(3.0), Fraction(3), True + 2])
@pytest.mark.parametrize("read", [read_values, read_errors])
def test_one_point_takes_one_number(read, point, value):
    assert read(point, value, 1).tolist() == [3.0]


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, np.float32("nan")])
@pytest.mark.parametrize("read", [read_values, read_errors])
def test_none_and_nan_are_nan(read, missing):
    assert np.isnan(read(ONE, missing, 1)).tolist() == [True]
    assert np.isnan(read(TWO, [missing, 1.0], 2)).tolist() == [True, False]


def test_no_error_at_all_is_unknown_for_every_point():
    assert np.isnan(read_errors(TWO, None, 2)).tolist() == [True, True]
    assert read_errors([], None, 0).shape == (0,)


@pytest.mark.parametrize("error", [0.5, np.float32(0.5), np.array(0.5)])
def test_one_error_serves_all_points(error):
    assert read_errors(TWO, error, 2).tolist() == [0.5, 0.5]
    assert read_errors([], error, 0).shape == (0,)


def test_nothing_takes_nothing():
    assert read_values([], [], 0).shape == (0,)
    assert read_errors([], [], 0).shape == (0,)


@pytest.mark.parametrize(
    ("points", "values", "message"),
    [
        (ONE, "3", "'3' is not a number"),
        (ONE, b"3", "b'3' is not a number"),
        (ONE, 1j, "1j is not a number"),
        (ONE, [3.0], "one point takes one result, a list came: [3.0]"),
        (ONE, {"y": 3.0}, "one point takes one result, a list came"),
        (ONE, np.inf, "inf is infinite; tell NaN or None for a failed evaluation"),
        (ONE, 10**400, "is infinite"),
        (TWO, 3.0, "a list of points needs a list of results, got 3.0"),
        (TWO, "12", "a list of points needs a list of results, got '12'"),
        (TWO, {1.0, 2.0}, "a list of points needs a list of results"),
        (TWO, [3.0], "2 points came with 1 results"),
        (TWO, [3.0, 4.0, 5.0], "2 points came with 3 results"),
        (TWO, [3.0, "x"], "result 1: 'x' is not a number"),
        (TWO, [3.0, -np.inf], "result 1: -inf is infinite"),
        (TWO, [[3.0], [4.0]], "result 0: [3.0] is not a number"),
    ],
)
def test_wrong_values_are_refused_with_the_reason(points, values, message):
    with pytest.raises(ResultError, match=re.escape(message)):
        read_values(points, values, 1 if points is ONE else 2)


@pytest.mark.parametrize(
    ("points", "errors", "message"),
    [
        (ONE, "0.1", "std: '0.1' is not a number"),
        (ONE, -1.0, "std: -1.0 is not a standard deviation: a finite number of at least 0"),
        (ONE, np.inf, "std: inf is not a standard deviation"),
        (ONE, [0.1], "one point takes one std, a list came: [0.1]"),
        (TWO, -1.0, "std: -1.0 is not a standard deviation"),
        (TWO, np.inf, "std: inf is not a standard deviation"),
        (TWO, "0.1", "a list of points needs a list of stds, got '0.1'"),
        (TWO, {0: 0.1}, "a list of points needs a list of stds"),
        (TWO, [0.1], "2 points came with 1 stds"),
        (TWO, [0.1, -0.1], "std 1: -0.1 is not a standard deviation"),
        (TWO, [0.1, "x"], "std 1: 'x' is not a number"),
        (TWO, [0.1, np.inf], "std 1: inf is not a standard deviation"),
    ],
)
def test_wrong_errors_are_refused_with_the_reason(points, errors, message):
    with pytest.raises(ResultError, match=re.escape(message)):
        read_errors(points, errors, 1 if points is ONE else 2)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [([], True), ((1,), True), (np.zeros(1), True), (np.array(1.0), False), (1.0, False)],
)
def test_what_holds_several(value, wanted):
    assert is_listed(value) is wanted


@pytest.mark.parametrize(
    "answer", [np.array([3.0]), np.array([[3.0]]), np.float32(3), 3, (3.0, None)]
)
def test_a_function_may_answer_with_an_array_of_one_number(answer):
    value, error = read_answer({"x": 1}, answer)
    assert value == 3.0
    assert np.isnan(error)


def test_a_function_that_answers_with_several_is_refused():
    with pytest.raises(ResultError, match="one point takes one result, a list came"):
        read_answer({"x": 1}, np.array([1.0, 2.0]))
