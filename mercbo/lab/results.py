"""A table of results against a study: which rows are good, and what is wrong with the others.

Nothing is stored here. `read_results` looks at every row first, so that whoever stores can keep all
or nothing; each complaint names the line and the column, and what was probably meant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from mercbo.arrays import Rows, key, keys
from mercbo.domain.variables import Point, Value
from mercbo.errors import PointError, hint, quoted
from mercbo.lab.cells import CellError, is_empty, number_of, result_of, value_of, was_changed
from mercbo.lab.rows import Cell, TableError
from mercbo.lab.tables import Line, Table
from mercbo.space import Space

# Columns that plates have, and that are neither variables nor notes worth keeping.
PLATE_COLUMNS = ("plate", "well", "design")
CONTROL = "control"


@dataclass(frozen=True)
class Problem:
    """What is wrong with a row, and where."""

    line: int
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


@dataclass(frozen=True)
class Result:
    """One good row: a design with its result (None: it failed), its error, and other columns."""

    line: int
    row: Rows
    value: float | None
    std: float | None
    extra: dict[str, Cell]


@dataclass(frozen=True)
class Known:
    """What a study knows already, by the key of the design: values told (None: it failed)."""

    told: dict[bytes, list[float | None]] = field(default_factory=dict)
    pending: dict[bytes, Rows] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """What a table holds."""

    good: tuple[Result, ...]
    problems: tuple[Problem, ...]
    # lines without a result, of controls, of results that the study has already, and of failures
    # that say nothing, since their design has a result
    empty: tuple[int, ...] = ()
    controls: tuple[int, ...] = ()
    again: tuple[int, ...] = ()
    outdone: tuple[int, ...] = ()
    # what was understood although it is not what a value is called
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Options:
    """How a table is read.

    target, std
        The columns of results and, where there is one, of their standard deviations.
    new
        Whether designs that nobody asked for are welcome.
    replicates
        Whether a design may come again, with another result.
    again
        Whether a result that the study has already is one more; else it is passed over, so that a
        table may be given twice. A failure never is: a design has failed or has not.
    empty
        "skip": a row without a result has none yet. "failed": it failed.
    """

    target: str
    std: str = "std"
    new: bool = False
    replicates: bool = False
    empty: str = "skip"
    again: bool = False


def read_results(table: Table, space: Space, known: Known, options: Options) -> Reading:
    """All rows of a table, sorted into good ones and problems."""
    check_variables(table, space)
    _check_target(table, space, options.target)
    extra = [
        column
        for column in table.header
        if column and column not in (*space.names, options.target, options.std, *PLATE_COLUMNS)
    ]
    good: list[Result] = []
    problems: list[Problem] = []
    found: dict[str, list[int]] = {"empty": [], "controls": [], "again": []}
    first: dict[bytes, int] = {}
    changed = Changed(table)
    left = {design: list(values) for design, values in known.told.items()}
    for line in table.lines:
        if is_control(line, space):
            found["controls"].append(line.number)
            continue
        if is_empty(line.cells[options.target]) and options.empty == "skip":
            found["empty"].append(line.number)
            continue
        wrong: list[Problem] = []
        row = design_of(table, line, space, wrong, changed)
        value, std = _result(table, line, options, wrong)
        if not wrong and row is not None:
            once = not options.again or value is None
            if once and _is_told(left.get(key(row), []), value, options):
                found["again"].append(line.number)
                continue
            wrong += _refused(table, line, row, value, space, known, first, options)
        if row is not None:
            first.setdefault(key(row), line.number)
        if wrong or row is None:
            problems += wrong
        else:
            cells = {c: line.cells[c] for c in extra if not is_empty(line.cells[c])}
            good.append(Result(line.number, row, value, std, cells))
    kept, outdone = _without_outdone(good, known)
    kept, repeated = _without_repeated(kept)
    found["again"] += repeated
    lines = {name: tuple(sorted(numbers)) for name, numbers in found.items()}
    return Reading(
        tuple(kept), tuple(problems), lines["empty"], lines["controls"], lines["again"],
        tuple(outdone), changed.remarks(),
    )  # fmt: skip


def _without_outdone(good: list[Result], known: Known) -> tuple[list[Result], list[int]]:
    """Without the failures of designs that have a result, in the study or in the table, and the
    lines of these; one that is pending is told all the same, so that it is pending no more."""
    worked = {key(result.row) for result in good if result.value is not None}
    for design, values in known.told.items():
        if values != [None] and design not in known.pending:
            worked.add(design)
    outdone = [r.line for r in good if r.value is None and key(r.row) in worked]
    return _without(good, outdone), outdone


def _without_repeated(good: list[Result]) -> tuple[list[Result], list[int]]:
    """Without all but the first failure of each design, and the lines of the others."""
    first: dict[bytes, int] = {}
    for result in good:
        if result.value is None:
            first.setdefault(key(result.row), result.line)
    repeated = [r.line for r in good if r.value is None and first[key(r.row)] != r.line]
    return _without(good, repeated), repeated


def _without(good: list[Result], lines: list[int]) -> list[Result]:
    gone = set(lines)
    return [result for result in good if result.line not in gone]


def check_variables(table: Table, space: Space) -> None:
    """Refuse a table without a column for each variable."""
    missing = [name for name in space.names if name not in table.header]
    if missing:
        also = [c for c in table.header if c and c not in space.names]
        near = [f"{name!r}{hint(name, also)}" for name in missing]
        raise TableError(f"{table.name}: no column is named {', nor '.join(near)}")


def _check_target(table: Table, space: Space, target: str) -> None:
    if target not in table.header:
        others = [c for c in table.header if c and c not in (*space.names, *PLATE_COLUMNS)]
        raise TableError(
            f"{table.name}: no column of results is named {target!r}{hint(target, others)}; "
            f"the other columns are {others}; --target names another"
        )


def is_control(line: Line, space: Space) -> bool:
    """Whether a row has no design: it is marked so, or has no value of any variable.

    Where a design of empty cells is one of the space, the number in the column of designs tells
    them apart; a table without that column, such as an export, lists no controls.
    """
    number = line.cells.get("design")
    if str(number or "").strip().lower() == CONTROL:
        return True
    if not all(is_empty(line.cells[name]) for name in space.names):
        return False
    unnumbered = "design" in line.cells and is_empty(number)
    return unnumbered or not _may_be_empty(space)


def _may_be_empty(space: Space) -> bool:
    """Whether a row of empty cells is a design."""
    try:
        space.feasible_rows([{name: value_of(v, "") for name, v in space.variables.items()}])
    except (CellError, PointError):
        return False
    return True


class Changed:
    """Cells of a table that a spreadsheet made numbers of, where a text was meant."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._lines: dict[tuple[str, str, Value], list[int]] = {}

    def note(self, line: int, column: str, cell: Cell, value: Value) -> None:
        if was_changed(cell, value):
            self._lines.setdefault((column, str(cell), value), []).append(line)

    def remarks(self) -> tuple[str, ...]:
        """What was taken for what, once for each."""
        return tuple(
            f"{self.table.position(lines[0], column)}: {cell} is taken for {value!r}, the only "
            f"value of that number{f', in {len(lines)} rows' if len(lines) > 1 else ''}"
            for (column, cell, value), lines in self._lines.items()
        )


def design_of(
    table: Table, line: Line, space: Space, wrong: list[Problem], changed: Changed
) -> Rows | None:
    """The design of a row; None where something is wrong with it, which is added to `wrong`."""
    point: Point = {}
    for name, variable in space.variables.items():
        cell = line.cells[name]
        try:
            value: Value = value_of(variable, cell, decimal_comma=table.decimal_comma)
        except CellError as error:
            wrong.append(Problem(line.number, table.position(line.number, name), str(error)))
        else:
            point[name] = value
            changed.note(line.number, name, cell, value)
    if len(point) < len(space):
        return None
    try:
        row: Rows = space.feasible_rows([point])[0]
    except PointError as error:
        message = str(error).removeprefix("point 0: ")
        wrong.append(Problem(line.number, f"{table.name}, line {line.number}", message))
        return None
    return row


def _result(
    table: Table, line: Line, options: Options, wrong: list[Problem]
) -> tuple[float | None, float | None]:
    value = std = None
    cell, comma = line.cells[options.target], table.decimal_comma
    try:
        value = None if is_empty(cell) else result_of(cell, decimal_comma=comma)
    except CellError as error:
        wrong.append(Problem(line.number, table.position(line.number, options.target), str(error)))
    spread = line.cells.get(options.std)
    if not is_empty(spread):
        try:
            std = number_of(spread, decimal_comma=comma)
            if std is None or std < 0:
                raise CellError(
                    f"{quoted(spread)} is not a standard deviation; write a number of at least 0, "
                    "or leave the cell empty if it is not known"
                )
        except CellError as error:
            wrong.append(Problem(line.number, table.position(line.number, options.std), str(error)))
    return value, std


def _is_told(left: list[float | None], value: float | None, options: Options) -> bool:
    """Whether a result is one of those that the study has of its design."""
    at = next((i for i, other in enumerate(left) if _same(value, other)), None)
    if at is None:
        return False
    # among replicates each stands for one row, so that equal ones are counted; failures are not
    if options.replicates and value is not None:
        del left[at]
    return True


def _refused(
    table: Table,
    line: Line,
    row: Rows,
    value: float | None,
    space: Space,
    known: Known,
    first: dict[bytes, int],
    options: Options,
) -> list[Problem]:
    """What speaks against a row."""
    found = key(row)
    if found in first and not options.replicates:
        message = f"is the design of line {first[found]} again; --replicates takes both"
    elif found in known.told and not options.replicates and not _works_now(known, found, value):
        message = (
            f"this design has the result {', '.join(map(_shown, known.told[found]))} already, here "
            f"it is {_shown(value)}; correct it by `mercbo amend`, or take both by --replicates"
        )
    elif found not in known.pending and found not in known.told and not options.new:
        message = (
            f"this design was never asked for{_closest(row, space, known)}; "
            "--new takes it all the same"
        )
    else:
        return []
    return [Problem(line.number, f"{table.name}, line {line.number}", message)]


def _works_now(known: Known, design: bytes, value: float | None) -> bool:
    """Whether a design that failed has a result at last: there is nothing to choose between."""
    return known.told[design] == [None] and value is not None


def _shown(value: float | None) -> str:
    return "failed" if value is None else f"{value:g}"


def _same(one: float | None, two: float | None) -> bool:
    if one is None or two is None:
        return one is two
    return math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-12)


def _closest(row: Rows, space: Space, known: Known) -> str:
    if not known.pending:
        return ", and none is pending"
    rows = np.array(list(known.pending.values()))
    differs = rows != row
    nearest = int(np.argmin(differs.sum(axis=1)))
    names = [space.names[i] for i in np.flatnonzero(differs[nearest]).tolist()]
    point = space.points(rows[nearest : nearest + 1])[0]
    shown = ", ".join(f"{name}={point[name]!r}" for name in names[:3])
    return f" (the nearest one that was has {shown}{', ...' if len(names) > 3 else ''})"


def known_of(rows: Rows, values: Iterable[float], failed: Rows, pending: Rows) -> Known:
    """What a study's history knows."""
    told: dict[bytes, list[float | None]] = {}
    for found, value in zip(keys(rows), values, strict=True):
        told.setdefault(found, []).append(float(value))
    for found in keys(failed):
        told.setdefault(found, []).append(None)
    return Known(told, dict(zip(keys(pending), pending, strict=True)))
