"""The four kinds of variable: what a user may write for one coordinate of a point."""

from __future__ import annotations

import enum
import math
import sys
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from mercbo.arrays import Rows, is_listed
from mercbo.errors import PointError, SpaceError, choose, hint, quoted

Value: TypeAlias = str | int | float | bool | None
Point: TypeAlias = dict[str, Value]

# A variable with k values needs k x k tables; beyond this they stop being small.
MAX_VALUES = 2048
# The largest integer that a float can hold: models, files and tables need values as floats.
LARGEST = int(sys.float_info.max)
# Relative difference up to which a float is one of a variable's, but for rounding: that of numbers
# kept in 32 bits is 6e-8.
ROUNDING = 1e-6


def plain(value: object) -> Value:
    """The plain Python value of a scalar: numpy scalars are unwrapped, the rest is checked."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and abs(value) > LARGEST:
        raise SpaceError(f"{quoted(value)} is too large; a number is at most {float(LARGEST):.2g}")
    plain_type = isinstance(value, (str, bool, int, float)) and not isinstance(value, enum.Enum)
    if value is None or plain_type:
        return value  # type: ignore[return-value]
    raise SpaceError(
        f"{quoted(value)} is a {type(value).__name__}; values are str, int, float, bool or None"
    )


def checked_values(values: Iterable[object]) -> tuple[Value, ...]:
    # A set has no order of its own: another process could list it differently.
    if isinstance(values, (str, bytes, Set, Mapping)) or not isinstance(values, Iterable):
        raise SpaceError(f"values must be a list, got {quoted(values)}")
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


def ordered(values: Iterable[Value]) -> list[Value]:
    """The distinct values in an order that follows from the values alone: numbers by size, then
    texts by their letters, then None.

    Variables inferred from columns with the same values then list them alike, so that terms that
    count a value over several variables apply.

    >>> ordered(["T", "A", None, 2, True, "A"])
    [True, 2, 'A', 'T', None]
    """

    def place(value: Value) -> tuple[int, float, str]:
        if isinstance(value, (int, float)):
            return 0, value, ""
        return (1, 0.0, value) if isinstance(value, str) else (2, 0.0, "")

    return sorted(dict.fromkeys(values), key=place)


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
            if is_listed(value) and not isinstance(value, (str, bytes, Mapping)):
                raise PointError(f"a list came, one value was wanted: {quoted(value)}") from None
            near = self._near(value)
            if len(near) != 1:
                raise PointError(f"{quoted(value)} {self.expected()}{self._hint(value)}") from None
            return near[0]

    def _near(self, value: object) -> list[int]:
        """The positions of floats that `value` is but for rounding, such as 0.1 in 32 bits."""
        if not isinstance(value, (float, np.floating)):
            return []
        listed = enumerate(self.values)
        return [
            i
            for i, v in listed
            if isinstance(v, float) and math.isclose(v, value, rel_tol=ROUNDING)
        ]

    def expected(self) -> str:
        """What a message says of a value that is not allowed."""
        shown = list(self.values[:12])
        more = ", ..." if self.size > len(shown) else ""
        return f"is not one of {str(shown)[:-1]}{more}]"

    def _hint(self, value: object) -> str:
        return hint(value, self.values)

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
                raise SpaceError(f"{side}={quoted(bound)} is not a whole number")
            object.__setattr__(self, side, plain(int(bound)))
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

    def expected(self) -> str:
        return f"is not a whole number from {self.low} to {self.high}"

    def _hint(self, value: object) -> str:  # noqa: ARG002
        return ""

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


def points_of(variables: Mapping[str, Variable], rows: Rows) -> list[Point]:
    """Index rows -> dicts of the user's own values."""
    columns = [(name, v.values) for name, v in variables.items()]
    return [
        {name: values[i] for (name, values), i in zip(columns, row, strict=True)}
        for row in rows.tolist()
    ]
