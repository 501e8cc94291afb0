"""Spaces of a finite list of designs, and constrained spaces as seen from outside."""

import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest

from mercbo import (
    AtMost,
    Binary,
    Categorical,
    Exactly,
    Forbid,
    Integer,
    Linear,
    Ordinal,
    PointError,
    SettingError,
    Space,
    SpaceError,
    Where,
)
from mercbo.arrays import keys

CATALOGUE = [
    {"metal": "Pd", "mol": 5, "ligand": None, "dry": True, "price": 1.5},
    {"metal": "Ni", "mol": 10, "ligand": "PPh3", "dry": False, "price": 20},
    {"metal": "Pd", "mol": 10, "ligand": "PPh3", "dry": True, "price": 3},
    {"metal": "Cu", "mol": 2, "ligand": None, "dry": False, "price": 1.5},
]


def through_json(data: dict) -> dict:
    return json.loads(json.dumps(data, allow_nan=False))


def listed(space: Space) -> list[dict]:
    return space.points(space.enumerate_rows())


# -- what a table becomes ----------------------------------------------------------------------


@pytest.mark.parametrize("rows", [CATALOGUE, iter(CATALOGUE), pd.DataFrame(CATALOGUE)])
def test_kinds_are_inferred_from_the_columns(rows):
    space = Space.table(rows)
    assert dict(space.variables) == {
        "metal": Categorical(["Cu", "Ni", "Pd"]),
        "mol": Ordinal([2, 5, 10]),
        "ligand": Categorical(["PPh3", None]),
        "dry": Categorical([False, True]),
        "price": Ordinal([1.5, 3, 20]),
    }
    assert space.size == 4
    assert listed(space) == CATALOGUE


def test_columns_of_the_same_values_list_them_alike():
    sequences = ["TGA", "ACG", "GTC", "CAT"]
    rows = [{f"s{i}": letter for i, letter in enumerate(text)} for text in sequences]
    found = Space.table(rows).variables
    assert {variable.values for variable in found.values()} == {("A", "C", "G", "T")}
    mixed = Space.table([{"a": "x", "b": None}, {"a": None, "b": 2}, {"a": 2, "b": "x"}]).variables
    assert mixed["a"].values == mixed["b"].values == (2, "x", None)


def test_given_variables_take_the_place_of_inferred_ones():
    metals = Categorical(["Cu", "Ni", "Pd", "Au"], encoding="binary")
    space = Space.table(CATALOGUE, variables={"metal": metals, "mol": Integer(1, 12)})
    assert space.variables["metal"] == metals
    assert space.variables["mol"] == Integer(1, 12)
    assert space.variables["price"] == Ordinal([1.5, 3, 20])
    assert listed(space) == CATALOGUE


def test_names_may_come_in_another_order():
    space = Space.table([CATALOGUE[0], dict(reversed(CATALOGUE[1].items()))])
    assert listed(space) == CATALOGUE[:2]


def test_missing_cells_of_a_frame_are_none():
    frame = pd.DataFrame({"a": [1.0, np.nan], "b": pd.array([1, pd.NA], dtype="Int64")})
    space = Space.table(frame)
    assert listed(space) == [{"a": 1.0, "b": 1}, {"a": None, "b": None}]


def test_only_rows_of_the_table_are_allowed():
    space = Space.table(CATALOGUE)
    other = {**CATALOGUE[0], "mol": 2}
    assert space.feasible_rows(CATALOGUE).tolist() == space.region.table.tolist()
    with pytest.raises(PointError, match=r"^point 1: {'metal': 'Pd', 'mol': 2.* is not a row of"):
        space.feasible_rows([CATALOGUE[1], other])
    with pytest.raises(PointError, match=r"^{'metal': 'Pd', 'mol': 2, .*} is not a row of the"):
        space.feasible_rows(other)


def test_constraints_filter_the_rows():
    rules = [Forbid({"metal": "Pd", "dry": True}), Linear({"price": 1, "mol": 1}, "<=", 25)]
    assert listed(Space.table(CATALOGUE, constraints=rules)) == [CATALOGUE[3]]
    rules = [Where(lambda p: p["price"] > 2, name="dear"), AtMost(1, [("metal", "Pd")])]
    space = Space.table(CATALOGUE, constraints=rules)
    assert listed(space) == CATALOGUE[1:3]
    assert space.broken(CATALOGUE[0]) == rules[:1]
    assert {p["mol"] for p in space.sample(50, rng=np.random.default_rng(0))} == {10}


def test_unseen_rows_of_a_table_come_once_each():
    space = Space.table(CATALOGUE, constraints=[Forbid({"metal": "Cu"})])
    rng = np.random.default_rng(0)
    first = space.feasible.unseen((), 2, rng=rng)
    rest = space.feasible.unseen(set(keys(first)), 5, rng=rng)
    assert len(first) == 2
    assert len(rest) == 1
    both = np.concatenate([first, rest]).tolist()
    assert sorted(both) == sorted(space.enumerate_rows().tolist())


def test_ten_thousand_rows_work():
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(8)]
    frame = pd.DataFrame(rng.integers(0, 20, (10_000, 8)), columns=names).drop_duplicates()
    assert len(frame) == 10_000
    space = Space.table(frame, constraints=[Linear(dict.fromkeys(names, 1), "<=", 60)])
    wanted = frame[frame.sum(axis=1) <= 60].to_numpy().tolist()
    assert space.size == 10_000
    assert [list(p.values()) for p in listed(space)] == wanted
    assert space.region.allows(space.sample_rows(100, rng=rng)).all()
    assert len(space.feasible.unseen((), 20_000, rng=rng)) == len(wanted)


def test_tables_survive_json_and_pickle():
    space = Space.table(CATALOGUE, constraints=[Forbid({"metal": "Cu"})])
    for back in (Space.from_dict(through_json(space.to_dict())), pickle.loads(pickle.dumps(space))):
        assert back == space
        assert hash(back) == hash(space)
        assert listed(back) == CATALOGUE[:3]
    assert Space.table(CATALOGUE) != space
    assert Space.table(CATALOGUE) != Space(Space.table(CATALOGUE).variables)
    assert Space.table(CATALOGUE) != Space.table(
        CATALOGUE[:3], variables=Space.table(CATALOGUE).variables
    )


def test_the_repr_of_a_table_says_how_many_rows():
    assert repr(Space.table(CATALOGUE)).startswith("Space.table(4 rows of {'metal': ")


# -- complaints --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "the table has no rows"),
        (pd.DataFrame(columns=["a"]), "the table has no rows"),
        ([{}], "the table has no rows"),
        ("abc", "a table is a list of dicts or a DataFrame, got 'abc'"),
        ({"a": [1, 2]}, "a table is a list of dicts or a DataFrame, got {'a': [1, 2]}"),
        (3, "a table is a list of dicts or a DataFrame, got 3"),
        ([[1, 2]], "row 0: [1, 2] is not a dict of name: value"),
        ([{"a": 1}, {"b": 1}], "row 1 has the names ['b'], row 0 has ['a']"),
        ([{"a": 1}, {"a": 1, "b": 2}], "row 1 has the names ['a', 'b'], row 0 has ['a']"),
        ([{"a": 1}, {"a": 2}, {"a": 1}], "rows 0 and 2 of the table are the same"),
        ([{"a": 1}, {"a": 1.0}], "rows 0 and 1 of the table are the same"),
        ([{"a": 1}, {"a": float("nan")}], "'a': nan cannot be a value"),
        ([{"a": [1]}], "[1] is a list; values are"),
        ([{3: 1}], "a variable's name must be a non-empty str, got 3"),
        (pd.DataFrame([[1]], columns=[0]), "a variable's name must be a non-empty str, got 0"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns are named 'a'"),
        ([{"a": i} for i in range(3000)], "'a': 3000 values are too many for one variable"),
    ],
    ids=lambda part: repr(part)[:30],
)
def test_a_wrong_table_is_refused(rows, message):
    with pytest.raises(SpaceError, match=re.escape(message)):
        Space.table(rows)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"metl": Binary()}, "variables: no column is named 'metl'; did you mean 'metal'?"),
        ({"metal": 3}, "'metal': 3 is not a variable"),
        (["metal"], "variables must be a dict of name: variable, got ['metal']"),
        ({"metal": Categorical(["Pd", "Ni"])}, "point 3: 'metal': 'Cu' is not one of ['Pd', 'Ni']"),
    ],
)
def test_wrong_variables_of_a_table_are_refused(variables, message):
    with pytest.raises(SpaceError, match=re.escape(message)):
        Space.table(CATALOGUE, variables=variables)


def test_constraints_that_leave_no_row_are_refused():
    for rule in (Forbid({"metal": ["Pd", "Ni", "Cu"]}), Where(lambda _: False, name="never")):
        with pytest.raises(
            SpaceError, match=re.escape(f"no row of the table satisfies all constraints: {rule!r}")
        ):
            Space.table(CATALOGUE, constraints=[Forbid({"metal": "Pd"}), rule])


@pytest.mark.parametrize(
    "table",
    [[], 5, {}, "ab", [0, 1, 1, 0],
     [[0, 1], [1]], [[0, 1, 0]], [[0.5, 1]], [["a", "b"]], [[True, False]]],
)  # fmt: skip
def test_a_table_of_a_file_is_a_list_of_index_rows(table):
    data = {**Space({"a": Binary(), "b": Integer(0, 2)}).to_dict(), "table": table}
    with pytest.raises(SpaceError, match="'table' is not a list of rows of 2 indices"):
        Space.from_dict(data)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0, 3]], "'table' has rows that are not in the space"),
        ([[-1, 0]], "'table' has rows that are not in the space"),
        ([[0, 1], [1, 1], [0, 1]], "rows 0 and 2 of the table are the same"),
    ],
)
def test_rows_of_a_file_are_checked(table, message):
    data = {**Space({"a": Binary(), "b": Integer(0, 2)}).to_dict(), "table": table}
    with pytest.raises(SpaceError, match=message):
        Space.from_dict(data)


# -- a constrained space -----------------------------------------------------------------------

RULED = Space(
    {"a": Binary(), "b": Binary(), "c": Categorical(["x", "y", None])},
    [Exactly(1, ["a", "b"]), Forbid({"c": None, "a": 1})],
)


def test_size_counts_before_constraints_and_enumeration_after():
    assert RULED.size == 12
    assert len(RULED.enumerate_rows()) == 5


def test_feasible_rows_name_what_a_point_breaks():
    fine = [[1, 0, "x"], [0, 1, None]]
    assert RULED.feasible_rows(fine).tolist() == [[1, 0, 0], [0, 1, 2]]
    with pytest.raises(PointError, match=r"^{'a': 1, 'b': 1, 'c': 'x'} breaks Exactly\(1, "):
        RULED.feasible_rows([1, 1, "x"])
    with pytest.raises(PointError, match=r"^point 1: {'a': 1, .*} breaks Forbid\({'c': None"):
        RULED.feasible_rows([[1, 0, "x"], [1, 0, None]])
    with pytest.raises(PointError, match="'c': 'z' is not one of"):
        RULED.feasible_rows([1, 0, "z"])


def test_broken_takes_one_point():
    assert RULED.broken([1, 1, None]) == list(RULED.constraints)
    assert RULED.broken({"a": 0, "b": 1, "c": None}) == []
    for points in ([], [[0, 1, "x"], [1, 0, "x"]]):
        with pytest.raises(PointError, match=f"one point was wanted, {len(points)} came"):
            RULED.broken(points)


def test_partial_points_are_positions_and_indices():
    assert RULED.partial({"c": None, "a": True}) == {2: 2, 0: 1}
    assert RULED.partial({}) == {}


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ([1], "fixed must be a dict of name: value, got [1]"),
        (None, "fixed must be a dict of name: value, got None"),
        ({"aa": 1}, "fixed: unknown variable 'aa'; did you mean 'a'?"),
        ({"c": "z"}, "'c': 'z' is not one of ['x', 'y', None]"),
        ({"c": ["x"]}, "'c': a list came, one value was wanted: ['x']"),
    ],
)
def test_wrong_partial_points_are_refused(fixed, message):
    with pytest.raises(PointError, match=re.escape(message)):
        RULED.partial(fixed)


@pytest.mark.parametrize("k", [-1, 1.0, True, "3", None])
def test_a_wrong_number_of_samples_is_refused(k):
    with pytest.raises(SettingError, match=re.escape(f"k={k!r} is not a whole number")):
        RULED.sample(k, rng=np.random.default_rng(0))


def test_the_repr_of_a_constrained_space_can_be_evaluated():
    assert eval(repr(RULED)) == RULED


def test_samples_of_a_listed_region_are_uniform():
    draws = 4000
    rows = RULED.sample_rows(draws, rng=np.random.default_rng(0))
    _, counts = np.unique(rows, axis=0, return_counts=True)
    assert len(counts) == 5
    # five standard deviations of a count
    np.testing.assert_allclose(counts, draws / 5, atol=5 * np.sqrt(draws * 0.2 * 0.8))
