"""`Study`: an optimizer in a file, with plates, controls and columns of the laboratory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mercbo.arrays import Rows, keys
from mercbo.domain.variables import Point, Value
from mercbo.errors import SettingError, SpaceError, StateError, quoted
from mercbo.lab.characters import unwritable
from mercbo.lab.notes import Notes, Well, beside, design_key
from mercbo.lab.parsing import parse
from mercbo.lab.plates import Plate
from mercbo.lab.results import PLATE_COLUMNS, Known, Measured, Options, Reading, compare
from mercbo.lab.rows import Cell
from mercbo.lab.tables import Table, read_back
from mercbo.optimizer import Optimizer
from mercbo.record.events import Nowhere, utc_now
from mercbo.record.observations import Observation, Record
from mercbo.space import Space

TARGET = "result"
SQLITE = b"SQLite format 3\0"


# Columns of the tables that a study writes and reads which are neither variables nor results.
RESERVED = (*PLATE_COLUMNS, "std", "state")


def check_names(space: Space, target: str) -> None:
    """Refuse names by which the columns of a table could be taken for one another."""
    taken = [name for name in space.names if name in RESERVED]
    if taken:
        raise SpaceError(
            f"a variable cannot be named {taken[0]!r} in a study: its tables have a column of that "
            f"name with another meaning (as {', '.join(map(repr, RESERVED))}); call it otherwise"
        )
    for name in (*space.names, target):
        if name != name.strip():
            raise SpaceError(
                f"{name!r} cannot be the name of a column: tables lose the spaces at its ends"
            )
        _check_text(name, f"{quoted(name)} cannot be the name of a column")
    if not target or target in RESERVED:
        raise SettingError(f"target={target!r} cannot be the name of the column of results")
    if target in space.variables:
        raise SettingError(
            f"target={target!r} is a variable; the results need a column of their own"
        )


def check_values(space: Space) -> None:
    """Refuse values that a table would not give back: some other cell, or the cell of another."""
    for name, variable in space.variables.items():
        cells: dict[Cell, Value] = {}
        for value in variable.values:
            if isinstance(value, str):
                _check_text(value, f"{name!r}: {quoted(value)} cannot be a value")
            cell = read_back(value)
            if isinstance(value, str) and cell != value:
                raise SpaceError(
                    f"{name!r}: {value!r} would be {cell!r} after it was written to a table and "
                    "read again, so no result could be told for it; write the value otherwise"
                )
            if cell in cells:
                raise SpaceError(
                    f"{name!r}: {cells[cell]!r} and {value!r} would be the same cell of a table, "
                    f"{cell!r}, so their results could not be told apart; write one otherwise"
                )
            cells[cell] = value


def _check_text(text: str, refusal: str) -> None:
    """Refuse a text that a table, a workbook or a terminal cannot hold."""
    why = unwritable(text)
    if why is not None:
        raise SpaceError(f"{refusal}: it has {why}, which tables cannot hold")


def check_new(file: Path) -> None:
    """Refuse a file in which no study can begin."""
    if file.exists():
        raise StateError(f"{file}: exists already; choose another name, or go on with it")
    if not file.parent.is_dir():
        raise StateError(f"{file}: there is no folder {file.parent}")


def claim(file: Path) -> None:
    """Create a file for a new study, empty; of two processes one fails."""
    check_new(file)
    try:
        file.open("x").close()
    except FileExistsError:
        check_new(file)
        raise
    except OSError as error:
        raise StateError(f"{file}: cannot be made ({error.strerror or error})") from None


def discard(file: Path) -> None:
    """Remove a study with the files that SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        file.with_name(file.name + ending).unlink(missing_ok=True)


def url_of(path: str | os.PathLike[str]) -> str:
    """The database URL of a file, whatever characters its name has."""
    try:
        from sqlalchemy import URL
    except ImportError as error:
        raise ImportError("a study needs SQLAlchemy: pip install 'mercbo[cli]'") from error

    url = URL.create("sqlite", database=os.fspath(path))
    return url.render_as_string(hide_password=False)


class Design(NamedTuple):
    """A design with all of its results, and their mean."""

    point: Point
    mean: float
    results: list[float]

    @property
    def remark(self) -> str:
        """Text to follow the mean: the number of results, if there are several."""
        return f" (the mean of {len(self.results)} results)" if len(self.results) > 1 else ""


@dataclass(frozen=True)
class Study:
    """A run in a file."""

    path: Path
    optimizer: Optimizer
    notes: Notes

    @property
    def space(self) -> Space:
        return self.optimizer.space

    @property
    def target(self) -> str:
        """The name of the column of results."""
        return str(self.notes.get("target", TARGET))

    def snapshot(self) -> Study:
        """The study with the run as it is now; no process changes this copy of the run."""
        frozen = copy(self.optimizer)
        frozen._catch_up()
        frozen._log, frozen._transaction = Nowhere(), None
        return replace(self, optimizer=frozen)

    def ranked(self) -> list[Design]:
        """The designs with a result, best first: by the mean, which a lucky replicate moves less
        than the best single result."""
        told = self.optimizer.observations
        grouped: dict[bytes, tuple[Point, list[float]]] = {}
        for found, seen in zip(keys(self._rows(told)), told, strict=True):
            grouped.setdefault(found, (seen.point, []))[1].append(seen.value)
        sign = -1.0 if self.optimizer.direction == "maximize" else 1.0
        designs = [Design(point, float(np.mean(all_)), all_) for point, all_ in grouped.values()]
        return sorted(designs, key=lambda each: sign * each.mean)

    # -- results -------------------------------------------------------------------------------

    def tell(self, table: Table, options: Options, *, partial: bool = False) -> Reading:
        """Store what a table says that the study lacks: all of it, or, if anything is wrong,
        nothing; with `partial` the good rows.

        The comparison with the study is part of the transaction that stores the rows, so that
        two processes that tell the same table at once store it once.
        """
        options = replace(options, bounds=self.optimizer.target_bounds)
        parsed = parse(table, self.space, options)
        with self.optimizer.transaction():
            known = self.known()
            reading = compare(parsed, known, options)
            if partial or not reading.problems:
                self._store(reading, known)
        return reading

    def amend(self, table: Table, options: Options) -> Reading:
        """Replace the results that a table has otherwise: all of them, or, if anything is wrong,
        none."""
        options = replace(options, correct=True, bounds=self.optimizer.target_bounds)
        parsed = parse(table, self.space, options)
        with self.optimizer.transaction():
            reading = compare(parsed, self.known(), options)
            if not reading.problems:
                self._correct(reading)
        return reading

    def _correct(self, reading: Reading) -> None:
        """Replace results; the columns of a row that the table lacks stay."""
        records = [each for each in self.optimizer.records() if each.state != "pending"]
        told = dict(zip(keys(self._rows(records)), self.notes_of(records), strict=True))
        for each in reading.good:
            point = self.space.points(each.row[np.newaxis])[0]
            notes = {**told[each.key], **each.notes}
            self.optimizer.amend(point, each.value, std=each.std, notes=notes)
        self.notes.add_controls(reading.controls, time=utc_now())

    def known(self) -> Known:
        """The content of the study, for `compare`."""
        records = self.optimizer.records()
        known = Known(controls=tuple(self.notes.controls()))
        rows = self._rows(records)
        for found, row, record in zip(keys(rows), rows, records, strict=True):
            if record.state == "pending":
                known.pending[found] = row
            else:
                known.told.setdefault(found, []).append(Measured(record.value, record.std))
        return known

    def _store(self, reading: Reading, known: Known) -> None:
        good = reading.good
        if good:
            places = self.places() if known.pending else {}
            noted = [
                {**places.get(design_key(each.row), {}), **each.notes}
                if each.key in known.pending
                else each.notes
                for each in good
            ]
            points = self.space.points(np.array([each.row for each in good]))
            values = [each.value for each in good]
            errors = [each.std for each in good]
            std = errors if any(error is not None for error in errors) else None
            self.optimizer.tell(points, values, std=std, notes=noted)
        self.notes.add_controls(reading.controls, time=utc_now())

    def notes_of(self, records: Sequence[Record]) -> list[dict[str, Cell]]:
        """The columns of each record: the notes that were told with it or that an earlier version
        kept; of a pending design its place on a plate."""
        places = self.places()
        designs = [design_key(row) for row in self._rows(records)]
        old = self.notes.kept()
        told = [i for i, each in enumerate(records) if each.state != "pending" and not each.notes]
        came = beside([(designs[i], records[i].value) for i in told], old) if old else []
        earlier = dict(zip(told, came, strict=False))
        return [
            places.get(design, {})
            if record.state == "pending"
            else {**earlier.get(i, {}), **record.notes}
            for i, (design, record) in enumerate(zip(designs, records, strict=True))
        ]

    def _rows(self, described: Sequence[Observation | Record]) -> Rows:
        return self.space.rows([each.point for each in described])

    # -- plates --------------------------------------------------------------------------------

    def lay_out(self, points: list[Point], plate: Plate) -> list[Well]:
        """Store where the designs of a batch go; plates are numbered over the whole study."""
        designs = [design_key(row) for row in self.space.rows(points)]
        wells = [
            Well(number, well, None if design is None else designs[design])
            for number, well, design in plate.filled(len(points))
        ]
        return self.notes.add_wells(wells)

    def places(self) -> dict[str, dict[str, Cell]]:
        """Plate and well of each design that `lay_out` placed, by its key; the last if several."""
        return {
            each.design: {"plate": each.plate, "well": each.well}
            for each in self.notes.wells()
            if each.design is not None
        }

    # -- files ---------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        space: Space,
        *,
        target: str = TARGET,
        title: str = "",
        **settings: Any,
    ) -> Study:
        """Begin a study in a new file."""
        check_names(space, target)
        check_values(space)
        _check_text(title, f"title={quoted(title)}")
        file = Path(path)
        claim(file)
        try:
            optimizer = Optimizer(space, storage=url_of(file), **settings)
            notes = Notes(optimizer)
            notes.set(target=target, title=title)
        except BaseException:
            discard(file)
            raise
        return cls(file, optimizer, notes)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Study:
        """Go on with a study; a `StateError` says why a file is none."""
        file = Path(path)
        if not file.exists():
            raise StateError(f"{file}: no such file; `mercbo init` makes a study")
        if file.is_dir():
            raise StateError(f"{file}: a folder, not a study")
        with file.open("rb") as opened:
            begins = opened.read(len(SQLITE))
        if begins != SQLITE:
            raise StateError(f"{file}: not a study; a study is a file made by `mercbo init`")
        optimizer = Optimizer.open(url_of(file))
        notes = Notes(optimizer)
        notes.get("target")  # refuse damaged settings before a command writes
        return cls(file, optimizer, notes)
