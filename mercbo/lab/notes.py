"""What a laboratory writes beside its results: the name of the target, and columns of its own.

They live in two tables of the study's own file, beside the store's log. They steer nothing: a study
without them works, and what the optimizer does never depends on them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from mercbo.errors import StateError
from mercbo.lab.tables import Cell

# Seconds to wait for another process that writes.
PATIENCE = 60
TABLES = (
    "CREATE TABLE IF NOT EXISTS mercbo_notes (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS mercbo_columns (design TEXT PRIMARY KEY, cells TEXT NOT NULL)",
)


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

    def keep(self, columns: Mapping[str, Mapping[str, Cell]]) -> None:
        """Keep columns of designs (by their key); what was kept of them before is added to."""
        with self._connection() as connection:
            for design, cells in columns.items():
                before = connection.execute(
                    "SELECT cells FROM mercbo_columns WHERE design = ?", (design,)
                ).fetchone()
                both = {**(json.loads(before[0]) if before else {}), **cells}
                connection.execute(
                    "INSERT OR REPLACE INTO mercbo_columns VALUES (?, ?)",
                    (design, json.dumps(both)),
                )

    def kept(self) -> dict[str, dict[str, Cell]]:
        with self._connection() as connection:
            rows = connection.execute("SELECT design, cells FROM mercbo_columns").fetchall()
        return {design: json.loads(cells) for design, cells in rows}


def design_key(row: Any) -> str:
    """An index row as the key of its columns."""
    return ",".join(map(str, row.tolist()))
