"""Executors as pools: sizes, refusals, time limits, and new workers for dead ones."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress

import pytest
from support.objectives import total, wait_for

from mercbo import ExecutorError, SettingError
from mercbo.loop.executors import (
    Inline,
    Loky,
    Pool,
    Processes,
    TimedOut,
    as_pool,
    is_lost,
    own_pool,
    within,
)

POINT = {"x0": 1, "x1": 0}


def test_no_executor_evaluates_here_when_a_result_is_waited_for():
    pool, calls = as_pool(None), []
    assert isinstance(pool, Inline)
    futures = [pool.submit(lambda p: calls.append(p) or 3.0, POINT, None) for _ in range(2)]
    assert calls == []
    assert pool.finished(0.1) == futures[:1]
    assert (calls, futures[0].result(), futures[1].done()) == ([POINT], 3.0, False)


def test_sizes_are_those_of_the_executors():
    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(2) as pool:
        assert (as_pool(None).size, as_pool(threads).size, as_pool(pool).size) == (1, 3, 2)
        assert isinstance(as_pool(pool), Processes)


class Minimal:
    """As little of an executor as will do."""

    def submit(self, call, *arguments):
        future = Future()
        future.set_result(call(*arguments))
        return future


def test_anything_with_a_submit_is_an_executor():
    pool = as_pool(Minimal())
    future = pool.submit(total, POINT, None)
    assert pool.finished(1.0) == [future]
    assert future.result() == 1.0
    assert pool.size is None
    with pytest.raises(ExecutorError, match="is broken"):
        pool.renew()


def test_workers_may_be_counted_by_another_name():
    executor = Minimal()
    executor.num_workers = 5  # as mpi4py's does
    assert as_pool(executor).size == 5


@pytest.mark.parametrize("executor", [3, "dask", object()])
def test_what_is_no_executor_is_refused(executor):
    with pytest.raises(SettingError, match="expected a thread or process pool"):
        as_pool(executor)


class NoFuture:
    def submit(self, *_):
        return None


def test_submit_refuses_an_executor_that_returns_no_future():
    with pytest.raises(ExecutorError, match=r"NoFuture object .* does not accept evaluations"):
        as_pool(NoFuture()).submit(total, POINT, None)


@pytest.mark.parametrize("make", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_submit_refuses_an_executor_that_is_shut_down(make):
    executor = make(1)
    executor.shutdown()
    with pytest.raises(ExecutorError, match="cannot schedule new futures after shutdown"):
        as_pool(executor).submit(total, POINT, None)


def test_a_function_that_cannot_be_sent_is_refused_at_once():
    with ProcessPoolExecutor(1) as executor:
        with pytest.raises(SettingError, match="cannot be sent to other processes"):
            as_pool(executor).check(lambda _: 1.0, None)
        as_pool(executor).check(total, 3.0)


def test_several_results_are_taken_at_once():
    with ThreadPoolExecutor(4) as executor:
        pool = Pool(executor)
        futures = {pool.submit(total, POINT, None) for _ in range(4)}
        executor.shutdown(wait=True)
        assert set(pool.finished(1.0)) == futures
        assert pool.finished(0.0) == []


# -- time limits -------------------------------------------------------------------------------


@pytest.fixture
def alarms():
    """A handler of SIGALRM of the caller's own, which counts; no timer is left afterwards."""
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rung.append(number))
    yield rung
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_within_ends_what_takes_too_long_and_only_that():
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimedOut, match=r"no result within 0\.01 s"):
        within(0.01, lambda: time.sleep(30))
    assert within(30, lambda: 5) == 5
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before


@pytest.mark.parametrize("seconds", [0.01, 500])
def test_within_leaves_the_callers_timer_running(seconds, alarms):
    handler = signal.getsignal(signal.SIGALRM)
    signal.setitimer(signal.ITIMER_REAL, 1000, 7)
    ended = threading.Event()
    if seconds > 1:
        ended.set()
    with suppress(TimedOut):
        within(seconds, lambda: ended.wait(30))
    left, interval = signal.getitimer(signal.ITIMER_REAL)
    assert 500 < left <= 1000
    assert interval == 7
    assert (signal.getsignal(signal.SIGALRM), alarms) == (handler, [])


def test_within_lets_the_callers_timer_ring_when_it_is_due(alarms):
    rung = threading.Event()
    signal.signal(signal.SIGALRM, lambda *_: (alarms.append(0), rung.set()))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    assert within(60, lambda: rung.wait(30))
    assert (alarms, signal.getitimer(signal.ITIMER_REAL)) == ([0], (0.0, 0.0))


def test_within_lets_a_periodic_timer_of_the_caller_ring_on(alarms):
    often = threading.Event()

    def handler(*_: object) -> None:
        alarms.append(0)
        if len(alarms) >= 5:
            often.set()

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    assert within(60, lambda: often.wait(30))
    assert signal.getitimer(signal.ITIMER_REAL)[1] == 0.01


def test_within_keeps_a_timer_that_the_callers_handler_sets(alarms):
    rung = threading.Event()

    def handler(*_: object) -> None:
        alarms.append(0)
        signal.setitimer(signal.ITIMER_REAL, 1000)
        rung.set()

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    assert within(60, lambda: rung.wait(30))
    assert signal.getitimer(signal.ITIMER_REAL)[0] > 500
    assert signal.getsignal(signal.SIGALRM) is handler


def test_within_passes_on_what_the_callers_handler_raises(alarms):
    def handler(*_: object) -> None:
        raise ZeroDivisionError

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    with pytest.raises(ZeroDivisionError):
        within(60, lambda: time.sleep(30))
    assert signal.getsignal(signal.SIGALRM) is handler
    assert alarms == []


def test_within_delivers_a_timer_that_came_due_while_signals_were_blocked(alarms):
    """The end of the call is the first chance to deliver it."""
    rung = threading.Event()
    signal.signal(signal.SIGALRM, lambda *_: (alarms.append(0), rung.set()))
    signal.setitimer(signal.ITIMER_REAL, 0.01)

    def blocked() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        while signal.SIGALRM not in signal.sigpending() and not rung.is_set():
            time.sleep(0.001)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])

    within(60, blocked)
    assert rung.wait(30)
    assert alarms == [0]


def test_within_does_not_save_a_caller_from_an_alarm_without_a_handler():
    code = (
        "import signal, time; from mercbo.loop.executors import within; "
        "signal.setitimer(signal.ITIMER_REAL, 0.01); within(60, lambda: time.sleep(30))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGALRM


def test_an_objective_that_catches_every_exception_is_still_interrupted():
    def stubborn() -> None:
        while True:
            try:
                time.sleep(30)
            except Exception:
                continue

    with pytest.raises(TimedOut):
        within(0.01, stubborn)


def test_the_limit_of_a_caller_is_not_taken_for_the_own():
    reached = []

    def outer() -> None:
        try:
            within(60, lambda: time.sleep(30))
        except Exception:
            reached.append("the inner call timed out")

    with pytest.raises(TimedOut, match=r"within 0\.01 s"):
        within(0.01, outer)
    assert reached == []
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_in_other_threads_there_is_no_limit():
    caught = []

    def body() -> None:
        within(0.001, lambda: time.sleep(0.02))
        try:
            Inline().check(total, 1.0)
        except SettingError as error:
            caught.append(str(error))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert len(caught) == 1
    assert "timeout=1.0 needs workers= or an executor" in caught[0]


def timer_after(_point: dict) -> tuple[float, float]:
    return signal.getitimer(signal.ITIMER_REAL)


def set_timer() -> None:
    signal.setitimer(signal.ITIMER_REAL, 1000)


def test_a_timer_of_a_worker_process_goes_on_after_an_evaluation():
    with ProcessPoolExecutor(1, initializer=set_timer) as executor:
        pool = as_pool(executor)
        future = pool.submit(total, POINT, 100.0)
        assert future.result(60) == 1.0
        left, _ = executor.submit(timer_after, POINT).result(60)
        pool.close()
    assert 500 < left <= 1000


def test_an_evaluation_that_waits_behind_other_work_has_not_begun(tmp_path):
    with ProcessPoolExecutor(1) as executor:
        executor.submit(wait_for, tmp_path / "release")
        pool = as_pool(executor)
        future = pool.submit(total, POINT, 100.0)
        while not future.running():  # as the pool says of a call that waits for its worker
            time.sleep(0.001)
        assert pool.begun([future]) == []
        (tmp_path / "release").touch()
        future.result(60)
        assert pool.begun([future]) == [future]
        pool.close()


# -- workers that die --------------------------------------------------------------------------


def kill_a_worker(executor: ProcessPoolExecutor) -> None:
    next(iter(executor._processes.values())).kill()


def forbidden(*_: object, **__: object) -> None:
    raise AssertionError("the user's executor was shut down")


def test_a_users_broken_pool_is_left_as_it_is_and_replaced_by_its_like(monkeypatch):
    context = multiprocessing.get_context("fork")
    executor = ProcessPoolExecutor(2, context, initializer=set_timer)
    monkeypatch.setattr(executor, "shutdown", forbidden)
    pool = as_pool(executor)
    future = pool.submit(time.sleep, 600, None)
    kill_a_worker(executor)
    assert pool.finished(60.0) == [future]
    assert is_lost(future)
    pool.renew()
    assert pool.own
    assert pool.executor is not executor
    assert pool.size == 2
    assert pool.executor._mp_context is context
    future = pool.submit(timer_after, POINT, None)
    assert pool.finished(60.0) == [future]
    assert future.result()[0] > 500
    pool.close()
    with pytest.raises(RuntimeError, match="shutdown"):
        pool.executor.submit(total, POINT)
    monkeypatch.undo()
    executor.shutdown()


def test_a_users_pool_is_not_closed():
    with ProcessPoolExecutor(1) as executor:
        as_pool(executor).close()
        assert executor.submit(total, POINT).result() == 1.0


def test_workers_of_an_own_pool_are_killed_on_renewal_and_at_the_end():
    before = set(multiprocessing.active_children())
    pool = own_pool(1)
    for _ in range(2):
        future = pool.submit(time.sleep, 600, None)
        pool.renew()
        assert is_lost(future)
    pool.submit(time.sleep, 600, None)
    pool.close()
    assert set(multiprocessing.active_children()) == before


def test_a_failure_is_no_loss():
    future = Future()
    assert is_lost(future)  # asked of futures of workers that have ended
    future.set_exception(ValueError("no"))
    assert not is_lost(future)
    done = Future()
    done.set_result(3)
    assert not is_lost(done)


@pytest.mark.slow
def test_a_users_broken_pool_of_loky_is_replaced_by_its_like(monkeypatch):
    from joblib.externals.loky import get_reusable_executor

    executor = get_reusable_executor(1)
    pool = as_pool(executor)
    assert isinstance(pool, Loky)
    pool.check(lambda _: 1.0, None)
    lost = pool.submit(lambda _: os._exit(1), POINT, None)
    assert pool.finished(120.0) == [lost]
    assert is_lost(lost)
    monkeypatch.setattr(executor, "shutdown", forbidden)
    pool.renew()
    assert pool.own
    monkeypatch.undo()
    fresh = get_reusable_executor(1)  # the user's next one, which is not that of the pool
    assert pool.executor not in (executor, fresh)
    future = pool.submit(lambda point: 2.0 * point["x0"], POINT, None)
    assert pool.finished(120.0) == [future]
    assert future.result() == 2.0
    pool.close()
    assert fresh.submit(total, POINT).result(120) == 1.0
    fresh.shutdown(wait=True, kill_workers=True)


@pytest.mark.slow
def test_a_plain_pool_of_loky_is_one_too():
    from joblib.externals.loky import ProcessPoolExecutor as Plain

    executor = Plain(1)
    pool = as_pool(executor)
    assert isinstance(pool, Loky)
    future = pool.submit(lambda _: time.sleep(600), POINT, 0.2)
    assert pool.finished(120.0) == [future]
    assert isinstance(future.exception(), TimedOut)
    pool.close()
    assert executor.submit(total, POINT).result(120) == 1.0
    executor.shutdown(wait=True, kill_workers=True)
