"""Studies in files."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from mercbo import (
    Binary,
    Categorical,
    Integer,
    MercboError,
    Ordinal,
    SettingError,
    Space,
    SpaceError,
    StateError,
)
from mercbo.domain.variables import Variable
from mercbo.lab.cells import value_of
from mercbo.lab.notes import Notes
from mercbo.lab.study import TARGET, Study
from mercbo.lab.tables import read_table, write_table


@pytest.mark.parametrize(
    "name", ["s.db", "a b.db", "ü?x.db", "50%25.db", "a#b&c=d.db", "no ending"]
)
def test_a_study_may_have_any_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    made = Study.create(path, Space.binary(3), direction="maximize", target="y", seed=0)
    point = made.optimizer.ask()
    made.optimizer.tell(point, 2.5)
    again = Study.open(path)
    assert path.is_file()
    assert again.optimizer.best.point == point
    assert (again.target, again.optimizer.direction) == ("y", "maximize")


def test_what_is_no_study_or_one_already_is_refused(tmp_path: Path) -> None:
    Study.create(tmp_path / "s.db", Space.binary(2))
    with pytest.raises(StateError, match="exists already"):
        Study.create(tmp_path / "s.db", Space.binary(2))
    with pytest.raises(StateError, match="there is no folder"):
        Study.create(tmp_path / "x" / "s.db", Space.binary(2))
    with pytest.raises(StateError, match="a folder, not a study"):
        Study.open(tmp_path)
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE something (x)")
    other.close()
    with pytest.raises(StateError, match=r"other\.db"):
        Study.open(tmp_path / "other.db")


def test_settings_are_kept(tmp_path: Path) -> None:
    study = Study.create(tmp_path / "s.db", Space.binary(2), title="Ünits")
    assert (study.target, study.notes.get("title")) == (TARGET, "Ünits")
    assert study.notes.get("nothing", "else") == "else"


def test_a_study_that_cannot_be_made_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingError, match="direction='up'"):
        Study.create(tmp_path / "s.db", Space.binary(2), direction="up")
    monkeypatch.setattr(Notes, "set", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Study.create(tmp_path / "s.db", Space.binary(2))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("variable", "target", "message"),
    [
        ("std", "y", "a variable cannot be named 'std' in a study"),
        ("design", "y", "a variable cannot be named 'design' in a study"),
        ("a", "", "target='' cannot be the name of the column of results"),
        ("a", "plate", "target='plate' cannot be the name"),
        ("a", "a", "target='a' is a variable"),
        ("a ", "y", "'a ' cannot be the name of a column"),
        ("a", " y", "' y' cannot be the name of a column"),
        ("a\x07b", "y", r"'a\\x07b' cannot be the name of a column: it has the character '\\x07'"),
        ("a\ud800b", "y", r"it has the character '\\ud800', which tables cannot hold"),
        ("a", "y\x1bz", r"'y\\x1bz' cannot be the name of a column: it has the character"),
    ],
)
def test_names_that_tables_use_otherwise_are_refused(
    variable: str, target: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(MercboError, match=message):
        Study.create(tmp_path / "s.db", Space({variable: Binary()}), target=target)
    assert not (tmp_path / "s.db").exists()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "1", 2], r"'v': 1 and '1' would be the same cell of a table, '1',"),
        (["", None, "b"], r"'v': '' and None would be the same cell of a table, '',"),
        ([True, "True"], r"'v': True and 'True' would be the same cell"),
        (["a ", "b"], r"'v': 'a ' would be 'a' after it was written to a table and read again"),
        (["a", "a\u00a0b"], r"'a\\xa0b' would be 'a b' after"),
        (["a", "'=x"], r"""'v': "'=x" would be '=x' after"""),
        (["a", "x\0"], r"'v': 'x\\x00' cannot be a value: it has the character '\\x00', which"),
        (["a", "\ud800"], r"'\\ud800' cannot be a value: it has the character '\\ud800'"),
        (["a", "\x1b[2J"], r"it has the character '\\x1b', which tables cannot hold"),
        (["a", "b\x9b"], r"it has the character '\\x9b'"),
        (["a", "b\uffff"], r"it has the character '\\uffff'"),
        (["a", "b" * 32_768], "it has 32,768 characters, more than 32,767"),
    ],
)
def test_values_that_no_table_gives_back_are_refused(
    values: list[object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SpaceError, match=message):
        Study.create(tmp_path / "s.db", Space({"u": Binary(), "v": Categorical(values)}))
    assert not (tmp_path / "s.db").exists()


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".xlsx"])
@pytest.mark.parametrize(
    "variable",
    [
        Binary(),
        Integer(-2, 3),
        Ordinal([0.5, 1.0, 2, 1e-7, 1e16, -3.25]),
        Categorical([True, False, None]),
        Categorical([None, "none", "-", "x", "NA", "failed"]),
        Categorical(["", "a", "A", "a b", "a\nb", "a,b;c", '"q"', "'q'", "ü"]),
        Categorical(["01", "1", "1.0", "1e5", "1,234", "007", "+5", "-5"]),
        Categorical(["1", 2, 2.5, "02", False, "no", None]),
        Categorical(["=x", "-x", "+x", "@x", "\tx", "- x"]),
    ],
)
def test_values_that_a_study_takes_come_back_from_a_table(
    variable: Variable, ending: str, tmp_path: Path
) -> None:
    if ending == ".xlsx":
        pytest.importorskip("openpyxl")
    study = Study.create(tmp_path / "s.db", Space({"v": variable}))
    write_table(tmp_path / f"t{ending}", ["v", "y"], [[each, 1] for each in variable.values])
    lines = read_table(tmp_path / f"t{ending}").lines
    found = [value_of(study.space.variables["v"], line.cells["v"]) for line in lines]
    assert [(each, type(each)) for each in found] == [(v, type(v)) for v in variable.values]
