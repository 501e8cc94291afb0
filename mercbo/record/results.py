"""What is told -> arrays: values and measurement errors, checked, one per point."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set

import numpy as np

from mercbo.arrays import Floats, is_listed
from mercbo.errors import ResultError
from mercbo.space import is_missing, is_single


def read_values(points: object, values: object, count: int) -> Floats:
    """One value per point; NaN where the evaluation failed."""
    return _read(points, values, count, "result", _value)


def read_errors(points: object, errors: object, count: int) -> Floats:
    """One standard deviation per point; NaN where it is not known. One number serves all."""
    if errors is None:
        return np.full(count, np.nan)
    if not is_single(points) and not is_listed(errors):
        return np.full(count, _error(errors, "std: "))
    return _read(points, errors, count, "std", _error)


def read_answer(point: object, answer: object) -> tuple[float, float]:
    """What a function gave for one point: a value, or a pair of a value and its standard deviation;
    NaN where either is not known."""
    value, error = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()  # as an objective written with arrays has it
    return float(read_values(point, value, 1)[0]), float(read_errors(point, error, 1)[0])


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
