"""What is told -> arrays: values and measurement errors, checked, one per point."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Set
from typing import Any

import numpy as np

from mercbo.arrays import Floats, is_listed
from mercbo.errors import ResultError, SettingError
from mercbo.space import is_missing, is_single

Bounds = tuple[float, float]
# Objects within objects of a note. Python reads some hundred levels, fewer in a deep call.
MOST_LEVELS = 32


def read_bounds(bounds: object) -> Bounds:
    """The lowest and the highest result that is possible; infinite on a side without a bound."""
    if bounds is None:
        return -math.inf, math.inf
    wanted = f"target_bounds={bounds!r}: expected (low, high) with low < high; either may be None"
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise SettingError(wanted)
    try:
        low, high = (
            default if bound is None else _number(bound, "")
            for bound, default in zip(bounds, (-math.inf, math.inf), strict=True)
        )
    except ResultError:
        raise SettingError(wanted) from None
    if not low < high:
        raise SettingError(wanted)
    return low, high


def plain_bounds(bounds: Bounds) -> list[float | None] | None:
    """Bounds as JSON has them; None if there are none."""
    found = [None if math.isinf(bound) else bound for bound in bounds]
    return None if found == [None, None] else found


def read_values(
    points: object, values: object, count: int, *, bounds: Bounds = (-math.inf, math.inf)
) -> Floats:
    """One value per point; NaN if the evaluation failed."""
    low, high = bounds

    def value_within(value: object, where: str) -> float:
        number = _value(value, where)
        if number < low or number > high:
            raise ResultError(f"{where}{value!r} is outside target_bounds=({low:g}, {high:g})")
        return number

    return _read(points, values, count, "result", value_within)


def read_notes(
    points: object, notes: object, count: int
) -> tuple[Mapping[str, Any] | None, ...] | None:
    """One mapping or None per point, of values that JSON can hold; None if there are no notes."""
    if notes is None:
        return None
    if is_single(points):
        listed: list[object] = [notes]
    elif isinstance(notes, (str, bytes, Mapping, Set)) or not is_listed(notes):
        raise ResultError(f"notes: expected a list of {count} mappings, got {notes!r}")
    else:
        listed = list(notes)  # type: ignore[call-overload]
    if len(listed) != count:
        raise ResultError(f"notes: expected {count}, one per point, got {len(listed)}")
    return tuple(_note(note, f"notes {i}: " if count > 1 else "notes: ")
                 for i, note in enumerate(listed))  # fmt: skip


def _note(note: object, where: str) -> Mapping[str, Any] | None:
    if note is None:
        return None
    if not isinstance(note, Mapping) or not all(isinstance(name, str) for name in note):
        raise ResultError(f"{where}expected a mapping of names to values, got {note!r}")
    try:
        # a copy, in which a later change of the user's mapping does not show
        copy = dict(json.loads(json.dumps(dict(note), allow_nan=False)))
    except RecursionError:
        raise ResultError(f"{where}expected at most {MOST_LEVELS} levels, got more") from None
    except (TypeError, ValueError) as error:
        raise ResultError(f"{where}{note!r} cannot be written as JSON ({error})") from None
    if _levels(copy) > MOST_LEVELS:
        raise ResultError(f"{where}expected at most {MOST_LEVELS} levels, got {_levels(copy)}")
    return copy


def _levels(plain: object) -> int:
    """The number of objects and lists around the innermost value."""
    count, inner = 0, [plain]
    while inner := [each for each in inner if isinstance(each, (dict, list))]:
        count += 1
        inner = [deeper for each in inner
                 for deeper in (each.values() if isinstance(each, dict) else each)]  # fmt: skip
    return count


def read_errors(points: object, errors: object, count: int) -> Floats:
    """One standard deviation per point; NaN where it is not known. One number serves all."""
    if errors is None:
        return np.full(count, np.nan)
    if not is_single(points) and not is_listed(errors):
        return np.full(count, _error(errors, "std: "))
    return _read(points, errors, count, "std", _error)


def read_answer(
    point: object, answer: object, *, bounds: Bounds = (-math.inf, math.inf)
) -> tuple[float, float]:
    """What a function gave for one point: a value, or a pair of a value and its standard deviation;
    NaN where either is not known."""
    value, error = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()  # as an objective written with arrays has it
    result = read_values(point, value, 1, bounds=bounds)
    return float(result[0]), float(read_errors(point, error, 1)[0])


def _read(
    points: object, given: object, count: int, what: str, convert: Callable[[object, str], float]
) -> Floats:
    if is_single(points):
        if is_listed(given) and not isinstance(given, (str, bytes)):
            raise ResultError(f"one point takes one {what}, a list came: {given!r}")
        return np.array([convert(given, "" if what == "result" else f"{what}: ")])
    framed = hasattr(given, "columns")  # whose items are the names of its columns
    if isinstance(given, (str, bytes, Mapping, Set)) or framed or not is_listed(given):
        raise ResultError(f"a list of points needs a list of {what}s, got {given!r}")
    listed = list(given)  # type: ignore[call-overload]
    if len(listed) != count:
        raise ResultError(f"{count} points came with {len(listed)} {what}s")
    return np.array([convert(v, f"{what} {i}: ") for i, v in enumerate(listed)], dtype=float)


def _number(value: object, where: str) -> float:
    """A float; NaN for None and pandas' NA, infinity where it is too large for one."""
    if value is None:
        return math.nan
    if isinstance(value, (str, bytes, complex, np.complexfloating)) or is_listed(value):
        raise ResultError(f"{where}{value!r} is not a number")
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        if is_missing(value):
            return math.nan
        raise ResultError(f"{where}{value!r} is not a number") from None
    except OverflowError:
        return math.inf


def _value(value: object, where: str) -> float:
    number = _number(value, where)
    if math.isinf(number):
        raise ResultError(f"{where}{value!r} is infinite; tell NaN or None for a failed evaluation")
    return number


def _error(value: object, where: str) -> float:
    number = _number(value, where)
    if math.isinf(number) or number < 0:
        raise ResultError(
            f"{where}{value!r} is not a standard deviation: a finite number of at least 0, "
            "or None where it is not known"
        )
    return number
