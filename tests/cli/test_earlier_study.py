"""The commands on a study that mercbo 0.1.0 made, and on one whose tables were edited."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.saved_runs import STORES
from support.studies import filled

from mercbo import StateError
from mercbo.lab.study import Study
from mercbo.lab.tables import read_table


@pytest.fixture
def earlier(run):
    """A study of store version 1 with plates, failures and columns of notes, as s.db."""
    shutil.copy(STORES / "v1" / "study.db", "s.db")
    return run


def test_study_of_an_earlier_version_is_read_without_a_change(earlier):
    before = Path("s.db").read_bytes()
    status = earlier("status", "s.db", "--json").json
    assert (status["results"], status["failed"], status["pending"]) == (6, 2, 2)
    assert (status["target"], status["direction"]) == ("yield", "maximize")
    earlier("export", "s.db", "all.csv")
    lines = [line.cells for line in read_table("all.csv").lines]
    assert [cells["operator"] for cells in lines[:8]] == [
        "run 0", "run 0", "run 0", "run 1", "run 1", "run 1", "run 0", "run 1",
    ]  # fmt: skip
    assert [cells["mass"] for cells in lines[:3]] == ["1.5", "2.5", "4.5"]
    earlier("best", "s.db")
    assert Path("s.db").read_bytes() == before
    assert not list(Path().glob("*.bak"))


def test_study_of_an_earlier_version_goes_on_after_a_copy(earlier):
    earlier("ask", "s.db", "-k", 2, "--out", "p.csv")
    filled("p.csv", "r.csv")
    assert "2 results stored" in earlier("tell", "s.db", "r.csv").stdout
    assert earlier("status", "s.db", "--json").json["results"] == 8
    copied = Study.open("s.db.v1.bak")
    assert (len(copied.optimizer.observations), copied.target) == (6, "yield")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE mercbo_notes SET value = 'x'", "mercbo_notes.value: not complete JSON"),
        (
            "UPDATE mercbo_notes SET value = '[1]'",
            r"mercbo_notes.value: expected a text, got \[1\]",
        ),
        ("UPDATE mercbo_notes SET value = x'ff'", "mercbo_notes.value: "),
        ("UPDATE mercbo_cells SET cells = '[]'", "mercbo_cells.cells: expected an object"),
        (
            "UPDATE mercbo_cells SET cells = '{\"a\": [1]}'",
            "mercbo_cells.cells.a: expected a single",
        ),
        ("UPDATE mercbo_cells SET value = 'NaN'", "mercbo_cells.value: .*NaN is not a number"),
        ("UPDATE mercbo_cells SET design = x'00'", "mercbo_cells.design: expected a text"),
    ],
)
def test_study_whose_notes_are_damaged_is_refused(earlier, statement, message):
    with closing(sqlite3.connect("s.db")) as connection, connection:
        connection.execute(statement)
    assert "s.db: mercbo_" in earlier("export", "s.db", "all.csv", code=1).stderr
    with pytest.raises(StateError, match=rf"s\.db: {message}"):
        Study.open("s.db").notes.kept()
