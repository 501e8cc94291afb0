"""Calls that fail or are cut off: the store holds all of a call or nothing of it."""

import os
import resource
import signal
import sqlite3

import pytest
from support.stored import log_of, stored, url_of

from mercbo import Optimizer, PointError, ResultError, SettingError, SpaceExhausted, StateError
from mercbo.record import store


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda opt: opt.tell({"x0": 3}, 1.0), PointError),
        (lambda opt: opt.tell(opt.pending[0], "much"), ResultError),
        (lambda opt: opt.forget(opt.pending[0]), PointError),
        (lambda opt: opt.amend(opt.pending[0], 2.0), PointError),
        (lambda opt: opt.retry(opt.pending[0]), PointError),
        (lambda opt: opt.cancel(opt.observations[0].point), PointError),
        (lambda opt: opt.ask(64), SpaceExhausted),
        (lambda opt: opt.ask(0), SettingError),
    ],
)
def test_a_refused_call_leaves_the_store_and_the_memory_as_they_were(url, call, error):
    opt = stored(url)
    opt.tell(opt.ask(), 1.0)
    opt.ask()
    before, number = opt.to_dict(), len(log_of(url))
    with pytest.raises(error):
        call(opt)
    assert opt.to_dict() == before
    assert len(log_of(url)) == number


def test_a_call_that_says_nothing_writes_nothing(url):
    opt = stored(url)
    opt.tell([], [])
    assert len(log_of(url)) == 1


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError("gone")])
@pytest.mark.parametrize("name", ["ask", "tell", "cancel"])
def test_a_call_cut_off_within_its_turn_leaves_everything(url, monkeypatch, failure, name):
    opt = stored(url)
    point = opt.ask()
    before, number = opt.to_dict(), len(log_of(url))
    original = store._insert

    def insert(*arguments):
        original(*arguments)
        raise failure

    monkeypatch.setattr(store, "_insert", insert)
    with pytest.raises(type(failure)):
        {
            "ask": opt.ask,
            "tell": lambda: opt.tell(point, 1.0),
            "cancel": lambda: opt.cancel(point),
        }[name]()
    monkeypatch.setattr(store, "_insert", original)
    assert opt.to_dict() == before == Optimizer.open(url).to_dict()
    assert len(log_of(url)) == number
    assert opt.ask() == Optimizer.open(url).pending[-1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(("where", "kept"), [("_insert", False), ("commit", True)])
@pytest.mark.parametrize("name", ["ask", "tell"])
def test_a_process_killed_around_the_commit_has_done_the_call_or_not(url, name, where, kept):
    """With SIGKILL, between the last statement and the commit, and right after the commit."""
    opt = stored(url)
    point = opt.ask()
    memory = Optimizer.from_dict(opt.to_dict())
    child = os.fork()
    if child == 0:
        owner = store if where == "_insert" else store.Store
        original = getattr(owner, where)

        def deadly(*arguments):
            original(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(owner, where, deadly)
        opt.ask() if name == "ask" else opt.tell(point, 1.0)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    if kept:
        memory.ask() if name == "ask" else memory.tell(point, 1.0)
    assert opt.to_dict() == Optimizer.open(url).to_dict() == memory.to_dict()
    assert opt.ask() == memory.ask()


@pytest.mark.parametrize("where", ["_insert", "_json"])
def test_transaction_with_a_failed_write_is_undone(url, monkeypatch, where):
    """Also if the user catches the error of the write."""
    opt = stored(url)
    before = opt.to_dict()

    def fail(*_arguments):
        raise OSError("no")

    def ask_twice() -> None:
        with opt.transaction():
            opt.ask()
            with monkeypatch.context() as patch:
                patch.setattr(store, where, fail)
                with pytest.raises(OSError, match="no"):
                    opt.ask()

    if where == "_insert":  # the database may hold half of a write
        with pytest.raises(StateError, match="a write in this transaction failed"):
            ask_twice()
        assert opt.to_dict() == before
    else:
        ask_twice()
        assert len(opt.pending) == 1
    assert opt.to_dict() == Optimizer.open(url).to_dict()
    opt.ask()


def told_until_it_fails(opt: Optimizer, point: dict) -> tuple[dict, str]:
    """The state before the call that failed, and what it said."""
    for _ in range(100):
        before = opt.to_dict()
        try:
            opt.tell(point, 1.0)
        except StateError as error:
            return before, str(error)
    raise AssertionError("nothing failed")


def test_a_full_disk_is_said_and_leaves_everything(url):
    opt = stored(url)
    point = opt.ask()
    engine = opt._log._connected()
    with engine.connect() as connection:  # the pool gives the same connection to the next call
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    before, error = told_until_it_fails(opt, point)
    assert "run.db: the disk is full; nothing of this call was kept" in error
    assert opt.to_dict() == before == Optimizer.open(url).to_dict()
    opt._log.close()
    opt.tell(point, 1.0)
    assert Optimizer.open(url).to_dict() == opt.to_dict()


def test_a_write_that_the_system_refuses_is_said_and_leaves_everything(url, tmp_path):
    """A real one: files of this process may not grow."""
    opt = stored(url)
    point = opt.ask()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    largest = max(path.stat().st_size for path in tmp_path.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, limits[1]))
    try:
        before, error = told_until_it_fails(opt, point)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert "run.db: the disk" in error
    assert opt.to_dict() == before == Optimizer.open(url).to_dict()
    opt.tell(point, 1.0)
    assert Optimizer.open(url).to_dict() == opt.to_dict()


def test_a_locked_file_is_said_and_can_be_used_afterwards(tmp_path):
    url = url_of(tmp_path, timeout=0.1)
    opt = stored(url)
    other = sqlite3.connect(tmp_path / "run.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    before = opt.to_dict()  # may be read
    with pytest.raises(StateError, match=r"run\.db.*: locked by another process"):
        opt.ask()
    assert opt.to_dict() == before
    other.execute("ROLLBACK")
    other.close()
    assert opt.pending == []
    opt.ask()
