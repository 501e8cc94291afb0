"""Random spaces with random constraints, and which points they hold by plain Python.

Nothing here asks mercbo what is feasible: each random constraint comes with a predicate in plain
Python, and the points of a space are those of the product, or the rows of the table, that satisfy
all predicates.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
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
    SpaceError,
    Tied,
    Where,
)

# Points of a product, at most: all are tried on the predicates, one by one.
MOST_POINTS = 500

# -- constraints, each with its meaning --------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """A constraint of mercbo and what it means in plain Python."""

    constraint: object
    holds: Callable[[dict], bool] = field(repr=False)


COUNTS = {
    Exactly: lambda count, k: count == k,
    AtMost: lambda count, k: count <= k,
    AtLeast: lambda count, k: count >= k,
}
# Weights and bounds are tenths, values halves: sums are twentieths, so this tells them apart.
ROUNDING = 1e-6
SENSES = {
    "<=": lambda total, bound: total <= bound + ROUNDING,
    ">=": lambda total, bound: total >= bound - ROUNDING,
    "==": lambda total, bound: abs(total - bound) <= ROUNDING,
}


def levels_of(variables: dict) -> list[tuple]:
    return [(name, value) for name, variable in variables.items() for value in variable.values]


@st.composite
def counts(draw, variables: dict) -> Rule:
    levels = draw(
        st.lists(st.sampled_from(levels_of(variables)), min_size=1, max_size=6, unique=True)
    )
    short = draw(st.booleans())  # a binary variable's name stands for its being 1
    tests = [
        name if short and isinstance(variables[name], Binary) and value == 1 else (name, value)
        for name, value in levels
    ]
    kind = draw(st.sampled_from(list(COUNTS)))
    k = draw(st.integers(0, min(3, len(levels))))
    return Rule(
        kind(k, tests),
        lambda point: COUNTS[kind](sum(point[name] == value for name, value in levels), k),
    )


@st.composite
def linears(draw, variables: dict) -> Rule:
    numeric = [
        name
        for name, variable in variables.items()
        if not isinstance(variable, Categorical)
        and all(isinstance(value, (int, float)) for value in variable.values)
    ]
    tests = st.sampled_from([*numeric, *levels_of(variables)])
    tenths = st.integers(-20, 20).map(lambda n: n / 10)
    weights = draw(st.dictionaries(tests, tenths, min_size=1, max_size=5))
    sense = draw(st.sampled_from(list(SENSES)))
    bound = draw(st.sampled_from([0, 1, 0.5, -1, 2.3, -0.7, 4]))

    def holds(point: dict) -> bool:
        total = sum(
            weight * (point[test] if isinstance(test, str) else point[test[0]] == test[1])
            for test, weight in weights.items()
        )
        return SENSES[sense](total, bound)

    return Rule(Linear(weights, sense, bound), holds)


@st.composite
def combinations(draw, variables: dict) -> dict:
    """Some variables, each with a value or a list of values."""
    names = draw(st.lists(st.sampled_from(list(variables)), min_size=1, max_size=3, unique=True))
    found = {}
    for name in names:
        values = st.sampled_from(variables[name].values)
        found[name] = draw(st.one_of(values, st.lists(values, min_size=1, unique=True)))
    return found


def matches(combination: dict, point: dict) -> bool:
    return all(
        point[name] in (wanted if isinstance(wanted, list) else [wanted])
        for name, wanted in combination.items()
    )


@st.composite
def forbids(draw, variables: dict) -> Rule:
    listed = draw(st.lists(combinations(variables), min_size=1, max_size=3))
    alone = len(listed) == 1 and draw(st.booleans())
    return Rule(
        Forbid(listed[0] if alone else listed),
        lambda point: not any(matches(combination, point) for combination in listed),
    )


@st.composite
def implications(draw, variables: dict) -> Rule:
    premise, consequence = draw(combinations(variables)), draw(combinations(variables))
    return Rule(
        Implies(premise, consequence),
        lambda point: not matches(premise, point) or matches(consequence, point),
    )


@st.composite
def relations(draw, variables: dict) -> Rule:
    names = draw(st.lists(st.sampled_from(list(variables)), min_size=2, max_size=4, unique=True))
    pairs = list(itertools.combinations(names, 2))
    if draw(st.booleans()):
        return Rule(AllDifferent(names), lambda point: all(point[a] != point[b] for a, b in pairs))
    return Rule(Tied(names), lambda point: all(point[a] == point[b] for a, b in pairs))


@st.composite
def predicates(draw, variables: dict, number: int) -> Rule:
    modulus = draw(st.integers(1, 3))
    left_out = draw(st.integers(0, 2))

    def holds(point: dict) -> bool:
        positions = [v.values.index(point[name]) for name, v in variables.items()]
        return sum(positions) % modulus != left_out

    return Rule(Where(holds, name=f"predicate {number}"), holds)


@st.composite
def rules(draw, variables: dict) -> list[Rule]:
    """Up to three rules; most lists of them hold at one point at least."""
    kinds = [counts, counts, linears, forbids, implications, *[relations] * (len(variables) > 1)]
    witness = {name: draw(st.sampled_from(v.values)) for name, v in variables.items()}
    lax = draw(st.integers(0, 4)) == 4
    found = []
    for number in range(draw(st.sampled_from([0, 1, 2, 2, 3, 3]))):
        if draw(st.integers(0, 8)) == 8:
            rule = draw(predicates(variables, number))
        else:
            rule = draw(draw(st.sampled_from(kinds))(variables))
        if lax or rule.holds(witness):
            found.append(rule)
    return found


# -- spaces ------------------------------------------------------------------------------------

# Values meet across variables, some as equals of another type (False and 0), so that ties and
# differences have something to say.
NAMES = st.lists(
    st.sampled_from(["a", "b", "c", 1, 2, 0.5, None, False]), min_size=1, max_size=5, unique=True
)
NUMBERS = st.lists(st.sampled_from([0, 1, -1, 0.5, 2, 3]), min_size=1, max_size=4, unique=True)
WORDS = st.lists(st.sampled_from(["b", "a", None, 1]), min_size=1, max_size=3, unique=True)
VARIABLES = st.one_of(
    st.just(Binary()),
    st.builds(
        lambda values, encoding: Categorical(values, encoding=encoding),
        NAMES,
        st.sampled_from(["one-hot", "binary"]),
    ),
    st.builds(Ordinal, st.one_of(NUMBERS, WORDS)),
    st.builds(lambda low, more: Integer(low, low + more), st.integers(-2, 2), st.integers(0, 4)),
)


@dataclass(frozen=True)
class Plan:
    """A space that is yet to be made."""

    variables: dict
    rows: list[dict] | None  # of a table
    said: bool  # whether the table is told its variables
    rules: list[Rule]

    def space(self, rules: list[Rule]) -> Space:
        constraints = [rule.constraint for rule in rules]
        if self.rows is None:
            return Space(self.variables, constraints)
        said = self.variables if self.said else None
        return Space.table(self.rows, variables=said, constraints=constraints)


@dataclass(frozen=True)
class World:
    """A space and its points, as plain Python finds them."""

    space: Space
    points: list[dict]
    others: list[dict]  # points of the product that are not in the space
    predicates: dict[str, Callable[[dict], bool]]


def product_of(variables: dict) -> list[dict]:
    values = itertools.product(*(variable.values for variable in variables.values()))
    return [dict(zip(variables, row, strict=True)) for row in values]


@st.composite
def plans(draw) -> Plan:
    count = draw(st.sampled_from([3, 2, 1, 3, 4, 4, 5, 6]))
    listed = draw(st.lists(VARIABLES, min_size=count, max_size=count))
    while math.prod(variable.size for variable in listed) > MOST_POINTS:
        listed.pop()
    variables = {f"v{i}": variable for i, variable in enumerate(listed)}
    rows, said = None, True
    if draw(st.integers(0, 7)) == 7:
        every = product_of(variables)
        places = st.lists(st.integers(0, len(every) - 1), min_size=1, max_size=20, unique=True)
        rows = [every[i] for i in draw(places)]
        said = draw(st.booleans())
        if not said:
            variables = dict(Space.table(rows).variables)
    return Plan(variables, rows, said, draw(rules(variables)))


def made(plan: Plan, tally: Counter) -> World:
    """The world of a plan; where its rules leave no point, that is refused, and the last rule is
    dropped until some are left."""
    kept = list(plan.rules)
    every = product_of(plan.variables)
    among = every if plan.rows is None else plan.rows
    while True:
        points = [p for p in among if all(rule.holds(p) for rule in kept)]
        if points:
            break
        with pytest.raises(SpaceError):
            plan.space(kept)
        tally["unsatisfiable"] += 1
        kept.pop()
    known = set(map(key, points))
    others = [p for p in every if key(p) not in known]
    where = {r.constraint.name: r.holds for r in kept if isinstance(r.constraint, Where)}
    tally.update(type(rule.constraint).__name__ for rule in kept)
    tally["table"] += plan.rows is not None
    return World(plan.space(kept), points, others, where)


def key(point: dict) -> tuple:
    return tuple(point.values())
