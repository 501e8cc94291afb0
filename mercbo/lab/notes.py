"""What a laboratory writes beside its results: the name of the target, and columns of its own.

They live in tables of the study's own file, beside the store's log. They steer nothing: a study
without them works, and what the optimizer does never depends on them.

Columns belong to a result, and are found again by its design and value: the log knows nothing of
them, and results may be told, corrected and forgotten by other ways than a table.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from mercbo.errors import StateError
from mercbo.lab.rows import Cell

# Seconds to wait for another process that writes.
PATIENCE = 60
TABLES = (
    "CREATE TABLE IF NOT EXISTS mercbo_notes (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS mercbo_cells (number INTEGER PRIMARY KEY, design TEXT NOT NULL,"
    " value TEXT NOT NULL, cells TEXT NOT NULL)",
    # of earlier versions, which kept columns per design
    "CREATE TABLE IF NOT EXISTS mercbo_columns (design TEXT PRIMARY KEY, cells TEXT NOT NULL)",
)


class Kept(NamedTuple):
    """The columns that came with a result: by the key of its design and its value (None: it
    failed; NaN: that is not known)."""

    design: str
    value: float | None
    cells: dict[str, Cell]


class Notes:
    """The notes in a study file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=PATIENCE)) as connection, connection:
                for table in TABLES:
                    connection.execute(table)
                yield connection
        except sqlite3.Error as error:
            raise StateError(f"{self.path}: its notes cannot be used ({error})") from None

    def set(self, **notes: Any) -> None:
        with self._connection() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO mercbo_notes VALUES (?, ?)",
                [(name, json.dumps(value)) for name, value in notes.items()],
            )

    def get(self, name: str, default: Any = None) -> Any:
        with self._connection() as connection:
            found = connection.execute(
                "SELECT value FROM mercbo_notes WHERE name = ?", (name,)
            ).fetchone()
        return default if found is None else json.loads(found[0])

    def keep(self, columns: Iterable[Kept]) -> None:
        """Keep the columns of some results, beside those that were kept before."""
        with self._connection() as connection:
            connection.executemany(
                "INSERT INTO mercbo_cells (design, value, cells) VALUES (?, ?, ?)",
                [(each.design, json.dumps(each.value), json.dumps(each.cells)) for each in columns],
            )

    def kept(self) -> list[Kept]:
        """All that was kept, in that order."""
        with self._connection() as connection:
            old = connection.execute("SELECT design, cells FROM mercbo_columns").fetchall()
            rows = connection.execute(
                "SELECT design, value, cells FROM mercbo_cells ORDER BY number"
            ).fetchall()
        return [
            *(Kept(design, math.nan, json.loads(cells)) for design, cells in old),
            *(Kept(design, json.loads(value), json.loads(cells)) for design, value, cells in rows),
        ]


def beside(
    results: Sequence[tuple[str, float | None]], kept: Iterable[Kept]
) -> list[dict[str, Cell]]:
    """For each of a study's results (design and value, in the order told) the columns that came
    with it; where none came with its value, since it was corrected, those of its design that
    belong to no other result."""
    own: dict[tuple[str, float | None], deque[dict[str, Cell]]] = defaultdict(deque)
    for each in kept:
        own[each.design, each.value].append(each.cells)
    left = Counter(results)
    others: dict[str, dict[str, Cell]] = defaultdict(dict)
    for (design, value), cells in own.items():
        # of equal results the last are there still, where some were forgotten
        while len(cells) > left[design, value]:
            others[design].update(cells.popleft())
    found: list[dict[str, Cell]] = []
    for result in results:
        left[result] -= 1
        # of equal results the last came with columns, where some did not
        found.append(
            own[result].popleft() if len(own[result]) > left[result] else others[result[0]]
        )
    return found


def design_key(row: Any) -> str:
    """An index row as the key of its columns."""
    return ",".join(map(str, row.tolist()))
