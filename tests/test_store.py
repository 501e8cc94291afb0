"""The store: every call on disk, the same run after reopening, and clear errors."""

import copy
import os
import pickle
import resource
import signal
import sqlite3
import sys

import dimod
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateTable
from support.stored import SPACE, asked_rows, cost, log_of, stored, url_of

from mercbo import (
    Categorical,
    MercboError,
    Model,
    Optimizer,
    PointError,
    ResultError,
    SettingError,
    Space,
    SpaceExhausted,
    StateError,
    Where,
    store,
)
from mercbo.store import Store


@pytest.fixture
def url(tmp_path):
    return url_of(tmp_path)


# -- the same run, in memory, in a store and after reopening -----------------------------------


@pytest.mark.parametrize("inference", ["map", "hmc"])
def test_a_run_reopened_at_every_step_is_the_run_in_memory(inference, url):
    memory = Optimizer(SPACE, seed=0, n_initial=3, model=Model(inference=inference))
    stored(url, model=Model(inference=inference))
    for _ in range(7):
        point = memory.ask()
        assert Optimizer.open(url).ask() == point
        assert Optimizer.open(url).to_dict() == memory.to_dict()
        for opt in (memory, Optimizer.open(url)):
            opt.tell(point, cost(point))
        assert Optimizer.open(url).to_dict() == memory.to_dict()


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "ask", "tell", "tell", "fail", "amend", "forget", "cancel",
                         "retry", "predict"]),
        st.integers(0, 7),
    ),
    min_size=6,
    max_size=14,
)  # fmt: skip


def play(opt: Optimizer, name: str, number: int, points: list[dict]) -> object:
    """One call, whatever comes of it."""
    point = points[number]
    calls = {
        "ask": lambda: opt.ask(1 + number % 2),
        "tell": lambda: opt.tell([point, points[-1 - number]], [number / 7, 0.5], std=[None, 0.1]),
        "fail": lambda: opt.tell(point, None),
        "amend": lambda: opt.amend(point, 3.0 if number % 2 else None),
        "forget": lambda: opt.forget(point),
        "cancel": lambda: opt.cancel(opt.pending[-1:] or point),
        "retry": lambda: opt.retry(point),
        "predict": lambda: opt.predict(points).mean.tolist(),
    }
    try:
        return calls[name]()
    except MercboError as error:
        return type(error), str(error)


@pytest.mark.slow
@settings(
    max_examples=8,
    suppress_health_check=list(HealthCheck),
    database=None,
    phases=[Phase.generate],
)
@given(calls=CALLS)
def test_any_calls_lead_to_the_same_state_everywhere(tmp_path_factory, calls):
    """In memory, in the process that writes, in one that looks on, and in one that comes later."""
    storage = url_of(tmp_path_factory.mktemp("run"))
    space = Space(
        {"a": Categorical(["x", "y"]), "b": Categorical([1, 2]), "c": Categorical(["n", "o"])}
    )
    points = space.points(space.enumerate_rows())
    memory = Optimizer(space, seed=1, n_initial=2)
    writer = stored(storage, space, seed=1, n_initial=2)
    onlooker = Optimizer.open(storage)
    for name, number in calls:
        assert play(writer, name, number, points) == play(memory, name, number, points)
        assert onlooker.to_dict() == writer.to_dict() == memory.to_dict()
    later = Optimizer.open(storage)
    assert later.to_dict() == memory.to_dict()
    if len(memory.pending) + len(memory.failed) + len(memory.observations) < len(points):
        assert later.ask() == memory.ask()


def test_a_predicted_model_is_not_committed(url):
    opt = stored(url)
    for _ in range(4):
        point = opt.ask()
        opt.tell(point, cost(point))
    number = len(log_of(url))
    opt.predict(point)
    opt.draw()
    assert (opt.best.value, len(opt.pending)) == (opt.best_observed.value, 0)
    assert len(log_of(url)) == number


def test_a_run_of_a_file_goes_on_in_a_store(url, tmp_path):
    memory = Optimizer(SPACE, seed=0, n_initial=2)
    for value in (1.0, 2.0, 3.0):
        memory.tell(memory.ask(), value)
    memory.ask()
    memory.save(tmp_path / "run.json")
    Optimizer.load(tmp_path / "run.json", storage=url).tell(memory.pending, [0.5])
    memory.tell(memory.pending, [0.5])
    assert Optimizer.open(url).to_dict() == memory.to_dict()
    assert Optimizer.open(url).ask() == memory.ask()


def test_a_stored_run_can_be_saved_to_a_file(url, tmp_path):
    opt = stored(url)
    opt.tell(opt.ask(2), [1.0, None])
    opt.save(tmp_path / "run.json")
    assert Optimizer.load(tmp_path / "run.json").to_dict() == opt.to_dict()


def test_the_log_says_what_happened_when_and_by_whom(url):
    opt = stored(url)
    one, two = opt.ask(2)
    opt.tell(one, 1.5)
    opt.tell(two, None)
    opt.retry(two)
    entries = log_of(url)
    assert [entry.kind for entry in entries] == ["create", "ask", "tell", "fail", "retry"]
    assert [entry.number for entry in entries] == [1, 2, 3, 4, 5]
    assert entries[2].body["values"] == [1.5]
    assert all(entry.at.startswith("20") and entry.at.endswith("+00:00") for entry in entries)
    assert len({entry.by for entry in entries}) == 1
    assert f"/{os.getpid()}/" in entries[0].by


def test_the_file_is_made_to_last(url, tmp_path):
    stored(url)
    connection = sqlite3.connect(tmp_path / "run.db")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    with Store.open(url)._connected().connect() as used:
        assert used.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL


# -- several at once ---------------------------------------------------------------------------


def test_each_sees_at_once_what_another_did(url):
    one = stored(url)
    two = Optimizer.open(url)
    point = one.ask()
    assert two.pending == [point]
    two.tell(point, 2.0)
    assert (one.pending, one.best.value, one.observations) == ([], 2.0, two.observations)
    one.amend(point, 1.0)
    assert two.best.value == 1.0
    two.forget(point)
    with pytest.raises(PointError, match="no result to forget"):
        one.forget(point)
    one.tell(point, None)
    assert two.failed == [point]


def raced(opt: Optimizer, meanwhile) -> None:
    """Let something happen, once, after `opt` has chosen and before it has written."""
    choose = opt._choose

    def chosen(*arguments, **options):
        event = choose(*arguments, **options)
        opt._choose = choose
        meanwhile()
        return event

    opt._choose = chosen


@pytest.mark.parametrize("told", [0, 5])
def test_a_point_that_another_took_is_not_suggested_too(url, told):
    one = stored(url)
    two = Optimizer.open(url)
    for _ in range(told):
        point = one.ask()
        one.tell(point, cost(point))
    taken = []
    raced(two, lambda: taken.extend(one.ask(2)))
    mine = two.ask(2)
    assert len({tuple(p.values()) for p in taken + mine}) == 4
    assert len(set(asked_rows(url))) == len(asked_rows(url)) == told + 4
    assert one.pending == two.pending == taken + mine
    assert Optimizer.open(url).to_dict() == one.to_dict() == two.to_dict()


def test_whoever_lost_a_point_asks_by_random_numbers_of_its_own_from_then_on(url):
    one = stored(url, Space.binary(40))
    two, three = Optimizer.open(url), Optimizer.open(url)
    raced(two, one.ask)
    two.ask()
    assert one.pending == two.pending == three.pending  # all have caught up
    next_of = {opt: opt._choose(1, None).rows.tolist() for opt in (one, two, three)}
    assert next_of[three] == next_of[one] != next_of[two]


def test_a_choice_that_nobody_took_stands_though_others_wrote(url):
    one = stored(url)
    two = Optimizer.open(url)
    for _ in range(4):
        point = one.ask()
        one.tell(point, cost(point))
    other = one.ask()
    assert two.pending == [other]
    expected = two._choose(1, None).rows.tolist()
    raced(two, lambda: one.tell(other, 0.25))
    asked = two.ask()
    assert SPACE.rows(asked).tolist() == expected
    # the fit was one to results that are no longer the present ones
    assert two._state.committed is not None
    assert not two._state.fresh
    assert Optimizer.open(url).to_dict() == one.to_dict() == two.to_dict()
    expected = two._choose(1, None).rows.tolist()
    assert SPACE.rows(Optimizer.open(url).ask()).tolist() == expected


def test_who_always_comes_too_late_gets_a_point_in_the_end(url):
    one = stored(url, Space.binary(8), n_initial=200)
    two = Optimizer.open(url)
    choose = two._choose

    def chosen(*arguments, **options):
        event = choose(*arguments, **options)
        if two._log.entries(two._state.number) == [] and not held:
            one._record(event)  # exactly these points are gone
        return event

    held: list = []
    turn = two._log.turn
    calls = []

    def watched(since):
        calls.append(since)
        held.extend([1] * (len(calls) > 4))  # the fifth turn is the one that chooses inside
        return turn(since)

    two._choose, two._log.turn = chosen, watched
    two.ask()
    assert len(calls) == 5
    assert len(set(asked_rows(url))) == len(asked_rows(url)) == 5


def test_a_full_space_is_full_for_everybody(url):
    one = stored(url, Space.binary(2))
    two = Optimizer.open(url)
    one.ask(4)
    with pytest.raises(SpaceExhausted):
        two.ask()


def test_a_copy_and_a_pickle_work_on_the_same_run(url):
    opt = stored(url)
    opt.ask()
    for other in (copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))):
        other.ask()
        assert other.pending == opt.pending
    assert len(opt.pending) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_works_on_the_same_run(url):
    opt = stored(url, n_initial=50)
    opt.ask()
    child = os.fork()
    if child == 0:
        opt.ask()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    opt.ask()
    assert len(opt.pending) == 3
    assert len(log_of(url)) == 4


def test_several_runs_live_in_one_database(tmp_path):
    urls = [url_of(tmp_path), url_of(tmp_path, run="second"), url_of(tmp_path, run="third")]
    opts = [stored(url, seed=seed) for seed, url in enumerate(urls)]
    points = [opt.ask() for opt in opts]
    assert [Optimizer.open(url).pending for url in urls] == [[point] for point in points]
    assert Store.names(urls[0]) == ["main", "second", "third"]
    with pytest.raises(StateError, match=r"no run of mercbo named 'fourth'; there are \['main', "):
        Optimizer.open(url_of(tmp_path, run="fourth"))


# -- calls that fail ---------------------------------------------------------------------------


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
@pytest.mark.parametrize(("where", "kept"), [("_insert", False), ("_become", True)])
@pytest.mark.parametrize("name", ["ask", "tell"])
def test_a_process_killed_around_the_commit_has_done_the_call_or_not(url, name, where, kept):
    """With SIGKILL, between the last statement and the commit, and right after the commit."""
    opt = stored(url)
    point = opt.ask()
    memory = Optimizer.from_dict(opt.to_dict())
    child = os.fork()
    if child == 0:
        owner = store if where == "_insert" else Optimizer
        original = getattr(owner, where)

        def deadly(*arguments):
            if where == "_insert":
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


# -- what is refused ---------------------------------------------------------------------------


def test_a_run_that_is_there_is_not_begun_again(url):
    point = stored(url).ask()
    with pytest.raises(StateError, match=r"holds a run already; go on with it by Optimizer\.open"):
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
            "UPDATE mercbo_runs SET version = 2",
            "written by a newer mercbo .store version 2.*update",
        ),
        (
            """UPDATE mercbo_events SET body = replace(body, '"version":', '"version":9')""",
            "written by a newer mercbo",
        ),
        ("DELETE FROM mercbo_events WHERE number = 1", "the log has no beginning"),
        ("UPDATE mercbo_events SET body = '{' WHERE number = 2", "event 2 is no JSON"),
        ("UPDATE mercbo_events SET body = '{}' WHERE number = 2", "event 2: not an event of this"),
        ("UPDATE mercbo_events SET kind = 'dance' WHERE number = 2", "event 2.*'dance'"),
        ("UPDATE mercbo_events SET body = '{}' WHERE number = 1", "not a saved mercbo run"),
    ],
)
def test_a_log_that_cannot_be_understood_is_refused(url, tmp_path, statement, message):
    stored(url).ask()
    change(tmp_path, statement)
    with pytest.raises(StateError, match=message) as caught:
        Optimizer.open(url)
    assert "run.db" in str(caught.value)


def test_a_run_that_vanished_is_said(url, tmp_path):
    opt = stored(url)
    change(tmp_path, "DELETE FROM mercbo_runs")
    with pytest.raises(StateError, match="the run is gone"):
        opt.ask()


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("run.db", "is not a database URL; for a file of SQLite write 'sqlite:///run.db'"),
        (7, "storage=7 is not a database URL"),
        ("sqlite://", "in memory, which keeps nothing"),
        ("sqlite:///:memory:", "in memory, which keeps nothing"),
        ("nosuch://host/base", "SQLAlchemy does not know 'nosuch'"),
        ("sqlite:///run.db?run=" + "x" * 201, "not the name of a run"),
        ("sqlite:///run.db?run=a&run=b", "not the name of a run"),
        ("sqlite:///run.db?timeout=soon", "timeout='soon' is not a number of seconds"),
        ("sqlite:///run.db?timeout=-1", "timeout='-1' is not a number of seconds"),
    ],
)
def test_what_is_no_address_is_refused(storage, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call in (stored, Optimizer.open):
        with pytest.raises(SettingError, match=message):
            call(storage)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_said(tmp_path):
    with pytest.raises(StateError, match="cannot be opened: its folder is missing"):
        stored(url_of(tmp_path / "missing"))


def test_a_server_that_is_not_there_is_said_without_the_password():
    with pytest.raises(StateError, match="refused") as caught:
        stored("postgresql+psycopg://me:secret@127.0.0.1:1/runs")
    assert "secret" not in str(caught.value)


def test_a_missing_driver_and_a_missing_sqlalchemy_say_what_to_install(monkeypatch, url):
    with pytest.raises(ImportError, match="needs the driver oracledb: pip install oracledb"):
        stored("oracle+oracledb://host/base")
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    monkeypatch.delitem(sys.modules, "mercbo.store")
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


def test_the_tables_suit_other_databases():
    text = str(CreateTable(store.events).compile(dialect=mysql.dialect()))
    assert "body LONGTEXT" in text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_of_many_that_begin_a_run_at_once_one_does_and_the_others_are_told(url):
    start, go = os.pipe()
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            os.close(go)
            os.read(start, 1)  # until the parent closes its end
            try:
                stored(url)
                os._exit(10)
            except StateError as error:
                os._exit(20 if "holds a run already" in str(error) else 30)
        children.append(child)
    os.close(start)
    os.close(go)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert sorted(codes) == [10, 20, 20, 20]
    assert len(log_of(url)) == 1


class Busy:
    """A cursor of a file whose mode another process changes, so many times."""

    def __init__(self, times: int, message: str = "database is locked") -> None:
        self.left, self.message = times, message

    def execute(self, _: str):
        if self.left:
            self.left -= 1
            raise sqlite3.OperationalError(self.message)
        return self

    def fetchone(self) -> tuple[str]:
        return ("wal",)


def test_a_mode_that_another_process_changes_is_waited_for(url, monkeypatch) -> None:
    """SQLite answers at once that the file is locked, whatever its time-out."""
    store, busy = Store(url), Busy(2)
    assert [store._write_ahead(busy) for _ in range(3)] == [None, None, "wal"]
    with pytest.raises(sqlite3.OperationalError, match="disk"):
        store._write_ahead(Busy(1, "disk I/O error"))
    asked = iter([None, None, "wal"])
    monkeypatch.setattr(Store, "_write_ahead", lambda *_: next(asked))
    stored(url)
    assert list(asked) == []


def test_a_result_that_another_told_can_be_amended(url) -> None:
    one = Optimizer(SPACE, seed=0, storage=url)
    other = Optimizer.open(url)
    point = one.ask()
    one.tell(point, 1.0)
    other.amend(point, 2.0)
    assert [seen.value for seen in other.observations] == [2.0]
