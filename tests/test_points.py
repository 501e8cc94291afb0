"""Points in every form that is accepted, as rows; and what is said of those that are not."""

import re

import numpy as np
import pandas as pd
import pytest
from support.points import MIXED, POINT, ROW

from mercbo import Binary, Categorical, Integer, Ordinal, PointError, Space
from mercbo.space import is_single

# -- accepted forms of points ------------------------------------------------------------------

ORDERED = list(POINT.values())


@pytest.mark.parametrize(
    "points",
    [
        POINT,
        ORDERED,
        tuple(ORDERED),
        np.array(ORDERED, dtype=object),
        [POINT],
        (POINT,),
        [ORDERED],
        [tuple(ORDERED)],
        [np.array(ORDERED, dtype=object)],
        np.array([ORDERED], dtype=object),
        np.array([POINT], dtype=object),
        pd.DataFrame([POINT]),
        pd.DataFrame([POINT])[list(reversed(MIXED.names))],
    ],
    ids=lambda p: f"{type(p).__name__}-{np.shape(p)}",
)
def test_every_form_of_a_point_gives_the_same_row(points):
    rows = MIXED.rows(points)
    assert rows.dtype == np.int64
    assert rows.tolist() == [ROW]


def test_numeric_arrays_of_any_dtype_are_rows():
    space = Space({"x": Binary(), "n": Integer(0, 5)})
    for dtype in (np.int8, np.uint16, np.int64, np.float32, np.float64):
        assert space.rows(np.array([[1, 5], [0, 2]], dtype=dtype)).tolist() == [[1, 5], [0, 2]]
    assert Space.binary(2).rows(np.array([[True, False]])).tolist() == [[1, 0]]


def test_arrays_of_strings_are_rows():
    space = Space({f"c{i}": Categorical(["A", "C"]) for i in range(2)})
    assert space.rows(np.array([["A", "C"], ["C", "C"]])).tolist() == [[0, 1], [1, 1]]


def test_a_frame_keeps_the_order_of_its_rows_whatever_its_index():
    points = MIXED.points(MIXED.enumerate_rows()[[5, 100, 7]])
    frame = pd.DataFrame(points, index=[9, 1, 4])
    assert MIXED.rows(frame).tolist() == MIXED.rows(points).tolist()


def test_a_missing_cell_of_a_frame_is_none_where_none_is_a_value():
    frame = pd.DataFrame({"a": ["x", None], "n": [1.0, np.nan]})
    space = Space({"a": Categorical(["x", None]), "n": Ordinal([1, None])})
    assert space.rows(frame).tolist() == [[0, 0], [1, 1]]


def test_a_missing_cell_of_a_nullable_column_is_none_where_none_is_a_value():
    cells = {"a": pd.array(["x", pd.NA], dtype="string"), "n": pd.array([1, pd.NA], dtype="Int64")}
    space = Space({"a": Categorical(["x", None]), "n": Ordinal([1, None])})
    assert space.rows(pd.DataFrame(cells)).tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize(
    "nothing", [[], (), np.empty((0, 5)), pd.DataFrame(columns=list(MIXED.names))]
)
def test_no_points_are_no_rows(nothing):
    assert MIXED.rows(nothing).shape == (0, 5)


@pytest.mark.parametrize(
    ("points", "single"),
    [
        (POINT, True),
        (ORDERED, True),
        (np.zeros(3), True),
        ([POINT], False),
        ([ORDERED], False),
        (np.zeros((1, 3)), False),
        (pd.DataFrame([POINT]), False),
        ([], False),
    ],
)
def test_one_point_is_told_from_a_list_of_one(points, single):
    assert is_single(points) is single


@pytest.mark.parametrize(
    "points", [3, None, "GATTACA", b"01", {1, 2}, iter([POINT]), np.array(5), np.array("A")]
)
def test_what_is_not_points_is_refused(points):
    with pytest.raises(PointError, match=r"points are|a point is"):
        MIXED.rows(points)


def test_arrays_of_three_dimensions_are_refused():
    with pytest.raises(PointError, match="point 0"):
        Space.binary(2).rows(np.zeros((1, 2, 2)))


# -- errors of points --------------------------------------------------------------------------


def without(name: str) -> dict:
    return {k: v for k, v in POINT.items() if k != name}


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({**POINT, "solvnt": "THF"}, "unknown variable 'solvnt'; did you mean 'solvent'?"),
        ({**without("solvent"), "solvnt": "THF"}, "unknown variable 'solvnt'"),
        ({**POINT, "zzzz": 1}, "unknown variable 'zzzz'"),
        ({**POINT, 3: 1}, "unknown variable 3"),
        (without("heat"), "missing variable ['heat']"),
        ({"base": "A", "n": 1, "wash": 0}, "missing variables ['solvent', 'heat']"),
        ({}, "missing variables ['base', 'solvent', 'heat', 'n', 'wash']"),
        ({**POINT, "solvent": "DMS0"}, "'solvent': 'DMS0' is not one of ['DMSO', 'THF', None]"),
        ({**POINT, "solvent": "DMS0"}, "did you mean 'DMSO'?"),
        ({**POINT, "solvent": "thf"}, "did you mean 'THF'?"),
        ({**POINT, "Solvent": "THF"}, "unknown variable 'Solvent'; did you mean 'solvent'?"),
        ({**POINT, "heat": 40}, "'heat': 40 is not one of [20, 40.5, 80]"),
        ({**POINT, "heat": float("nan")}, "'heat': nan is not one of"),
        ({**POINT, "heat": np.nan}, "'heat': nan is not one of"),
        ({**POINT, "n": 3}, "'n': 3 is not a whole number from -1 to 2"),
        ({**POINT, "n": 0.5}, "'n': 0.5 is not a whole number from -1 to 2"),
        ({**POINT, "n": "1"}, "'n': '1' is not a whole number from -1 to 2"),
        ({**POINT, "n": None}, "'n': None is not a whole number from -1 to 2"),
        ({**POINT, "wash": 2}, "'wash': 2 is not one of [0, 1]"),
        ({**POINT, "wash": "1"}, "'wash': '1' is not one of [0, 1]"),
        ({**POINT, "base": ["A"]}, "'base': a list came, one value was wanted: ['A']"),
        ({**POINT, "n": (1, 2)}, "'n': a list came, one value was wanted: (1, 2)"),
        ({**POINT, "wash": np.array([0, 1])}, "'wash': a list came, one value was wanted"),
        ({**POINT, "wash": np.array(7)}, "'wash': array(7) is not one of"),
        ({**POINT, "base": {}}, "'base': {} is not one of"),
        (ORDERED[:4], "a row of 4 values came, the space has 5 variables"),
        ([*ORDERED, 0], "a row of 6 values came, the space has 5 variables"),
        (np.zeros(3), "a row of 3 values came, the space has 5 variables"),
    ],
)
def test_a_wrong_point_is_refused_with_its_name_and_value(point, message):
    with pytest.raises(PointError, match=re.escape(message)):
        MIXED.rows(point)


@pytest.mark.parametrize(
    "points", ["ACGT", ["ACGT"], ["ACGT", "AAAA"], [list("AAAA"), "ACGT"], np.array(["ACGT"])]
)
def test_a_text_with_a_letter_for_each_variable_is_refused_with_the_way_to_write_it(points):
    dna = Space({f"s{i}": Categorical(["A", "C", "G", "T"]) for i in range(4)})
    with pytest.raises(PointError, match=r"; a point of its letters is list\('ACGT'\)$"):
        dna.rows(points)
    with pytest.raises(PointError, match=r"(variables|got 'ACG')$"):
        dna.rows("ACG" if isinstance(points, str) else ["ACG"])


def test_a_far_name_is_refused_without_a_guess():
    with pytest.raises(PointError, match=r"^unknown variable 'zzzz'$"):
        MIXED.rows({**POINT, "zzzz": 1})


def test_the_number_of_the_wrong_point_is_given():
    with pytest.raises(PointError, match="point 1: 'wash': 7 is not one of"):
        MIXED.rows([POINT, {**POINT, "wash": 7}, POINT])
    with pytest.raises(PointError, match="point 2: a row of 2 values"):
        MIXED.rows([POINT, ORDERED, [1, 2]])
    with pytest.raises(PointError, match="point 1: a point is a dict or a list"):
        MIXED.rows([POINT, 3])
    with pytest.raises(PointError, match="point 0: a row of 2 values"):
        MIXED.rows(np.zeros((3, 2)))


def test_a_long_list_of_values_is_shown_shortened():
    with pytest.raises(PointError, match=r"11, \.\.\.\]") as caught:
        Space({"v": Ordinal(range(500))}).rows({"v": -1})
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame([POINT]).rename(columns={"heat": "heet"}), "'heet'; did you mean 'heat'"),
        (pd.DataFrame([without("heat")]), r"missing variable \['heat'\]"),
        (pd.DataFrame([{**POINT, "wash": 5}]), "'wash': 5 is not one of"),
        (pd.DataFrame([{**POINT, "heat": np.nan}]), "'heat': nan is not one of"),
        (pd.DataFrame([[*ORDERED, 1]], columns=[*POINT, "wash"]), "'wash'"),
    ],
    ids=["unknown", "missing", "value", "nan", "two columns of one name"],
)
def test_a_wrong_frame_is_refused(frame, message):
    with pytest.raises(PointError, match=message):
        MIXED.rows(frame)


@pytest.mark.parametrize("value", [np.float32(0.3), 0.1 + 0.2, 0.3])
def test_a_float_is_the_value_that_it_is_but_for_rounding(value) -> None:
    space = Space({"x": Ordinal([0.1, 0.2, 0.3])})
    assert space.points(space.rows({"x": value})) == [{"x": 0.3}]


@pytest.mark.parametrize("value", [0.3001, "0.3", np.nan, np.inf])
def test_a_float_that_is_another_is_refused(value) -> None:
    with pytest.raises(PointError, match=r"is not one of \[0.1, 0.2, 0.3\]"):
        Space({"x": Ordinal([0.1, 0.2, 0.3])}).rows({"x": value})
    twins = Space({"x": Categorical([0.3, 0.3 * (1 + 1e-9)])})
    with pytest.raises(PointError, match="is not one of"):
        twins.rows({"x": 0.3 * (1 + 5e-10)})


def test_a_close_match_is_shown_as_it_is() -> None:
    with pytest.raises(PointError, match=r"'1' is not one of \[0, 1\]; did you mean 1\?"):
        Space.binary(1).rows({"x0": "1"})


def test_a_row_of_a_frame_is_a_point() -> None:
    space = Space({"s": Categorical(["a", "b"]), "n": Integer(0, 4)})
    frame = pd.DataFrame({"n": [3, 1], "s": ["b", "a"]})
    assert space.rows(frame.iloc[0]).tolist() == [[1, 3]]
    assert space.rows([row for _, row in frame.iterrows()]).tolist() == space.rows(frame).tolist()
    with pytest.raises(PointError, match="missing variable"):
        space.rows(frame[["n"]].iloc[0])
