"""Descriptions of plain values, and the checks that they imply.

A saved file and the events of a store are JSON. A description says what JSON values an entry may
have. It is a function of a value and of the place of the value, such as ``"fit.hypers[0].noise"``.
It returns the value as the library uses it, or raises a `StateError` that quotes place, expectation
and value. Larger descriptions are made from smaller ones:

>>> point = record({"x": whole(most=3), "label": optional(text())})
>>> point({"x": 2, "label": None}, "point")
{'x': 2, 'label': None}
>>> point({"x": 2.5, "label": None}, "point")
Traceback (most recent call last):
mercbo.errors.StateError: point.x: expected a whole number from 0 to 3, got 2.5
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.errors import StateError

T = TypeVar("T")
Schema: TypeAlias = Callable[[object, str], T]

# The largest float.
MOST = float(np.finfo(np.float64).max)
# Whole numbers up to here are floats without rounding.
MOST_WHOLE = 2**53


# -- text --------------------------------------------------------------------------------------


def parsed(text: object) -> Any:
    """The plain values of a JSON text.

    A `StateError` refuses the literals NaN and Infinity, which JSON does not have, and a name that
    occurs twice in an object.
    """
    if not isinstance(text, (str, bytes)):
        raise StateError(f"expected JSON text, got {shown(text)}")
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise StateError(f"not complete JSON, it may be cut short ({error})") from None
    except (RecursionError, ValueError) as error:  # too deep, too many digits, not UTF-8
        raise StateError(f"JSON that mercbo does not write ({error})") from None


def _no_constant(literal: str) -> NoReturn:
    raise StateError(f"JSON that mercbo does not write ({literal} is not a number in JSON)")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise StateError(f"JSON that mercbo does not write (two entries are named {twice!r})")
    return found


# -- single values -----------------------------------------------------------------------------


def shown(value: object) -> str:
    """A short form of any value, for messages."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # an int of more digits than Python prints
        return f"a {type(value).__name__}"


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60
_SHORT.maxlevel = 3


def unexpected(at: str, expected: str, value: object) -> StateError:
    return StateError(f"{_place(at)}expected {expected}, got {shown(value)}")


def _place(at: str) -> str:
    return f"{at}: " if at else ""


def anything(value: object, at: str) -> Any:
    """A value that another reader checks."""
    del at
    return value


def null(value: object, at: str) -> None:
    if value is not None:
        raise unexpected(at, "null", value)


def flag(value: object, at: str) -> bool:
    if not isinstance(value, bool):
        raise unexpected(at, "true or false", value)
    return value


def number(*, least: float = -MOST, most: float = MOST) -> Schema[float]:
    """A number within bounds, as a float."""

    def read(value: object, at: str) -> float:
        if not _is_number(value) or not least <= value <= most:  # type: ignore[operator]
            raise unexpected(at, f"a number{_between(least, most)}", value)
        return float(value)  # type: ignore[arg-type]

    return read


def whole(*, least: int = 0, most: int | None = MOST_WHOLE) -> Schema[int]:
    """A whole number within bounds; None as `most` is no bound."""
    limit = (
        f" from {least} to {most}" if most not in (None, MOST_WHOLE) else f" of at least {least}"
    )
    expected = f"a whole number{limit}"

    def read(value: object, at: str) -> int:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or value < least or (most is not None and value > most):  # type: ignore[operator]
            raise unexpected(at, expected, value)
        return value  # type: ignore[return-value]

    return read


def text(choices: Collection[str] | None = None) -> Schema[str]:
    """A text, one of `choices` if there are any."""
    expected = "a text" if choices is None else f"one of {list(choices)}"

    def read(value: object, at: str) -> str:
        if not isinstance(value, str) or (choices is not None and value not in choices):
            raise unexpected(at, expected, value)
        return value

    return read


def optional(schema: Schema[T]) -> Schema[T | None]:
    """A value, or null."""
    return lambda value, at: None if value is None else schema(value, at)


def written(schema: Schema[T]) -> Schema[T]:
    """A value as JSON text."""

    def read(value: object, at: str) -> T:
        try:
            found = parsed(value)
        except StateError as error:
            raise StateError(f"{_place(at)}{error}") from None
        return schema(found, at)

    return read


# -- lists and records -------------------------------------------------------------------------


def listed(item: Schema[T], *, fewest: int = 0, count: int | None = None) -> Schema[list[T]]:
    """A list of values of one kind: `count` of them, or at least `fewest`."""
    least = "" if fewest == 0 else f" of at least {fewest}"
    expected = f"a list{least if count is None else f' of {count}'}"

    def read(value: object, at: str) -> list[T]:
        fine = isinstance(value, (list, tuple)) and len(value) >= fewest
        if not fine or len(value) != (len(value) if count is None else count):  # type: ignore[arg-type]
            raise unexpected(at, expected, value)
        return [item(each, f"{at}[{i}]") for i, each in enumerate(value)]  # type: ignore[arg-type, var-annotated]

    return read


def mapping(value: object, at: str) -> dict[str, Any]:
    """An object with any entries."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise unexpected(at, "an object", value)
    return dict(value)


def flat(value: object, at: str) -> dict[str, str | int | float | bool | None]:
    """An object whose entries are texts, numbers, flags or null."""
    for name, each in mapping(value, at).items():
        if isinstance(each, (Mapping, list, tuple)):
            raise unexpected(_joined(at, name), "a single value", each)
    return mapping(value, at)


def record(
    entries: Mapping[str, Schema[Any]], optional: Mapping[str, Schema[Any]] | None = None
) -> Schema[dict[str, Any]]:
    """An object with these entries and no others; `optional` ones may be missing."""
    known = {**entries, **(optional or {})}

    def read(value: object, at: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise unexpected(at, "an object", value)
        for name in entries:
            if name not in value:
                raise StateError(f"{_joined(at, name)}: expected an entry, found none")
        for name in value:
            if name not in known:
                raise StateError(
                    f"{_place(at)}unknown entry {shown(name)}, expected one of {list(known)}"
                )
        return {name: known[name](each, _joined(at, name)) for name, each in value.items()}

    return read


def made(build: Callable[..., T], schema: Schema[Mapping[str, Any]]) -> Schema[T]:
    """An object that `build` makes from the entries of a record."""
    return lambda value, at: build(**schema(value, at))


def _joined(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


# -- arrays ------------------------------------------------------------------------------------


def numbers(
    count: int, *, least: float = -MOST, most: float = MOST, missing: bool = False
) -> Schema[Floats]:
    """(count,): a list of numbers within bounds; with `missing`, null is read as NaN."""
    expected = f"a list of {count} numbers{_between(least, most)}{' or null' * missing}"

    def fine(value: Any) -> bool:
        return (missing and value is None) or (_is_number(value) and least <= value <= most)

    def read(value: object, at: str) -> Floats:
        if not isinstance(value, list) or len(value) != count or not all(map(fine, value)):
            raise unexpected(at, expected, value)
        return np.array([np.nan if each is None else each for each in value], dtype=np.float64)

    return read


def rows(sizes: Rows, *, count: int | None = None) -> Schema[Rows]:
    """(N, n): index rows of a space with `sizes` (n,) values, `count` of them or at least one."""
    expected = f"{count or 'some'} rows of {len(sizes)} indices within the space"

    def read(value: object, at: str) -> Rows:
        try:
            found = np.array(value)
        except ValueError:  # rows of different lengths
            raise unexpected(at, expected, value) from None
        if found.dtype.kind != "i" or found.ndim != 2 or found.shape[1] != len(sizes):
            raise unexpected(at, expected, value)
        if len(found) != (count or len(found)) or (found < 0).any() or (found >= sizes).any():
            raise unexpected(at, expected, value)
        return found.astype(np.int64)

    return read


def _between(least: float, most: float) -> str:
    """The bounds of a number, as far as there are any."""
    if most < MOST:
        return f" from {least:g} to {most:g}"
    return f" of at least {least:g}" if least > -MOST else ""


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
