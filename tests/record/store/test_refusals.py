"""What is no store, no run or no address is refused, and it is said why."""

import sqlite3
import sys

import dimod
import pytest
from support.stored import SPACE, stored, url_of

from mercbo import (
    Optimizer,
    SettingError,
    Space,
    StateError,
    Where,
)
from mercbo.record.store import Store


def test_a_run_that_is_there_is_not_begun_again(url):
    point = stored(url).ask()
    with pytest.raises(StateError, match=r"holds a run already; continue it with Optimizer\.open"):
        stored(url)
    assert Optimizer.open(url).pending == [point]


def test_opening_makes_no_file(url, tmp_path):
    with pytest.raises(StateError, match=r"run\.db: no such file"):
        Optimizer.open(url)
    assert not Store.exists(url)
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_something_else_holds_no_run_and_may_take_one(url, tmp_path):
    connection = sqlite3.connect(tmp_path / "run.db")
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(StateError, match=r"holds no run of mercbo$"):
        Optimizer.open(url)
    assert not Store.exists(url)
    assert Store.names(url) == []
    stored(url)
    assert Store.exists(url)


@pytest.mark.parametrize("content", [b"hello world, this is no database" * 40, b"\x00" * 5000])
def test_a_file_that_is_not_a_database_is_refused_and_left_alone(url, tmp_path, content):
    (tmp_path / "run.db").write_bytes(content)
    for call in (Optimizer.open, stored, Store.exists):
        with pytest.raises(StateError, match=r"run\.db: not a database"):
            call(url)
    assert (tmp_path / "run.db").read_bytes() == content


def change(tmp_path, statement: str) -> None:
    connection = sqlite3.connect(tmp_path / "run.db")
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "UPDATE mercbo_runs SET version = 3",
            "written by a newer mercbo .store version 3, this one reads up to 2.*update",
        ),
        (
            """UPDATE mercbo_events SET body = replace(body, '"version":', '"version":9')""",
            "written by a newer mercbo",
        ),
        ("DELETE FROM mercbo_events WHERE number = 1", "the log has no beginning"),
        ("UPDATE mercbo_events SET number = number + 1 WHERE number = 2", "event 3 is behind its"),
        ("DROP TABLE mercbo_events", "no such table: mercbo_events"),
        ("DROP TABLE mercbo_runs", "holds no run of mercbo$"),
        ("ALTER TABLE mercbo_events RENAME COLUMN body TO text", "no such column.*body"),
        ("ALTER TABLE mercbo_runs DROP COLUMN head", "no such column.*head"),
        ("UPDATE mercbo_events SET body = '{' WHERE number = 2", "event 2: not complete JSON"),
        (
            "UPDATE mercbo_events SET body = '{}' WHERE number = 2",
            "event 2: rows: expected an entry",
        ),
        ("UPDATE mercbo_events SET kind = 'dance' WHERE number = 2", "event 2.*'dance'"),
        ("UPDATE mercbo_events SET body = '{}' WHERE number = 1", "not a saved mercbo run"),
        (
            "UPDATE mercbo_runs SET version = 'one'",
            "version: expected a whole number of at least 1, got 'one'",
        ),
        ("UPDATE mercbo_runs SET head = 1", "event 2 is behind its end"),
        ("UPDATE mercbo_events SET writer = x'ff' WHERE number = 2", "event 2: writer: expected"),
        (
            "UPDATE mercbo_events SET body = x'ff' WHERE number = 2",
            "event 2: body: expected a text",
        ),
        (
            "UPDATE mercbo_runs SET head = 'x'",
            "head: expected a whole number of at least 1, got 'x'",
        ),
    ],
)
def test_a_log_that_cannot_be_understood_is_refused(url, tmp_path, statement, message):
    stored(url).ask()
    change(tmp_path, statement)
    with pytest.raises(StateError, match=message) as caught:
        Optimizer.open(url)
    assert "run.db" in str(caught.value)


@pytest.mark.parametrize("gone", [2, 3, 5])
def test_open_rejects_a_log_with_a_missing_event(url, tmp_path, gone):
    opt = stored(url)
    for _ in range(4):
        opt.ask()
    change(tmp_path, f"DELETE FROM mercbo_events WHERE number = {gone}")
    with pytest.raises(StateError, match=rf"run\.db: event {gone} of 5 is missing"):
        Optimizer.open(url)


@pytest.mark.parametrize("gone", [3, 4])
def test_reader_rejects_a_missing_event_and_keeps_its_state(url, tmp_path, gone):
    one, two = stored(url), Optimizer.open(url)
    one.ask()
    assert len(two.pending) == 1
    one.ask(2)
    one.ask()
    change(tmp_path, f"DELETE FROM mercbo_events WHERE number = {gone}")
    for call in (lambda: two.pending, two.ask):
        with pytest.raises(StateError, match=f"event {gone} of 4 is missing"):
            call()
    assert two._state.number == 2


def test_reader_rejects_a_store_that_was_restored_to_an_earlier_state(url, tmp_path):
    opt = stored(url)
    opt.ask()
    change(tmp_path, "DELETE FROM mercbo_events WHERE number = 2")
    change(tmp_path, "UPDATE mercbo_runs SET head = 1")
    with pytest.raises(StateError, match="holds 1 events, but 2 were read before"):
        opt.ask()


@pytest.mark.parametrize("table", ["mercbo_runs", "mercbo_events"])
def test_further_columns_of_a_table_do_no_harm(url, tmp_path, table):
    stored(url).ask()
    change(tmp_path, f"ALTER TABLE {table} ADD COLUMN remark TEXT DEFAULT 'mine'")
    opt = Optimizer.open(url)
    opt.tell(opt.pending[0], 1.5)
    assert Optimizer.open(url).observations == opt.observations


def test_a_run_that_vanished_is_said(url, tmp_path):
    opt = stored(url)
    change(tmp_path, "DELETE FROM mercbo_runs")
    with pytest.raises(StateError, match="the run is gone"):
        opt.ask()


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("run.db", "is not a database URL; for a file of SQLite write 'sqlite:///run.db'"),
        ("/data/run.db", "write 'sqlite:////data/run.db'"),
        ("sqlite:run.db", "write 'sqlite:///run.db'"),
        ("sqlite:/run.db", "write 'sqlite:///run.db'; a path from the root has four slashes"),
        (7, "storage=7 is not a database URL"),
        ("sqlite://", "in memory, which keeps nothing"),
        ("sqlite:///:memory:", "in memory, which keeps nothing"),
        ("nosuch://host/base", "SQLAlchemy does not know 'nosuch'"),
        ("sqlite:///run.db?run=" + "x" * 201, "not the name of a run"),
        ("sqlite:///run.db?run=a&run=b", "not the name of a run"),
        ("sqlite:///run.db?timeout=soon", "timeout='soon' is not a number of seconds"),
        ("sqlite://run.db", "names a host; a file of SQLite has three slashes"),
        ("sqlite://host/run.db", "names a host; a file of SQLite has three slashes"),
        ("sqlite:///run\ud800.db", "is not a database URL"),
        ("sqlite:///run%00.db", "is not a database URL"),
        ("sqlite:///run.db?uri=maybe", "uri=maybe.*not true/false"),
        ("postgresql://me:secret@host:abc/db", r"me:\*\*\*@host:abc/db' is not a database URL"),
        ("sqlite:///run.db?timeout=-1", "timeout='-1' is not a number of seconds"),
        (
            "postgresql://me:secret@host:port/runs",
            r"'postgresql://me:\*\*\*@host:port/runs' is not",
        ),
        ("://me:secret@host/runs", r"'://me:\*\*\*@host/runs' is not a database URL"),
    ],
)
def test_what_is_no_address_is_refused(storage, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call in (stored, Optimizer.open):
        with pytest.raises(SettingError, match=message):
            call(storage)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_no_file_has_is_said(tmp_path):
    for call in (stored, Optimizer.open):
        with pytest.raises(StateError, match="cannot be opened"):
            call(url_of(tmp_path, "x" * 300))


def test_a_missing_folder_is_said(tmp_path):
    with pytest.raises(StateError, match="cannot be opened: its folder is missing"):
        stored(url_of(tmp_path / "missing"))


def test_a_host_that_cannot_be_is_said():
    with pytest.raises(StateError, match="label"):
        Optimizer.open(f"postgresql+psycopg://{'a' * 70}.org/runs")


def test_a_server_that_is_not_there_is_said_without_the_password():
    with pytest.raises(StateError, match="refused") as caught:
        stored("postgresql+psycopg://me:secret@127.0.0.1:1/runs")
    assert "secret" not in str(caught.value)


def secret_of(url: str) -> str:
    return f"{url}?password=secret"


@pytest.mark.filterwarnings("ignore:Query string argument")
def test_messages_mask_the_password(url):
    """SQLite ignores an option of this name, but a message would show it all the same."""
    space = Space(SPACE.variables, constraints=[Where(first_bit, name="odd")])
    with pytest.warns(UserWarning, match="does not hold") as warned:
        stored(secret_of(url), space)
    with (
        pytest.raises(StateError, match=r"open\('.*password=\*\*\*'\), choose") as caught,
        pytest.warns(UserWarning, match="does not hold"),
    ):
        stored(secret_of(url), space)
    said = [str(caught.value), *(str(warning.message) for warning in warned)]
    assert not any("secret" in text for text in said)


def test_a_missing_driver_and_a_missing_sqlalchemy_say_what_to_install(monkeypatch, url):
    with pytest.raises(ImportError, match="needs the driver oracledb: pip install oracledb"):
        stored("oracle+oracledb://host/base")
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    monkeypatch.delitem(sys.modules, "mercbo.record.store")
    with pytest.raises(ImportError, match=r"pip install 'mercbo\[storage\]'"):
        stored(url)


def test_a_sampler_object_is_wanted_again(url):
    opt = stored(url, backend=dimod.ExactSolver())
    with pytest.raises(StateError, match=r"run\.db.*pass it again: backend="):
        Optimizer.open(url)
    assert Optimizer.open(url, backend=dimod.ExactSolver()).ask() == opt.pending[0]


def first_bit(point: dict) -> bool:
    return point["x0"] == 1


def test_predicates_are_named_and_wanted_again(url):
    space = Space(SPACE.variables, constraints=[Where(first_bit, name="odd")])
    with pytest.warns(UserWarning, match="'odd'; open it with where={'odd': ...}"):
        stored(url, space)
    with pytest.raises(StateError, match=r"run\.db.*odd"):
        Optimizer.open(url)
    assert Optimizer.open(url, where={"odd": first_bit}).ask()["x0"] == 1
