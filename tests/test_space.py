"""The space: values in, index rows inside, the same values out; and every complaint it makes."""

import copy
import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercbo import (
    Binary,
    Categorical,
    Exactly,
    Integer,
    Ordinal,
    PointError,
    SettingError,
    Space,
    SpaceError,
)
from mercbo.domain.variables import MAX_VALUES
from mercbo.errors import MercboError
from mercbo.space import is_single

MIXED = Space(
    {
        "base": Categorical(["A", "C", "G", "T"], encoding="binary"),
        "solvent": Categorical(["DMSO", "THF", None]),
        "heat": Ordinal([20, 40.5, 80]),
        "n": Integer(-1, 2),
        "wash": Binary(),
    }
)
POINT = {"base": "G", "solvent": None, "heat": 40.5, "n": -1, "wash": 1}
ROW = [2, 2, 1, 0, 1]


def same(a: object, b: object) -> bool:
    """Equal and of the same type: 1, 1.0 and True are three different values."""
    return type(a) is type(b) and a == b


def through_json(data: dict) -> dict:
    return json.loads(json.dumps(data, allow_nan=False))


# -- values come back as given -----------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b", ""],
        [3, 1, 2],
        [0.5, -0.25, 1e300],
        [True, False],
        [None, "none", 0],
        [1, 2.0, "3", None, False],
        [2**70, -(2**70)],
    ],
)
@pytest.mark.parametrize("kind", [Categorical, Ordinal])
def test_values_come_back_with_their_exact_types_and_order(kind, values):
    space = Space({"v": kind(values)})
    back = [p["v"] for p in space.points(space.enumerate_rows())]
    assert len(back) == len(values)
    assert all(map(same, back, values))


def test_numpy_scalars_become_plain_python_values():
    variable = Categorical([np.int64(3), np.float64(0.5), np.str_("a"), np.bool_(True)])
    assert all(map(same, variable.values, [3, 0.5, "a", True]))


def test_binary_understands_booleans_and_gives_zero_and_one():
    space = Space({"wash": Binary()})
    back = space.points(space.rows([[True], [False]]))
    assert [type(p["wash"]) for p in back] == [int, int]
    assert back == [{"wash": 1}, {"wash": 0}]


def test_equal_numbers_of_another_type_come_back_as_the_listed_one():
    space = Space({"n": Integer(1, 6), "x": Ordinal([0.0, 1.0])})
    (back,) = space.points(space.rows([[np.float64(4.0), 1]]))
    assert same(back["n"], 4)
    assert same(back["x"], 1.0)


def test_integer_includes_both_ends():
    assert Integer(-2, 1).values == (-2, -1, 0, 1)
    assert Integer(5, 5).values == (5,)


def test_a_point_keeps_the_order_of_the_space():
    shuffled = dict(reversed(POINT.items()))
    (back,) = MIXED.points(MIXED.rows(shuffled))
    assert list(back) == list(MIXED.variables)


# -- size --------------------------------------------------------------------------------------


def test_size_is_an_exact_int():
    assert same(MIXED.size, 4 * 3 * 3 * 4 * 2)
    assert same(Space.binary(300).size, 2**300)
    assert same(Space({f"c{i}": Ordinal(range(20)) for i in range(40)}).size, 20**40)


@pytest.mark.parametrize(
    "space",
    [
        Space.binary(300),
        Space({f"c{i}": Categorical(range(20)) for i in range(40)}),
        Space.binary(1),
        Space({"only": Categorical(["one"])}),
        Space({"fixed": Ordinal([None]), "free": Binary()}),
    ],
    ids=["300 binary", "40 x 20", "one variable", "one point", "one value"],
)
def test_large_and_tiny_spaces_work(space):
    rng = np.random.default_rng(0)
    points = space.sample(5, rng=rng)
    assert [list(p) for p in points] == [list(space.names)] * 5
    assert space.points(space.rows(points)) == points
    assert Space.from_dict(through_json(space.to_dict())) == space


def test_enumeration_lists_every_point_once():
    rows = MIXED.enumerate_rows()
    assert len(rows) == MIXED.size
    assert len(np.unique(rows, axis=0)) == MIXED.size
    assert (rows >= 0).all()
    assert (rows < MIXED.sizes).all()


def test_space_binary_names_its_variables():
    space = Space.binary(3)
    assert space.names == ("x0", "x1", "x2")
    assert len(space) == 3
    assert all(v == Binary() for v in space.variables.values())


def test_a_variable_may_have_the_largest_number_of_values_and_no_more():
    assert Ordinal(range(MAX_VALUES)).size == MAX_VALUES
    assert Integer(1, MAX_VALUES).size == MAX_VALUES
    with pytest.raises(SpaceError, match=f"{MAX_VALUES + 1} values are too many"):
        Ordinal(range(MAX_VALUES + 1))
    with pytest.raises(SpaceError, match=f"{MAX_VALUES + 1} values are too many"):
        Integer(0, MAX_VALUES)


# -- sample ------------------------------------------------------------------------------------


def test_samples_are_points_of_the_space_and_follow_the_generator():
    points = MIXED.sample(20, rng=np.random.default_rng(1))
    assert len(points) == 20
    assert MIXED.points(MIXED.rows(points)) == points
    assert MIXED.sample(20, rng=np.random.default_rng(1)) == points
    assert MIXED.sample(20, rng=np.random.default_rng(2)) != points


def test_samples_are_uniform_on_every_variable():
    draws = 4000
    rows = MIXED.sample_rows(draws, rng=np.random.default_rng(3))
    for column, size in zip(rows.T, MIXED.sizes.tolist(), strict=True):
        share = 1 / size
        # five standard deviations of a count: one false alarm in 10^5 such runs of 16 counts
        atol = 5 * np.sqrt(draws * share * (1 - share))
        np.testing.assert_allclose(np.bincount(column, minlength=size), draws * share, atol=atol)


def test_no_samples_are_an_empty_list():
    assert MIXED.sample(0, rng=np.random.default_rng(0)) == []


@pytest.mark.parametrize("rng", [0, None, np.random.RandomState(0)])
def test_a_sample_needs_a_generator(rng):
    with pytest.raises(SettingError, match=r"rng=.* is not a numpy\.random\.Generator"):
        MIXED.sample(2, rng=rng)


# -- JSON, pickle, equality --------------------------------------------------------------------


def test_json_round_trip_keeps_values_types_order_and_encodings():
    back = Space.from_dict(through_json(MIXED.to_dict()))
    assert back == MIXED
    assert back.names == MIXED.names
    for name, variable in MIXED.variables.items():
        assert type(back.variables[name]) is type(variable)
        assert back.variables[name].encoding == variable.encoding
        assert all(map(same, back.variables[name].values, variable.values))


@pytest.mark.parametrize("copied", [lambda s: pickle.loads(pickle.dumps(s)), copy.deepcopy])
def test_pickles_and_copies_are_equal_and_work(copied):
    back = copied(MIXED)
    assert back == MIXED
    assert back is not MIXED
    assert back.rows(POINT).tolist() == [ROW]


def test_spaces_differ_by_name_order_kind_values_and_encoding():
    base = {"a": Categorical([1, 2, 3]), "b": Binary()}
    others = [
        dict(reversed(base.items())),
        {"a": Ordinal([1, 2, 3]), "b": Binary()},
        {"a": Categorical([1, 3, 2]), "b": Binary()},
        {"a": Categorical([1, 2, 3], encoding="binary"), "b": Binary()},
        {"a": Categorical([1, 2, 3]), "c": Binary()},
        {"a": Categorical([1, 2, 3])},
    ]
    assert Space(base) == Space(dict(base))
    assert hash(Space(base)) == hash(Space(dict(base)))
    assert all(Space(other) != Space(base) for other in others)


def test_a_space_cannot_be_changed_from_outside():
    source = {"a": Binary()}
    space = Space(source)
    source["b"] = Binary()
    assert space.names == ("a",)
    with pytest.raises(TypeError, match="assignment"):
        space.variables["b"] = Binary()


def test_repr_of_a_small_space_can_be_evaluated():
    assert eval(repr(MIXED)) == MIXED


def test_repr_of_a_large_space_is_short_and_says_how_large():
    assert "300 variables" in repr(Space.binary(300))
    assert len(repr(Space.binary(300))) < 300


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "'variables'"),
        ({"variables": ["a"]}, "'variables'"),
        (["variables"], "'variables'"),
        ({"variables": {}}, "no variables"),
        ({"variables": {"a": {"kind": "binry"}}}, "'a'.*'binry'.*did you mean 'binary'"),
        ({"variables": {"a": {}}}, "'a'.*kind=None"),
        ({"variables": {"a": {"kind": "integer", "low": 1}}}, "'a'.*integer"),
        ({"variables": {"a": {"kind": "ordinal", "values": []}}}, "'a'.*empty"),
        ({"variables": {"a": {"kind": "categorical", "values": 3}}}, "'a'.*got 3"),
        (
            {"variables": {"a": {"kind": "categorical", "values": [1], "encoding": "x"}}},
            "'a'.*encoding='x'",
        ),
        ({"variables": {"a": 3}}, "'a'.*3"),
        ({"variables": {"a": None}}, "'a'.*None"),
    ],
)
def test_a_wrong_dict_is_refused_by_name(data, message):
    with pytest.raises(SpaceError, match=message):
        Space.from_dict(data)


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


# -- errors of variables and spaces ------------------------------------------------------------


@pytest.mark.parametrize("kind", [Categorical, Ordinal])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "the list of values is empty"),
        (["a", "b", "a"], "duplicate values: 'a' and 'a'"),
        ([1, True], "duplicate values: 1 and True (they are equal in Python)"),
        ([0, "x", False], "duplicate values: 0 and False (they are equal in Python)"),
        ([1, 1.0], "duplicate values: 1 and 1.0 (they are equal in Python)"),
        ([0.0, -0.0], "duplicate values: 0.0 and -0.0"),
        ([None, None], "duplicate values: None and None"),
        ([1.0, float("nan")], "nan cannot be a value"),
        ([np.float32("nan")], "nan cannot be a value"),
        ([1.0, float("inf")], "inf cannot be a value"),
        ("ACGT", "values must be a list, got 'ACGT'"),
        (b"01", "values must be a list, got b'01'"),
        (3, "values must be a list, got 3"),
        (None, "values must be a list, got None"),
        # a set of strings has another order in every process, which would break law 6
        ({"a"}, "values must be a list, got {'a'}"),
        (frozenset({"a"}), "values must be a list, got frozenset({'a'})"),
        ([[1], [2]], "[1] is a list; values are str, int, float, bool or None"),
        ([{}], "{} is a dict; values are"),
        ([(1, 2)], "(1, 2) is a tuple; values are"),
        ([1j], "1j is a complex; values are"),
        ([b"a"], "b'a' is a bytes; values are"),
    ],
)
def test_wrong_values_are_refused_and_quoted(kind, values, message):
    with pytest.raises(SpaceError, match=re.escape(message)):
        kind(values)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (3, 2, "low=3 is above high=2"),
        (1.0, 2, "low=1.0 is not a whole number"),
        (1, 2.5, "high=2.5 is not a whole number"),
        (1, float("nan"), "high=nan is not a whole number"),
        (True, 2, "low=True is not a whole number"),
        ("1", 2, "low='1' is not a whole number"),
        (1, None, "high=None is not a whole number"),
    ],
)
def test_wrong_bounds_are_refused_and_quoted(low, high, message):
    with pytest.raises(SpaceError, match=re.escape(message)):
        Integer(low, high)


def test_numpy_bounds_become_plain_ints():
    variable = Integer(np.int8(1), np.uint64(3))
    assert all(map(same, variable.values, [1, 2, 3]))
    assert json.dumps(variable.to_dict())


@pytest.mark.parametrize("encoding", ["onehot", "", None, 2])
def test_an_unknown_encoding_is_refused(encoding):
    with pytest.raises(MercboError, match=re.escape(f"encoding={encoding!r} is not one of")):
        Categorical(["a"], encoding=encoding)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "the space has no variables"),
        ({3: Binary()}, "a variable's name must be a non-empty str, got 3"),
        ({None: Binary()}, "a variable's name must be a non-empty str, got None"),
        ({"": Binary()}, "a variable's name must be a non-empty str, got ''"),
        ({"a": [1, 2]}, "'a': [1, 2] is not a variable"),
        ({"a": Binary}, "'a': <class 'mercbo.domain.variables.Binary'> is not a variable"),
        ([Binary()], "a dict of name: variable, got list"),
        (None, "a dict of name: variable, got NoneType"),
    ],
)
def test_a_wrong_space_is_refused(variables, message):
    with pytest.raises(SpaceError, match=re.escape(message)):
        Space(variables)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "3", None])
def test_a_wrong_number_of_binary_variables_is_refused(n):
    with pytest.raises(SpaceError, match=re.escape(f"at least 1, got {n!r}")):
        Space.binary(n)


def test_errors_of_spaces_and_points_are_value_errors():
    assert issubclass(SpaceError, ValueError)
    assert issubclass(PointError, SpaceError)
    assert issubclass(PointError, MercboError)


# -- properties --------------------------------------------------------------------------------

SCALARS = st.one_of(
    st.text(max_size=6),
    st.integers(-(2**80), 2**80),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
)
VALUES = st.lists(SCALARS, min_size=1, max_size=8, unique=True)
VARIABLES = st.one_of(
    st.just(Binary()),
    st.builds(Categorical, VALUES, encoding=st.sampled_from(["one-hot", "binary"])),
    st.builds(Ordinal, VALUES),
    st.builds(lambda low, span: Integer(low, low + span), st.integers(-50, 50), st.integers(0, 9)),
)
SPACES = st.dictionaries(st.text(min_size=1, max_size=5), VARIABLES, min_size=1, max_size=6).map(
    Space
)


@given(SPACES, st.integers(0, 2**32))
def test_rows_of_points_of_rows_are_the_rows(space, seed):
    rows = space.sample_rows(7, rng=np.random.default_rng(seed))
    points = space.points(rows)
    assert np.array_equal(space.rows(points), rows)
    assert np.array_equal(space.rows([list(p.values()) for p in points]), rows)


@given(SPACES, st.integers(0, 2**32))
def test_points_survive_json_with_their_space(space, seed):
    points = space.sample(3, rng=np.random.default_rng(seed))
    back = Space.from_dict(through_json(space.to_dict()))
    again = json.loads(json.dumps(points))
    assert back == space
    assert np.array_equal(back.rows(again), space.rows(points))
    for point, read in zip(points, back.points(back.rows(again)), strict=True):
        assert all(map(same, point.values(), read.values()))


@given(SPACES)
def test_size_is_the_product_of_the_numbers_of_values(space):
    product = 1
    for variable in space.variables.values():
        product *= len(variable.values)
    assert same(space.size, product)


def test_a_space_of_many_one_value_variables_is_enumerated():
    fixed = {f"f{i}": Categorical(["only"]) for i in range(70)}
    space = Space({**fixed, "a": Binary(), "b": Binary()})
    assert space.enumerate_rows()[:, -2:].tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_few_points_of_a_huge_product_are_enumerated():
    names = [f"x{i}" for i in range(60)]
    space = Space({name: Binary() for name in names}, [Exactly(2, names)])
    assert len(space.enumerate_rows()) == 60 * 59 // 2


def test_too_many_points_are_not_enumerated():
    with pytest.raises(SpaceError, match="too many to list"):
        Space.binary(40).enumerate_rows()


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
