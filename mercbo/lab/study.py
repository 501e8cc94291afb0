"""`Study`: an optimizer in a file, with the notes of the laboratory. What every command opens."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mercbo.domain.variables import Point, Value
from mercbo.errors import SettingError, SpaceError, StateError, quoted
from mercbo.lab.characters import unwritable
from mercbo.lab.notes import Notes
from mercbo.lab.results import PLATE_COLUMNS
from mercbo.lab.rows import Cell
from mercbo.lab.tables import read_back
from mercbo.optimizer import Optimizer
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
        """To stand behind the mean: of how many results it is one, where there are several."""
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

    def ranked(self) -> list[Design]:
        """The designs with a result, best first: by the mean, which a lucky replicate moves less
        than it would the best single result."""
        grouped: dict[str, tuple[Point, list[float]]] = {}
        for seen in self.optimizer.observations:
            grouped.setdefault(repr(seen.point), (seen.point, []))[1].append(seen.value)
        sign = -1.0 if self.optimizer.direction == "maximize" else 1.0
        designs = [Design(point, float(np.mean(all_)), all_) for point, all_ in grouped.values()]
        return sorted(designs, key=lambda each: sign * each.mean)

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
        check_new(file)
        optimizer = Optimizer(space, storage=url_of(file), **settings)
        notes = Notes(file)
        notes.set(target=target, title=title)
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
        return cls(file, Optimizer.open(url_of(file)), Notes(file))
