"""Regions: which rows are allowed, and which moves keep them so."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.constrained import all_points, constrained_spaces

from mercbo import (
    AllDifferent,
    AtLeast,
    AtMost,
    Binary,
    Categorical,
    Exactly,
    Forbid,
    Integer,
    Linear,
    Space,
    Tied,
    Where,
)
from mercbo.domain import region
from mercbo.domain.limits import Limits
from mercbo.domain.region import Region
from mercbo.encoding import Encoding

VARIABLES = {
    "a": Categorical(["x", "y", "z"]),
    "b": Categorical(["y", "z", "u", None, 1], encoding="binary"),
    "n": Integer(-1, 2),
    "c": Binary(),
    "s": Integer(5, 5),
}


def of(*constraints, variables=VARIABLES) -> Region:
    return Space(variables, constraints).region


# -- levels and limits -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "closed"),
    [
        (Forbid({"a": "x"}), [0]),
        (Forbid([{"a": ["x", "z"]}, {"c": 0}]), [0, 2, 12]),
        (AtMost(0, [("b", None), ("b", 1)]), [6, 7]),
        (Exactly(1, [("a", "x"), ("a", "y")]), [2]),
        (AtLeast(1, ["c"]), [12]),
        (Linear({"n": 2}, ">=", 0), [8]),
        (Linear({"n": 1, "c": 0}, "<=", 1), [11]),
        (Linear({"n": 1, ("n", -1): 9}, "==", 8), [9, 10, 11]),
        (Linear({"s": 1}, "==", 5), []),
        (Linear({"n": 0, "c": 0}, "<=", 0), []),
    ],
    ids=repr,
)
def test_what_speaks_of_one_variable_closes_levels(constraint, closed):
    made = of(constraint)
    assert np.flatnonzero(~made.open).tolist() == closed
    assert len(made.limits) == 0


def test_tied_variables_close_the_values_that_they_do_not_share():
    made = of(Tied(["a", "b"]))
    assert np.flatnonzero(~made.open).tolist() == [0, 5, 6, 7]
    assert len(made.limits) == 2


def test_limits_know_their_constraint():
    made = of(Forbid({"c": 1}), AllDifferent(["a", "b"]), AtMost(1, ["c", ("n", 2)]))
    assert made.owner.tolist() == [1, 1, 2]


@pytest.mark.parametrize(
    ("constraints", "free", "linear"),
    [
        ([], True, True),
        ([AtMost(1, ["c", ("a", "x")])], False, True),
        ([Forbid({"a": "x"})], False, True),
        ([Where(lambda _: True, name="all")], False, False),
        ([Linear({"n": 1}, "<=", 2)], True, True),
    ],
)
def test_a_region_knows_what_rules_it(constraints, free, linear):
    made = of(*constraints)
    assert (made.is_free, made.is_linear) == (free, linear)


def test_a_table_is_neither_free_nor_linear():
    made = Space.table([{"a": 1, "b": 2}, {"a": 2, "b": 1}]).region
    assert not made.is_free
    assert not made.is_linear
    assert made.allows(np.array([[0, 0], [0, 1], [1, 0], [1, 1]])).tolist() == [0, 1, 1, 0]


@given(constrained_spaces(predicates=True))
@settings(max_examples=30)
def test_states_over_open_levels_are_rows_again(pair):
    space, _ = pair
    made = space.region
    rows = space.enumerate_rows()
    states = made.open_states(rows)
    assert made.rows_of(states).tolist() == rows.tolist()
    assert made.open_limits.satisfied(states).all()
    np.testing.assert_allclose(states.astype(float) @ made.open_limits.matrix.T, made.sides(rows))


# -- moves -------------------------------------------------------------------------------------


@given(constrained_spaces(points=100))
@settings(max_examples=30)
def test_moves_are_the_levels_that_lead_to_feasible_rows(pair):
    space, meaning = pair
    made = space.region
    rows = space.enumerate_rows()
    found = made.moves(rows)
    for row, levels in zip(rows, found, strict=True):
        for level, fine in enumerate(levels.tolist()):
            moved = row.copy()
            variable = int(made.variable_of[level])
            moved[variable] = level - made.start[variable]
            assert fine == meaning(space.points(moved[np.newaxis])[0])


@given(constrained_spaces(points=100))
@settings(max_examples=20)
def test_chunks_change_nothing(pair):
    space, _ = pair
    rows = space.rows(all_points(space.variables))
    fine = space.enumerate_rows()
    sides, moves = space.region.sides(rows), space.region.moves(fine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region, "CHUNK_ENTRIES", 7)
        assert (space.region.sides(rows) == sides).all()
        assert (space.region.moves(fine) == moves).all()


@given(constrained_spaces(predicates=True), st.data())
@settings(max_examples=30)
def test_fixed_values_leave_the_rows_that_have_them(pair, data):
    space, meaning = pair
    made = space.region
    level = data.draw(st.integers(0, len(made.open) - 1))
    name = list(space.variables)[made.variable_of[level]]
    value = space.variables[name].values[level - made.start[made.variable_of[level]]]
    points = all_points(space.variables)
    assert made.fixed([level]).allows(space.rows(points)).tolist() == [
        meaning(p) and p[name] == value for p in points
    ]


# -- what is broken ----------------------------------------------------------------------------


def test_every_constraint_that_a_row_breaks_is_named():
    rules = [
        Forbid({"a": "x", "c": 1}),
        AtMost(1, ["c", ("n", 2)]),
        Where(lambda p: p["b"] is not None, name="some b"),
        Linear({"n": 1, "s": 1}, "<=", 7),
        AllDifferent(["a", "b"]),
    ]
    space = Space(VARIABLES, rules)
    assert space.broken({"a": "x", "b": None, "n": 2, "c": 1, "s": 5}) == rules[:3]
    assert space.broken({"a": "y", "b": "y", "n": 0, "c": 0, "s": 5}) == rules[4:]
    assert space.broken({"a": "y", "b": "z", "n": 0, "c": 0, "s": 5}) == []


def test_answers_of_predicates_are_forgotten_before_they_fill_the_memory(monkeypatch):
    monkeypatch.setattr(region, "MOST_ANSWERS", 3)
    space = Space({"n": Integer(0, 30)}, [Where(lambda p: p["n"] % 2 == 0, name="even")])
    for value in range(31):
        assert space.region.allows(np.array([[value]])).tolist() == [value % 2 == 0]
    assert len(space.region._answers) < 10


@pytest.mark.parametrize("seed", range(4))
def test_moves_under_many_limits_are_those_of_the_long_way(seed, monkeypatch):
    """From rows within the limits and from others."""
    rng = np.random.default_rng(seed)
    names = [f"c{i}" for i in range(8)]
    pairs = [
        {names[i]: int(rng.integers(4)), names[j]: int(rng.integers(4))}
        for i, j in (rng.choice(8, 2, replace=False) for _ in range(40))
    ]
    space = Space({name: Categorical(range(4)) for name in names}, [Forbid(pairs)])
    rows = rng.integers(0, 4, (40, 8))
    monkeypatch.setattr(Limits, "are_sparse", False)
    slow = space.region.moves(rows)
    monkeypatch.setattr(Limits, "are_sparse", True)
    assert np.array_equal(space.region.moves(rows), slow)
    assert slow.any()
    assert not slow.all()


def test_rows_far_from_others_are_those_that_differ_in_enough_variables():
    space = Space(
        {"a": Categorical(list("pqr")), "b": Binary(), "n": Integer(0, 3), "c": Binary()},
        [AtMost(1, ["b", "c"])],
    )
    rows = np.array(space.enumerate_rows())
    placed = np.array([[0, 0, 0, 0], [2, 1, 3, 0]])
    apart = (rows[:, np.newaxis] != placed).sum(axis=2)
    for distance in range(1, 5):
        far = space.region.apart(placed, distance)
        wanted = space.region.allows(rows) & (apart >= distance).all(axis=1)
        assert np.array_equal(far.allows(rows), wanted)
        listed = space.feasible.apart(placed, distance).listed
        assert {tuple(row) for row in listed.tolist()} == {tuple(r) for r in rows[wanted].tolist()}


def test_a_region_survives_being_sent_to_another_process():
    space = Space({"a": Categorical(list("pqr")), "b": Binary()}, [Forbid({"a": "p", "b": 1})])
    space.feasible.levels(Encoding(space))  # known by an identity that is another one there
    feasible = pickle.loads(pickle.dumps(space.feasible))
    rows = np.array([[0, 0], [0, 1], [2, 1]])
    assert feasible.region.allows(rows).tolist() == space.region.allows(rows).tolist()
    assert feasible._levels == {}
