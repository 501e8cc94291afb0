"""Several processes and several runs: each sees what another did, and no point is given twice."""

import copy
import os
import pickle
import sqlite3

import pytest
from support.stored import SPACE, asked_rows, cost, log_of, stored, url_of

from mercbo import (
    Optimizer,
    PointError,
    Space,
    SpaceExhausted,
    StateError,
)
from mercbo.record.store import Store


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
    begin = two._log.begin
    calls = []

    def watched(since):
        calls.append(since)
        held.extend([1] * (len(calls) > 4))  # the fifth transaction is the one that chooses inside
        return begin(since)

    two._choose, two._log.begin = chosen, watched
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


def test_a_result_that_another_told_can_be_amended(url) -> None:
    one = Optimizer(SPACE, seed=0, storage=url)
    other = Optimizer.open(url)
    point = one.ask()
    one.tell(point, 1.0)
    other.amend(point, 2.0)
    assert [seen.value for seen in other.observations] == [2.0]


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
