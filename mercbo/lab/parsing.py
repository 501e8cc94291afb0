"""A table of results: what each of its rows says (`parse`).

Nothing is stored here. Every row is read, so that the caller can store all rows or none. Each
problem names the line, the column, and what was probably meant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from mercbo.arrays import Rows, key
from mercbo.domain.variables import Value, Variable
from mercbo.errors import PointError, hint, quoted
from mercbo.lab.cells import (
    CellError,
    Values,
    is_empty,
    number_of,
    result_of,
    value_of,
    was_changed,
)
from mercbo.lab.results import (
    CONTROL,
    OWN,
    PLATE_COLUMNS,
    RECORDED,
    STATES,
    STUDY,
    Control,
    Options,
    Parsed,
    Problem,
    Result,
)
from mercbo.lab.rows import Cell, TableError
from mercbo.lab.tables import Line, Table
from mercbo.record.frames import free_name
from mercbo.space import Space

# Wrong cells of a column for which the nearest value is looked up, which takes a while.
ADVISED = 200


def parse(table: Table, space: Space, options: Options) -> Parsed:
    """Read all rows of a table, without looking at a study."""
    check_variables(table, space)
    _check_target(table, space, options.target)
    designs, fields = Designs(table, space), _Fields(table, space, options)
    without_design = ControlRows(space)
    control_lines = [line for line in table.lines if line in without_design]
    numbers = {line.number for line in control_lines}
    lines = [line for line in table.lines if line.number not in numbers]
    told = [line for line in lines if fields.has_result(line) or options.empty == "failed"]
    results, spoiled = [], []
    for line, row in zip(told, designs.rows(told), strict=True):
        value, std = fields.result(line)
        if row is not None and line.number in fields.wrong:
            spoiled.append((line.number, key(row)))
        elif row is not None:
            results.append(Result(line.number, row, key(row), value, std, fields.notes(line)))
    controls = [
        Control(*fields.result(line), fields.notes(line), line=line.number)
        for line in control_lines
        if fields.has_result(line)
    ]
    problems = sorted([*designs.problems, *fields.problems], key=lambda each: each.line)
    with_result = {line.number for line in told}
    return Parsed(
        table.name,
        space,
        results=tuple(results),
        controls=tuple(each for each in controls if each.line not in fields.wrong),
        problems=tuple(problems),
        empty=tuple(line.number for line in lines if line.number not in with_result),
        control_lines=tuple(line.number for line in control_lines),
        idle_controls=tuple(line.number for line in control_lines if not fields.has_result(line)),
        spoiled=tuple(spoiled),
        remarks=designs.remarks(),
    )


class _Fields:
    """The results and the other columns of the rows of a table."""

    def __init__(self, table: Table, space: Space, options: Options) -> None:
        self.table, self.options = table, options
        own = [*space.names, options.target, options.std, "design"]
        # names of notes, by column
        self.columns = {name: name for name in table.header if name and name not in own}
        if is_export(table):
            self.columns = _notes_of_export(self.columns, [*space.names, options.target])
        self.problems: list[Problem] = []
        self.wrong: set[int] = set()

    def has_result(self, line: Line) -> bool:
        return not is_empty(line.cells[self.options.target])

    def result(self, line: Line) -> tuple[float | None, float | None]:
        """The result and its known error; a problem with one of them is noted."""
        cell, comma = line.cells[self.options.target], self.table.decimal_comma
        value = std = None
        try:
            value = None if is_empty(cell) else result_of(cell, decimal_comma=comma)
            self._check_bounds(cell, value)
        except CellError as error:
            self._wrong(line, self.options.target, error)
        spread = line.cells.get(self.options.std)
        try:
            std = None if is_empty(spread) else _std_of(spread, decimal_comma=comma)
        except CellError as error:
            self._wrong(line, self.options.std, error)
        return value, std

    def notes(self, line: Line) -> dict[str, Cell]:
        """The other columns of a row, those that are not empty."""
        cells = {name: line.cells[column] for column, name in self.columns.items()}
        return {
            name: _number_or_text(cell) if name == "plate" else cell
            for name, cell in cells.items()
            if not is_empty(cell)
        }

    def _check_bounds(self, cell: Cell, value: float | None) -> None:
        low, high = self.options.bounds
        if value is not None and not low <= value <= high:
            raise CellError(f"{quoted(cell)} is not {_between(low, high)}, the bounds of the study")

    def _wrong(self, line: Line, column: str, error: CellError) -> None:
        self.wrong.add(line.number)
        where = self.table.position(line.number, column)
        self.problems.append(Problem(line.number, where, str(error)))


def _between(low: float, high: float) -> str:
    if math.isinf(low):
        return f"at most {high:g}"
    return f"at least {low:g}" if math.isinf(high) else f"between {low:g} and {high:g}"


def _std_of(cell: Cell, *, decimal_comma: bool) -> float:
    std = number_of(cell, decimal_comma=decimal_comma)
    if std is None or std < 0:
        raise CellError(
            f"{quoted(cell)} is not a standard deviation; write a number of at least 0, or leave "
            "the cell empty if it is not known"
        )
    return std


def _number_or_text(cell: Cell) -> Cell:
    """The number of a plate, which text files hold as text."""
    return int(cell) if isinstance(cell, str) and cell.isdecimal() and len(cell) < 10 else cell


def is_export(table: Table) -> bool:
    """Return True if `mercbo export` wrote the column "state"."""
    return all(line.cells.get("state") in STATES for line in table.lines)


def _notes_of_export(columns: Iterable[str], taken: Sequence[str]) -> dict[str, str]:
    """The names of notes by their columns in an export, which has more columns and gives a note
    whose name is taken a suffix."""
    written = {free_name(taken, name, STUDY) for name in RECORDED}
    taken = [*taken, *written]
    names = {}
    for column in columns:
        name = column.removesuffix(f" ({OWN})")
        if column not in written:
            names[column] = name if name in taken else column
    return names


class Designs:
    """The designs of the rows of a table. Each distinct cell of a column is read once."""

    def __init__(self, table: Table, space: Space) -> None:
        self.table, self.space = table, space
        self.problems: list[Problem] = []
        self._columns = {
            name: _Column(variable, decimal_comma=table.decimal_comma)
            for name, variable in space.variables.items()
        }
        # lines by column, cell and value
        self._changed: dict[tuple[str, str, Value], list[int]] = {}

    def rows(self, lines: Sequence[Line]) -> list[Rows | None]:
        """The design of each line; None if something is wrong with it, which `problems` says."""
        found = [self._row(line) for line in lines]
        whole = [row for row in found if row is not None]
        rows = np.array(whole, dtype=np.int64).reshape(-1, len(self.space))
        allowed = iter(zip(rows, self.space.region.allows(rows).tolist(), strict=True))
        out: list[Rows | None] = []
        for line, indices in zip(lines, found, strict=True):
            row, fine = next(allowed) if indices is not None else (None, False)
            if row is not None and not fine:
                self._problem(line, None, self._refusal(row))
            out.append(row if fine else None)
        return out

    def _row(self, line: Line) -> list[int] | None:
        row = []
        for name, column in self._columns.items():
            cell = line.cells[name]
            index, complaint, changed = column.read(cell)
            if complaint:
                self._problem(line, name, complaint)
            else:
                row.append(index)
            if changed:
                what = name, str(cell), column.variable.values[index]
                self._changed.setdefault(what, []).append(line.number)
        return row if len(row) == len(self.space) else None

    def _refusal(self, row: Rows) -> str:
        try:
            self.space.feasible_rows(self.space.points(row[np.newaxis]))
        except PointError as error:
            return str(error).removeprefix("point 0: ")
        raise AssertionError("a row that is not allowed is refused")

    def _problem(self, line: Line, column: str | None, message: str) -> None:
        name = f"{self.table.name}, line {line.number}"
        where = name if column is None else self.table.position(line.number, column)
        self.problems.append(Problem(line.number, where, message))

    def remarks(self) -> tuple[str, ...]:
        """The cells of which a spreadsheet made numbers, and what they were taken for."""
        return tuple(
            f"{self.table.position(lines[0], column)}: {cell} is taken for {value!r}, the only "
            f"value of that number{f', in {len(lines)} rows' if len(lines) > 1 else ''}"
            for (column, cell, value), lines in self._changed.items()
        )


class _Column:
    """The values that the cells of a column stand for."""

    def __init__(self, variable: Variable, *, decimal_comma: bool) -> None:
        self.variable, self.decimal_comma = variable, decimal_comma
        self._values = Values(variable)
        # True and 1 are equal, but not the same cell
        self._read: dict[tuple[type, Cell], tuple[int, str, bool]] = {}
        self._wrong = 0

    def read(self, cell: Cell) -> tuple[int, str, bool]:
        """The index of the value, what is wrong with the cell, and whether a spreadsheet changed
        it."""
        known = type(cell), cell
        if known not in self._read:
            self._read[known] = self._understood(cell)
        return self._read[known]

    def _understood(self, cell: Cell) -> tuple[int, str, bool]:
        advise = self._wrong < ADVISED
        try:
            value = self._values.of(cell, decimal_comma=self.decimal_comma, advise=advise)
        except CellError as error:
            self._wrong += 1
            return -1, str(error), False
        return self.variable.index(value), "", was_changed(cell, value)


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


class ControlRows:
    """The rows of a table that are controls: marked as control, or without any value.

    In some spaces a row of empty cells is a design. There a row is a control if its cell in the
    column "design" is empty too.
    """

    def __init__(self, space: Space) -> None:
        self.space = space

    def __contains__(self, line: Line) -> bool:
        number = line.cells.get("design")
        if CONTROL in (str(number or "").strip().lower(), line.cells.get("state")):
            return True
        if not all(is_empty(line.cells[name]) for name in self.space.names):
            return False
        unnumbered = "design" in line.cells and is_empty(number)
        return unnumbered or not self._may_be_empty

    @cached_property
    def _may_be_empty(self) -> bool:
        """Return True if a row of empty cells is a design."""
        variables = self.space.variables
        try:
            self.space.feasible_rows([{name: value_of(v, "") for name, v in variables.items()}])
        except (CellError, PointError):
            return False
        return True
