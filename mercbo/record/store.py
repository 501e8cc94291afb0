"""`Store`: a run as a log of events in a database, which survives whatever happens to a process.

SQLite by default, any database that SQLAlchemy knows by its URL. The first event is the space and
the settings (the state that `Optimizer.save` writes); the others are those of `events.py`, numbered
without gaps. Nothing is changed or deleted, so that the state is a function of the log and
everybody who reads it stands in the same place.

A process writes in its turn: a transaction that begins by locking the run (SQLite: BEGIN IMMEDIATE;
elsewhere the run's row), reads what others wrote, and appends. A turn takes milliseconds, since the
model's work is done before it. When it has ended without an error, what it wrote is on the disk.

`?run=NAME` at the end of a URL names one of several runs in a database; the default is "main".
"""

from __future__ import annotations

import json
import logging
import os
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from mercbo.errors import SettingError, StateError
from mercbo.record import snapshot
from mercbo.record.events import Entry, Event
from mercbo.record.processes import this_process

try:
    import sqlalchemy as sql
    from sqlalchemy.dialects.mysql import LONGTEXT
    from sqlalchemy.exc import (
        ArgumentError,
        DBAPIError,
        IntegrityError,
        NoSuchModuleError,
        SQLAlchemyError,
    )
except ImportError as error:
    raise ImportError("a store needs SQLAlchemy: pip install 'mercbo[storage]'") from error

log = logging.getLogger(__name__)

VERSION = 1
# Seconds to wait for another process's turn; `?timeout=` of a SQLite URL says otherwise.
PATIENCE = 60
# Seconds until what SQLite does not wait for is tried again.
RETRY = 0.01
# Any number will do, as long as nobody else's advisory lock in the database has it.
CREATING = 7_263_281
DEFAULT_RUN = "main"

metadata = sql.MetaData()
runs = sql.Table(
    "mercbo_runs",
    metadata,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("name", sql.String(200), nullable=False, unique=True),
    sql.Column("version", sql.Integer, nullable=False),
    # the number of the last event; the row is what a turn locks
    sql.Column("head", sql.Integer, nullable=False),
)
events = sql.Table(
    "mercbo_events",
    metadata,
    sql.Column("run", sql.ForeignKey("mercbo_runs.id"), primary_key=True),
    # the key is the last line of defence: two events with one number cannot be
    sql.Column("number", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("kind", sql.String(16), nullable=False),
    sql.Column("body", sql.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False),
    sql.Column("written", sql.String(32), nullable=False),
    sql.Column("writer", sql.String(200), nullable=False),
)

# What databases say, and what that means to a user.
MEANINGS = {
    "database is locked": "locked by another process for too long; try again when it is done",
    "lock timeout": "locked by another process for too long; try again when it is done",
    "file is not a database": "not a database",
    "malformed": "a damaged database",
    "disk is full": "the disk is full; nothing of this call was kept",
    "disk I/O error": "the disk cannot be written or read; nothing of this call was kept",
    "could not extend file": "the server's disk is full; nothing of this call was kept",
    "readonly database": "may be read but not written",
    "unable to open": "cannot be opened: its folder is missing, or access is not allowed",
}


@dataclass
class _Turn:
    """A transaction that holds the run's lock."""

    connection: sql.Connection
    run: int
    head: int
    news: Sequence[Entry]

    def append(self, event: Event) -> None:
        self.head += 1
        where = sql.update(runs).where(runs.c.id == self.run)
        self.connection.execute(where.values(head=self.head))
        _insert(self.connection, self.run, self.head, event.kind, event.to_dict())


class Store:
    """One run in a database. `create` and `open` make one; an `Optimizer` reads and writes it.

    It may be used by several threads and after a fork, and travels to other processes by pickle.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        parsed = _parsed(url)
        self.run = _run_name(parsed)
        self._address = parsed.difference_update_query(["run"])
        # what errors call it: no password, and the run where it is not the only one
        shown = self._address.render_as_string(hide_password=True)
        self.name = shown if self.run == DEFAULT_RUN else f"{shown} run {self.run!r}"
        self._path = _file(self._address, url)
        self._id: int | None = None
        self._connect()

    def _connect(self) -> None:
        self._engine, self._process = _engine(self._address), os.getpid()
        weakref.finalize(self, _release, self._engine, self._process)

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "id": self._id}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["url"])  # type: ignore[misc]
        self._id = state["id"]

    def __repr__(self) -> str:
        return f"Store({self.name!r})"

    def close(self) -> None:
        """Let the database's connections go; the next use makes new ones."""
        self._engine.dispose()

    # -- a run comes into being, or is found ---------------------------------------------------

    @classmethod
    def create(cls, url: str, state: dict[str, Any]) -> Store:
        """A new run that begins with `state`; refused where there is one of that name already."""
        store = cls(url)
        with store._speaking():
            store._prepare()
            with store._transaction() as connection:
                store._create_tables(connection)
                if store._find(connection) is not None:
                    raise StateError(
                        f"{store.name}: holds a run already; go on with it by "
                        f"Optimizer.open({url!r}), or choose another file, or add ?run=NAME"
                    )
                new = sql.insert(runs).values(name=store.run, version=VERSION, head=1)
                (store._id,) = connection.execute(new).inserted_primary_key or (None,)
                assert store._id is not None
                _insert(connection, store._id, 1, "create", snapshot.labelled(state))
        return store

    @classmethod
    def open(cls, url: str) -> Store:
        """The run that is there; refused where there is none, or one of a newer mercbo."""
        store = cls(url)
        if not store._find_run():
            raise StateError(f"{store.name}: holds no run of mercbo{store._others()}")
        return store

    @classmethod
    def exists(cls, url: str) -> bool:
        """Whether there is such a run to open."""
        store = cls(url)
        return store._file_is_there() and store._find_run()

    @classmethod
    def names(cls, url: str) -> list[str]:
        """The runs in a database, oldest first."""
        store = cls(url)
        store._need_file()
        with store._speaking(), store._connected().connect() as connection:
            if not sql.inspect(connection).has_table(runs.name):
                return []
            return list(connection.scalars(sql.select(runs.c.name).order_by(runs.c.id)))

    def _find_run(self) -> bool:
        self._need_file()
        with self._speaking(), self._connected().connect() as connection:
            if not sql.inspect(connection).has_table(runs.name):
                return False
            self._id = self._find(connection)
        return self._id is not None

    def _find(self, connection: sql.Connection) -> int | None:
        wanted = sql.select(runs.c.id, runs.c.version).where(runs.c.name == self.run)
        found = connection.execute(wanted).one_or_none()
        if found is None:
            return None
        if found.version > VERSION:
            raise StateError(
                f"{self.name}: written by a newer mercbo (store version {found.version}, this "
                f"one reads up to {VERSION}); update mercbo to use it"
            )
        return int(found.id)

    def _others(self) -> str:
        names = self.names(self.url)
        return f" named {self.run!r}; there are {names}" if names else ""

    def _file_is_there(self) -> bool:
        return self._path is None or self._path.exists()

    def _need_file(self) -> None:
        if not self._file_is_there():
            raise StateError(f"{self.name}: no such file")

    def _prepare(self) -> None:
        """Let a SQLite file be read while it is written (WAL), once and for all."""
        if self._path is None:
            return
        until = time.monotonic() + _patience(self._address)
        with self._connected().connect() as connection:
            mode = self._write_ahead(connection.connection.cursor())
            while mode is None and time.monotonic() < until:
                time.sleep(RETRY)
                mode = self._write_ahead(connection.connection.cursor())
        if mode != "wal":
            log.warning("%s: write-ahead logging is refused here, so that turns take longer", self)

    def _write_ahead(self, raw: Any) -> str | None:
        """The mode that the file is in then; None while another process changes it, for which
        SQLite does not wait by itself."""
        try:
            (mode,) = raw.execute("PRAGMA journal_mode=WAL").fetchone()
        except self._engine.dialect.loaded_dbapi.OperationalError as error:
            if "locked" in str(error):
                return None
            raise
        return str(mode)

    def _create_tables(self, connection: sql.Connection) -> None:
        if connection.dialect.name == "postgresql":  # else two that create at once get an error
            connection.execute(sql.select(sql.func.pg_advisory_xact_lock(CREATING)))
        metadata.create_all(connection)

    # -- reading and writing -------------------------------------------------------------------

    def beginning(self) -> dict[str, Any]:
        """The state that the run began with."""
        first = self._read(events.c.number == 1)
        if not first or first[0].kind != "create":
            raise StateError(f"{self.name}: the log has no beginning")
        return snapshot.understood(first[0].body, self.name)

    def entries(self, since: int = 0) -> list[Entry]:
        """All events with a number above `since`, in order."""
        return self._read(events.c.number > since)

    def _read(self, condition: sql.ColumnElement[bool]) -> list[Entry]:
        with self._speaking(), self._connected().connect() as connection:
            return self._select(connection, condition)

    def _select(
        self, connection: sql.Connection, condition: sql.ColumnElement[bool]
    ) -> list[Entry]:
        wanted = sql.select(events).where(events.c.run == self._id, condition)
        found = connection.execute(wanted.order_by(events.c.number))
        return [self._entry(row) for row in found]

    def _entry(self, row: Any) -> Entry:
        try:
            body = json.loads(row.body)
        except ValueError as error:
            raise StateError(f"{self.name}: event {row.number} is no JSON ({error})") from None
        return Entry(row.number, row.kind, body, row.written, row.writer)

    @contextmanager
    def turn(self, since: int) -> Iterator[_Turn]:
        """The right to write: nobody else does until the context is left. Without an error, what
        was appended is then on the disk; with one, it is as if nothing had been."""
        with self._speaking(), self._transaction() as connection:
            locked = sql.select(runs.c.head).where(runs.c.id == self._id).with_for_update()
            head = connection.scalar(locked)
            if head is None or self._id is None:
                raise StateError(f"{self.name}: the run is gone")
            news = self._select(connection, events.c.number > since) if head > since else []
            yield _Turn(connection, self._id, head, news)

    @contextmanager
    def _transaction(self) -> Iterator[sql.Connection]:
        with self._connected().connect() as connection:
            connection = connection.execution_options(mercbo_turn=True)
            with connection.begin():
                if connection.dialect.name == "postgresql":
                    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{PATIENCE}s'")
                yield connection

    def _connected(self) -> sql.Engine:
        if os.getpid() != self._process:
            _inherited.append(self._engine.pool)
            self._connect()
        return self._engine

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """Say in a user's words what went wrong in the database."""
        try:
            yield
        except IntegrityError as error:
            raise StateError(f"{self.name}: two wrote at the same time ({error.orig})") from error
        except DBAPIError as error:
            raise self._meant(error.orig) from error
        except SQLAlchemyError as error:
            raise StateError(f"{self.name}: {error}") from error
        except self._engine.dialect.loaded_dbapi.Error as error:
            raise self._meant(error) from error

    def _meant(self, error: BaseException | None) -> StateError:
        said = str(error).strip()
        meant = next((m for part, m in MEANINGS.items() if part in said), None)
        return StateError(f"{self.name}: {f'{meant} ({said})' if meant else said}")


# Connections of the parent of a fork, which the child must neither use nor close.
_inherited: list[sql.Pool] = []


def _release(engine: sql.Engine, process: int) -> None:
    """Close the connections of a store that nobody uses any more."""
    if os.getpid() == process:
        engine.dispose()
    else:
        _inherited.append(engine.pool)


def _insert(connection: sql.Connection, run: int, number: int, kind: str, body: Any) -> None:
    text = json.dumps(body, allow_nan=False, separators=(",", ":"))
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    row = {"run": run, "number": number, "kind": kind, "body": text}
    connection.execute(sql.insert(events).values(**row, written=now, writer=this_process()))


# -- addresses ---------------------------------------------------------------------------------


def _parsed(url: str) -> sql.URL:
    if not isinstance(url, str):
        raise SettingError(f"storage={url!r} is not a database URL")
    try:
        return sql.make_url(url)
    except ArgumentError:
        file = url.removeprefix("sqlite:").lstrip("/") if url.startswith("sqlite:") else url
        root = "; a path from the root has four slashes" if url.startswith("sqlite:/") else ""
        raise SettingError(
            f"storage={url!r} is not a database URL; "
            f"for a file of SQLite write {f'sqlite:///{file}'!r}{root}"
        ) from None


def _run_name(url: sql.URL) -> str:
    name = url.query.get("run", DEFAULT_RUN)
    if not isinstance(name, str) or not 0 < len(name) <= 200:
        raise SettingError(f"?run={name!r} is not the name of a run, of 1 to 200 characters")
    return name


def _file(address: sql.URL, url: str) -> Path | None:
    """The file of a SQLite database, None where it is another database."""
    if address.get_backend_name() != "sqlite":
        return None
    if not address.database or ":memory:" in address.database:
        raise SettingError(
            f"storage={url!r} is a database in memory, which keeps nothing; "
            "name a file, as in 'sqlite:///run.db'"
        )
    return Path(address.database)


def _patience(address: sql.URL) -> float:
    """Seconds to wait for another process, as the URL of a SQLite file says."""
    said = address.query.get("timeout", PATIENCE)
    try:
        seconds = float(said)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise SettingError(
            f"storage={address.render_as_string()!r}: timeout={said!r} is not a number of seconds"
        )
    return seconds


def _engine(address: sql.URL) -> sql.Engine:
    options: dict[str, Any] = {}
    if address.get_backend_name() == "sqlite":
        options["connect_args"] = {"timeout": _patience(address)}
    try:
        # a connection may have died in the days since it was last used
        engine = sql.create_engine(address, pool_pre_ping=True, **options)
    except NoSuchModuleError as error:
        raise SettingError(f"storage: SQLAlchemy does not know {address.drivername!r}") from error
    except ModuleNotFoundError as error:
        raise ImportError(
            f"storage={address.render_as_string()!r} needs the driver {error.name}: "
            f"pip install {error.name}"
        ) from error
    if engine.dialect.name == "sqlite":
        sql.event.listen(engine, "connect", _on_connect)
        sql.event.listen(engine, "begin", _on_begin)
    return engine


def _on_connect(connection: Any, _record: object) -> None:
    # the driver would begin transactions by its own rules, too late for a lock
    connection.isolation_level = None
    # a commit waits for the disk
    connection.execute("PRAGMA synchronous=FULL")


def _on_begin(connection: sql.Connection) -> None:
    turn = connection.get_execution_options().get("mercbo_turn", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if turn else "BEGIN")
