"""The search space: the first stop of a `tell`, the last of an `ask`.

Users write and read *values* (``"THF"``, ``80``, ``None``); everything behind this module works
on *index rows*: an int64 array with one row per point and one column per variable, each entry
the position of the value in its variable's list. This is the only module that sees both.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from mercbo.arrays import Rows
from mercbo.errors import PointError, SettingError, SpaceError, choose, hint

Value: TypeAlias = str | int | float | bool | None
Point: TypeAlias = dict[str, Value]

# A variable with k values needs k x k tables; beyond this they stop being small.
MAX_VALUES = 2048


def plain(value: object) -> Value:
    """The plain Python value of a scalar: numpy scalars are unwrapped, the rest is checked."""
    if isinstance(value, np.generic):
        value = value.item()
    plain_type = isinstance(value, (str, bool, int, float)) and not isinstance(value, enum.Enum)
    if value is None or plain_type:
        return value  # type: ignore[return-value]
    raise SpaceError(
        f"{value!r} is a {type(value).__name__}; values are str, int, float, bool or None"
    )


def checked_values(values: Iterable[object]) -> tuple[Value, ...]:
    # A set has no order of its own: another process could list it differently.
    if isinstance(values, (str, bytes, Set, Mapping)) or not isinstance(values, Iterable):
        raise SpaceError(f"values must be a list, got {values!r}")
    found: dict[Value, Value] = {}
    for value in map(plain, values):
        if isinstance(value, float) and not math.isfinite(value):
            raise SpaceError(f"{value!r} cannot be a value: values must be finite")
        if value in found:
            twin = found[value]
            same = "" if type(twin) is type(value) else " (they are equal in Python)"
            raise SpaceError(f"duplicate values: {twin!r} and {value!r}{same}")
        found[value] = value
    if not found:
        raise SpaceError("the list of values is empty")
    if len(found) > MAX_VALUES:
        raise SpaceError(
            f"{len(found)} values are too many for one variable (at most {MAX_VALUES}); "
            "use fewer, coarser values or split the variable"
        )
    return tuple(found.values())


class Variable:
    """What the four kinds of variable share: a tuple of values and a graph on them."""

    kind: ClassVar[str]
    graph: ClassVar[Literal["complete", "path"]]
    values: tuple[Value, ...]
    encoding: str = "one-hot"

    @property
    def size(self) -> int:
        return len(self.values)

    @cached_property
    def _position(self) -> dict[Value, int]:
        return {value: i for i, value in enumerate(self.values)}

    def index(self, value: object) -> int:
        """The position of `value`; a `PointError` that quotes it where it is not allowed."""
        try:
            return self._position[value]  # type: ignore[index]
        except (KeyError, TypeError):
            raise PointError(f"{value!r} {self._refusal(value)}") from None

    def _refusal(self, value: object) -> str:
        shown = list(self.values[:12])
        more = ", ..." if self.size > len(shown) else ""
        return f"is not one of {str(shown)[:-1]}{more}]{hint(value, self.values)}"

    def to_dict(self) -> dict[str, Any]:
        raise SpaceError(f"{type(self).__name__} does not say how it is written to a file")


@dataclass(frozen=True)
class Binary(Variable):
    """A switch: 0 or 1 (``False`` and ``True`` are understood, 0 and 1 come back)."""

    kind: ClassVar[str] = "binary"
    graph: ClassVar[Literal["complete", "path"]] = "complete"

    values: tuple[Value, ...] = field(default=(0, 1), init=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}


@dataclass(frozen=True)
class Categorical(Variable):
    """One of several values without an order.

    ``encoding="one-hot"`` gives the acquisition problem one bit per value; ``"binary"`` is the
    paper's encoding for DNA, ceil(log2 k) bits that are themselves the variables of the model.
    """

    values: tuple[Value, ...]
    encoding: str = field(default="one-hot", kw_only=True)

    kind: ClassVar[str] = "categorical"
    graph: ClassVar[Literal["complete", "path"]] = "complete"

    def __init__(self, values: Iterable[object], *, encoding: str = "one-hot") -> None:
        object.__setattr__(self, "values", checked_values(values))
        object.__setattr__(self, "encoding", choose("encoding", encoding, ["one-hot", "binary"]))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "values": list(self.values), "encoding": self.encoding}


@dataclass(frozen=True)
class Ordinal(Variable):
    """One of several values in the order given: neighbours are alike."""

    values: tuple[Value, ...]

    kind: ClassVar[str] = "ordinal"
    graph: ClassVar[Literal["complete", "path"]] = "path"

    def __init__(self, values: Iterable[object]) -> None:
        object.__setattr__(self, "values", checked_values(values))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "values": list(self.values)}


@dataclass(frozen=True)
class Integer(Variable):
    """A whole number from `low` to `high`, both included: neighbours are alike."""

    low: int
    high: int

    kind: ClassVar[str] = "integer"
    graph: ClassVar[Literal["complete", "path"]] = "path"

    def __post_init__(self) -> None:
        for side, bound in (("low", self.low), ("high", self.high)):
            if isinstance(bound, bool) or not isinstance(bound, (int, np.integer)):
                raise SpaceError(f"{side}={bound!r} is not a whole number")
            object.__setattr__(self, side, int(bound))
        if self.low > self.high:
            raise SpaceError(f"low={self.low} is above high={self.high}")
        if self.high - self.low >= MAX_VALUES:
            raise SpaceError(
                f"{self.high - self.low + 1} values are too many for one variable "
                f"(at most {MAX_VALUES}); use Ordinal with a coarser grid"
            )

    @cached_property
    def values(self) -> tuple[Value, ...]:  # type: ignore[override]
        return tuple(range(self.low, self.high + 1))

    def _refusal(self, value: object) -> str:  # noqa: ARG002
        return f"is not a whole number from {self.low} to {self.high}"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "low": self.low, "high": self.high}


KINDS: dict[str, type[Variable]] = {
    cls.kind: cls for cls in (Binary, Categorical, Ordinal, Integer)
}


def variable_from_dict(data: Mapping[str, Any]) -> Variable:
    if not isinstance(data, Mapping):
        raise SpaceError(f"{data!r} does not describe a variable; a dict was wanted")
    settings = dict(data)
    kind = choose("kind", settings.pop("kind", None), KINDS)
    try:
        return KINDS[kind](**settings)
    except TypeError:
        raise SpaceError(f"{kind} cannot be made from {settings}") from None


class Space:
    """A finite search space: named variables, each with its list of values.

    >>> space = Space({"base": Categorical(["A", "C", "G", "T"]), "n": Integer(1, 6)})
    >>> space.size
    24
    >>> space.rows([{"base": "G", "n": 6}]).tolist()
    [[2, 5]]
    """

    def __init__(self, variables: Mapping[str, Variable]) -> None:
        if not isinstance(variables, Mapping):
            raise SpaceError(
                f"a space is made from a dict of name: variable, got {type(variables).__name__}"
            )
        if not variables:
            raise SpaceError("the space has no variables")
        for name, variable in variables.items():
            if not isinstance(name, str) or not name:
                raise SpaceError(f"a variable's name must be a non-empty str, got {name!r}")
            if not isinstance(variable, Variable):
                raise SpaceError(
                    f"{name!r}: {variable!r} is not a variable; "
                    "use Binary, Categorical, Ordinal or Integer"
                )
        self.variables: Mapping[str, Variable] = MappingProxyType(dict(variables))

    @classmethod
    def binary(cls, n: int) -> Space:
        """The space of `n` binary variables, named ``x0`` to ``x{n-1}``."""
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise SpaceError(f"Space.binary needs a number of variables of at least 1, got {n!r}")
        return cls({f"x{i}": Binary() for i in range(n)})

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(self.variables)

    @cached_property
    def sizes(self) -> Rows:
        """The number of values of each variable, (n,)."""
        return np.array([v.size for v in self.variables.values()], dtype=np.int64)

    @property
    def size(self) -> int:
        """The number of points, exact however large."""
        return math.prod(v.size for v in self.variables.values())

    def __len__(self) -> int:
        return len(self.variables)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and list(self.variables.items()) == list(
            other.variables.items()
        )

    def __hash__(self) -> int:
        return hash(tuple(self.variables.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Space, (dict(self.variables),)

    def __repr__(self) -> str:
        listed = ", ".join(f"{name!r}: {v!r}" for name, v in list(self.variables.items())[:8])
        more = f", ... {len(self)} variables" if len(self) > 8 else ""
        return f"Space({{{listed}{more}}})"

    def to_dict(self) -> dict[str, Any]:
        """A description that survives JSON; `from_dict` reads it back.

        >>> Space.from_dict(Space.binary(3).to_dict()) == Space.binary(3)
        True
        """
        return {"variables": {name: v.to_dict() for name, v in self.variables.items()}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Space:
        if not isinstance(data, Mapping) or not isinstance(data.get("variables"), Mapping):
            raise SpaceError("a space's dict needs an entry 'variables' that maps names")
        built: dict[str, Variable] = {}
        for name, described in data["variables"].items():
            try:
                built[name] = variable_from_dict(described)
            except (SpaceError, SettingError) as error:
                raise SpaceError(f"{name!r}: {error}") from None
        return cls(built)

    def sample(self, k: int, *, rng: np.random.Generator) -> list[Point]:
        """`k` independent points, uniform over the space (repeats are possible)."""
        return self.points(self.sample_rows(k, rng=rng))

    def sample_rows(self, k: int, *, rng: np.random.Generator) -> Rows:
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 0:
            raise SettingError(f"k={k!r} is not a whole number of at least 0")
        return rng.integers(0, self.sizes, size=(k, len(self)), dtype=np.int64)

    def enumerate_rows(self) -> Rows:
        """Every point of a small space, in lexicographic order."""
        rows = np.zeros((self.size, len(self)), dtype=np.int64)
        rest = np.arange(self.size)
        for column in range(len(self) - 1, -1, -1):
            rest, rows[:, column] = np.divmod(rest, self.sizes[column])
        return rows

    def points(self, rows: Rows) -> list[Point]:
        """Index rows -> dicts of the user's own values."""
        columns = [(name, v.values) for name, v in self.variables.items()]
        return [
            {name: values[i] for (name, values), i in zip(columns, row, strict=True)}
            for row in rows.tolist()
        ]

    def rows(self, points: object) -> Rows:
        """Points in any accepted form -> index rows (N, n); one point gives one row.

        Accepted: a dict, a list of dicts, a list of values in the space's order, a list of such
        lists, a 1-d or 2-d array of values, a pandas DataFrame with a column per variable.
        """
        if hasattr(points, "columns") and hasattr(points, "to_dict"):
            return self._rows_of_frame(points)
        if is_single(points):
            return self._row(points)[np.newaxis]
        parsed = [self._numbered(i, p) for i, p in enumerate(points)]  # type: ignore[arg-type, var-annotated]
        return np.array(parsed, dtype=np.int64).reshape(len(parsed), len(self))

    def _numbered(self, number: int, point: object) -> Rows:
        try:
            return self._row(point)
        except PointError as error:
            raise PointError(f"point {number}: {error}") from None

    def _row(self, point: object) -> Rows:
        if isinstance(point, Mapping):
            self._check_names(point)
            ordered: Sequence[object] = [point[name] for name in self.names]
        elif isinstance(point, (Sequence, np.ndarray)) and not isinstance(point, (str, bytes)):
            ordered = list(point)
            if len(ordered) != len(self):
                raise PointError(
                    f"a row of {len(ordered)} values came, the space has {len(self)} variables"
                )
        else:
            raise PointError(f"a point is a dict or a list of values, got {point!r}")
        return np.array(
            [self._index(name, value) for name, value in zip(self.names, ordered, strict=True)],
            dtype=np.int64,
        )

    def _index(self, name: str, value: object) -> int:
        try:
            return self.variables[name].index(value)
        except PointError as error:
            raise PointError(f"{name!r}: {error}") from None

    def _check_names(self, given: Iterable[object]) -> None:
        known = set(given)
        for name in sorted(known - set(self.names), key=str):
            raise PointError(f"unknown variable {name!r}{hint(name, self.names)}")
        missing = [name for name in self.names if name not in known]
        if missing:
            raise PointError(f"missing variable{'s' * (len(missing) > 1)} {missing}")

    def _rows_of_frame(self, frame: Any) -> Rows:
        self._check_names(frame.columns)
        if len(frame.columns) > len(self):
            twice = next(name for name in self.names if list(frame.columns).count(name) > 1)
            raise PointError(f"two columns are named {twice!r}")
        columns = [self._column(name, frame[name].tolist()) for name in self.names]
        return np.array(columns, dtype=np.int64).reshape(len(self), len(frame)).T.copy()

    def _column(self, name: str, cells: list[object]) -> list[int]:
        # pandas writes a missing value as NaN; where None is an allowed value, that is meant.
        if None in self.variables[name].values:
            cells = [None if is_missing(cell) else cell for cell in cells]
        found = []
        for number, cell in enumerate(cells):
            try:
                found.append(self._index(name, cell))
            except PointError as error:
                raise PointError(f"point {number}: {error}") from None
        return found


def is_missing(cell: object) -> bool:
    """Whether a cell of a table is NaN or pandas' NA, neither of which equals itself."""
    try:
        return bool(cell != cell)
    except TypeError:
        return True


def is_single(points: object) -> bool:
    """Whether `points` is one point (a dict or a flat row) rather than several."""
    if isinstance(points, Mapping):
        return True
    if hasattr(points, "columns"):
        return False
    if isinstance(points, np.ndarray) and points.ndim > 0:
        return points.ndim == 1 and not any(isinstance(p, Mapping) for p in points[:1])
    if isinstance(points, Sequence) and not isinstance(points, (str, bytes)):
        first = points[0] if len(points) else {}
        nested = isinstance(first, (Mapping, Sequence, np.ndarray)) and not isinstance(first, str)
        return not nested
    raise PointError(f"points are dicts, rows of values or a DataFrame, got {points!r}")
