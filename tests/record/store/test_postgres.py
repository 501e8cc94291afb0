"""The store on a real PostgreSQL server, which the tests start."""

import copy
import itertools
import threading

import pytest
import sqlalchemy
from support import postgres
from support.played import played
from support.stored import SPACE, asked_rows, cost, log_of, stored

from mercbo import Optimizer, StateError, minimize
from mercbo.record import store
from mercbo.record.store import Store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(postgres.lacking() is not None, reason=str(postgres.lacking())),
]
NAMES = (f"run{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def server():
    with postgres.server() as running:
        yield running


@pytest.fixture
def url(server):
    return f"{server.url}?run={next(NAMES)}"


def test_a_run_reopened_at_every_step_is_the_run_in_memory(url):
    assert not Store.exists(url)
    memory = Optimizer(SPACE, seed=0, n_initial=3)
    stored(url)
    for number in range(6):
        point = memory.ask()
        assert Optimizer.open(url).ask() == point
        for opt in (memory, Optimizer.open(url)):
            opt.tell(point, None if number == 2 else cost(point))
        assert Optimizer.open(url).to_dict() == memory.to_dict()
    assert Store.exists(url)
    with pytest.raises(StateError, match="holds a run already"):
        stored(url)


def test_processes_share_a_run_and_die_without_losing_or_doubling_anything(url, tmp_path):
    said = played("crowd", url, tmp_path, 3, 24, 5)
    assert said["killed"] == 5
    assert said["asked"] == said["results"] + said["left pending"]


def test_many_that_begin_runs_at_once_all_begin_theirs(server):
    """In a database without tables, which are made once."""
    engine = sqlalchemy.create_engine(server.url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE DATABASE fresh")
    engine.dispose()
    base = server.url.replace("/postgres", "/fresh")
    failures = []

    def begin(number: int) -> None:
        try:
            stored(f"{base}?run=begun{number}")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(Store.names(base)) == [f"begun{number}" for number in range(4)]


def test_a_run_that_is_locked_for_too_long_says_so(url, monkeypatch):
    opt = stored(url)
    before = copy.deepcopy(opt.to_dict())
    monkeypatch.setattr(store, "PATIENCE", 0.2)
    with (
        Optimizer.open(url).transaction(),
        pytest.raises(StateError, match="locked by another process for too long"),
    ):
        opt.ask()
    assert opt.to_dict() == before
    opt.ask()
    assert len(asked_rows(url)) == 1


def test_a_server_that_goes_and_comes_back_costs_a_call_and_no_more(server, url):
    opt = stored(url)
    point = opt.ask()
    server.stop()
    with pytest.raises(StateError, match=r"127\.0\.0\.1"):
        opt.tell(point, 1.0)
    server.start()
    assert opt.pending == [point]
    opt.tell(point, 1.0)
    assert [entry.kind for entry in log_of(url)] == ["create", "ask", "tell"]


def test_minimize_goes_on_from_there(url):
    minimize(cost, SPACE, budget=3, storage=url, progress=False, n_initial=9, seed=0)
    result = minimize(cost, SPACE, budget=5, storage=url, progress=False)
    assert len(result.observations) == 5
