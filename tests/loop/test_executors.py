"""Executors as pools: sizes, refusals, time limits, and new workers for dead ones."""

import os
import signal
import threading
import time
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from support.objectives import total

from mercbo import SettingError
from mercbo.loop.executors import Inline, Loky, Pool, Processes, TimedOut, alarm, as_pool, is_lost

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
    with pytest.raises(BrokenExecutor, match="cannot be made anew"):
        pool.renew()


def test_workers_may_be_counted_by_another_name():
    executor = Minimal()
    executor.num_workers = 5  # as mpi4py's does
    assert as_pool(executor).size == 5


@pytest.mark.parametrize("executor", [3, "dask", object()])
def test_what_is_no_executor_is_refused(executor):
    with pytest.raises(SettingError, match="is no executor"):
        as_pool(executor)


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


def test_an_alarm_ends_what_takes_too_long_and_only_that():
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimedOut, match=r"no result within 0\.01 s"), alarm(0.01):
        time.sleep(30)
    with alarm(30):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_elsewhere_than_in_the_main_thread_there_is_no_alarm():
    caught = []

    def body() -> None:
        with alarm(0.001):
            time.sleep(0.02)
        try:
            Inline().check(total, 1.0)
        except SettingError as error:
            caught.append(str(error))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert len(caught) == 1
    assert "timeout= needs an executor here" in caught[0]


# -- workers that die --------------------------------------------------------------------------


def kill_a_worker(executor: ProcessPoolExecutor) -> None:
    next(iter(executor._processes.values())).kill()


def test_a_broken_pool_is_replaced_by_its_like():
    executor = ProcessPoolExecutor(2)
    pool = as_pool(executor)
    future = pool.submit(time.sleep, 600, None)
    kill_a_worker(executor)
    assert pool.finished(60.0) == [future]
    assert is_lost(future)
    assert pool.renew() is True
    assert pool.executor is not executor
    assert pool.size == 2
    future = pool.submit(total, POINT, None)
    assert pool.finished(60.0) == [future]
    assert future.result() == 1.0
    pool.close()
    with pytest.raises(RuntimeError, match="shutdown"):
        pool.executor.submit(total, POINT)


def test_a_users_pool_is_not_closed():
    with ProcessPoolExecutor(1) as executor:
        as_pool(executor).close()
        assert executor.submit(total, POINT).result() == 1.0


def test_stuck_workers_are_killed_on_renewal():
    pool = as_pool(ProcessPoolExecutor(1))
    future = pool.submit(time.sleep, 600, None)
    assert pool.renew() is True
    assert is_lost(future)
    pool.close()


def test_a_failure_is_no_loss():
    future = Future()
    assert is_lost(future)  # asked of futures of workers that have ended
    future.set_exception(ValueError("no"))
    assert not is_lost(future)
    done = Future()
    done.set_result(3)
    assert not is_lost(done)


@pytest.mark.slow
def test_lokys_pool_takes_any_function_and_starts_anew():
    from joblib.externals.loky import get_reusable_executor

    pool = as_pool(get_reusable_executor(1))
    assert isinstance(pool, Loky)
    pool.check(lambda _: 1.0, None)
    lost = pool.submit(lambda _: os._exit(1), POINT, None)
    assert pool.finished(120.0) == [lost]
    assert is_lost(lost)
    assert pool.renew() is True
    future = pool.submit(lambda point: 2.0 * point["x0"], POINT, None)
    assert pool.finished(120.0) == [future]
    assert future.result() == 2.0
    pool.executor.shutdown(wait=True, kill_workers=True)
