"""The space: values in, index rows inside, the same values out; and every complaint it makes."""

import copy
import json
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.points import MIXED, POINT, ROW

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
        ([1, 10**400], "100000000000...000000000000 (401 digits) is too large; a number is at"),
        ([-(10**5000)], "-100000000000...000000000000 (5,001 digits) is too large"),
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
        (-(10**400), 0, "-100000000000...000000000000 (401 digits) is too large"),
    ],
)
def test_wrong_bounds_are_refused_and_quoted(low, high, message):
    with pytest.raises(SpaceError, match=re.escape(message)):
        Integer(low, high)


def test_a_bound_of_thousands_of_digits_is_refused_and_named():
    with pytest.raises(SpaceError, match=r"100000000000\.\.\.000000000000 \(5,001 digits\) is too"):
        Integer(0, 10**5000)


def test_a_point_with_a_huge_integer_is_refused_and_named():
    with pytest.raises(PointError, match=r"100000000000\.\.\.000000000000 \(5,001 digits\) is not"):
        Space({"n": Integer(0, 5)}).rows([[10**5000]])


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
