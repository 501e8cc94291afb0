"""`Optimizer.transaction`: several calls as one write."""

from __future__ import annotations

import threading

import pytest
from support.optimizer import plain
from support.stored import log_of, stored, url_of

from mercbo import Optimizer, PointError, Space

SPACE = Space.binary(6)


@pytest.fixture(params=["memory", "store"])
def opt(request: pytest.FixtureRequest, tmp_path) -> Optimizer:
    storage = url_of(tmp_path) if request.param == "store" else None
    return Optimizer(SPACE, seed=0, n_initial=3, model=plain(), storage=storage)


def test_transaction_keeps_all_calls(opt, tmp_path) -> None:
    with opt.transaction():
        points = opt.ask(2)
        opt.tell(points[0], 1.0)
        assert len(opt.observations) == 1
    assert opt.pending == [points[1]]
    if (tmp_path / "run.db").exists():
        assert [entry.kind for entry in log_of(url_of(tmp_path))] == ["create", "ask", "tell"]
        assert Optimizer.open(url_of(tmp_path)).to_dict() == opt.to_dict()


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_transaction_undoes_all_calls_after_an_error(opt, failure) -> None:
    opt.tell(opt.ask(3), [3.0, 1.0, 2.0])
    before, suggestion = opt.to_dict(), Optimizer.from_dict(opt.to_dict()).ask()

    def fail() -> None:
        with opt.transaction():
            opt.tell(opt.ask(), 0.0)
            opt.forget(opt.observations[0].point)
            opt.ask(2)
            raise failure

    with pytest.raises(failure):
        fail()
    assert opt.to_dict() == before
    assert [each.point for each in opt.last_suggestions] == [
        seen.point for seen in opt.observations
    ]
    assert opt.ask() == suggestion


def test_transaction_undoes_earlier_calls_if_one_is_rejected(opt) -> None:
    before = opt.to_dict()

    def fail() -> None:
        with opt.transaction():
            point = opt.ask()
            opt.tell(point, 1.0)
            opt.cancel(point)

    with pytest.raises(PointError):
        fail()
    assert opt.to_dict() == before


def test_transaction_joins_the_one_around_it(opt) -> None:
    before = opt.to_dict()

    def fail() -> None:
        with opt.transaction():
            with opt.transaction():
                opt.ask()
            assert len(opt.pending) == 1
            raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        fail()
    assert opt.to_dict() == before


def test_transaction_makes_another_process_wait(tmp_path) -> None:
    """A check and the write that depends on it are one step."""
    one = stored(url_of(tmp_path))
    two = Optimizer.open(url_of(tmp_path))
    begun, done = threading.Event(), threading.Event()

    def ask_unless_pending(opt: Optimizer, wait: bool) -> None:
        with opt.transaction():
            begun.set()
            if wait:
                done.wait(60)
            if not opt.pending:
                opt.ask()

    first = threading.Thread(target=ask_unless_pending, args=(one, True))
    first.start()
    assert begun.wait(60)
    second = threading.Thread(target=ask_unless_pending, args=(two, False))
    second.start()
    done.set()
    first.join(60)
    second.join(60)
    assert len(Optimizer.open(url_of(tmp_path)).pending) == 1
