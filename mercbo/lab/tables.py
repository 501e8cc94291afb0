"""Spreadsheets, as people make them: in and out. The first stop of `mercbo tell`.

A table is read whole before anything is believed: a byte-order mark, semicolons or tabs, Excel's
"sep=" line, empty lines and columns, quotes around cells. Cells stay text (or, from .xlsx,
numbers); `cells.py` says what they mean. Every row remembers its line, so that a complaint can
name it.

Files come from anywhere: their size is looked at before they are opened, an .xlsx file's unpacked
size before it is unpacked. Text is read line by line, and what is kept of it has limits of its own,
so that memory follows the table and not the file. A text that a spreadsheet would run as a formula
gets a quote in front when it is written, which reading takes off again.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from mercbo.errors import MercboError

Cell: TypeAlias = "str | int | float | bool | None"

# Far above any table of experiments, far below what would fill the memory: a cell that is kept
# takes some 100 bytes beside its text.
MOST_BYTES = 32 * 2**20
MOST_TEXT = 256 * 2**20
MOST_UNPACKED = 256 * 2**20
MOST_ROWS = 200_000
MOST_CELLS = 2_000_000
MOST_LINE = 4_000_000
# What a spreadsheet takes for the beginning of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
DELIMITERS = ",;\t"
# Endings of spreadsheets that are neither read nor written.
FOREIGN = (".xls", ".ods", ".numbers")
# Those that are written; a name without one is that of a text.
WRITTEN = (".xlsx", ".csv", ".tsv", ".txt", "")


class TableError(MercboError):
    """A file that is no table."""


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
    """The table in a .csv, .tsv, .txt or .xlsx file; a `TableError` that says why there is none."""
    file = Path(path)
    if file.suffix.lower() in (".xlsx", ".xlsm"):
        check_size(file, MOST_BYTES)
        rows, comma = _read_xlsx(file), False
    elif file.suffix.lower() in FOREIGN:
        raise TableError(f"{file.name}: {file.suffix} files are not read; save it as .csv or .xlsx")
    else:
        check_size(file, MOST_TEXT)
        rows, comma = _read_csv(file)
    return _table(file.name, rows, comma)


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


def _read_csv(file: Path) -> tuple[list[tuple[int, list[Cell]]], bool]:
    with file.open("rb") as raw:
        marked = raw.read(2) in (b"\xff\xfe", b"\xfe\xff")
    # Excel on Windows still writes its own code page where it is not told otherwise
    for encoding in ["utf-16"] if marked else ["utf-8-sig", "cp1252"]:
        try:
            with file.open(encoding=encoding, newline="") as text:
                return _rows_of(file.name, text)
        except UnicodeError:
            continue
    raise TableError(f"{file.name}: neither UTF-8 nor Windows text; save it as CSV UTF-8")


def _rows_of(name: str, text: TextIO) -> tuple[list[tuple[int, list[Cell]]], bool]:
    """Every row that is not empty, with its line, and whether a comma is the decimal point: where
    semicolons separate. Tabs say nothing of it."""
    lines = _checked(name, text)
    opening = list(itertools.islice(_until_filled(lines), MOST_ROWS))
    first = opening[0].strip() if opening else ""
    skipped = 0
    if first.lower().startswith("sep=") and len(first) == 5:
        delimiter, skipped = first[4], 1
    else:
        delimiter = _delimiter(opening[-1] if opening else "")
    reader = csv.reader(itertools.chain(opening[skipped:], lines), delimiter=delimiter)
    rows: list[tuple[int, list[Cell]]] = []
    start, cells = 1 + skipped, 0
    try:
        for row in reader:
            if any(row):
                rows.append((start, list(row)))
                cells += len(row)
            start = reader.line_num + 1 + skipped
            _check_counts(name, len(rows), cells)
    except csv.Error as error:
        raise TableError(f"{name}, line {start}: not a row of a table ({error})") from None
    return rows, delimiter == ";"


def _check_counts(name: str, rows: int, cells: int) -> None:
    if rows > MOST_ROWS + 1:
        raise TableError(f"{name}: more than {MOST_ROWS:,} rows are not read")
    if cells > MOST_CELLS:
        raise TableError(
            f"{name}: more than {MOST_CELLS:,} cells are not read; leave out what is not needed"
        )


def _checked(name: str, text: TextIO) -> Iterator[str]:
    while line := text.readline(MOST_LINE + 1):
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
    counts = {each: len(next(csv.reader([header], delimiter=each), [])) for each in DELIMITERS}
    return max(DELIMITERS, key=lambda each: counts[each])


def _read_xlsx(file: Path) -> list[tuple[int, list[Cell]]]:
    try:
        import openpyxl
    except ImportError as error:
        raise TableError(
            f"{file.name}: reading .xlsx needs openpyxl: pip install 'mercbo[xlsx]'; "
            "or save it as .csv"
        ) from error
    try:
        with zipfile.ZipFile(file) as packed:
            unpacked = sum(entry.file_size for entry in packed.infolist())
        if unpacked > MOST_UNPACKED:
            raise TableError(
                f"{file.name}: unpacks to {unpacked / 2**20:,.0f} MB, which is too much"
            )
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        try:
            sheet = book.worksheets[0]
            rows: list[tuple[int, list[Cell]]] = []
            for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
                rows.append((number, [_plain(cell) for cell in cells]))
                if len(rows) > MOST_ROWS + 1:
                    raise TableError(f"{file.name}: more than {MOST_ROWS:,} rows are not read")
        finally:
            book.close()
    except TableError:
        raise
    except Exception as error:  # a broken file fails anywhere inside zipfile, XML and openpyxl
        raise TableError(f"{file.name}: not an Excel workbook ({error})") from None
    return rows


def _plain(cell: Any) -> Cell:
    """Dates and the like become text, which is then refused by name."""
    return cell if cell is None or isinstance(cell, (str, int, float, bool)) else str(cell)


def _table(name: str, rows: list[tuple[int, list[Cell]]], comma: bool) -> Table:
    filled = [(number, [_stripped(c) for c in cells]) for number, cells in rows]
    filled = [
        (number, cells) for number, cells in filled if any(c not in (None, "") for c in cells)
    ]
    if not filled:
        raise TableError(f"{name}: is empty; the first line must name the columns")
    header = _header(name, *filled[0])
    lines = []
    for number, cells in filled[1:]:
        extra = [c for c in cells[len(header) :] if c not in (None, "")]
        if extra:
            raise TableError(
                f"{name}, line {number}: has {len(header) + len(extra)} cells, the header names "
                f"{len(header)} columns; a text with a comma in it must stand in quotes"
            )
        padded = [*cells, *[None] * (len(header) - len(cells))]
        named = {column: cell for column, cell in zip(header, padded, strict=False) if column}
        lines.append(Line(number, named))
    return Table(name, tuple(header), tuple(lines), comma)


def _header(name: str, number: int, cells: list[Cell]) -> list[str]:
    header = ["" if cell is None else str(cell) for cell in cells]
    while header and not header[-1]:
        header.pop()
    for position, column in enumerate(header):
        if column and column in header[:position]:
            first = letters(header.index(column))
            raise TableError(
                f"{name}, line {number}: the columns {first} and {letters(position)} "
                f'are both named "{column}"'
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
    text = "" if cell is None else str(neutral(cell))
    # no file of text holds these: half a character, and what makes a file count as binary
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    return _stripped(text)


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
        data = _xlsx(neutralised)
    else:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter="\t" if file.suffix.lower() == ".tsv" else ",").writerows(
            [["" if cell is None else cell for cell in row] for row in neutralised]
        )
        data = text.getvalue().encode("utf-8-sig")  # the mark tells Excel that it is UTF-8
    put(file, data)


def check_writable(file: Path) -> None:
    """Refuse an ending that says of a table what it is not."""
    if file.suffix.lower() not in WRITTEN:
        raise TableError(f"{file}: {file.suffix} files are not written; name it .xlsx or .csv")
    if file.suffix.lower() == ".xlsx":
        _openpyxl()


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


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError as error:
        raise TableError(
            "writing .xlsx needs openpyxl: pip install 'mercbo[xlsx]'; or write a .csv"
        ) from error
    return openpyxl


def _xlsx(rows: list[list[Cell]]) -> bytes:
    book = _openpyxl().Workbook(write_only=True)
    sheet = book.create_sheet("mercbo")
    for row in rows:
        sheet.append(row)
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()
