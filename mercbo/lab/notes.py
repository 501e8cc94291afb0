"""Tables of a study file beside the event log: settings, the wells of plates, and controls.

| table             | rows                                                                    |
|-------------------|-------------------------------------------------------------------------|
| `mercbo_notes`    | settings of the study: the name of the target, the title                |
| `mercbo_wells`    | plates as `mercbo ask` laid them out: plate, well, design or control    |
| `mercbo_controls` | results of controls, which are no designs                               |
| `mercbo_cells`, `mercbo_columns` | columns beside results, by earlier versions; read only   |

No suggestion depends on them. Writing joins the transaction of the optimizer (`writing`), so that
results and controls of a table are stored together or not at all.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from mercbo.lab.results import Control
from mercbo.lab.rows import Cell
from mercbo.optimizer import Optimizer
from mercbo.record.schema import Schema, flat, number, optional, record, text, whole, written
from mercbo.record.snapshot import named

if TYPE_CHECKING:
    from mercbo.record.store import Store

# The cells of the tables, whose types SQLite does not enforce.
TEXT, NUMBER, CELLS = text(), written(optional(number())), written(flat)
WELL = {"plate": whole(), "well": TEXT, "design": optional(TEXT)}
CONTROL = {"value": NUMBER, "std": NUMBER, "cells": CELLS, "time": TEXT}
TABLES = (
    "CREATE TABLE IF NOT EXISTS mercbo_notes (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS mercbo_wells (plate INTEGER NOT NULL, well TEXT NOT NULL,"
    " design TEXT, PRIMARY KEY (plate, well))",
    "CREATE TABLE IF NOT EXISTS mercbo_controls (number INTEGER PRIMARY KEY, plate TEXT, well TEXT,"
    " value TEXT NOT NULL, std TEXT NOT NULL, cells TEXT NOT NULL, time TEXT NOT NULL,"
    " UNIQUE (plate, well))",
)


IN_ORDER = "ORDER BY plate, rowid"


class Well(NamedTuple):
    """A well of a plate, and the key of the design in it; None for a control."""

    plate: int
    well: str
    design: str | None


class Kept(NamedTuple):
    """The columns that came with a result: by the key of its design and its value (None: it
    failed; NaN: that is not known)."""

    design: str
    value: float | None
    cells: dict[str, Cell]


class Notes:
    """The tables of a study file beside its log."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer

    # -- settings ------------------------------------------------------------------------------

    def set(self, **notes: Any) -> None:
        with self.writing() as write:
            for name, value in notes.items():
                write("INSERT OR REPLACE INTO mercbo_notes VALUES (?, ?)", name, json.dumps(value))

    def get(self, name: str, default: Any = None) -> Any:
        found = self._read("mercbo_notes", {"value": written(TEXT)}, "WHERE name = ?", name)
        return found[0]["value"] if found else default

    # -- wells ---------------------------------------------------------------------------------

    def wells(self) -> list[Well]:
        """All wells, plate by plate, in the order of the plates."""
        return [Well(**row) for row in self._read("mercbo_wells", WELL, IN_ORDER)]

    def add_wells(self, wells: Iterable[Well]) -> list[Well]:
        """Store plates numbered from 1 behind those that there are; return them as numbered."""
        with self.writing() as write:
            last = max((each.plate for each in self.wells()), default=0)
            numbered = [each._replace(plate=each.plate + last) for each in wells]
            for each in numbered:
                write("INSERT INTO mercbo_wells VALUES (?, ?, ?)", *each)
        return numbered

    def remove_wells(self, wells: Iterable[Well]) -> None:
        with self.writing() as write:
            for each in wells:
                write("DELETE FROM mercbo_wells WHERE plate = ? AND well = ?", *each[:2])

    # -- controls ------------------------------------------------------------------------------

    def controls(self) -> list[Control]:
        """All results of controls, in the order told."""
        rows = self._read("mercbo_controls", CONTROL, "ORDER BY number")
        return [Control(row["value"], row["std"], row["cells"], time=row["time"]) for row in rows]

    def add_controls(self, controls: Iterable[Control], *, time: str) -> None:
        """Store results of controls; a control with a plate and a well takes the place of the one
        that is stored."""
        with self.writing() as write:
            for each in controls:
                write(
                    "INSERT OR REPLACE INTO mercbo_controls (plate, well, value, std, cells, time)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    *(each.place or (None, None)),
                    *(json.dumps(part) for part in (each.value, each.std, each.notes)),
                    time,
                )

    # -- columns of earlier versions -----------------------------------------------------------

    def kept(self) -> list[Kept]:
        """The columns beside results that earlier versions stored, in that order."""
        design = {"design": TEXT, "cells": CELLS}
        old = self._read("mercbo_columns", design)
        rows = self._read("mercbo_cells", {**design, "value": NUMBER}, "ORDER BY number")
        return [*(Kept(value=math.nan, **row) for row in old), *(Kept(**row) for row in rows)]

    # -- the file ------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[Callable[..., None]]:
        """A function that runs a statement in the transaction of the optimizer, which it joins or
        begins."""
        with self._optimizer.transaction():
            store = self._store
            for table in TABLES:
                store.execute(table)
            yield store.execute

    def _read(
        self, table: str, columns: Mapping[str, Schema[Any]], rest: str = "", *parameters: Any
    ) -> list[dict[str, Any]]:
        """Rows of a table, checked; none if the file has no such table. Within a transaction of the
        optimizer the rows include those that the transaction wrote."""
        with self._optimizer._lock:  # another thread may have a transaction
            store = self._store
            if not store.query("SELECT 1 FROM sqlite_master WHERE name = ?", table):
                return []
            found = store.query(f"SELECT {', '.join(columns)} FROM {table} {rest}", *parameters)
        with named(store.name):
            row = record(columns)
            return [row(dict(zip(columns, values, strict=True)), table) for values in found]

    @property
    def _store(self) -> Store:
        from mercbo.record.store import Store  # needs SQLAlchemy

        store = self._optimizer._log
        assert isinstance(store, Store)
        return store


def beside(
    results: Sequence[tuple[str, float | None]], kept: Iterable[Kept]
) -> list[dict[str, Cell]]:
    """Return the columns of each result. Results are pairs of design and value in the order told.

    A corrected result has no columns of its value. It gets the columns of its design that belong to
    no other result.
    """
    own: dict[tuple[str, float | None], deque[dict[str, Cell]]] = defaultdict(deque)
    for each in kept:
        own[each.design, each.value].append(each.cells)
    left = Counter(results)
    others: dict[str, dict[str, Cell]] = defaultdict(dict)
    for (design, value), cells in own.items():
        # if some of several equal results were forgotten, the last ones remain
        while len(cells) > left[design, value]:
            others[design].update(cells.popleft())
    found: list[dict[str, Cell]] = []
    for result in results:
        left[result] -= 1
        # if some of several equal results have columns, the last ones do
        found.append(
            own[result].popleft() if len(own[result]) > left[result] else others[result[0]]
        )
    return found


def design_key(row: Any) -> str:
    """An index row as the key of its columns."""
    return ",".join(map(str, row.tolist()))
