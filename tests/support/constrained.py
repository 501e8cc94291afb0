"""Random small spaces with random constraints, each with its meaning in plain Python.

`constrained_spaces()` yields a space and a predicate on points, `rules()` the parts before a space
is made of them (they may have no solution). The predicates are written from the meaning of the
constraints alone, in exact fractions: they share no code with mercbo.
"""

import itertools
from collections.abc import Callable
from fractions import Fraction

from hypothesis import strategies as st

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
    Space,
    Tied,
    Where,
)
from mercbo.domain.constraints import Constraint
from mercbo.domain.variables import Point, Variable

Predicate = Callable[[Point], bool]
Rule = tuple[Constraint, Predicate]

KINDS = ("count", "linear", "forbid", "implies", "all different", "tied")
# Values that several variables share, some of them equal in Python only: 1 == 1.0 == True.
VALUES = [0, 1, 2, 1.0, 2.0, True, False, "a", "b", "1", None, 0.5]
NUMBERS = [0, 1, 2, 3, -1, 10, 0.5, 2.25, 0.1, -0.7]
# Weights that can be told apart at double precision when they are added up.
FRACTIONS = [
    Fraction(1), Fraction(2), Fraction(-3), Fraction(0), Fraction("0.1"), Fraction("-0.7"),
    Fraction("2.5"), Fraction(1, 3), Fraction(-2, 3), Fraction("1234.56"),
]  # fmt: skip
WHOLE = [Fraction(n) for n in (1, -1, 2, 7, 0, 10**6, -(10**9) - 1, 10**12)]
TINY = [Fraction(n, 10**10) for n in (1, 2, -3, 5)]


def unique(values: list) -> list:
    """The first of equal values: a variable's values differ in Python."""
    return list(dict.fromkeys(values))


def exact(value: object) -> Fraction:
    """A number as it is written: 0.1 is a tenth."""
    return Fraction(int(value)) if isinstance(value, bool) else Fraction(str(value))


@st.composite
def variables(draw: st.DrawFn) -> Variable:
    kind = draw(st.sampled_from(["binary", "one-hot", "code", "ordinal", "numbers", "integer"]))
    if kind == "binary":
        return Binary()
    if kind == "integer":
        low = draw(st.integers(-2, 2))
        return Integer(low, low + draw(st.integers(0, 3)))
    source, most = (NUMBERS, 4) if kind == "numbers" else (VALUES, 6 if kind == "code" else 4)
    values = unique(draw(st.lists(st.sampled_from(source), min_size=1, max_size=most)))
    if kind in ("one-hot", "code"):
        return Categorical(values, encoding="binary" if kind == "code" else "one-hot")
    return Ordinal(values)


@st.composite
def variable_dicts(draw: st.DrawFn, *, most: int = 5, points: int = 300) -> dict[str, Variable]:
    """Up to `most` variables, with at most `points` points."""
    made, size = {}, 1
    for number in range(draw(st.integers(1, most))):
        variable = draw(variables())
        if size * variable.size > points:
            break
        made[f"v{number}"] = variable
        size *= variable.size
    return made


def all_points(made: dict[str, Variable]) -> list[Point]:
    columns = [variable.values for variable in made.values()]
    return [dict(zip(made, values, strict=True)) for values in itertools.product(*columns)]


# -- constraints -------------------------------------------------------------------------------


@st.composite
def value_tests(draw: st.DrawFn, made: dict[str, Variable], most: int = 5) -> list:
    """Distinct value tests, some of them written as the name of a binary variable."""
    name = st.sampled_from(sorted(made))
    pair = name.flatmap(lambda n: st.tuples(st.just(n), st.sampled_from(made[n].values)))
    pairs = unique(draw(st.lists(pair, min_size=1, max_size=most)))
    short = draw(st.booleans())
    return [n if short and isinstance(made[n], Binary) and v == 1 else (n, v) for n, v in pairs]


def counted(test: object, point: Point) -> bool:
    return point[test] == 1 if isinstance(test, str) else point[test[0]] == test[1]


@st.composite
def counts(draw: st.DrawFn, made: dict[str, Variable]) -> Rule:
    tests = draw(value_tests(made))
    k = draw(st.integers(0, len(tests)))
    kind, compare = draw(
        st.sampled_from(
            [
                (Exactly, int.__eq__),
                (AtMost, int.__le__),
                (AtLeast, int.__ge__),
            ]
        )
    )
    return kind(k, tests), lambda p: compare(sum(counted(t, p) for t in tests), k)


@st.composite
def linears(draw: st.DrawFn, made: dict[str, Variable]) -> Rule:
    """A weighted sum against a bound that is often hit exactly."""
    tests = draw(value_tests(made))
    pool = draw(st.sampled_from([FRACTIONS, WHOLE, TINY]))
    # weights of twelve digits leave no room for decimals beside them
    numeric = [
        n
        for n, v in made.items()
        if not isinstance(v, Categorical)
        and all(isinstance(x, (int, float)) for x in v.values)
        and (pool is not WHOLE or all(x == int(x) for x in v.values))
    ]
    names = draw(st.lists(st.sampled_from(numeric), max_size=3, unique=True)) if numeric else []
    terms = unique([*(t for t in tests if not isinstance(t, str)), *names]) or tests
    weights = {term: draw(st.sampled_from(pool)) for term in terms}

    def total(point: Point) -> Fraction:
        return sum(
            (
                w * (exact(point[t]) if isinstance(t, str) else counted(t, point))
                for t, w in weights.items()
            ),
            Fraction(0),
        )

    somewhere = draw(st.sampled_from(all_points(made)))
    bound = total(somewhere) + draw(st.sampled_from([Fraction(0), Fraction(0), *pool]))
    sense, compare = draw(
        st.sampled_from([("<=", Fraction.__le__), (">=", Fraction.__ge__), ("==", Fraction.__eq__)])
    )
    rule = Linear({t: float(w) for t, w in weights.items()}, sense, float(bound))
    return rule, lambda p: compare(total(p), bound)


@st.composite
def combinations(draw: st.DrawFn, made: dict[str, Variable]) -> dict:
    names = draw(st.lists(st.sampled_from(sorted(made)), min_size=1, max_size=3, unique=True))
    return {
        name: draw(
            st.one_of(
                st.sampled_from(made[name].values),
                st.lists(st.sampled_from(made[name].values), min_size=1, max_size=3, unique=True),
            )
        )
        for name in names
    }


def matches(combination: dict, point: Point) -> bool:
    return all(
        point[name] in wanted if isinstance(wanted, list) else point[name] == wanted
        for name, wanted in combination.items()
    )


@st.composite
def forbids(draw: st.DrawFn, made: dict[str, Variable]) -> Rule:
    listed = draw(st.lists(combinations(made), min_size=1, max_size=3))
    given = listed[0] if len(listed) == 1 else listed
    return Forbid(given), lambda p: not any(matches(c, p) for c in listed)


@st.composite
def implications(draw: st.DrawFn, made: dict[str, Variable]) -> Rule:
    premise, consequence = draw(combinations(made)), draw(combinations(made))
    return (
        Implies(premise, consequence),
        lambda p: matches(consequence, p) if matches(premise, p) else True,
    )


def _names(made: dict[str, Variable]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(sorted(made)), min_size=2, max_size=4, unique=True)


@st.composite
def all_different(draw: st.DrawFn, made: dict[str, Variable]) -> Rule:
    names = draw(_names(made))
    return (
        AllDifferent(names),
        lambda p: all(p[a] != p[b] for a, b in itertools.combinations(names, 2)),
    )


@st.composite
def tied(draw: st.DrawFn, made: dict[str, Variable]) -> Rule:
    names = draw(_names(made))
    return Tied(names), lambda p: all(p[a] == p[b] for a, b in itertools.combinations(names, 2))


MAKERS = {
    "count": counts,
    "linear": linears,
    "forbid": forbids,
    "implies": implications,
    "all different": all_different,
    "tied": tied,
}


@st.composite
def rules(
    draw: st.DrawFn,
    *,
    kinds: tuple[str, ...] = KINDS,
    most: int = 3,
    most_variables: int = 5,
    points: int = 300,
) -> tuple[dict[str, Variable], list[Rule]]:
    """Variables and constraints with their meanings; all together may have no solution."""
    made = draw(variable_dicts(most=most_variables, points=points))
    fitting = [k for k in kinds if len(made) > 1 or k not in ("all different", "tied")]
    found = []
    for _ in range(draw(st.integers(1, most)) if fitting else 0):
        found.append(draw(MAKERS[draw(st.sampled_from(fitting))](made)))
    return made, found


@st.composite
def constrained_spaces(
    draw: st.DrawFn,
    *,
    kinds: tuple[str, ...] = KINDS,
    most: int = 3,
    most_variables: int = 5,
    points: int = 300,
    predicates: bool = False,
) -> tuple[Space, Predicate]:
    """A space with up to `most` constraints (and a `Where`, if told), and what they mean.

    Constraints that would leave nothing are left out, so every space has a point.
    """
    made, found = draw(rules(kinds=kinds, most=most, most_variables=most_variables, points=points))
    if predicates:
        odd = draw(st.sampled_from([0, 1]))

        def is_even(point: Point) -> bool:
            """Something that no row of weights can say."""
            return sum(v.index(point[n]) for n, v in made.items()) % 2 == odd

        found.append((Where(is_even), is_even))
    left, kept = all_points(made), []
    for constraint, holds in found:
        fine = [p for p in left if holds(p)]
        if fine:
            left = fine
            kept.append((constraint, holds))
    meanings = [holds for _, holds in kept]
    space = Space(made, [constraint for constraint, _ in kept])
    return space, lambda point: all(holds(point) for holds in meanings)
