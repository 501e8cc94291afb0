"""`Store`: a run as a log of events in a database, which survives whatever happens to a process.

SQLite by default, any database that SQLAlchemy knows by its URL. The first event is the space and
the settings (the state that `Optimizer.save` writes); the others are those of `events.py`, numbered
without gaps. Nothing is changed or deleted, so that the state is a function of the log and
everybody who reads it stands in the same place.

A process writes in a transaction that begins by locking the run (SQLite: BEGIN IMMEDIATE; elsewhere
the run's row), reads what others wrote, and appends. A transaction takes milliseconds, because the
model's work is done before it. After a commit the events are on disk. `begin`, `commit` and
`rollback` are plain calls and no context manager: an interrupt between `__enter__` and the block
skips `__exit__`, and the lock stays held.

`?run=NAME` at the end of a URL names one of several runs in a database; the default is "main".

Each run has a version. A library reads runs of its own version and of older ones, and refuses newer
ones, also if a newer library upgrades the run in the meantime. Reading changes nothing. The first
write upgrades an older run: it changes the version of the run and no event, after a copy of the
SQLite file was made (`backup.py`). Other databases have backups of their own: there a message of
the logger says that mercbo made none.

| version | events                                                                                 |
|---------|----------------------------------------------------------------------------------------|
| 1       | those of `events.py` without notes                                                     |
| 2       | the same, and results may have notes; so events of version 1 are events of version 2   |
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from mercbo.errors import SettingError, StateError
from mercbo.record import snapshot
from mercbo.record.backup import copied
from mercbo.record.events import Entry, Event, utc_now
from mercbo.record.processes import this_process
from mercbo.record.schema import anything, parsed, record, text, whole

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

VERSION = 2
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

# The cells of a row, whose types SQLite does not enforce.
RUN = record({"id": whole(), "version": whole(least=1), "head": whole(least=1)})
EVENT = record(
    {
        "run": anything,
        "number": whole(least=1),
        "kind": text(),
        "body": text(),
        "written": text(),
        "writer": text(),
    }
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


class Store:
    """One run in a database. `create` and `open` make one; an `Optimizer` reads and writes it.

    It may be used by several threads and after a fork, and travels to other processes by pickle.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        address = _parsed(url)
        self.run = _run_name(address)
        self._address = address.difference_update_query(["run"])
        # the name in error messages: no password, and the run unless it is the default one
        shown = masked(self._address)
        self.name = shown if self.run == DEFAULT_RUN else f"{shown} run {self.run!r}"
        self._path = _file(self._address, url)
        self._id: int | None = None
        # the connection that holds the write lock, the number of the last event written by it, the
        # version of the run, and the backup that was made
        self._writer: sql.Connection | None = None
        self._written = 0
        # False after a write that failed: the transaction cannot be committed
        self._is_whole = True
        self._version = VERSION
        self._backup: Path | None = None
        # the same connection as the driver has it
        self._held: sql.PoolProxiedConnection | None = None
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
            with store._connected().connect() as plain:
                connection = plain.execution_options(mercbo_writes=True)
                store._create_tables(connection)
                if store._find(connection, runs.c.name == store.run) is not None:
                    raise StateError(
                        f"{store.name}: holds a run already; continue it with "
                        f"Optimizer.open({masked(url)!r}), choose another file, or add ?run=NAME"
                    )
                new = sql.insert(runs).values(name=store.run, version=VERSION, head=1)
                (store._id,) = connection.execute(new).inserted_primary_key or (None,)
                assert store._id is not None
                body = _json(snapshot.labelled(state))
                _insert(connection, store._id, 1, "create", body, utc_now())
                connection.commit()
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
            found = self._find(connection, runs.c.name == self.run)
            self._id = None if found is None else found["id"]
            if self._id is not None:
                self._check_end(connection, self._id)
        return self._id is not None

    def _check_end(self, connection: sql.Connection, run: int) -> None:
        """Refuse a run with events after the last one that its row knows of."""
        behind = sql.select(events.c.number).join(runs).where(events.c.number > runs.c.head)
        number = connection.scalar(behind.where(runs.c.id == run).limit(1))
        if number is not None:
            raise StateError(f"{self.name}: a damaged run; event {number} is behind its end")

    def _find(
        self, connection: sql.Connection, condition: sql.ColumnElement[bool], *, lock: bool = False
    ) -> dict[str, Any] | None:
        """Return the row of a run; `lock` makes other writers wait. Refuse a newer version."""
        wanted = sql.select(runs.c.id, runs.c.version, runs.c.head).where(condition)
        found = connection.execute(wanted.with_for_update() if lock else wanted).one_or_none()
        if found is None:
            return None
        with snapshot.named(self.name):
            row = RUN(found._asdict(), "")
        if row["version"] > VERSION:
            raise StateError(
                f"{self.name}: written by a newer mercbo (store version {row['version']}, this one "
                f"reads up to {VERSION}); update mercbo to use it"
            )
        return row

    def _others(self) -> str:
        names = self.names(self.url)
        return f" named {self.run!r}; there are {names}" if names else ""

    def _file_is_there(self) -> bool:
        try:
            return self._path is None or self._path.exists()
        except OSError as error:
            raise StateError(f"{self.name}: cannot be opened ({error.strerror})") from None

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
        with self._speaking(), self._connected().connect() as connection:
            first = self._select(connection, events.c.number == 1)
        if not first or first[0].kind != "create":
            raise StateError(f"{self.name}: the log has no beginning")
        return snapshot.understood(first[0].body, self.name)

    def entries(self, since: int = 0) -> list[Entry]:
        """Return all events with a number above `since`, in order."""
        with self._speaking(), self._connected().connect() as connection:
            return self._events(connection, since, self._row(connection)["head"])

    def begin(self, since: int) -> list[Entry]:
        """Take the write lock of the run and return the events with a number above `since`."""
        self.rollback()
        with self._speaking():
            self._writer = self._connected().connect()
            self._held = self._writer.connection
            connection = self._writer.execution_options(mercbo_writes=True)
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{PATIENCE}s'")
            row = self._row(connection, lock=True)
            self._is_whole = True
            self._written, self._version = row["head"], row["version"]
            return self._events(connection, since, self._written)

    def append(self, event: Event) -> None:
        """Write an event; `commit` makes it durable."""
        assert self._writer is not None
        assert self._id is not None
        with self._speaking():
            body = _json(event.to_dict())
            number = self._written + 1
            self._is_whole = False
            self._upgrade(self._writer)
            _insert(self._writer, self._id, number, event.kind, body, event.time)
            head = sql.update(runs).where(runs.c.id == self._id).values(head=number)
            self._writer.execute(head)
            self._written, self._is_whole = number, True

    def execute(self, statement: str, *parameters: object) -> None:
        """Run a statement on another table of the database within the transaction."""
        assert self._writer is not None
        with self._speaking():
            self._is_whole = False
            self._upgrade(self._writer)
            self._writer.exec_driver_sql(statement, parameters)
            self._is_whole = True

    def query(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Return rows of another table, within the transaction if there is one."""
        engine = self._connected()
        with self._speaking():
            if self._writer is not None:
                return [tuple(row) for row in self._writer.exec_driver_sql(statement, parameters)]
            with engine.connect() as connection:
                return [tuple(row) for row in connection.exec_driver_sql(statement, parameters)]

    def commit(self) -> None:
        """Make the events since `begin` durable and release the write lock."""
        assert self._writer is not None
        if not self._is_whole:
            raise StateError(f"{self.name}: a write in this transaction failed; nothing was kept")
        with self._speaking():
            self._backup = None  # an interrupt from here on does not tell whether it is needed
            self._writer.commit()
            self._held = None
            self._writer.close()
        self._writer = None

    def rollback(self) -> None:
        """Discard the events since `begin` and release the write lock, if it is held."""
        if os.getpid() != self._process:  # the transaction is the parent's
            self._connected()
            return
        held, self._held, self._writer = self._held, None, None
        if held is not None and held.is_valid:
            # An interrupt may leave SQLAlchemy's connection in any state: close the driver's one.
            held.invalidate()
        if self._backup is not None:  # of an upgrade that did not happen
            self._backup.unlink(missing_ok=True)
            self._backup = None

    def _upgrade(self, connection: sql.Connection) -> None:
        """Raise the version of an older run in the present transaction, after a backup."""
        if self._version == VERSION:
            return
        if self._path is None:
            log.warning(
                "%s: store version %d becomes %d without a backup by mercbo, and older versions of "
                "mercbo do not open it any more", self.name, self._version, VERSION,
            )  # fmt: skip
        else:
            self._backup = copied(self._path, f"v{self._version}", name=self.name)
            log.info("%s: store version %d, before its upgrade to %d, is kept in %s", self.name,
                     self._version, VERSION, self._backup)  # fmt: skip
        newer = sql.update(runs).where(runs.c.id == self._id).values(version=VERSION)
        connection.execute(newer)
        self._version = VERSION

    def _row(self, connection: sql.Connection, *, lock: bool = False) -> dict[str, Any]:
        """Return the row of this run; `lock` makes other writers wait."""
        found = self._find(connection, runs.c.id == self._id, lock=lock)
        if found is None:
            raise StateError(f"{self.name}: the run is gone")
        return found

    def _events(self, connection: sql.Connection, since: int, head: int) -> list[Entry]:
        """Return the events after number `since` up to `head`; refuse a log with gaps."""
        if head == since:
            return []
        if head < since:
            raise StateError(
                f"{self.name}: holds {head} events, but {since} were read before; the database was "
                "replaced or restored while the run was open: open it again"
            )
        found = self._select(connection, events.c.number.between(since + 1, head))
        for expected, entry in enumerate(found, start=since + 1):
            if entry.number != expected:
                raise StateError(f"{self.name}: event {expected} of {head} is missing")
        if len(found) < head - since:
            raise StateError(f"{self.name}: event {since + len(found) + 1} of {head} is missing")
        return found

    def _select(
        self, connection: sql.Connection, condition: sql.ColumnElement[bool]
    ) -> list[Entry]:
        wanted = sql.select(events).where(events.c.run == self._id, condition)
        found = connection.execute(wanted.order_by(events.c.number))
        return [self._entry(row) for row in found]

    def _entry(self, row: Any) -> Entry:
        with snapshot.named(f"{self.name}: event {row.number}"):
            cells = EVENT(row._asdict(), "")
            body = parsed(cells["body"])
        return Entry(cells["number"], cells["kind"], body, cells["written"], cells["writer"])

    def _connected(self) -> sql.Engine:
        if os.getpid() != self._process:
            _inherited.append((self._engine.pool, self._writer, self._held))
            self._writer = self._held = self._backup = None
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
            raise self._meant(error) from error
        except (self._engine.dialect.loaded_dbapi.Error, UnicodeError) as error:
            raise self._meant(error) from error  # UnicodeError: the name of a host that cannot be
        except (AssertionError, AttributeError) as error:
            # SQLAlchemy's clean-up fails on what an interrupt left unfinished, and hides it
            interrupt = _interrupt_behind(error)
            if interrupt is None:
                raise
            raise interrupt from None

    def _meant(self, error: BaseException | None) -> StateError:
        said = str(error).strip()
        if self._address.password:  # a driver may quote the address
            said = said.replace(str(self._address.password), "***")
        meant = next((m for part, m in MEANINGS.items() if part in said), None)
        return StateError(f"{self.name}: {f'{meant} ({said})' if meant else said}")


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error


# Connections of the parent of a fork, which the child must neither use nor close.
_inherited: list[object] = []


def _release(engine: sql.Engine, process: int) -> None:
    """Close the connections of a store that nobody uses any more."""
    if os.getpid() == process:
        engine.dispose()
    else:
        _inherited.append(engine.pool)


def _json(body: dict[str, Any]) -> str:
    return json.dumps(body, allow_nan=False, separators=(",", ":"))


def _insert(
    connection: sql.Connection, run: int, number: int, kind: str, body: str, time: str
) -> None:
    row = {"run": run, "number": number, "kind": kind, "body": body}
    connection.execute(sql.insert(events).values(**row, written=time, writer=this_process()))


# -- addresses ---------------------------------------------------------------------------------


# Parts of a URL that hold a secret: the password before the host, and options named like one.
PASSWORD = re.compile(r"(?<=://)([^:@/]*:).*(?=@)")
SECRET_OPTION = re.compile(r"([?&][^=&]*(?:pass|secret|token|api_?key)[^=&]*=)[^&]*", re.IGNORECASE)


def masked(url: object) -> str:
    """Return a database URL for messages, with *** for each secret.

    >>> masked("postgresql://ann:secret@host/db?run=one&sslpassword=x")
    'postgresql://ann:***@host/db?run=one&sslpassword=***'
    """
    try:
        text = sql.make_url(url).render_as_string(hide_password=True)  # type: ignore[arg-type]
    except (ArgumentError, ValueError):
        text = PASSWORD.sub(r"\1***", str(url))
    return SECRET_OPTION.sub(r"\1***", text)


def _parsed(url: str) -> sql.URL:
    if not isinstance(url, str):
        raise SettingError(f"storage={url!r} is not a database URL")
    try:
        if b"\0" in unquote_to_bytes(url):
            raise ValueError
        return sql.make_url(url)
    except (ArgumentError, ValueError):  # ValueError: a port that is no number, half a character
        if "://" in url:
            raise SettingError(
                f"storage={masked(url)!r} is not a database URL; "
                "expected dialect://user:password@host:port/database"
            ) from None
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
    if address.host:
        raise SettingError(
            f"storage={masked(url)!r} names a host; a file of SQLite has three slashes, as in "
            "'sqlite:///run.db', and a path from the root has four"
        )
    if not address.database or ":memory:" in address.database:
        raise SettingError(
            f"storage={masked(url)!r} is a database in memory, which keeps nothing; "
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
            f"storage={masked(address)!r}: timeout={said!r} is not a number of seconds"
        )
    return seconds


def _engine(address: sql.URL) -> sql.Engine:
    options: dict[str, Any] = {}
    if address.get_backend_name() == "sqlite":
        options["connect_args"] = {"timeout": _patience(address)}
    try:
        # A connection may have died in the days since it was last used. An interrupted check-out
        # counts as a connection for good, so there is no limit to their number.
        engine = sql.create_engine(address, pool_pre_ping=True, max_overflow=-1, **options)
    except NoSuchModuleError as error:
        raise SettingError(f"storage: SQLAlchemy does not know {address.drivername!r}") from error
    except (ArgumentError, ValueError) as error:
        raise SettingError(f"storage={masked(address)!r}: {error}") from error
    except ModuleNotFoundError as error:
        raise ImportError(
            f"storage={masked(address)!r} needs the driver {error.name}: pip install {error.name}"
        ) from error
    if engine.dialect.name == "sqlite":
        sql.event.listen(engine, "connect", _on_connect)
        sql.event.listen(engine, "begin", _on_begin)
        sql.event.listen(engine, "close", _on_close)
    return engine


def _on_connect(connection: Any, _record: object) -> None:
    # the driver would begin transactions by its own rules, too late for a lock
    connection.isolation_level = None
    # a commit waits for the disk
    connection.execute("PRAGMA synchronous=FULL")


def _on_close(connection: Any, _record: object) -> None:
    # SQLite keeps a closed connection, with its locks, until the last cursor is gone
    connection.rollback()


def _on_begin(connection: sql.Connection) -> None:
    writes = connection.get_execution_options().get("mercbo_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
