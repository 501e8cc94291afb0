"""Feasible rows: listed, random, unseen; and the proof that there are none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.constrained import all_points, constrained_spaces, rules

from mercbo import (
    AllDifferent,
    AtLeast,
    AtMost,
    BackendError,
    Binary,
    Categorical,
    Exactly,
    Forbid,
    Implies,
    Integer,
    Linear,
    Ordinal,
    Space,
    SpaceError,
    Tied,
    Where,
)
from mercbo.arrays import keys
from mercbo.domain import feasible
from mercbo.domain.feasible import Feasible

SMALL = Space(
    {
        "a": Categorical(["x", "y", "z"]),
        "b": Ordinal([1, 2, 3, 4]),
        "c": Binary(),
        "d": Categorical([None]),
    }
)


def as_set(rows: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(row) for row in rows.tolist()}


def seen_of(space: Space, count: int, seed: int) -> tuple[np.ndarray, set[bytes]]:
    """`count` points of the space, and their keys."""
    rows = np.random.default_rng(seed).permutation(space.enumerate_rows())[:count]
    return rows, set(keys(rows))


# -- unseen ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", range(SMALL.size))
def test_unseen_points_are_distinct_and_new(count):
    known, seen = seen_of(SMALL, count, seed=count)
    for k in (1, 2, 7, SMALL.size):
        rows = SMALL.feasible.unseen(seen, k, rng=np.random.default_rng(k))
        assert len(rows) == min(k, SMALL.size - count)
        assert len(as_set(rows)) == len(rows)
        assert not as_set(rows) & as_set(known)
        assert as_set(rows) <= as_set(SMALL.enumerate_rows())


@pytest.mark.parametrize("left", range(5))
def test_all_that_are_left_come_when_more_are_wanted(left):
    known, seen = seen_of(SMALL, SMALL.size - left, seed=1)
    rows = SMALL.feasible.unseen(seen, 10, rng=np.random.default_rng(0))
    assert as_set(rows) == as_set(SMALL.enumerate_rows()) - as_set(known)
    assert len(rows) == left


def test_every_unseen_point_can_come():
    """Each of the 23 left is missed by 600 fair draws with probability below 3e-12."""
    known, seen = seen_of(SMALL, 1, seed=0)
    rng = np.random.default_rng(0)
    found = set().union(*(as_set(SMALL.feasible.unseen(seen, 1, rng=rng)) for _ in range(600)))
    assert found == as_set(SMALL.enumerate_rows()) - as_set(known)


def test_unseen_points_of_a_space_too_large_to_list():
    space = Space.binary(300)
    rows = space.feasible.unseen(set(), 50, rng=np.random.default_rng(0))
    again = space.feasible.unseen(set(keys(rows)), 50, rng=np.random.default_rng(0))
    assert rows.shape == (50, 300)
    assert len(as_set(rows)) == 50
    assert not as_set(again) & as_set(rows)


@pytest.mark.parametrize("space", [SMALL, Space.binary(300)], ids=["small", "large"])
def test_no_points_wanted_are_no_points(space):
    rows = space.feasible.unseen(set(), 0, rng=np.random.default_rng(0))
    assert rows.shape == (0, len(space))


def test_unseen_points_follow_the_generator():
    first, same, other = (
        Space.binary(30).feasible.unseen(set(), 3, rng=np.random.default_rng(s)).tolist()
        for s in (0, 0, 1)
    )
    assert first == same
    assert first != other


@given(st.integers(0, 24), st.integers(1, 30), st.integers(0, 2**32))
def test_unseen_gives_as_many_new_points_as_there_can_be(count, k, seed):
    known, seen = seen_of(SMALL, count, seed)
    rows = SMALL.feasible.unseen(seen, k, rng=np.random.default_rng(seed))
    assert len(as_set(rows)) == min(k, SMALL.size - count)
    assert not as_set(rows) & as_set(known)


# -- with constraints --------------------------------------------------------------------------


def binaries(count: int) -> dict:
    return {f"x{i}": Binary() for i in range(count)}


def feasible_set(space: Space, meaning) -> set[tuple[int, ...]]:
    points = [p for p in all_points(space.variables) if meaning(p)]
    return as_set(space.rows(points))


@pytest.fixture
def unlisted(monkeypatch):
    """Regions are not listed, whatever their size."""
    monkeypatch.setattr(feasible, "LISTED", 0)
    monkeypatch.setattr(feasible, "BEGINNINGS", 0)
    monkeypatch.setattr(feasible, "RARE", 0)


@given(constrained_spaces(predicates=True), st.integers(0, 2**31))
@settings(max_examples=50)
def test_samples_are_feasible_and_any_feasible_point_can_come(pair, seed):
    space, meaning = pair
    rng = np.random.default_rng(seed)
    assert all(meaning(p) for p in space.sample(30, rng=rng))
    assert len(space.sample(30, rng=rng)) == 30
    fine = feasible_set(space, meaning)
    some = set(sorted(fine)[::2])
    seen = set(keys(np.array(sorted(some), dtype=np.int64)))
    rows = space.feasible.unseen(seen, len(fine) + 3, rng=rng)
    assert len(rows) == len(fine) - len(some)
    assert as_set(rows) == fine - some
    assert space.feasible.left(seen, 10**6) == len(rows)


@given(constrained_spaces())
@settings(max_examples=60)
def test_listings_are_complete_and_in_order(pair):
    space, meaning = pair
    rows = feasible.listing(space.region, 1000)
    assert rows.tolist() == sorted(map(list, feasible_set(space, meaning)))
    assert feasible.listing(space.region, len(rows)) is not None
    assert feasible.listing(space.region, len(rows) - 1) is None


@given(constrained_spaces(), st.integers(0, 2**31))
@settings(max_examples=50)
def test_dives_and_mended_rows_are_feasible(pair, seed):
    space, meaning = pair
    rng = np.random.default_rng(seed)
    anywhere = rng.integers(0, space.sizes, (10, len(space)))
    for rows in (
        feasible.dive(space.region, 20, rng=rng),
        feasible.mend(space.region, anywhere, rng=rng),
    ):
        assert all(meaning(p) for p in space.points(rows))


@given(constrained_spaces(points=60), st.integers(0, 2**31))
@settings(max_examples=15)
def test_cp_sat_finds_each_row_once_and_then_proves_that_there_are_no_more(pair, seed):
    space, meaning = pair
    rng = np.random.default_rng(seed)
    fine = feasible_set(space, meaning)
    barred = np.array(sorted(fine)[: max(0, len(fine) - 3)], dtype=np.int64).reshape(-1, len(space))
    for _ in range(min(3, len(fine))):
        row, refuted = feasible.solve(space.region, barred, rng=rng)
        assert not refuted
        assert as_set(row) <= fine - as_set(barred)
        barred = np.concatenate([barred, row])
    assert as_set(barred) == fine
    row, refuted = feasible.solve(space.region, barred)
    assert len(row) == 0
    assert refuted


CODED = {
    "base": Categorical(list("ACGTU"), encoding="binary"),
    "twin": Categorical(list("TUA"), encoding="binary"),
    "n": Integer(0, 3),
    "wash": Binary(),
    "only": Ordinal([2]),
}
CODED_RULES = [
    AllDifferent(["base", "twin"]),
    Linear({"n": 1, "only": 1, ("base", "A"): -2.5}, "<=", 3.5),
    Implies({"wash": 1}, {"base": ["A", "T"]}),
]


@pytest.mark.usefixtures("unlisted")
@pytest.mark.parametrize("predicate", [[], [Where(lambda p: p["n"] != 1, name="not 1")]])
def test_unseen_gives_each_row_once_where_none_are_listed(predicate, monkeypatch):
    monkeypatch.setattr(feasible, "LONG_PATIENCE", 1000)
    monkeypatch.setattr(feasible, "REFUSED", 5)
    space = Space(CODED, [*CODED_RULES, *predicate])
    fine = as_set(space.enumerate_rows())
    assert space.feasible.listed is None
    assert 20 < len(fine) < space.size
    rng, found = np.random.default_rng(0), []
    while True:
        rows = space.feasible.unseen(set(keys(np.array(found, dtype=np.int64))), 9, rng=rng)
        found += rows.tolist()
        if len(rows) < 9:
            break
    assert len(found) == len(fine)
    assert as_set(np.array(found)) == fine
    assert len(space.feasible.unseen(set(keys(np.array(found))), 2, rng=rng)) == 0


@pytest.mark.usefixtures("unlisted")
def test_samples_where_none_are_listed_are_feasible():
    space = Space(CODED, CODED_RULES)
    fine = as_set(space.enumerate_rows())
    rows = space.sample_rows(2000, rng=np.random.default_rng(0))
    assert as_set(rows) == fine


def subset_sum(count: int, seed: int = 0) -> tuple[Space, list[int]]:
    """Weights of which just one subset adds up to the bound, one in 2^count."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(10**7, 10**8, count)
    chosen = rng.integers(0, 2, count)
    total = {f"x{i}": int(w) for i, w in enumerate(weights)}
    return Space(binaries(count), [Linear(total, "==", int(weights @ chosen))]), chosen.tolist()


def test_the_only_solution_is_found_where_dives_find_none():
    space, chosen = subset_sum(20)
    rng = np.random.default_rng(0)
    assert len(feasible.dive(space.region, 20, rng=rng)) == 0
    assert space.sample_rows(2, rng=rng).tolist() == [chosen, chosen]
    assert space.feasible.unseen((), 5, rng=rng).tolist() == [chosen]


def test_a_predicate_is_asked_about_what_only_cp_sat_finds():
    _, chosen = subset_sum(20)
    weights = subset_sum(20)[0].constraints[0]
    same = Where(lambda p: p["x0"] == chosen[0], name="same")
    space = Space(binaries(20), [weights, same])
    assert space.feasible.unseen((), 3, rng=np.random.default_rng(0)).tolist() == [chosen]
    other = Where(lambda p: p["x0"] != chosen[0], name="other")
    with pytest.raises(SpaceError, match=r"none of the 1 points .* satisfies \[Where\('other'\)"):
        Space(binaries(20), [weights, other])


def test_few_rows_that_dives_miss_are_listed_by_cp_sat():
    space, chosen = subset_sum(20)
    assert feasible.listing(space.region, feasible.LISTED) is None
    assert space.feasible.listed.tolist() == [chosen]


def test_rows_that_dives_meet_are_not_searched_for():
    space = Space(binaries(200), [Exactly(5, [f"x{i}" for i in range(200)])])
    assert feasible.rare_rows(space.region) is None


@pytest.mark.parametrize(
    ("variables", "constraints"),
    [
        (binaries(200), [Exactly(5, [f"x{i}" for i in range(200)])]),
        (
            binaries(60),
            [Linear({f"x{i}": 10 + i % 7 for i in range(60)}, "<=", 180)],
        ),
        (
            {f"p{i}": Categorical(range(12)) for i in range(12)},
            [AllDifferent([f"p{i}" for i in range(12)])],
        ),
        (
            {f"c{i}": Categorical(range(6)) for i in range(20)},
            [
                Forbid([{f"c{i % 20}": i % 6, f"c{(7 * i + 3) % 20}": (5 * i) % 6}])
                for i in range(30)
            ],
        ),
        (
            {
                **{f"p{i}": Categorical(range(8), encoding="binary") for i in range(8)},
                **binaries(30),
                "n": Integer(0, 9),
            },
            [
                AllDifferent([f"p{i}" for i in range(8)]),
                Exactly(4, [f"x{i}" for i in range(30)]),
                Linear({"n": 3, **{f"x{i}": i for i in range(30)}}, "==", 61),
                Implies({"p0": [0, 1, 2]}, {"x3": 1, "n": [1, 2, 3]}),
                Forbid({"p1": 3, "p2": 4}),
                Tied(["x5", "x6"]),
            ],
        ),
    ],
    ids=["5 of 200", "knapsack", "permutation", "30 forbidden pairs", "several"],
)
def test_feasible_points_are_found_where_few_are(variables, constraints):
    space = Space(variables, constraints)
    rng = np.random.default_rng(0)
    points = space.sample(40, rng=rng)
    assert all(space.broken(p) == [] for p in points)
    rows = space.feasible.unseen((), 40, rng=rng)
    assert len(as_set(rows)) == 40
    assert space.region.allows(rows).all()
    # each of 40 is spread out: no variable that matters stays as it is
    assert len(as_set(space.rows(points))) > 30


def test_the_knapsack_is_rare_by_chance():
    space = Space(binaries(60), [Linear({f"x{i}": 10 + i % 7 for i in range(60)}, "<=", 180)])
    rows = np.random.default_rng(0).integers(0, 2, (20_000, 60))
    assert space.region.holds(rows).mean() < 0.01


def test_many_values_beside_many_beginnings_are_not_listed_in_memory():
    """2^16 beginnings times 2,048 values would be 134 million rows at once."""
    wide = {**binaries(16), "z": Integer(0, 2047)}
    space = Space(wide, [Linear(dict.fromkeys(wide, 1), "<=", 2000)])
    assert space.feasible.listed is None
    assert space.region.allows(space.sample_rows(10, rng=np.random.default_rng(0))).all()


def test_a_region_with_a_closed_variable_lists_nothing():
    space = Space({**binaries(40), "a": Categorical(["x", "y"])}, [Forbid({"a": "x"})])
    closed = space.region.fixed([80])
    assert len(feasible.listing(closed, 10)) == 0
    assert feasible.is_empty(closed)


# -- no solution -------------------------------------------------------------------------------


def blamed(variables: dict, constraints: list) -> list:
    """The constraints that the error names, in the order given."""
    with pytest.raises(SpaceError, match="no point satisfies all constraints: ") as caught:
        Space(variables, constraints)
    return [c for c in constraints if repr(c) in str(caught.value)]


PIGEONS = {f"p{i}": Categorical(range(7)) for i in range(8)}
PARITY = binaries(24)
INNOCENT = [AtMost(3, ["a", "b"]), Linear({"a": 1, "b": 2}, "<=", 9), Forbid({"a": 1, "b": 0})]
AB = {"a": Binary(), "b": Binary(), "c": Categorical(["x", "y", "z"]), "s": Integer(3, 3)}


@pytest.mark.parametrize(
    ("variables", "guilty", "innocent"),
    [
        (PIGEONS, [AllDifferent(list(PIGEONS))], [AtMost(7, [("p0", 1), ("p1", 1)])]),
        (
            PARITY,
            [Linear({x: 2 + 2 * (i % 3) for i, x in enumerate(PARITY)}, "==", 31)],
            [AtLeast(2, list(PARITY)), Forbid({"x0": 1, "x1": 1})],
        ),
        (
            PARITY,
            [
                Linear(dict.fromkeys(list(PARITY)[:12], 2.0) | {"x20": 1.0}, "==", 11),
                Linear(dict.fromkeys(list(PARITY)[12:23], 2.0) | {"x23": -1.0}, "==", 9),
                Implies({"x20": 1}, {"x23": 0}),
            ],
            [AtMost(20, list(PARITY)), Tied(["x0", "x1"])],
        ),
        (AB, [Implies({"a": 1}, {"b": 1}), Forbid({"a": 1, "b": 1}), Exactly(1, ["a"])], []),
        (
            AB,
            [Forbid([{"c": "x"}, {"c": "y"}]), Implies({"c": "z"}, {"a": 1}), AtMost(0, ["a"])],
            [AtMost(1, ["b"]), Linear({"b": 1, "s": 1}, "<=", 9)],
        ),
        (AB, [Linear({"a": 0, "b": 0}, "<=", -1)], INNOCENT),
        (AB, [Linear({"s": 1}, "<=", 2)], INNOCENT),
        (AB, [Linear({"s": 1, "a": 1}, "<=", 2)], INNOCENT),
        (AB, [Exactly(3, ["a", "b"])], INNOCENT),
        (AB, [Tied(["s", "c"])], INNOCENT),
        (AB, [Tied(["a", "b"]), AllDifferent(["b", "a"])], INNOCENT[:2]),
        (AB, [AtLeast(2, ["a", "b"]), AtMost(1, ["b", "a"])], INNOCENT[1:2]),
    ],
    ids=["pigeons", "parity", "two parities", "chain", "closed", "nothing weighed", "one value",
         "one value and a bit", "too many", "no common value", "tied and different", "counts"],
)  # fmt: skip
def test_a_smallest_conflict_is_named(variables, guilty, innocent):
    for mixed in ([*innocent, *guilty], [*guilty, *innocent]):
        assert set(blamed(variables, mixed)) == set(guilty)
    for number in range(len(guilty)):
        rest = guilty[:number] + guilty[number + 1 :]
        assert Space(variables, [*innocent, *rest]).sample(1, rng=np.random.default_rng(0))


def test_two_single_values_that_miss_a_sum_have_no_solution():
    variables = {"s": Integer(1, 1), "t": Ordinal([2.5]), "a": Binary()}
    missed = Linear({"s": 1, "t": 1}, ">=", 3.6)
    assert blamed(variables, [missed, AtMost(0, ["a"])]) == [missed]
    assert Space(variables, [Linear({"s": 1, "t": 1}, ">=", 3.5)]).region.allows(
        np.zeros((1, 3), dtype=np.int64)
    )


def test_one_constraint_alone_is_not_said_to_clash_with_another():
    with pytest.raises(SpaceError, match=r"Exactly\(3, \['a', 'b'\]\) cannot hold$"):
        Space(AB, [Exactly(3, ["a", "b"])])


@given(rules(most=4, points=100))
@settings(max_examples=40)
def test_spaces_are_refused_just_where_they_have_no_point(pair):
    made, found = pair
    constraints = [c for c, _ in found]
    fine = [p for p in all_points(made) if all(holds(p) for _, holds in found)]
    if fine:
        assert Space(made, constraints)
        return
    named = blamed(made, constraints)
    meanings = [holds for c, holds in found if c in named]
    assert not any(all(holds(p) for holds in meanings) for p in all_points(made))
    if len(set(map(repr, constraints))) == len(constraints):
        for left_out in meanings:
            rest = [holds for holds in meanings if holds is not left_out]
            assert any(all(holds(p) for holds in rest) for p in all_points(made))


def test_a_region_without_points_gives_no_samples():
    region = Space(AB, [AtMost(1, ["a", "b"])]).region.fixed([1, 3])
    with pytest.raises(SpaceError, match=r"no point satisfies \[AtMost"):
        Feasible(region).sample(1, rng=np.random.default_rng(0))


@pytest.mark.usefixtures("unlisted")
def test_a_region_without_points_gives_no_samples_where_none_are_listed():
    region = Space(AB, [AtMost(1, ["a", "b"])]).region.fixed([1, 3])
    with pytest.raises(SpaceError, match=r"no point satisfies \[AtMost"):
        Feasible(region).sample(1, rng=np.random.default_rng(0))
    assert len(Feasible(region).unseen((), 1, rng=np.random.default_rng(0))) == 0


def test_predicates_that_allow_nothing_of_a_large_space_are_said_to():
    space = Space(binaries(40), [Where(lambda _: False, name="never")])
    with pytest.raises(SpaceError, match=r"satisfies \[Where\('never'\)\]"):
        space.sample(1, rng=np.random.default_rng(0))


def test_what_cannot_be_decided_in_time_is_said_to_be_so(monkeypatch):
    space, _ = subset_sum(20)
    monkeypatch.setattr(feasible, "PROOF_SECONDS", 1e-6)
    with pytest.raises(BackendError, match="nor a proof that there is none"):
        feasible.is_empty(space.region)
