"""The same run in memory, in a store and after reopening."""

import os
import sqlite3

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateTable
from support.stored import SPACE, cost, log_of, stored, url_of

from mercbo import Categorical, MercboError, Model, Optimizer, Space
from mercbo.record import store
from mercbo.record.store import Store


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


def test_the_tables_suit_other_databases():
    text = str(CreateTable(store.events).compile(dialect=mysql.dialect()))
    assert "body LONGTEXT" in text
