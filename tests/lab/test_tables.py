"""Spreadsheets as people make them, and files that are none."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from mercbo.lab import tables
from mercbo.lab.rows import TableError
from mercbo.lab.tables import read_table, write_table

WANTED = [
    {"solvent": "DMSO", "heat": "80", "yield": "71,5"},
    {"solvent": "THF", "heat": "20", "yield": ""},
]

FORMS = {
    "plain": b'solvent,heat,yield\nDMSO,80,"71,5"\nTHF,20,\n',
    "semicolons": b"solvent;heat;yield\r\nDMSO;80;71,5\r\nTHF;20;\r\n",
    "tabs": b"solvent\theat\tyield\nDMSO\t80\t71,5\nTHF\t20\t\n",
    "a mark": b'\xef\xbb\xbfsolvent,heat,yield\nDMSO,80,"71,5"\nTHF,20,\n',
    "UTF-16": "solvent\theat\tyield\nDMSO\t80\t71,5\nTHF\t20\t\n".encode("utf-16"),
    "sep=": b"sep=;\r\nsolvent;heat;yield\r\nDMSO;80;71,5\r\nTHF;20;\r\n",
    "blank lines and columns": b"\n;;;\nsolvent;heat;yield;\n\nDMSO;80;71,5;\n;;;\nTHF;20;;\n\n",
    "spaces": b"solvent ; heat;yield\n DMSO;80 ; 71,5\nTHF;20;\n",
    "short rows": b"solvent;heat;yield\nDMSO;80;71,5\nTHF;20\n",
    "old Macs": b"solvent;heat;yield\rDMSO;80;71,5\rTHF;20;\r",
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_is_read(form: str, tmp_path: Path) -> None:
    file = tmp_path / "res ülts.csv"
    file.write_bytes(FORMS[form])
    table = read_table(file)
    found = [{name: cell or "" for name, cell in line.cells.items()} for line in table.lines]
    assert found == WANTED
    assert table.decimal_comma == (form not in ("plain", "a mark", "tabs", "UTF-16"))


def test_lines_are_numbered_as_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_text('a,b\n1,"two\nlines"\n\n3,4\n')
    table = read_table(file)
    assert [line.number for line in table.lines] == [2, 5]
    assert table.position(5, "b") == 'r.csv, line 5, column "b" (B5)'
    file.write_text("sep=,\na,b\n1,2\n")
    assert [line.number for line in read_table(file).lines] == [3]


def test_windows_text_is_read(tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_bytes("Lösung,°C\nü,5\n".encode("cp1252"))
    assert read_table(file).lines[0].cells == {"Lösung": "ü", "°C": "5"}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="needs file rights")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_text("a\n1\n")
    file.chmod(0)
    with pytest.raises(TableError, match=r"r\.csv: cannot be read \(Permission denied\)"):
        read_table(file)


def test_formulas_are_neutralised_and_come_back_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    hostile = ["=cmd|' /C calc'!A0", "@SUM(A1)", "+1+1", "-2+3", "\tx", "-3.5", "'quoted"]
    write_table(file, ["=a", "b"], [[cell, 1] for cell in hostile])
    text = file.read_text("utf-8-sig")
    for line in text.splitlines():
        if not line.startswith("-3.5"):
            assert line.lstrip('"')[0] not in "=+-@\t"
    table = read_table(file)
    assert table.header == ("=a", "b")
    assert [line.cells["=a"] for line in table.lines] == [
        "=cmd|' /C calc'!A0", "@SUM(A1)", "+1+1", "-2+3", "\tx", "-3.5", "'quoted",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("r.csv", b"", "is empty"),
        ("r.csv", b"\n\n;;\n", "is empty"),
        ("r.csv", b"a,b,a\n1,2,3\n", 'the columns A and C are both named "a"'),
        ("r.csv", b"a,b\n1,2\n1,2,3\n", "line 3: '3' in column C is beyond the 2 columns that"),
        ("r.csv", b"," * 2_100_000 + b"\n", "is empty"),
        ("r.csv", b"x," * 1_900_000 + b"\n1,2\n", "line 1: 1,900,000 columns, at most 16,384"),
        ("r.csv", b"a,b\n" + b"x," * 1_900_000, "line 2: 'x' in column C is beyond"),
        ("r.csv", b"a,b\n1,\0\n", "binary data"),
        ("r.csv", b"a,b\n1,\x81\n", "neither UTF-8 nor Windows text"),
        ("r.csv", b'a,b\n1,"' + b"x" * 200_000 + b'"\n', "line 2: not a row of a table"),
        ("r.xls", b"x", r"\.xls files are not read"),
        ("r.xlsx", b"PK no zip", "not an Excel workbook"),
    ],
)
def test_what_is_no_table_is_refused(
    name: str, content: bytes, complaint: str, tmp_path: Path
) -> None:
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(TableError, match=complaint):
        read_table(file)


def test_a_huge_file_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("it was opened"))
    for name, size, complaint in [
        ("huge.csv", 300, r"300 MB are more than the 256 MB that are read"),
        ("huge.xlsx", 100, r"100 MB are more than the 32 MB that are read"),
    ]:
        with open(tmp_path / name, "wb") as out:
            out.truncate(size * 2**20)  # none of it on the disk
        with pytest.raises(TableError, match=complaint):
            read_table(tmp_path / name)


def test_memory_follows_the_table_and_not_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty rows are read over: 4 MB of them take a small part of that."""
    file = tmp_path / "long.csv"
    file.write_bytes(b"a,b\n1,2\n" + (b"," * 1023 + b"\n") * 2**12 + b"3,4\n")
    tracemalloc.start()
    try:
        table = read_table(file)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [(line.number, line.cells) for line in table.lines] == [
        (2, {"a": "1", "b": "2"}),
        (2**12 + 3, {"a": "3", "b": "4"}),
    ]
    assert peak < 2**20
    monkeypatch.setattr(tables, "MOST_CELLS", 5)
    with pytest.raises(TableError, match="more than 5 cells are not read"):
        read_table(file)
    monkeypatch.setattr(tables, "MOST_LINE", 5)
    with pytest.raises(TableError, match="lines of more than 5 characters are not read"):
        read_table(file)


def test_too_many_rows_and_lines_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_ROWS", 10)
    file = tmp_path / "long.csv"
    file.write_text("a\n" + "1\n" * 11)
    with pytest.raises(TableError, match="more than 10 rows"):
        read_table(file)
    monkeypatch.setattr(tables, "MOST_LINES", 5)
    file.write_text("a\n1\n" + "\n" * 4)
    with pytest.raises(TableError, match="more than 5 lines are not read"):
        read_table(file)


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="No such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match="not a file"):
        read_table(tmp_path)
    with pytest.raises(TableError, match="cannot be written"):
        write_table(tmp_path / "no folder" / "r.csv", ["a"], [])


@pytest.mark.parametrize("ending", [".xls", ".XLS", ".ods", ".numbers", ".xlsm", ".pdf"])
def test_an_ending_that_would_not_be_read_back_is_not_written(ending: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=rf"\{ending} files are not written; .*\.xlsx or \.csv"):
        write_table(tmp_path / f"r{ending}", ["a"], [[1]])
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "r.csv"
    write_table(file, ["a"], [[1]])
    before = file.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(tables.os, "replace", fail)
    with pytest.raises(TableError, match="the disk is full"):
        write_table(file, ["a"], [[2]])
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(("delimiter", "comma"), [(";", True), ("\t", False), (",", False)])
def test_only_semicolons_tell_that_a_comma_is_the_decimal_point(
    delimiter: str, comma: bool, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(delimiter.join(["n", "y"]) + "\n" + delimiter.join(["1", '"1,250"']) + "\n")
    assert read_table(path).decimal_comma == comma
