"""Excel workbooks: what is read, and sheets that state or hold more than a table."""

from __future__ import annotations

import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mercbo.lab import workbooks
from mercbo.lab.rows import Cell, TableError
from mercbo.lab.tables import read_table, write_table

openpyxl = pytest.importorskip("openpyxl")

SHEET = "xl/worksheets/sheet1.xml"
PLAIN: dict[str, Cell] = {"A1": "a", "B1": "y", "A2": "x", "B2": 1.5}


def workbook(
    file: Path, cells: dict[str, Cell], edit: Callable[[bytes], bytes] = lambda sheet: sheet
) -> Path:
    """A workbook with some cells, whose sheet is then edited as text."""
    book = openpyxl.Workbook()
    for name, value in cells.items():
        book.active[name] = value
    book.save(file)
    with zipfile.ZipFile(file) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, edit(content) if name == SHEET else content)
    return file


def rows(file: Path) -> list[dict[str, Cell]]:
    return [line.cells for line in read_table(file).lines]


def test_excel_is_written_and_read(tmp_path: Path) -> None:
    file = tmp_path / "r.xlsx"
    write_table(file, ["a", "b", "c"], [["x", 1.5, None], ["=1+1", 2, "ü"]])
    assert rows(file) == [{"a": "x", "b": 1.5, "c": None}, {"a": "=1+1", "b": 2, "c": "ü"}]


@pytest.mark.parametrize(
    ("stray", "complaint"), [(" ", ""), ("x", "line 1048576: 'x' in column XFD is beyond the 2")]
)
def test_a_stray_cell_in_the_last_corner_is_named_or_empty(
    stray: str, complaint: str, tmp_path: Path
) -> None:
    """A sheet of 2**34 cells, of which five are filled."""
    file = workbook(tmp_path / "r.xlsx", {**PLAIN, "XFD1048576": stray})
    assert file.stat().st_size < 10_000
    if complaint:
        with pytest.raises(TableError, match=complaint):
            read_table(file)
    else:
        assert rows(file) == [{"a": "x", "y": 1.5}]


def test_memory_does_not_follow_a_stray_cell(tmp_path: Path) -> None:
    """16,384 columns of 2,000 rows would take 250 MB."""
    file = workbook(tmp_path / "r.xlsx", {**PLAIN, "XFD2000": " "})
    tracemalloc.start()
    try:
        assert rows(file) == [{"a": "x", "y": 1.5}]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * 2**20


def test_rows_beyond_those_of_a_sheet_are_refused(tmp_path: Path) -> None:
    file = workbook(
        tmp_path / "r.xlsx",
        PLAIN,
        lambda sheet: sheet.replace(b'<row r="2"', b'<row r="99999999999"'),
    )
    with pytest.raises(TableError, match="row 1048577 with 0 cells is beyond the part of a sheet"):
        read_table(file)


def test_wide_empty_rows_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbooks, "MOST_SHEET_CELLS", 100_000)
    wide = b"".join(b'<row r="%d"><c r="XFD%d"/></row>' % (i, i) for i in range(3, 50))
    file = workbook(
        tmp_path / "r.xlsx",
        PLAIN,
        lambda sheet: sheet.replace(b"</sheetData>", wide + b"</sheetData>"),
    )
    with pytest.raises(TableError, match="row 9 with 16384 cells is beyond the part of a sheet"):
        read_table(file)


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (b"<v>3</v>", 3),  # calculated
        (b"<v>0</v>", 0),
        (b"<v />", "=B2*2"),  # as openpyxl writes it
        (b"", "=B2*2"),
    ],
)
def test_a_formula_is_its_value_or_else_its_text(value: bytes, cell: Cell, tmp_path: Path) -> None:
    file = workbook(
        tmp_path / "r.xlsx",
        {**PLAIN, "A3": "z", "B3": "=B2*2"},
        lambda sheet: sheet.replace(b"</f><v />", b"</f>" + value),
    )
    assert rows(file)[1] == {"a": "z", "y": cell}


def test_a_formula_whose_value_is_an_empty_text_is_empty(tmp_path: Path) -> None:
    file = workbook(
        tmp_path / "r.xlsx",
        {**PLAIN, "A3": "z", "B3": '=IF(A1="","",A1)'},
        lambda sheet: sheet.replace(b'<c r="B3">', b'<c r="B3" t="str">'),
    )
    assert rows(file)[1] == {"a": "z", "y": None}


def test_a_packed_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(SHEET, b"\0" * 2**21)
    monkeypatch.setattr(workbooks, "MOST_UNPACKED", 2**20)
    with pytest.raises(TableError, match="unpacks to 2 MB"):
        read_table(bomb)
