"""Excel workbooks: rows of the first sheet in, one sheet out.

A workbook comes from anywhere. Its unpacked size is checked before it is unpacked, the size that it
states for its sheet is ignored, and rows and cells are counted while they are read.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, iterparse

from mercbo.lab.characters import for_workbook
from mercbo.lab.rows import Cell, Numbered, TableError

MOST_UNPACKED = 256 * 2**20
# The rows of a sheet of Excel, and cells of a sheet that are looked at, most of them empty.
MOST_SHEET_ROWS = 1_048_576
MOST_SHEET_CELLS = 50_000_000


def rows_of(file: Path) -> Iterator[Numbered]:
    """The rows of the first sheet of a workbook, numbered from 1."""
    books = openpyxl(f"{file.name}: reading .xlsx", "save it as .csv")
    try:
        with zipfile.ZipFile(file) as packed:
            unpacked = sum(entry.file_size for entry in packed.infolist())
        if unpacked > MOST_UNPACKED:
            raise TableError(
                f"{file.name}: unpacks to {unpacked / 2**20:,.0f} MB, which is too much"
            )
        book = books.load_workbook(file, read_only=True, data_only=True)
        try:
            yield from _sheet_rows(file, book.worksheets[0])
        finally:
            book.close()
    except TableError:
        raise
    except Exception as error:  # a broken file fails anywhere inside zipfile, XML and openpyxl
        raise TableError(f"{file.name}: not an Excel workbook ({error})") from None


def _sheet_rows(file: Path, sheet: Any) -> Iterator[Numbered]:
    """The rows of a sheet as wide as their last cell.

    The size that a workbook states is not believed: rows filled up to it could take any memory.
    """
    sheet.reset_dimensions()
    formulas = _without_value(file, getattr(sheet, "_worksheet_path", None))
    seen = 0
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        seen += len(cells)
        if number > MOST_SHEET_ROWS or seen > MOST_SHEET_CELLS:
            raise TableError(
                f"{file.name}: row {number} with {len(cells)} cells is beyond the part of a sheet "
                "that is read; delete what stands far from the table"
            )
        row = [_plain(cell) for cell in cells]
        for column, text in formulas.get(number, {}).items():
            if column < len(row):
                row[column] = text
        yield number, row


FORMULA_TAG = re.compile(rb"<(?:\w+:)?f[\s/>]")
CELL_NAME = re.compile(r"([A-Z]+)([0-9]+)")


def _without_value(file: Path, part: str | None) -> dict[int, dict[int, str]]:
    """The formulas of a sheet that have no value yet, by row and column.

    Programs that write a workbook without calculating it leave such cells; openpyxl gives them as
    empty, and an empty cell is no result.
    """
    found: dict[int, dict[int, str]] = {}
    with zipfile.ZipFile(file) as packed:
        if part is None or not _has_formulas(packed, part):
            return found
        with packed.open(part) as source:
            for _, element in iterparse(source):
                tag = element.tag.rpartition("}")[2]
                name = CELL_NAME.fullmatch(element.get("r", "")) if tag == "c" else None
                formula = _uncalculated(element) if name else None
                if name and formula is not None:
                    found.setdefault(int(name[2]), {})[_number_of(name[1])] = formula
                if tag == "row":
                    element.clear()
    return found


def _uncalculated(cell: Element) -> str | None:
    """The formula of a cell that has no value; an empty text, of type "str", is a value."""
    children = {child.tag.rpartition("}")[2]: child.text for child in cell}
    if "f" not in children or children.get("v") or (cell.get("t") == "str" and "v" in children):
        return None
    return f"={children['f'] or ''}"


def _has_formulas(packed: zipfile.ZipFile, part: str) -> bool:
    end = b""
    with packed.open(part) as source:
        while chunk := source.read(2**20):
            if FORMULA_TAG.search(end + chunk):
                return True
            end = chunk[-64:]
    return False


def _plain(cell: Any) -> Cell:
    """Dates and the like become text, which is then refused by name."""
    return cell if cell is None or isinstance(cell, (str, int, float, bool)) else str(cell)


def _number_of(name: str) -> int:
    """The column of a spreadsheet's name for it, from 0."""
    number = 0
    for letter in name:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def packed(rows: Iterable[Sequence[Cell]]) -> bytes:
    """A workbook of one sheet, as the content of its file."""
    book = openpyxl("writing .xlsx", "write a .csv").Workbook(write_only=True)
    sheet = book.create_sheet("mercbo")
    for row in rows:
        sheet.append([for_workbook(cell) if isinstance(cell, str) else cell for cell in row])
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def openpyxl(what: str, instead: str) -> Any:
    """The library, or a `TableError` that says what needs it and what to do instead."""
    try:
        import openpyxl
    except ImportError as error:
        raise TableError(
            f"{what} needs openpyxl: pip install 'mercbo[xlsx]'; or {instead}"
        ) from error
    return openpyxl
