"""DataFrames: what `ask` gives with ``as_frame=True`` and what `tell` takes apart.

A frame has one column per variable, whose dtype follows from *all* values of the variable and not
from those that happen to be in it. The index says nothing: rows are counted from the top.
pandas is imported when a frame is made; those that come are known by their `columns`.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from mercbo.domain.variables import Point, Value
from mercbo.errors import ResultError, hint
from mercbo.record.observations import Record
from mercbo.space import Space

# In place of `values`: the one column of the frame that is no variable.
IN_FRAME: Any = object()


def to_frame(space: Space, points: list[Point]) -> Any:
    """Points as a DataFrame with a fresh index.

    >>> from mercbo import Categorical, Integer
    >>> space = Space({"n": Integer(1, 3), "base": Categorical([1, None])})
    >>> to_frame(space, [{"n": 2, "base": 1}]).dtypes.astype(str).to_dict()
    {'n': 'int64', 'base': 'object'}
    """
    pd = pandas()
    columns = {
        name: pd.Series([point[name] for point in points], dtype=dtype(variable.values))
        for name, variable in space.variables.items()
    }
    return pd.DataFrame(columns, columns=list(space.names))


def records_frame(space: Space, records: list[Record]) -> Any:
    """Records as a DataFrame: the variables, then value, std, state, batch, time and the notes.

    A column of a record or a note whose name is taken gets " (record)" or " (note)" behind it.
    """
    pd = pandas()
    frame = to_frame(space, [record.point for record in records])
    kinds = {"value": "float64", "std": "float64", "state": "str", "batch": "Int64", "time": "str"}
    for name, kind in kinds.items():
        cells = [getattr(record, name) for record in records]
        frame[free_name(frame.columns, name, "record")] = pd.Series(cells, dtype=kind)
    for name in dict.fromkeys(name for record in records for name in record.notes):
        cells = [record.notes.get(name) for record in records]
        column = free_name(frame.columns, name, "note")
        frame[column] = pd.Series(cells, dtype="object").infer_objects()
    return frame


def free_name(taken: Container[str], name: str, suffix: str) -> str:
    """The name of a new column of a table; the suffix repeats until the name is free.

    >>> free_name(["n", "n (note)"], "n", "note")
    'n (note) (note)'
    """
    while name in taken:
        name = f"{name} ({suffix})"
    return name


def pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("a DataFrame needs pandas: pip install pandas") from error
    return pandas


def dtype(values: tuple[Value, ...]) -> str:
    """The dtype that holds every one of some values as it is."""
    kinds = {type(value) for value in values}
    if any(type(value) is int and not -(2**63) <= value < 2**63 for value in values):
        return "object"
    names = {bool: "bool", int: "int64", float: "float64", str: "str"}
    return names[kinds.pop()] if len(kinds) == 1 and kinds <= set(names) else "object"


def is_frame(points: object) -> bool:
    return hasattr(points, "columns") and hasattr(points, "to_dict")


def take_apart(
    space: Space, points: object, values: object, std: object
) -> tuple[object, object, object]:
    """Points, values and standard deviations, of which a frame may hold the last two: by the name
    of their column, or, where nothing is said, the values by the only column that is left."""
    if not is_frame(points):
        if values is IN_FRAME:
            raise ResultError("points came without values")
        return points, values, std
    frame: Any = points
    if values is IN_FRAME:
        said = {*space.names, *([std] if isinstance(std, str) else [])}
        others = [name for name in frame.columns if name not in said]
        if len(others) != 1:
            raise ResultError(
                f"the values must be one column of the frame besides the variables, got {others}; "
                "name it: tell(frame, 'column')"
            )
        values = others[0]
    for what, given in (("values", values), ("std", std)):
        if isinstance(given, str) and given in space.variables:
            raise ResultError(f"{what}: {given!r} is a variable of the space")
    return frame, _column(frame, values, "values"), _column(frame, std, "std")


def _column(frame: Any, given: object, what: str) -> object:
    """A column as a list, where `given` names one; else `given`, unless it is in other order."""
    if isinstance(given, str):
        if given not in frame.columns:
            known = list(frame.columns)
            raise ResultError(f"{what}: no column is named {given!r}{hint(given, known)}")
        if list(frame.columns).count(given) > 1:
            raise ResultError(f"{what}: two columns are named {given!r}")
        return _cells(frame[given])
    index = getattr(given, "index", None)
    if index is None or callable(index) or not hasattr(given, "tolist"):
        return given
    mine, theirs = frame.index.tolist(), index.tolist()
    if mine != theirs and sorted(map(repr, mine)) == sorted(map(repr, theirs)):
        raise ResultError(
            f"{what}: the Series has the labels of the frame in another order; "
            "put it in the frame's order, or pass a list to go by position"
        )
    return _cells(given)


def _cells(column: Any) -> list[object]:
    """The cells of a Series; pandas' NA is None."""
    missing = column.isna().tolist()
    return [None if gone else cell for cell, gone in zip(column.tolist(), missing, strict=True)]
