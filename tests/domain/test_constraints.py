"""Constraints mean what they say, on every point of small spaces; and every complaint they make."""

import json
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.constrained import KINDS, all_points, constrained_spaces

from mercbo import (
    AllDifferent,
    AtLeast,
    AtMost,
    Binary,
    Categorical,
    Exactly,
    Forbid,
    Implies,
    Integer,
    Linear,
    Ordinal,
    PointError,
    Space,
    SpaceError,
    Tied,
    Where,
)

VARIABLES = {
    "base": Categorical(["A", "C", "G"]),
    "solvent": Categorical(["DMSO", "THF", None, "water", 1], encoding="binary"),
    "heat": Ordinal([20, 40.5, 80]),
    "grade": Ordinal(["low", "high"]),
    "n": Integer(-1, 2),
    "wash": Binary(),
    "dry": Binary(),
    "only": Categorical(["one"]),
}


# how a message names 10**400
HUGE = "100000000000...000000000000 (401 digits)"


def through_json(data: dict) -> dict:
    return json.loads(json.dumps(data, allow_nan=False))


def even(point: dict) -> bool:
    return (point["n"] + point["wash"]) % 2 == 0


# -- meaning -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(data=st.data())
def test_each_kind_means_what_it_says_at_every_point(kind, data):
    space, meaning = data.draw(constrained_spaces(kinds=(kind,), most=1))
    points = all_points(space.variables)
    assert space.region.allows(space.rows(points)).tolist() == [meaning(p) for p in points]


@settings(max_examples=30)
@given(constrained_spaces(predicates=True))
def test_constraints_together_mean_all_of_them(pair):
    space, meaning = pair
    points = all_points(space.variables)
    fine = [meaning(p) for p in points]
    assert space.region.allows(space.rows(points)).tolist() == fine
    assert [not space.broken(p) for p in points] == fine
    assert space.points(space.enumerate_rows()) == [p for p in points if meaning(p)]


@pytest.mark.slow
@settings(max_examples=300)
@given(constrained_spaces(most=5, points=600))
def test_constraints_together_mean_all_of_them_on_many_spaces(pair):
    space, meaning = pair
    points = all_points(space.variables)
    assert space.region.allows(space.rows(points)).tolist() == [meaning(p) for p in points]


def allowed(variables: dict, *constraints) -> list[tuple]:
    space = Space(variables, constraints)
    return [tuple(p.values()) for p in space.points(space.enumerate_rows())]


TWO = {"a": Binary(), "b": Binary()}


@pytest.mark.parametrize(
    ("weights", "sense", "bound", "fine"),
    [
        # decimals and thirds are meant as written, although no binary fraction is
        ({"a": 0.1, "b": 0.2}, "<=", 0.3, [(0, 0), (0, 1), (1, 0), (1, 1)]),
        ({"a": 0.1, "b": 0.2}, "==", 0.3, [(1, 1)]),
        ({"a": 1 / 3, "b": 2 / 3}, ">=", 1, [(1, 1)]),
        # a large weight does not hide a small one
        ({"a": 1e9, "b": 1}, "<=", 1e9, [(0, 0), (0, 1), (1, 0)]),
        ({"a": 1e15, "b": 1}, "<=", 1e15, [(0, 0), (0, 1), (1, 0)]),
        ({"a": 1e7, "b": 0.01}, "<=", 1e7, [(0, 0), (0, 1), (1, 0)]),
        ({"a": -1e6, "b": 1e-3}, ">=", 1e-3, [(0, 1)]),
        # nor are small weights nothing
        ({"a": 1e-10, "b": 1e-10}, "<=", 1e-10, [(0, 0), (0, 1), (1, 0)]),
        ({"a": 1e-200, "b": 2e-200}, "==", 2e-200, [(0, 1)]),
        # one of them alone, or none
        ({"a": 1, "b": 0}, "<=", 0, [(0, 0), (0, 1)]),
        ({"a": 0, "b": 0}, ">=", 0, [(0, 0), (0, 1), (1, 0), (1, 1)]),
        ({"a": 1, ("a", 0): 5, "b": 1}, "<=", 1, [(1, 0)]),
        # a bound between whole sums
        ({"a": 3, "b": 5}, "<=", 7.9999, [(0, 0), (0, 1), (1, 0)]),
        ({"a": 3, "b": 5}, ">=", 2.5, [(0, 1), (1, 0), (1, 1)]),
    ],
)
def test_weights_of_every_size_are_added_up_exactly(weights, sense, bound, fine):
    assert allowed(TWO, Linear(weights, sense, bound)) == fine


def test_numbers_count_with_their_values():
    variables = {"n": Integer(-1, 1), "x": Ordinal([0.5, 2]), "s": Ordinal([False, True])}
    assert allowed(variables, Linear({"n": 2, "x": 1, "s": 4}, "<=", 0)) == [
        (-1, 0.5, False),
        (-1, 2, False),
    ]


def test_equal_values_of_different_types_are_the_same_value():
    variables = {"a": Categorical([1, "1", None]), "b": Ordinal([True, 0.0]), "c": Integer(1, 1)}
    assert allowed(variables, Tied(["a", "b", "c"])) == [(1, True, 1)]
    assert allowed(variables, AllDifferent(["a", "b", "c"])) == [("1", 0.0, 1), (None, 0.0, 1)]
    assert allowed(variables, Forbid({"a": [True, None]}), AtMost(0, [("b", 1)])) == [("1", 0.0, 1)]


def test_a_list_of_values_stands_for_any_of_them():
    variables = {"a": Categorical("xyz"[i] for i in range(3)), "b": Binary()}
    assert allowed(variables, Forbid({"a": ["x", "y"], "b": 1})) == [
        ("x", 0), ("y", 0), ("z", 0), ("z", 1),
    ]  # fmt: skip
    assert allowed(variables, Implies({"b": 1}, {"a": ["x", "y"]})) == [
        ("x", 0), ("x", 1), ("y", 0), ("y", 1), ("z", 0),
    ]  # fmt: skip


def test_an_implication_may_speak_of_one_variable_twice():
    variables = {"a": Categorical(["x", "y", "z"])}
    assert allowed(variables, Implies({"a": "x"}, {"a": ["x", "y"]})) == [("x",), ("y",), ("z",)]
    assert allowed(variables, Implies({"a": ["x", "y"]}, {"a": "x"})) == [("x",), ("z",)]


# -- writing -----------------------------------------------------------------------------------

EXAMPLES = [
    Exactly(1, ["wash", ("solvent", None), ("base", "G")]),
    AtMost(2, ["wash", "dry", ("heat", 40.5)]),
    AtLeast(1, [("base", "A"), ("n", -1)]),
    Linear({"n": 1 / 3, ("solvent", 1): -2, "heat": 0.1, "wash": 1e9}, "<=", 1e9),
    Linear({"dry": 1, "n": 2}, "==", 1),
    Forbid({"base": "A", "solvent": ["THF", None]}),
    Forbid([{"base": "A", "wash": 1}, {"heat": 80}]),
    Implies({"wash": 1, "base": ["A", "C"]}, {"solvent": ["THF", "water"], "grade": "low"}),
    AllDifferent(["wash", "n", "solvent"]),
    Tied(["wash", "n", "dry"]),
    Where(even),
    Where(even, name="even sums"),
]


@pytest.mark.parametrize("constraint", EXAMPLES, ids=repr)
def test_constraints_survive_json_and_pickle(constraint):
    space = Space(VARIABLES, [constraint])
    where = {constraint.name: even} if isinstance(constraint, Where) else None
    back = Space.from_dict(through_json(space.to_dict()), where=where)
    copied = pickle.loads(pickle.dumps(space))
    assert back.constraints == copied.constraints == (constraint,)
    assert back == copied == space
    assert hash(back) == hash(copied) == hash(space)
    assert back.enumerate_rows().tolist() == space.enumerate_rows().tolist()
    assert copied.enumerate_rows().tolist() == space.enumerate_rows().tolist()


@pytest.mark.parametrize("constraint", [c for c in EXAMPLES if not isinstance(c, Where)], ids=repr)
def test_a_short_constraint_is_shown_as_it_is_written(constraint):
    assert eval(repr(constraint)) == constraint


def test_constraints_differ_by_kind_and_by_each_part():
    different = [
        *EXAMPLES,
        Exactly(1, ["wash", "dry"]),
        AtMost(1, ["wash", "dry"]),
        Exactly(2, ["wash", "dry"]),
        Exactly(1, ["dry", "wash"]),
        Linear({"wash": 1}, "<=", 1),
        Linear({"wash": 2}, "<=", 1),
        Linear({"wash": 1}, ">=", 1),
        Linear({"wash": 1}, "<=", 2),
        Tied(["wash", "dry"]),
        AllDifferent(["wash", "dry"]),
    ]
    assert len(set(different)) == len(different)
    assert Space(VARIABLES, EXAMPLES[:1]) != Space(VARIABLES, EXAMPLES[1:2])
    assert Space(VARIABLES, EXAMPLES[:1]) != Space(VARIABLES)


def test_constraints_cannot_be_changed():
    with pytest.raises(AttributeError):
        EXAMPLES[0].k = 2


def test_a_long_constraint_is_shown_shortened():
    names = [f"x{i}" for i in range(500)]
    for constraint in (
        Exactly(5, names),
        AllDifferent(names),
        Linear(dict.fromkeys(names, 1), "<=", 3),
        Forbid([{n: 1} for n in names]),
        Forbid(dict.fromkeys(names, 1)),
    ):
        assert "... 500" in repr(constraint)
        assert len(repr(constraint)) < 150


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "exactli", "k": 1}, "kind='exactli' is not one of .*did you mean 'exactly'"),
        ({}, "kind=None is not one of"),
        (3, "3 does not describe a constraint"),
        ({"kind": "exactly", "k": 1}, "exactly cannot be made from"),
        ({"kind": "exactly", "k": 1, "tests": 3}, "exactly cannot be made from"),
        ({"kind": "exactly", "k": "1", "tests": ["wash"]}, "k='1' is not a whole number"),
        ({"kind": "tied", "names": ["wash", "dry"], "more": 1}, "tied cannot be made from"),
        ({"kind": "linear", "sense": "<=", "bound": 1}, "linear cannot be made from"),
        ({"kind": "linear", "weights": [["wash"]], "sense": "<=", "bound": 1}, "cannot be made"),
        ({"kind": "linear", "weights": [[1, 2, 3]], "sense": "<=", "bound": 1}, "1 is neither"),
        ({"kind": "linear", "weights": 5, "sense": "<=", "bound": 1}, "cannot be made from"),
        ({"kind": "forbid", "combinations": {"wash": {}}}, "{} is a dict; values are"),
        ({"kind": "where"}, "where cannot be made from"),
        ({"kind": "where", "name": []}, "where cannot be made from"),
    ],
)
def test_a_wrong_description_is_refused(data, message):
    described = {**Space(VARIABLES).to_dict(), "constraints": [data]}
    with pytest.raises(SpaceError, match=message):
        Space.from_dict(described)


def test_constraints_of_a_description_are_a_list():
    with pytest.raises(SpaceError, match="'constraints' must be a list, got 3"):
        Space.from_dict({**Space(VARIABLES).to_dict(), "constraints": 3})


# -- predicates --------------------------------------------------------------------------------


def test_a_predicate_is_wanted_again_under_its_name():
    data = through_json(Space(VARIABLES, [Where(even)]).to_dict())
    with pytest.raises(SpaceError, match=r"predicate 'even' is not in the file.*where={'even'"):
        Space.from_dict(data)
    with pytest.raises(SpaceError, match=r"predicate 'even' is not in the file"):
        Space.from_dict(data, where={"evn": even})
    with pytest.raises(SpaceError, match=r"no predicate is named 'evn'.*did you mean 'even'"):
        Space.from_dict(data, where={"even": even, "evn": even})
    with pytest.raises(SpaceError, match=r"where must be a dict.*got 3"):
        Space.from_dict(data, where=3)
    with pytest.raises(SpaceError, match=r"Where: 3 cannot be called"):
        Space.from_dict(data, where={"even": 3})


def test_two_predicates_of_one_name_are_refused():
    with pytest.raises(SpaceError, match="two predicates are named 'even'"):
        Space(VARIABLES, [Where(even), Where(lambda _: True, name="even")])


def broken_predicate(point: dict) -> bool:
    return point["sovlent"] == "THF"


def test_a_predicate_that_fails_is_named():
    with pytest.raises(SpaceError, match=r"Where\('broken_predicate'\) failed at .*KeyError"):
        Space(VARIABLES, [Where(broken_predicate)])


@pytest.mark.parametrize("answer", [None, 1, "yes", np.array([True, False])])
def test_a_predicate_answers_true_or_false(answer):
    with pytest.raises(SpaceError, match=r"Where\('odd'\) answered .*True or False was wanted"):
        Space(VARIABLES, [Where(lambda _: answer, name="odd")])


def test_a_predicate_may_answer_in_numpy():
    rule = Where(lambda point: np.bool_(point["a"] == 1), name="one")
    assert allowed(TWO, rule) == [(1, 0), (1, 1)]


def test_a_predicate_gets_its_own_copy_of_a_point():
    def greedy(point: dict) -> bool:
        return point.pop("a") == 1

    assert allowed(TWO, Where(greedy)) == [(1, 0), (1, 1)]


def test_a_predicate_without_a_name_is_called_by_its_type():
    class Callable:
        def __call__(self, _: dict) -> bool:
            return True

    assert Where(Callable()).name == "Callable"


def test_predicates_that_allow_nothing_are_refused():
    with pytest.raises(SpaceError, match=r"none of the 3 points .* satisfies \[Where\('never'\)\]"):
        Space(TWO, [AtMost(1, ["a", "b"]), Where(lambda _: False, name="never")])


def test_an_answer_is_asked_for_once():
    asked = []
    rule = Where(lambda point: not asked.append(tuple(point.values())), name="asks")
    space = Space(TWO, [rule])
    for _ in range(3):
        space.enumerate_rows()
        space.sample(20, rng=np.random.default_rng(0))
    assert sorted(asked) == [(0, 0), (0, 1), (1, 0), (1, 1)]


# -- complaints --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Exactly(-1, ["a"]), "Exactly: k=-1 is not a whole number of at least 0"),
        (lambda: AtMost(1.0, ["a"]), "AtMost: k=1.0 is not a whole number of at least 0"),
        (lambda: AtLeast(True, ["a"]), "AtLeast: k=True is not a whole number of at least 0"),
        (lambda: AtLeast(None, ["a"]), "AtLeast: k=None is not a whole number of at least 0"),
        (lambda: Exactly(1, []), "Exactly: the list of tests is empty"),
        (lambda: Exactly(1, "abc"), "Exactly: tests must be a list, got 'abc'"),
        (lambda: Exactly(1, {"a", "b"}), "Exactly: tests must be a list, got {"),
        (lambda: Exactly(1, {"a": 1}), "Exactly: tests must be a list, got {'a': 1}"),
        (lambda: Exactly(1, 5), "Exactly: tests must be a list, got 5"),
        (lambda: Exactly(1, ["a", "b", "a"]), "Exactly: 'a' is listed twice"),
        (lambda: AtMost(1, [("a", 1), ("a", True)]), "AtMost: ('a', True) is listed twice"),
        (lambda: Exactly(1, [3]), "Exactly: 3 is neither a variable's name nor a (name, value)"),
        (lambda: Exactly(1, [("a", 1, 2)]), "Exactly: ('a', 1, 2) is neither a variable's name"),
        (lambda: Exactly(1, [("a", [1])]), "[1] is a list; values are"),
        (lambda: Linear([("a", 1)], "<=", 1), "Linear: weights must be a dict of name: weight"),
        (lambda: Linear({}, "<=", 1), "Linear: the dict of weights is empty"),
        (lambda: Linear({3: 1}, "<=", 1), "Linear: 3 is neither a variable's name nor"),
        (lambda: Linear({"a": "1"}, "<=", 1), "Linear: the weight of 'a' is '1', a finite number"),
        (lambda: Linear({"a": True}, "<=", 1), "Linear: the weight of 'a' is True, a finite"),
        (lambda: Linear({"a": np.nan}, "<=", 1), "Linear: the weight of 'a' is nan, a finite"),
        (
            lambda: Linear({"a": 10**400}, "<=", 1),
            f"Linear: the weight of 'a' is {HUGE}, too large",
        ),
        (lambda: Linear({"a": 1}, "<=", -(10**400)), f"Linear: the bound is -{HUGE}, too large"),
        (lambda: AtMost(10**400, ["a"]), f"AtMost: k is {HUGE}, too large for a float"),
        (lambda: AtLeast(10**5000, ["a"]), "AtLeast: k is 100000000000...000000000000 (5,001 dig"),
        (lambda: Exactly(-(10**400), ["a"]), f"Exactly: k=-{HUGE} is not a whole number of at l"),
        (lambda: Forbid({"a": 10**5000}), "(5,001 digits) is too large"),
        (lambda: Forbid([10**5000]), "got 100000000000...000000000000 (5,001 digits)"),
        (lambda: Forbid([[10**5000]]), "got a list of integers with thousands of digits"),
        (lambda: Linear({"a": 1}, "<", 1), "Linear: '<' is not one of ['<=', '>=', '==']"),
        (lambda: Linear({"a": 1}, None, 1), "Linear: None is not one of ['<=', '>=', '==']"),
        (lambda: Linear({"a": 1}, "<=", np.inf), "Linear: the bound is inf, a finite number"),
        (lambda: Linear({"a": 1}, "<=", None), "Linear: the bound is None, a finite number"),
        (lambda: Forbid({}), "Forbid: the combination is empty"),
        (lambda: Forbid([]), "Forbid: the list of combinations is empty"),
        (lambda: Forbid([{}]), "Forbid: the combination is empty"),
        (lambda: Forbid("ab"), "Forbid: combinations must be a list, got 'ab'"),
        (lambda: Forbid([["a", 1]]), "Forbid: a combination is a dict of name: value, got ['a', 1"),
        (lambda: Forbid({3: 1}), "Forbid: 3 is not the name of a variable"),
        (lambda: Forbid({"a": []}), "Forbid: 'a' comes with an empty list of values"),
        (lambda: Forbid({"a": [1, True]}), "Forbid: True is listed twice"),
        (lambda: Forbid({"a": {1}}), "{1} is a set; values are"),
        (lambda: Implies({}, {"a": 1}), "Implies: the combination is empty"),
        (lambda: Implies({"a": 1}, {}), "Implies: the combination is empty"),
        (
            lambda: Implies({"a": 1}, "b"),
            "Implies: a combination is a dict of name: value, got 'b'",
        ),
        (lambda: AllDifferent(["a"]), "AllDifferent: at least two variables are wanted, got ['a']"),
        (lambda: Tied([]), "Tied: at least two variables are wanted, got []"),
        (lambda: Tied("ab"), "Tied: names must be a list, got 'ab'"),
        (lambda: Tied(["a", "b", "a"]), "Tied: 'a' is listed twice"),
        (lambda: AllDifferent(["a", ("b", 1)]), "AllDifferent: ('b', 1) is not the name of a var"),
        (lambda: Where(3), "Where: 3 cannot be called with a point"),
        (lambda: Where(even, name=""), "Where: name='' is not a non-empty str"),
        (lambda: Where(even, name=3), "Where: name=3 is not a non-empty str"),
    ],
)
def test_a_wrong_argument_is_quoted(make, message):
    with pytest.raises(SpaceError, match=re.escape(message)):
        make()


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (Exactly(1, ["wahs"]), "Exactly: unknown variable 'wahs'; did you mean 'wash'?"),
        (AtMost(1, [("bas", "A")]), "AtMost: unknown variable 'bas'; did you mean 'base'?"),
        (Linear({"haet": 1}, "<=", 1), "Linear: unknown variable 'haet'; did you mean 'heat'?"),
        (Forbid({"wahs": 1}), "Forbid: unknown variable 'wahs'; did you mean 'wash'?"),
        (Implies({"wash": 1}, {"bse": "A"}), "Implies: unknown variable 'bse'; did you mean"),
        (AllDifferent(["wash", "drys"]), "AllDifferent: unknown variable 'drys'; did you mean"),
        (Tied(["zzzz", "dry"]), "Tied: unknown variable 'zzzz'"),
        (AtMost(1, ["base"]), "AtMost: 'base' is not a binary variable; say which value counts, "
                              "('base', 'A') for one"),
        (AtMost(1, ["n"]), "AtMost: 'n' is not a binary variable"),
        (AtMost(1, [("base", "T")]), "AtMost: 'base': 'T' is not one of ['A', 'C', 'G']"),
        (Exactly(1, ["wash", ("wash", 1)]), "Exactly: ('wash', 1) is listed twice"),
        (Linear({("n", 3): 1}, "<=", 1), "Linear: 'n': 3 is not a whole number from -1 to 2"),
        (Linear({"base": 1}, "<=", 1), "Linear: 'base' has no numbers to add up; weigh one of its "
                                       "values, ('base', 'A') for one"),
        (Linear({"grade": 1}, "<=", 1), "Linear: 'grade' has no numbers to add up"),
        (Linear({"heat": 1e308}, "<=", 1), "Linear: 1e+308 times 'heat' is inf, a finite number"),
        (Linear({"wash": 1e308, "dry": -1e308}, "<=", 1), "Linear: the sum of all weights is inf"),
        (Forbid({"solvent": "DMS0"}), "Forbid: 'solvent': 'DMS0' is not one of ['DMSO', 'THF'"),
        (Forbid({"solvent": ["THF", "x"]}), "Forbid: 'solvent': 'x' is not one of ['DMSO', 'THF'"),
        (Implies({"wash": 2}, {"dry": 1}), "Implies: 'wash': 2 is not one of [0, 1]"),
        (Implies({"wash": 1}, {"dry": "1"}), "Implies: 'dry': '1' is not one of [0, 1]"),
    ],
    ids=lambda part: repr(part)[:40],
)  # fmt: skip
def test_a_constraint_that_does_not_fit_is_refused(constraint, message):
    with pytest.raises(SpaceError, match=re.escape(message)) as caught:
        Space(VARIABLES, [constraint])
    assert not isinstance(caught.value, PointError)


@pytest.mark.parametrize("bound", [2**53, 1e18, 2**63, 1e19, 2**64, 1e300])
@pytest.mark.parametrize("sense", ["<=", ">=", "=="])
def test_a_bound_beyond_64_bits_holds_or_is_refused(bound, sense):
    names = ["wash", "dry"]
    if sense != "<=":
        with pytest.raises(SpaceError, match=r"no point satisfies .* cannot hold"):
            Space(VARIABLES, [Linear(dict.fromkeys(names, 1), sense, bound)])
    if sense != ">=":
        with pytest.raises(SpaceError, match=r"no point satisfies .* cannot hold"):
            Space(VARIABLES, [Linear(dict.fromkeys(names, 1), sense, -bound)])
    if sense != "==":
        sign = 1 if sense == "<=" else -1
        space = Space(VARIABLES, [Linear(dict.fromkeys(names, 1), sense, sign * bound)])
        assert space.feasible.left((), 10**6) == space.size


@pytest.mark.parametrize("kind", [AtLeast, Exactly])
def test_a_count_beyond_64_bits_is_refused(kind):
    with pytest.raises(SpaceError, match=r"no point satisfies .*9223372036854775808.* cannot hold"):
        Space(VARIABLES, [kind(2**63, ["wash", "dry"])])


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (AtMost(1, ["wash"]), "constraints must be a list, got AtMost(1, ['wash']) alone"),
        ("wash", "constraints must be a list of constraints, got 'wash'"),
        (None, "constraints must be a list of constraints, got None"),
        ({"a": 1}, "constraints must be a list of constraints, got {'a': 1}"),
        ([even], "is not a constraint; use Exactly, AtMost"),
        ([{"wash": 1}], "{'wash': 1} is not a constraint; use Exactly, AtMost"),
    ],
)
def test_what_is_not_constraints_is_refused(constraints, message):
    with pytest.raises(SpaceError, match=re.escape(message)):
        Space(VARIABLES, constraints)


@pytest.mark.parametrize("several", [range(2, 5), np.array([2, 3, 4]), (2, 3, 4)])
def test_values_that_are_meant_may_be_a_range_or_an_array(several) -> None:
    variables = {"n": Integer(0, 9), "b": Binary()}
    wanted = Space(variables, [Forbid({"n": [2, 3, 4], "b": 1})])
    assert Space(variables, [Forbid({"n": several, "b": 1})]) == wanted
