"""Tables of spreadsheets: reading (`read_table`) and writing (`write_table`).

Reading accepts what spreadsheets write: a byte-order mark, semicolons or tabs, Excel's "sep=" line,
empty lines and columns, quotes around cells. Cells stay text (or, from .xlsx, numbers); `cells.py`
interprets them. Every row keeps its line number for error messages.

A file may come from anywhere. Its size is checked before it is opened, text is read line by line,
and rows and cells are counted, so that memory follows the table and not the file. A text that a
spreadsheet would run as a formula is written with a quote in front; reading removes the quote.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from mercbo.errors import quoted
from mercbo.lab import workbooks
from mercbo.lab.characters import for_text
from mercbo.lab.rows import Cell, Numbered, TableError

# Far above any table of experiments, far below what would fill the memory: a cell that is kept
# takes some 100 bytes beside its text.
MOST_BYTES = 32 * 2**20
MOST_TEXT = 256 * 2**20
MOST_ROWS = 200_000
MOST_CELLS = 2_000_000
MOST_LINE = 4_000_000
MOST_LINES = 2_000_000
MOST_COLUMNS = 16_384
# What a spreadsheet takes for the beginning of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
DELIMITERS = ",;\t"
# Endings of spreadsheets that are neither read nor written.
FOREIGN = (".xls", ".ods", ".numbers")
# Those that are written; a name without one is that of a text.
WRITTEN = (".xlsx", ".csv", ".tsv", ".txt", "")


@dataclass(frozen=True)
class Line:
    """One row of a table: where it stands in the file, and its cells by column."""

    number: int
    cells: dict[str, Cell]


@dataclass(frozen=True)
class Table:
    """A table with a header; `decimal_comma` says that a lone comma in a number is its point."""

    name: str
    header: tuple[str, ...]
    lines: tuple[Line, ...]
    decimal_comma: bool = False

    def position(self, line: int, column: str) -> str:
        """What a message calls a cell: its line and column, as a spreadsheet numbers them."""
        place = f"{letters(self.header.index(column))}{line}"
        return f'{self.name}, line {line}, column "{column}" ({place})'


def letters(column: int) -> str:
    """The spreadsheet's name of a column.

    >>> [letters(i) for i in (0, 25, 26, 701, 702)]
    ['A', 'Z', 'AA', 'ZZ', 'AAA']
    """
    name = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(ord("A") + rest) + name
    return name


# -- reading -----------------------------------------------------------------------------------


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read the table in a .csv, .tsv, .txt or .xlsx file; a `TableError` says why there is none."""
    file = Path(path)
    if file.suffix.lower() in (".xlsx", ".xlsm"):
        check_size(file, MOST_BYTES)
        return _table(file.name, workbooks.rows_of(file), comma=False)
    if file.suffix.lower() in FOREIGN:
        raise TableError(f"{file.name}: {file.suffix} files are not read; save it as .csv or .xlsx")
    check_size(file, MOST_TEXT)
    try:
        return _read_csv(file)
    except OSError as error:
        raise TableError(f"{file}: cannot be read ({error.strerror or error})") from None


def check_size(file: Path, most: int) -> None:
    """Refuse what is missing, no file, or too large, before it is opened."""
    try:
        size = file.stat().st_size
    except OSError as error:
        raise TableError(f"{file}: {error.strerror or error}") from None
    if not file.is_file():
        raise TableError(f"{file}: not a file")
    if size > most:
        raise TableError(
            f"{file.name}: {size / 2**20:,.0f} MB are more than the {most / 2**20:,.0f} MB "
            "that are read; leave out what is not needed, or split it"
        )


def _read_csv(file: Path) -> Table:
    with file.open("rb") as raw:
        marked = raw.read(2) in (b"\xff\xfe", b"\xfe\xff")
    # Excel on Windows still writes its own code page where it is not told otherwise
    for encoding in ["utf-16"] if marked else ["utf-8-sig", "cp1252"]:
        try:
            with file.open(encoding=encoding, newline="") as text:
                return _table_of(file.name, text)
        except UnicodeError:
            continue
    raise TableError(f"{file.name}: neither UTF-8 nor Windows text; save it as CSV UTF-8")


def _table_of(name: str, text: TextIO) -> Table:
    """The table in a text. A comma is the decimal point if semicolons separate the cells; tabs say
    nothing of it."""
    lines = _checked(name, text)
    opening = list(itertools.islice(_until_filled(lines), MOST_ROWS))
    first = opening[0].strip() if opening else ""
    skipped = 0
    if first.lower().startswith("sep=") and len(first) == 5:
        delimiter, skipped = first[4], 1
    else:
        delimiter = _delimiter(opening[-1] if opening else "")
    parts = itertools.chain(opening[skipped:], lines)
    return _table(name, _rows_of(name, parts, delimiter, skipped), comma=delimiter == ";")


def _rows_of(name: str, lines: Iterator[str], delimiter: str, skipped: int) -> Iterator[Numbered]:
    reader = csv.reader(lines, delimiter=delimiter)
    start = 1 + skipped
    try:
        for row in reader:
            yield start, row
            start = reader.line_num + 1 + skipped
    except csv.Error as error:
        raise TableError(f"{name}, line {start}: not a row of a table ({error})") from None


def _checked(name: str, text: TextIO) -> Iterator[str]:
    count = 0
    while line := text.readline(MOST_LINE + 1):
        count += 1
        if count > MOST_LINES:
            raise TableError(f"{name}: more than {MOST_LINES:,} lines are not read; split the file")
        if "\0" in line:
            raise TableError(f"{name}: holds binary data, not text")
        if len(line) > MOST_LINE:
            raise TableError(f"{name}: lines of more than {MOST_LINE:,} characters are not read")
        yield line


def _until_filled(lines: Iterator[str]) -> Iterator[str]:
    """The lines up to the first that is not empty, and with it."""
    for line in lines:
        yield line
        if line.strip():
            return


def _delimiter(header: str) -> str:
    """The one that splits the header into most columns."""
    return max(DELIMITERS, key=lambda each: _columns(header, each))


def _columns(header: str, delimiter: str) -> int:
    try:
        return len(next(csv.reader([header], delimiter=delimiter), []))
    except csv.Error:  # a cell is longer than any cell may be
        return 0


def _table(name: str, rows: Iterable[Numbered], *, comma: bool) -> Table:
    """The table of all rows that are not empty; the first of them is the header."""
    header: list[str] = []
    lines: list[Line] = []
    count = 0
    for number, raw in rows:
        if not any(raw) and all(cell in (None, "") for cell in raw):
            continue
        cells = [_stripped(cell) for cell in raw]
        width = _width(cells)
        if width == 0:
            continue
        count += width
        _check_counts(name, len(lines), count)
        if not header:
            header = _header(name, number, cells[:width])
        else:
            lines.append(_line(name, number, header, cells))
    if not header:
        raise TableError(f"{name}: is empty; the first line must name the columns")
    return Table(name, tuple(header), tuple(lines), comma)


def _width(cells: list[Cell]) -> int:
    """The number of cells up to the last that is not empty."""
    width = len(cells)
    while width and cells[width - 1] in (None, ""):
        width -= 1
    return width


def _check_counts(name: str, rows: int, cells: int) -> None:
    if rows >= MOST_ROWS:
        raise TableError(f"{name}: more than {MOST_ROWS:,} rows are not read; split the file")
    if cells > MOST_CELLS:
        raise TableError(
            f"{name}: more than {MOST_CELLS:,} cells are not read; leave out what is not needed"
        )


def _line(name: str, number: int, header: list[str], cells: list[Cell]) -> Line:
    for position, cell in enumerate(cells[len(header) :], start=len(header)):
        if cell not in (None, ""):
            raise TableError(
                f"{name}, line {number}: {quoted(cell)} in column {letters(position)} is beyond "
                f"the {len(header)} columns that the header names; delete it, or put a text that "
                "has a comma in quotes"
            )
    pairs = itertools.zip_longest(header, cells[: len(header)])
    return Line(number, {column: cell for column, cell in pairs if column})


def _header(name: str, number: int, cells: list[Cell]) -> list[str]:
    if len(cells) > MOST_COLUMNS:
        raise TableError(
            f"{name}, line {number}: {len(cells):,} columns, at most {MOST_COLUMNS:,} are read"
        )
    header = ["" if cell is None else str(cell) for cell in cells]
    first: dict[str, int] = {}
    for position, column in enumerate(header):
        if column and first.setdefault(column, position) != position:
            raise TableError(
                f"{name}, line {number}: the columns {letters(first[column])} and "
                f'{letters(position)} are both named "{column}"'
            )
    return header


def _stripped(cell: Cell) -> Cell:
    if not isinstance(cell, str):
        return cell
    text = cell.strip().replace("\u00a0", " ")
    # the quote that `neutral` put in front
    if len(text) > 1 and text[0] == "'" and text[1] in FORMULA:
        return text[1:]
    return text


# -- writing -----------------------------------------------------------------------------------


def neutral(cell: Cell) -> Cell:
    """A cell that no spreadsheet runs as a formula.

    >>> [neutral(c) for c in ("=1+1", "-3.5", "DMSO", -2, "@x")]
    ["'=1+1", '-3.5', 'DMSO', -2, "'@x"]
    """
    if isinstance(cell, str) and cell.startswith(FORMULA) and not _is_number(cell):
        return "'" + cell
    return cell


def read_back(cell: Cell) -> Cell:
    """What a cell is after it was written to a text file and read from there.

    >>> [read_back(c) for c in ("=1+1", "01", 1, None, "a ", "'=x")]
    ['=1+1', '01', '1', '', 'a', '=x']
    """
    return _stripped(for_text("" if cell is None else str(neutral(cell))))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def write_table(
    path: str | os.PathLike[str], header: Sequence[str], rows: Iterable[Sequence[Cell]]
) -> None:
    """Write a .csv or .xlsx file, whole or not at all."""
    file = Path(path)
    check_writable(file)
    listed: list[Sequence[Cell]] = [header, *rows]
    neutralised = [[neutral(cell) for cell in row] for row in listed]
    if file.suffix.lower() == ".xlsx":
        data = workbooks.packed(neutralised)
    else:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter="\t" if file.suffix.lower() == ".tsv" else ",").writerows(
            [["" if cell is None else cell for cell in row] for row in neutralised]
        )
        # the mark tells Excel that it is UTF-8
        data = for_text(text.getvalue()).encode("utf-8-sig")
    put(file, data)


def check_writable(file: Path) -> None:
    """Refuse an ending that says of a table what it is not."""
    if file.suffix.lower() not in WRITTEN:
        raise TableError(f"{file}: {file.suffix} files are not written; name it .xlsx or .csv")
    if file.suffix.lower() == ".xlsx":
        workbooks.openpyxl("writing .xlsx", "write a .csv")


def put(file: Path, data: bytes) -> None:
    """The file with this content, or as it was."""
    try:
        handle, temporary = tempfile.mkstemp(dir=file.resolve().parent, prefix="mercbo-")
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(data)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise TableError(f"{file}: cannot be written ({error.strerror or error})") from None
