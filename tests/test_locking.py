"""`Synchronized` objects: one thread at a time, and a lock of their own in each process."""

from __future__ import annotations

import copy
import os
import pickle
import threading

import pytest

from mercbo.locking import Synchronized, synchronized


class Counter(Synchronized):
    def __init__(self) -> None:
        self.inside = 0
        self.most = 0

    @synchronized
    def count(self, times: int) -> None:
        """Calls itself, as methods of an optimizer do."""
        self.inside += 1
        self.most = max(self.most, self.inside)
        if times > 1:
            self.inside -= 1
            self.count(times - 1)
            self.inside += 1
        self.inside -= 1


def count_in_a_thread(counter: Counter) -> bool:
    thread = threading.Thread(target=counter.count, args=(1,), daemon=True)
    thread.start()
    thread.join(timeout=60)
    return not thread.is_alive()


def test_synchronized_runs_one_thread_at_a_time_and_is_reentrant() -> None:
    counter = Counter()
    threads = [threading.Thread(target=counter.count, args=(200,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (counter.inside, counter.most) == (0, 1)


def test_synchronized_releases_the_lock_after_an_error() -> None:
    class Failing(Counter):
        @synchronized
        def fail(self) -> None:
            raise KeyError

    failing = Failing()
    with pytest.raises(KeyError):
        failing.fail()
    assert count_in_a_thread(failing)


def test_copy_and_pickle_get_a_lock_of_their_own() -> None:
    counter = Counter()
    with counter._lock:
        for other in (copy.copy(counter), copy.deepcopy(counter)):
            assert other._lock is not counter._lock
            assert count_in_a_thread(other)
        assert count_in_a_thread(pickle.loads(pickle.dumps(counter)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_child_of_a_fork_gets_a_free_lock() -> None:
    counter = Counter()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with counter._lock:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(0 if count_in_a_thread(counter) else 1)
    _, status = os.waitpid(child, 0)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
