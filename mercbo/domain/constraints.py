"""Constraints on the inputs, in the user's terms: what every suggestion must satisfy.

A *test* is the name of a binary variable (is it 1?) or a pair ``("base3", "G")`` (does the
variable have that value?). It counts 1 where it holds and 0 where not. Every constraint but
`Where` reads as rows over tests, low <= sum of weight * test <= high, which `region.py` turns into
arrays and `export.py` into dimod's constraints and penalties:

| constraint           | rows                                                                      |
|----------------------|---------------------------------------------------------------------------|
| Exactly, AtMost, ... | the sum of the tests against k                                            |
| Linear               | weights times tests or numeric values against the bound                   |
| Forbid               | per combination: not all of its tests hold                                |
| Implies              | per consequence: if all premises hold, it does                            |
| AllDifferent         | per value: at most one variable has it                                    |
| Tied                 | per value and variable: it has the value where the first one has it       |
| Where                | none: a Python predicate, which no solver sees                            |
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np

from mercbo.domain.variables import Binary, Categorical, Point, Value, Variable, plain
from mercbo.errors import PointError, SettingError, SpaceError, choose, hint, quoted

Test: TypeAlias = "str | tuple[str, Value]"
# A combination: for each variable a value, or a tuple of values of which any will do.
Combination: TypeAlias = "tuple[tuple[str, tuple[Value, ...]], ...]"
Variables: TypeAlias = Mapping[str, Variable]
Level: TypeAlias = tuple[str, int]  # a variable and the position of one of its values

SENSES = ("<=", ">=", "==")
# Items of a list that a message shows.
SHOWN = 6


@dataclass(frozen=True)
class Row:
    """low <= sum of weight * [variable has value] <= high."""

    weights: Mapping[Level, float]
    low: float
    high: float


class Constraint(ABC):
    """What all constraints share; each is frozen, can be compared, and says how it is written."""

    kind: ClassVar[str]

    @abstractmethod
    def rows(self, variables: Variables) -> list[Row]:
        """The constraint over tests; a `SpaceError` where it does not fit the variables."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A description that survives JSON."""


# -- counting and weighing ---------------------------------------------------------------------


@dataclass(frozen=True, init=False, repr=False)
class _Count(Constraint):
    k: int
    tests: tuple[Test, ...]

    def __init__(self, k: int, tests: Iterable[Test]) -> None:
        name = type(self).__name__
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 0:
            raise SpaceError(f"{name}: k={quoted(k)} is not a whole number of at least 0")
        _number(name, "k", k)
        listed = tuple(_test(name, test) for test in _listed(name, "tests", tests))
        _no_twins(name, listed)
        if not listed:
            raise SpaceError(f"{name}: the list of tests is empty")
        object.__setattr__(self, "k", int(k))
        object.__setattr__(self, "tests", listed)

    @abstractmethod
    def _bounds(self) -> tuple[float, float]:
        """The least and the largest number of tests that may hold."""

    def rows(self, variables: Variables) -> list[Row]:
        weights: dict[Level, float] = {}
        for test in self.tests:
            level = _level(type(self).__name__, test, variables)
            if level in weights:
                raise SpaceError(f"{type(self).__name__}: {test!r} is listed twice")
            weights[level] = 1.0
        return [Row(weights, *self._bounds())]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.k}, {_shown(self.tests)})"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "k": self.k, "tests": [_written(t) for t in self.tests]}


@dataclass(frozen=True, init=False, repr=False)
class Exactly(_Count):
    """Exactly `k` of the tests hold.

    >>> Exactly(5, [f"sensor{i}" for i in range(40)])
    Exactly(5, ['sensor0', 'sensor1', 'sensor2', 'sensor3', 'sensor4', 'sensor5', ... 40])
    """

    kind: ClassVar[str] = "exactly"

    def _bounds(self) -> tuple[float, float]:
        return float(self.k), float(self.k)


@dataclass(frozen=True, init=False, repr=False)
class AtMost(_Count):
    """At most `k` of the tests hold.

    >>> AtMost(2, [("base1", "G"), ("base2", "G"), ("base3", "G")])
    AtMost(2, [('base1', 'G'), ('base2', 'G'), ('base3', 'G')])
    """

    kind: ClassVar[str] = "at most"

    def _bounds(self) -> tuple[float, float]:
        return -math.inf, float(self.k)


@dataclass(frozen=True, init=False, repr=False)
class AtLeast(_Count):
    """At least `k` of the tests hold."""

    kind: ClassVar[str] = "at least"

    def _bounds(self) -> tuple[float, float]:
        return float(self.k), math.inf


@dataclass(frozen=True, init=False, repr=False)
class Linear(Constraint):
    """A weighted sum of variables and tests against a bound.

    A binary, integer or numeric ordinal variable counts with its value, a test with 0 or 1.

    >>> Linear({"pumps": 120.0, ("pipe", "steel"): 80.0}, "<=", 500)
    Linear({'pumps': 120.0, ('pipe', 'steel'): 80.0}, '<=', 500.0)
    """

    kind: ClassVar[str] = "linear"

    weights: tuple[tuple[Test, float], ...]
    sense: str
    bound: float

    def __init__(self, weights: Mapping[Test, float], sense: str, bound: float) -> None:
        if not isinstance(weights, Mapping):
            raise SpaceError(
                f"Linear: weights must be a dict of name: weight, got {quoted(weights)}"
            )
        if not weights:
            raise SpaceError("Linear: the dict of weights is empty")
        pairs = tuple(
            (_test("Linear", test), _number("Linear", f"the weight of {test!r}", weight))
            for test, weight in weights.items()
        )
        if sense not in SENSES:
            raise SpaceError(f"Linear: {quoted(sense)} is not one of {list(SENSES)}")
        object.__setattr__(self, "weights", pairs)
        object.__setattr__(self, "sense", sense)
        object.__setattr__(self, "bound", _number("Linear", "the bound", bound))

    def rows(self, variables: Variables) -> list[Row]:
        weights: dict[Level, float] = {}
        for test, weight in self.weights:
            for level, factor in _numeric("Linear", test, variables):
                total = weights.get(level, 0.0) + weight * factor
                weights[level] = _number("Linear", f"{weight!r} times {test!r}", total)
        # a sum that overflows would compare with any bound as NaN does
        _number("Linear", "the sum of all weights", sum(map(abs, weights.values())))
        low = -math.inf if self.sense == "<=" else self.bound
        return [Row(weights, low, math.inf if self.sense == ">=" else self.bound)]

    def __repr__(self) -> str:
        return f"Linear({_shown_dict(self.weights)}, {self.sense!r}, {self.bound!r})"

    def to_dict(self) -> dict[str, Any]:
        pairs = [[_written(test), weight] for test, weight in self.weights]
        return {"kind": self.kind, "weights": pairs, "sense": self.sense, "bound": self.bound}


# -- combinations ------------------------------------------------------------------------------


@dataclass(frozen=True, init=False, repr=False)
class Forbid(Constraint):
    """A combination of values that must not occur, or a list of such combinations.

    A list of values stands for any of them.

    >>> Forbid({"solvent": "water", "base": ["NaH", "LDA"]})
    Forbid({'solvent': 'water', 'base': ['NaH', 'LDA']})
    """

    kind: ClassVar[str] = "forbid"

    combinations: tuple[Combination, ...]

    def __init__(self, combinations: Mapping[str, object] | Iterable[Mapping[str, object]]) -> None:
        single = isinstance(combinations, Mapping)
        listed = [combinations] if single else _listed("Forbid", "combinations", combinations)
        if not listed:
            raise SpaceError("Forbid: the list of combinations is empty")
        found = tuple(_combination("Forbid", combination) for combination in listed)
        object.__setattr__(self, "combinations", found)

    def rows(self, variables: Variables) -> list[Row]:
        return [
            Row(_together("Forbid", combination, variables), -math.inf, len(combination) - 1.0)
            for combination in self.combinations
        ]

    def __repr__(self) -> str:
        shown = [_shown_combination(c) for c in self.combinations]
        return f"Forbid({shown[0] if len(shown) == 1 else _bracketed(shown)})"

    def to_dict(self) -> dict[str, Any]:
        listed = [_written_combination(c) for c in self.combinations]
        return {"kind": self.kind, "combinations": listed}


@dataclass(frozen=True, init=False, repr=False)
class Implies(Constraint):
    """Where all of `premise` holds, all of `consequence` must.

    A list of values stands for any of them.

    >>> Implies({"heat": 80}, {"solvent": ["DMSO", "DMF"]})
    Implies({'heat': 80}, {'solvent': ['DMSO', 'DMF']})
    """

    kind: ClassVar[str] = "implies"

    premise: Combination
    consequence: Combination

    def __init__(self, premise: Mapping[str, object], consequence: Mapping[str, object]) -> None:
        object.__setattr__(self, "premise", _combination("Implies", premise))
        object.__setattr__(self, "consequence", _combination("Implies", consequence))

    def rows(self, variables: Variables) -> list[Row]:
        rows = []
        for part in self.consequence:
            weights = dict(_together("Implies", self.premise, variables))
            for level in _together("Implies", (part,), variables):
                weights[level] = weights.get(level, 0.0) - 1.0
            rows.append(Row(weights, -math.inf, len(self.premise) - 1.0))
        return rows

    def __repr__(self) -> str:
        shown = map(_shown_combination, (self.premise, self.consequence))
        return f"Implies({', '.join(shown)})"

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "premise": _written_combination(self.premise),
            "consequence": _written_combination(self.consequence),
        }


@dataclass(frozen=True, init=False, repr=False)
class _Names(Constraint):
    names: tuple[str, ...]

    def __init__(self, names: Iterable[str]) -> None:
        kind = type(self).__name__
        listed = tuple(_listed(kind, "names", names))
        for name in listed:
            if not isinstance(name, str):
                raise SpaceError(f"{kind}: {quoted(name)} is not the name of a variable")
        _no_twins(kind, listed)
        if len(listed) < 2:
            raise SpaceError(f"{kind}: at least two variables are wanted, got {list(listed)}")
        object.__setattr__(self, "names", listed)

    def _by_value(self, variables: Variables) -> dict[Value, list[Level]]:
        """For each value the levels of the variables that can have it, in the order named."""
        found: dict[Value, list[Level]] = {}
        for name in self.names:
            variable = _variable(type(self).__name__, name, variables)
            for index, value in enumerate(variable.values):
                found.setdefault(value, []).append((name, index))
        return found

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_shown(self.names)})"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "names": list(self.names)}


@dataclass(frozen=True, init=False, repr=False)
class AllDifferent(_Names):
    """No two of the variables have the same value: permutations and assignments.

    >>> AllDifferent(["first", "second", "third"])
    AllDifferent(['first', 'second', 'third'])
    """

    kind: ClassVar[str] = "all different"

    def rows(self, variables: Variables) -> list[Row]:
        return [
            Row(dict.fromkeys(levels, 1.0), -math.inf, 1.0)
            for levels in self._by_value(variables).values()
            if len(levels) > 1
        ]


@dataclass(frozen=True, init=False, repr=False)
class Tied(_Names):
    """All of the variables have the same value."""

    kind: ClassVar[str] = "tied"

    def rows(self, variables: Variables) -> list[Row]:
        rows = []
        for levels in self._by_value(variables).values():
            having = dict(levels)  # variables that can have this value -> its position
            for name in self.names[1:]:
                pair = [(self.names[0], 1.0), (name, -1.0)]
                weights = {(n, having[n]): sign for n, sign in pair if n in having}
                if weights:
                    rows.append(Row(weights, 0.0, 0.0))
        return rows


@dataclass(frozen=True, init=False, repr=False)
class Where(Constraint):
    """Any Python predicate on a point: the slow road, for what the others cannot say.

    It is called for each candidate, no solver sees it, and a file cannot hold it: `save` says so,
    and `load` wants it again under its name, ``where={name: predicate}``.

    >>> def no_repeat(point): return point["first"] != point["second"]
    >>> Where(no_repeat)
    Where('no_repeat')
    """

    kind: ClassVar[str] = "where"

    predicate: Callable[[Point], bool] = field(compare=False)
    name: str

    def __init__(self, predicate: Callable[[Point], bool], *, name: str | None = None) -> None:
        if not callable(predicate):
            raise SpaceError(f"Where: {quoted(predicate)} cannot be called with a point")
        if name is None:
            name = getattr(predicate, "__name__", type(predicate).__name__)
        if not isinstance(name, str) or not name:
            raise SpaceError(f"Where: name={quoted(name)} is not a non-empty str")
        object.__setattr__(self, "predicate", predicate)
        object.__setattr__(self, "name", name)

    def rows(self, variables: Variables) -> list[Row]:  # noqa: ARG002
        return []

    def allows(self, point: Point) -> bool:
        """The predicate's answer, which must be True or False."""
        try:
            answer = self.predicate(dict(point))
        except Exception as error:
            raise SpaceError(f"{self!r} failed at {point}: {error!r}") from error
        if not isinstance(answer, (bool, np.bool_)):
            raise SpaceError(
                f"{self!r} answered {quoted(answer)} at {point}; True or False was wanted"
            )
        return bool(answer)

    def __repr__(self) -> str:
        return f"Where({self.name!r})"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name}


KINDS: dict[str, type[Constraint]] = {
    cls.kind: cls
    for cls in (Exactly, AtMost, AtLeast, Linear, Forbid, Implies, AllDifferent, Tied, Where)
}


def constraint_from_dict(
    data: Mapping[str, Any], where: Mapping[str, Callable[[Point], bool]]
) -> Constraint:
    """The constraint of `to_dict`; predicates come from `where` by name."""
    if not isinstance(data, Mapping):
        raise SpaceError(f"{quoted(data)} does not describe a constraint; a dict was wanted")
    settings = dict(data)
    try:
        kind = choose("kind", settings.pop("kind", None), KINDS)
    except SettingError as error:
        raise SpaceError(f"a constraint's {error}") from None
    try:
        if kind == "where":
            name = settings["name"]
            if name not in where:
                raise SpaceError(
                    f"the predicate {name!r} is not in the file; pass it again: "
                    f"where={{{name!r}: ...}}"
                )
            return Where(where[name], name=name)
        if "tests" in settings:
            settings["tests"] = [_read(test) for test in settings["tests"]]
        if kind == "linear":
            settings["weights"] = {_read(pair[0]): pair[1] for pair in settings["weights"]}
        return KINDS[kind](**settings)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise SpaceError(f"{kind} cannot be made from {dict(data)}") from None


# -- reading what the user wrote ---------------------------------------------------------------


def _listed(kind: str, what: str, given: object) -> list[Any]:
    unordered = (str, bytes, Mapping, Set)
    if isinstance(given, unordered) or not isinstance(given, Iterable):
        raise SpaceError(f"{kind}: {what} must be a list, got {quoted(given)}")
    return list(given)


def _test(kind: str, given: object) -> Test:
    if isinstance(given, str):
        return given
    if isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[0], str):
        return given[0], plain(given[1])
    raise SpaceError(
        f"{kind}: {quoted(given)} is neither a variable's name nor a (name, value) pair"
    )


def _no_twins(kind: str, listed: Sequence[object]) -> None:
    for position, item in enumerate(listed):
        if item in listed[:position]:
            raise SpaceError(f"{kind}: {item!r} is listed twice")


def _number(kind: str, what: str, given: object) -> float:
    real = isinstance(given, (int, float, np.integer, np.floating)) and not isinstance(given, bool)
    try:
        number = float(given) if real else math.nan  # type: ignore[arg-type]
    except OverflowError:
        raise SpaceError(f"{kind}: {what} is {quoted(given)}, too large for a float") from None
    if not math.isfinite(number):
        raise SpaceError(f"{kind}: {what} is {quoted(given)}, a finite number was wanted")
    return number


def _combination(kind: str, given: object) -> Combination:
    if not isinstance(given, Mapping):
        raise SpaceError(f"{kind}: a combination is a dict of name: value, got {quoted(given)}")
    if not given:
        raise SpaceError(f"{kind}: the combination is empty")
    found = []
    for name, wanted in given.items():
        if not isinstance(name, str):
            raise SpaceError(f"{kind}: {quoted(name)} is not the name of a variable")
        several = isinstance(wanted, (list, tuple, range, np.ndarray))
        values = tuple(plain(value) for value in (wanted if several else [wanted]))
        _no_twins(kind, values)
        if not values:
            raise SpaceError(f"{kind}: {name!r} comes with an empty list of values")
        found.append((name, values))
    return tuple(found)


def _variable(kind: str, name: str, variables: Variables) -> Variable:
    if name not in variables:
        raise SpaceError(f"{kind}: unknown variable {name!r}{hint(name, variables)}")
    return variables[name]


def _position(kind: str, name: str, value: Value, variables: Variables) -> Level:
    variable = _variable(kind, name, variables)
    try:
        return name, variable.index(value)
    except PointError as error:
        raise SpaceError(f"{kind}: {name!r}: {error}") from None


def _level(kind: str, test: Test, variables: Variables) -> Level:
    """The one level that a test is about."""
    if isinstance(test, tuple):
        return _position(kind, *test, variables)
    variable = _variable(kind, test, variables)
    if not isinstance(variable, Binary):
        raise SpaceError(
            f"{kind}: {test!r} is not a binary variable; say which value counts, "
            f"({test!r}, {variable.values[0]!r}) for one"
        )
    return test, 1


def _numeric(kind: str, test: Test, variables: Variables) -> list[tuple[Level, float]]:
    """The levels that count in a weighted sum, and what each counts."""
    if isinstance(test, tuple):
        return [(_level(kind, test, variables), 1.0)]
    variable = _variable(kind, test, variables)
    numbers = [v for v in variable.values if isinstance(v, (int, float))]
    if isinstance(variable, Categorical) or len(numbers) < variable.size:
        raise SpaceError(
            f"{kind}: {test!r} has no numbers to add up; weigh one of its values, "
            f"({test!r}, {variable.values[0]!r}) for one"
        )
    return [
        ((test, i), _number(kind, f"value {i} of {test!r}", +number))
        for i, number in enumerate(numbers)
        if number != 0
    ]


def _together(kind: str, combination: Combination, variables: Variables) -> dict[Level, float]:
    """The sum of a combination's tests: as large as its length where all of it holds."""
    return {
        _position(kind, name, value, variables): 1.0
        for name, values in combination
        for value in values
    }


# -- writing -----------------------------------------------------------------------------------


def _written(test: Test) -> Any:
    return test if isinstance(test, str) else list(test)


def _read(test: Any) -> Any:
    return tuple(test) if isinstance(test, list) else test


def _written_combination(combination: Combination) -> dict[str, list[Value]]:
    return {name: list(values) for name, values in combination}


def _shown(items: Sequence[object]) -> str:
    return _bracketed([repr(item) for item in items])


def _bracketed(shown: Sequence[str]) -> str:
    more = [f"... {len(shown)}"] if len(shown) > SHOWN else []
    return f"[{', '.join([*shown[:SHOWN], *more])}]"


def _shown_dict(pairs: Sequence[tuple[object, object]]) -> str:
    shown = [f"{name!r}: {value!r}" for name, value in pairs[:SHOWN]]
    more = [f"... {len(pairs)}"] if len(pairs) > SHOWN else []
    return f"{{{', '.join([*shown, *more])}}}"


def _shown_combination(combination: Combination) -> str:
    return _shown_dict([(n, v[0] if len(v) == 1 else list(v)) for n, v in combination])
