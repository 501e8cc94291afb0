"""Stores of another version.

Reading changes no older store. The first write copies and upgrades it. A newer store is refused,
also if another process upgrades it in the meantime.
"""

import json
import logging
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.saved_runs import STORES, summary

from mercbo import Optimizer, StateError
from mercbo.record import backup, store
from mercbo.record.store import Store

FIRST = STORES / "v1"


@pytest.fixture
def file(tmp_path) -> Path:
    """A store of version 1 with several runs."""
    return Path(shutil.copy(FIRST / "calls.db", tmp_path / "run.db"))


def opened(file: Path, run: str = "everything") -> Optimizer:
    return Optimizer.open(f"sqlite:///{file}?run={run}")


def version(file: Path, run: str = "everything") -> int:
    with closing(sqlite3.connect(file)) as connection:
        query = "SELECT version FROM mercbo_runs WHERE name = ?"
        return connection.execute(query, (run,)).fetchone()[0]


def dump(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        return list(connection.iterdump())


def backups(file: Path) -> list[str]:
    """Whatever is beside a store, but for the files that SQLite makes."""
    own = {file.name, f"{file.name}-wal", f"{file.name}-shm"}
    return sorted(each.name for each in file.parent.iterdir() if each.name not in own)


def state(opt: Optimizer) -> dict:
    return json.loads(json.dumps(opt.to_dict()))


# -- upgrades ----------------------------------------------------------------------------------


def test_reading_an_older_store_changes_nothing(file):
    before = file.read_bytes()
    opt = opened(file)
    assert (len(opt.observations), len(opt.pending), len(opt.failed)) == (8, 4, 1)
    opt.predict(opt.pending)
    opt.draw()
    opt.best, opt.records()
    opt.save(file.parent / "run.json")
    (file.parent / "run.json").unlink()
    opt._log.close()
    assert file.read_bytes() == before
    assert backups(file) == []


def test_first_write_copies_an_older_store_and_upgrades_it(file):
    before, opt = dump(file), opened(file)
    opt.ask()
    assert version(file) == store.VERSION == 2
    assert backups(file) == ["run.db.v1.bak"]
    assert dump(file.parent / "run.db.v1.bak") == before
    opt.tell(opt.pending[0], 1.0)
    opened(file).tell(opened(file).pending[0], 2.0)
    assert backups(file) == ["run.db.v1.bak"]  # one copy per upgrade


def test_upgrade_keeps_every_event_as_it_was(file):
    def logged() -> list[tuple]:
        with closing(sqlite3.connect(file)) as connection:
            return connection.execute("SELECT * FROM mercbo_events ORDER BY run, number").fetchall()

    before, known = logged(), state(opened(file))
    opt = opened(file)
    opt.cancel(opt.pending[0])
    after = logged()
    assert set(before) < set(after)
    assert len(after) == len(before) + 1
    restored = opened(file.parent / "run.db.v1.bak")
    assert state(restored) == known


def test_upgraded_run_suggests_what_the_older_one_would_have(file, tmp_path):
    (tmp_path / "other").mkdir()
    other = Path(shutil.copy(file, tmp_path / "other"))
    opened(file).cancel(opened(file).pending[0])
    with closing(sqlite3.connect(file)) as connection:
        (events,) = connection.execute("SELECT max(number) FROM mercbo_events").fetchone()
        assert events > 1
    opened(other).cancel(opened(other).pending[0])
    assert summary(opened(file)) == summary(opened(other))


def test_copy_is_not_written_over(file):
    (file.parent / "run.db.v1.bak").write_text("precious")
    opened(file).ask()
    opened(file, "retries").ask()  # another run of the file, which is of version 1 still
    assert backups(file) == ["run.db.v1.2.bak", "run.db.v1.3.bak", "run.db.v1.bak"]
    assert (file.parent / "run.db.v1.bak").read_text() == "precious"
    assert version(file.parent / "run.db.v1.3.bak", "everything") == 2
    assert version(file.parent / "run.db.v1.3.bak", "retries") == 1


def test_upgrade_concerns_one_run(file):
    opened(file).ask()
    assert version(file, "everything") == 2
    assert version(file, "retries") == 1
    assert len(opened(file, "retries").observations) == 6


def test_transaction_that_fails_upgrades_nothing_and_leaves_no_copy(file):
    before, opt = dump(file), opened(file)

    def failing() -> None:
        with opt.transaction():
            opt.ask()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert dump(file) == before
    assert backups(file) == []
    opt.ask()
    assert backups(file) == ["run.db.v1.bak"]


def test_copy_has_the_permissions_of_the_store(file):
    file.chmod(0o640)
    opened(file).ask()
    assert (file.parent / "run.db.v1.bak").stat().st_mode & 0o777 == 0o640


def no_space(*_args, **_options):
    raise OSError(28, "No space left on device")


def damaged(*_args, **_options):
    raise sqlite3.DatabaseError("database disk image is malformed")


@pytest.mark.parametrize(
    ("failing", "failure", "said"),
    [("replace", no_space, "No space left"), ("fsync", no_space, "No space left"),
     ("chmod", damaged, "malformed")],
)  # fmt: skip
def test_store_that_cannot_be_copied_is_left_alone(file, monkeypatch, failing, failure, said):
    before, opt = dump(file), opened(file)
    known = state(opt)
    monkeypatch.setattr(backup.os, failing, failure)
    with pytest.raises(StateError, match=f"run.db.*cannot be copied before its upgrade.*{said}"):
        opt.ask()
    monkeypatch.undo()
    assert dump(file) == before
    assert backups(file) == []
    assert state(opt) == known
    opt.ask()
    assert version(file) == 2


def test_interrupt_of_a_copy_leaves_nothing_behind(file, monkeypatch):
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    before, opt = dump(file), opened(file)
    monkeypatch.setattr(backup.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        opt.ask()
    monkeypatch.undo()
    assert dump(file) == before
    assert backups(file) == []
    opt.ask()


def test_other_database_is_upgraded_with_a_message(file, monkeypatch, caplog):
    """The test hides the file from the store."""
    opt = opened(file)
    monkeypatch.setattr(opt._log, "_path", None)
    with caplog.at_level(logging.WARNING):
        opt.ask()
    assert "store version 1 becomes 2 without a backup by mercbo" in caplog.text
    assert version(file) == 2
    assert backups(file) == []


def test_copy_holds_what_was_committed_while_others_use_the_file(file):
    """A reader and its open transaction do not disturb the copy."""
    with closing(sqlite3.connect(file)) as reader:
        reader.execute("PRAGMA journal_mode=WAL")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM mercbo_events").fetchone()
        opened(file).ask()
    assert version(file) == 2
    assert version(file.parent / "run.db.v1.bak") == 1


# -- two versions of the library at one store --------------------------------------------------


@pytest.fixture
def older(monkeypatch):
    """A context in which the library is of store version 1."""

    def call(function, *arguments):
        with monkeypatch.context() as patched:
            patched.setattr(store, "VERSION", 1)
            return function(*arguments)

    return call


def test_older_library_refuses_a_newer_store_with_a_clear_message(file, older):
    opened(file).ask()
    message = "run.db.*written by a newer mercbo .store version 2, this one reads up to 1.; update"
    for call in (opened, lambda each: Store.exists(f"sqlite:///{each}?run=everything")):
        with pytest.raises(StateError, match=message):
            older(call, file)


def test_library_notices_an_upgrade_while_the_store_is_open(file, older):
    """In every call, before it writes or reads anything."""
    opt = older(opened, file)
    pending = opt.pending
    older(opt.tell, pending[0], 1.5)
    assert version(file) == 1
    known = older(state, opt)
    newer = opened(file)
    newer.tell(pending[1], 2.5)
    before = dump(file)
    calls = {
        "ask": opt.ask,
        "tell": lambda: opt.tell(pending[2], 3.5),
        "cancel": lambda: opt.cancel(pending[2]),
        "observations": lambda: opt.observations,
        "predict": lambda: opt.predict(pending),
    }
    for name, call in calls.items():
        with pytest.raises(StateError, match="written by a newer mercbo"):
            older(call)
        assert dump(file) == before, name
    assert len(known["values"]) + 1 == len(newer.observations) == 10


def test_event_of_an_older_library_in_an_upgraded_store_is_read(file):
    """Version 0.1.0 does not look at the version again once the store is open."""
    opt = opened(file)
    opt.ask()
    point, known = opt.pending[0], len(opt.observations)
    row = opt.space.rows(point).tolist()
    with closing(sqlite3.connect(file)) as connection, connection:
        query = "SELECT id, head FROM mercbo_runs WHERE name = 'everything'"
        run, head = connection.execute(query).fetchone()
        body = json.dumps({"rows": row, "values": [0.25]})
        connection.execute("UPDATE mercbo_runs SET head = head + 1 WHERE id = ?", (run,))
        connection.execute(
            "INSERT INTO mercbo_events VALUES (?, ?, 'tell', ?, '2026-01-01', 'laboratory/1/1')",
            (run, head + 1, body),
        )
    assert len(opt.observations) == known + 1
    assert opt.observations[-1].value == 0.25
    assert point not in opt.pending
    opt.tell(opt.pending[0], 0.5, notes={"well": "A1"})
    assert state(opened(file)) == state(opt)


def test_notes_are_kept_in_an_upgraded_store(file):
    opt = opened(file)
    point = opt.pending[0]
    opt.tell(point, 0.5, notes={"well": "A1"})
    found = {repr(each.point): each.notes for each in opened(file).records()}
    assert found[repr(point)] == {"well": "A1"}
    assert os.path.exists(f"{file}.v1.bak")
