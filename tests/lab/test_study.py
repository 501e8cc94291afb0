"""Studies in files, and the notes beside their results."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mercbo import Binary, Categorical, Integer, MercboError, Ordinal, Space, SpaceError, StateError
from mercbo.domain.variables import Variable
from mercbo.lab.cells import value_of
from mercbo.lab.notes import Kept, Notes, beside, design_key
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


def test_notes_are_kept_and_added_to(tmp_path: Path) -> None:
    study = Study.create(tmp_path / "s.db", Space.binary(2), title="Ünits")
    assert (study.target, study.notes.get("title")) == (TARGET, "Ünits")
    row = design_key(study.space.rows([0, 1])[0])
    first, second = Kept(row, 0.1, {"operator": "Ann", "n": 1}), Kept(row, None, {"n": 2.5})
    study.notes.keep([first])
    study.notes.keep([second])
    assert row == "0,1"
    assert Notes(study.path).kept() == [first, second]
    assert study.notes.get("nothing", "else") == "else"


def test_columns_that_an_earlier_version_kept_per_design_are_read(tmp_path: Path) -> None:
    study = Study.create(tmp_path / "s.db", Space.binary(2))
    with closing(sqlite3.connect(study.path)) as connection, connection:
        connection.execute("INSERT INTO mercbo_columns VALUES (?, ?)", ("0,1", '{"who": "Ann"}'))
    study.notes.keep([Kept("0,1", 2.0, {"who": "Bob"})])
    found = beside([("0,1", 1.0), ("0,1", 2.0), ("1,1", 1.0)], study.notes.kept())
    assert found == [{"who": "Ann"}, {"who": "Bob"}, {}]


A, B, C = {"who": "Ann"}, {"who": "Bob"}, {"lot": 3}


@pytest.mark.parametrize(
    ("results", "kept", "wanted"),
    [
        # replicates, also those that are equal
        ([("x", 1.0), ("x", 2.0)], [("x", 2.0, B), ("x", 1.0, A)], [A, B]),
        ([("x", 1.0), ("x", 1.0)], [("x", 1.0, A), ("x", 1.0, B)], [A, B]),
        ([("x", 1.0), ("y", 1.0)], [("y", 1.0, B), ("x", 1.0, A)], [A, B]),
        # without columns at first
        ([("x", 1.0), ("x", 1.0)], [("x", 1.0, B)], [{}, B]),
        ([("x", 1.0), ("x", 1.0)], [("x", 1.0, {}), ("x", 1.0, B)], [{}, B]),
        # corrected: all that came with the design
        ([("x", 9.0)], [("x", 1.0, A), ("x", 2.0, C)], [{**A, **C}]),
        ([("x", None)], [("x", 1.0, A)], [A]),
        # failed, then not
        ([("x", 1.0)], [("x", None, A), ("x", 1.0, C)], [C]),
        # forgotten and told anew
        ([("x", 1.0)], [("x", 1.0, A), ("x", 1.0, B)], [B]),
        ([], [("x", 1.0, A)], []),
    ],
)
def test_columns_stand_beside_the_result_they_came_with(
    results: list[tuple[str, float | None]],
    kept: list[tuple[str, float | None, dict[str, object]]],
    wanted: list[dict[str, object]],
) -> None:
    assert beside(results, [Kept(*each) for each in kept]) == wanted


def test_notes_of_a_broken_file_are_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "b.db").write_bytes(b"no database at all, of more than a hundred bytes" * 3)
    with pytest.raises(StateError, match=r"b\.db: its notes cannot be used"):
        Notes(tmp_path / "b.db").kept()


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
