"""Tables of a study file beside its log: wells, controls, and columns of earlier versions."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mercbo import Optimizer, Space, StateError
from mercbo.lab.notes import Kept, beside
from mercbo.lab.plates import Plate
from mercbo.lab.results import Control
from mercbo.lab.study import Study

TIME = "2026-01-02T03:04:05+00:00"


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study.create(tmp_path / "s.db", Space.binary(4), seed=0)


def test_plates_are_numbered_over_the_whole_study(study: Study) -> None:
    first = study.lay_out(study.optimizer.ask(5), Plate(6, ("A1", "B3")))
    assert [each[:2] for each in first] == [
        (1, "A1"), (1, "A2"), (1, "A3"), (1, "B1"), (1, "B2"), (1, "B3"),
        (2, "A1"), (2, "A2"), (2, "B3"),
    ]  # fmt: skip
    assert [each.well for each in first if each.design is None] == ["A1", "B3", "A1", "B3"]
    again = Study.open(study.path)
    second = again.lay_out(again.optimizer.ask(1), Plate(6))
    assert [each[:2] for each in second] == [(3, "A1")]
    assert study.notes.wells() == [*first, *second]
    (point,) = again.optimizer.pending[-1:]
    key = ",".join(str(point[name]) for name in again.space.names)
    assert again.places()[key] == {"plate": 3, "well": "A1"}


def test_lay_out_numbers_plates_within_a_transaction(study: Study) -> None:
    with study.optimizer.transaction():
        laid = [study.lay_out(study.optimizer.ask(1), Plate(6)) for _ in range(2)]
        assert study.notes.wells() == [*laid[0], *laid[1]]
    assert [wells[0].plate for wells in laid] == [1, 2]
    with pytest.raises(ZeroDivisionError), study.optimizer.transaction():
        study.notes.set(title=str(1 / 0))
    assert study.notes.wells() == [*laid[0], *laid[1]]


def test_wells_that_are_removed_are_free_again(study: Study) -> None:
    wells = study.lay_out(study.optimizer.ask(1), Plate(6))
    study.notes.remove_wells(wells)
    assert study.notes.wells() == []
    assert study.lay_out(study.optimizer.ask(1), Plate(6))[0].plate == 1


def test_controls_are_kept_and_replaced_by_place(study: Study) -> None:
    placed = Control(5.0, 0.1, {"plate": 1, "well": "A1", "who": "Ann"})
    loose = Control(None, notes={"who": "Bob"})
    study.notes.add_controls([placed, loose, loose], time=TIME)
    again = Study.open(study.path).notes.controls()
    assert again == [placed, loose, loose]
    assert again[0].time == TIME
    study.notes.add_controls([Control(6.0, notes=placed.notes)], time=TIME)
    assert [each.value for each in study.notes.controls()] == [None, None, 6.0]


def test_an_error_in_a_transaction_takes_wells_and_controls_back(study: Study) -> None:
    def fail() -> None:
        with study.optimizer.transaction():
            study.lay_out(study.optimizer.ask(2), Plate(6))
            study.notes.add_controls([Control(1.0)], time=TIME)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (study.notes.wells(), study.notes.controls(), study.optimizer.pending) == ([], [], [])


def test_notes_that_cannot_be_read_are_an_error_of_the_study(study: Study) -> None:
    study.notes.add_controls([Control(1.0)], time=TIME)
    with closing(sqlite3.connect(study.path)) as other:
        other.execute("ALTER TABLE mercbo_controls RENAME COLUMN value TO other")
    with pytest.raises(StateError, match=r"s\.db: no such column: value"):
        study.notes.controls()


def test_a_run_of_an_optimizer_has_no_notes(tmp_path: Path) -> None:
    Optimizer(Space.binary(2), storage=f"sqlite:///{tmp_path / 'c.db'}")
    notes = Study.open(tmp_path / "c.db").notes
    assert (notes.wells(), notes.controls(), notes.get("title")) == ([], [], None)


# -- earlier versions --------------------------------------------------------------------------

OLD_TABLES = (
    "CREATE TABLE mercbo_cells (number INTEGER PRIMARY KEY, design TEXT NOT NULL,"
    " value TEXT NOT NULL, cells TEXT NOT NULL)",
    "CREATE TABLE mercbo_columns (design TEXT PRIMARY KEY, cells TEXT NOT NULL)",
)


def test_columns_that_earlier_versions_kept_are_read(study: Study) -> None:
    with closing(sqlite3.connect(study.path)) as connection, connection:
        for table in OLD_TABLES:
            connection.execute(table)
        connection.execute("INSERT INTO mercbo_columns VALUES (?, ?)", ("0,1", '{"who": "Ann"}'))
        connection.execute(
            "INSERT INTO mercbo_cells (design, value, cells) VALUES (?, ?, ?)",
            ("0,1", "2.0", '{"who": "Bob"}'),
        )
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
