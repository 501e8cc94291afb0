"""From a table of past results to a space: a commented file that a person edits.

What a column is follows from its cells: 0 and 1 make a binary variable, whole numbers without gaps
an integer one, other numbers an ordered list, texts a list without order. A column with one value,
or with a different text in every row, is no variable and is named in a comment.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from mercbo.acquisition import BACKEND, ENUMERATION, LOCAL, RANDOM
from mercbo.asking.choice import DESIGN, RETRY
from mercbo.domain.variables import (
    MAX_VALUES,
    Binary,
    Categorical,
    Integer,
    Ordinal,
    Value,
    Variable,
    ordered,
)
from mercbo.errors import SpaceError, hint
from mercbo.lab.cells import CellError, is_empty, number_of
from mercbo.lab.parsing import is_export
from mercbo.lab.results import CONTROL, PLATE_COLUMNS, RECORDED, SUGGESTED
from mercbo.lab.rows import Cell
from mercbo.lab.tables import Table
from mercbo.space import Space

# Sources of designs in a table of `mercbo ask`.
SOURCES = (DESIGN, RETRY, BACKEND, ENUMERATION, LOCAL, RANDOM)
# More different numbers than this are rather a measurement or a continuous setting.
MANY = 24
# A column of texts that differ in at least this share of the rows is a label.
LABELS = 0.9
FEWEST_FOR_LABELS = 6
LABEL = "like a label; if it is a choice, list the values to choose from in a space file (--space)"
# Sequences have at least so many letters, of an alphabet of at most so many.
SHORTEST, MOST_LETTERS = 3, 25


@dataclass(frozen=True)
class Column:
    """A column of the table: the variable that it became, or why it became none; and whether no
    value comes twice, as in a column of dates or numbers of runs."""

    name: str
    variable: Variable | None
    remark: str
    all_differ: bool = False


def inferred(table: Table, target: str, *, ignore: tuple[str, ...] = ()) -> list[Column]:
    """What each column is, in the order of the file."""
    header = [column for column in table.header if column]
    if target not in header:
        raise SpaceError(f"{table.name}: no column is named {target!r}{hint(target, header)}")
    for name in ignore:
        if name not in header:
            raise SpaceError(f"{table.name}: no column is named {name!r}{hint(name, header)}")
    skipped = {target, "std", *PLATE_COLUMNS, *ignore, *_written_by_mercbo(table)}
    rows = [
        line.cells for line in table.lines if str(line.cells.get("design") or "").lower() != CONTROL
    ]
    columns = [
        _column(table, name, [cells[name] for cells in rows])
        for name in header
        if name not in skipped
    ]
    if not any(column.variable for column in columns):
        why = "; ".join(f"{column.name!r} {column.remark}" for column in columns)
        raise SpaceError(
            f"{table.name}: no column can be a variable: {why or f'there is none but {target!r}'}"
        )
    return columns


def _written_by_mercbo(table: Table) -> set[str]:
    """Columns of an export or of a table of `mercbo ask` that are no variables.

    The names alone do not tell: a variable may be called "time" or "source".
    """
    found = set(RECORDED) if is_export(table) else set()
    sources = {line.cells.get("source") for line in table.lines} - {None, ""}
    if sources and sources <= set(SOURCES):
        found |= set(SUGGESTED)
    return found


def space_from(columns: list[Column]) -> Space:
    return Space({c.name: c.variable for c in columns if c.variable is not None})


def _column(table: Table, name: str, cells: list[Cell]) -> Column:
    filled = [cell for cell in cells if not is_empty(cell)]
    if not filled:
        return Column(name, None, "is empty")
    try:
        numbers = [number_of(cell, decimal_comma=table.decimal_comma) for cell in filled]
    except CellError as error:
        raise SpaceError(f'{table.name}, column "{name}": {error}') from None
    if all(number is not None for number in numbers):
        found = sorted({_whole(number) for number in numbers if number is not None})
        return replace(_numeric(name, found), all_differ=len(found) == len(filled))
    differ = len({str(cell) for cell in filled}) == len(filled)
    return replace(_texts(name, filled), all_differ=differ)


def _whole(number: float) -> int | float:
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _numeric(name: str, found: list[int | float]) -> Column:
    if len(found) == 1:
        return Column(name, None, f"is {found[0]} in every row")
    if found == [0, 1]:
        return Column(name, Binary(), "")
    if len(found) > MAX_VALUES:
        return Column(name, None, f"has {len(found)} different numbers; round them to use it")
    remark = (
        "has many different numbers; fewer, coarser ones are easier" if len(found) > MANY else ""
    )
    low, high = found[0], found[-1]
    if isinstance(low, int) and isinstance(high, int) and high - low + 1 == len(found):
        return Column(name, Integer(low, high), remark)
    return Column(name, Ordinal(found), remark)


def _texts(name: str, filled: list[Cell]) -> Column:
    values = ordered(str(cell) for cell in filled)
    if len(values) == 1:
        return Column(name, None, f"is {values[0]!r} in every row")
    label = len(filled) >= FEWEST_FOR_LABELS and len(values) >= LABELS * len(filled)
    sequence = _sequence(name, [str(value) for value in values])
    if label or len(values) > MAX_VALUES:
        return Column(name, None, sequence or f"has {len(values):,} different texts, {LABEL}")
    return Column(name, Categorical(values), sequence if len(values) > MANY else "")


def _sequence(name: str, texts: list[str]) -> str:
    """What to do with a column of sequences, such as DNA; empty if the texts are none."""
    lengths = {len(text) for text in texts}
    letters = sorted(set("".join(texts).replace("-", "")))
    one_case = all(text.isalpha() for text in letters) and len({c.isupper() for c in letters}) == 1
    if not one_case or len(letters) > MOST_LETTERS or min(lengths) < SHORTEST:
        return ""
    shown = f"of the letters {''.join(letters)}"
    if len(lengths) > 1:
        return (
            f"looks like a sequence {shown}, with {min(lengths)} to {max(lengths)} letters; only "
            "sequences of one length can be variables, each letter in a column of its own"
        )
    count = lengths.pop()
    return (
        f"looks like a sequence {shown}; write each letter in a column of its own, "
        f"{name}1 to {name}{count}, and each column is a variable"
    )


# -- writing -----------------------------------------------------------------------------------


def as_yaml(columns: list[Column], source: str) -> str:
    """The space as a file to edit, with a comment on everything that was guessed."""
    lines = [
        f"# Inferred from {_one_line(source)}. Edit it, then: mercbo init STUDY --space THIS_FILE",
        "# A list of numbers has an order, a list of texts has none. Add the values that you would",
        "# also try: only what is listed can be suggested.",
        "variables:",
    ]
    for column in columns:
        if column.variable is None:
            lines.append(f"  # {_one_line(f'{column.name}: left out, it {column.remark}')}")
            continue
        remark = f"  # {_one_line(column.remark)}" if column.remark else ""
        lines.append(f"  {_text(column.name)}: {_variable(column.variable)}{remark}")
    names = [c.name for c in columns if c.variable is not None]
    first = columns[[c.name for c in columns].index(names[0])].variable
    assert first is not None
    example = f"{_text(names[0])}: {_text(first.values[0])}"
    lines += [
        "",
        "# What must never be suggested, such as:",
        "# constraints:",
        f"#   - forbid: {{{example}}}",
        "#   - implies: {if: {A: a}, then: {B: [b, c]}}",
        "#   - linear: {weights: {A: 2.5, B: {b: 10}}, at_most: 100}",
        "constraints: []",
        "",
    ]
    return "\n".join(lines)


def _variable(variable: Variable) -> str:
    if isinstance(variable, Binary):
        return "{kind: binary}"
    if isinstance(variable, Integer):
        return f"{{kind: integer, low: {variable.low}, high: {variable.high}}}"
    return f"[{', '.join(_text(value) for value in variable.values)}]"


def _text(value: Value) -> str:
    """A scalar that YAML reads back as it is: texts as JSON strings."""
    return json.dumps(value, ensure_ascii=False)


def _one_line(text: str) -> str:
    return " ".join(text.split())
