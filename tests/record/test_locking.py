"""Calls that no other thread comes between, and a lock that travels with its owner."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest

from mercbo.record.locking import Lock, alone


class Counter:
    def __init__(self) -> None:
        self._lock = Lock()
        self.inside = 0
        self.most = 0

    @alone
    def count(self, times: int) -> None:
        """It calls itself, as methods of an optimizer do."""
        self.inside += 1
        self.most = max(self.most, self.inside)
        if times > 1:
            self.inside -= 1
            self.count(times - 1)
            self.inside += 1
        self.inside -= 1


def test_threads_take_turns_and_one_may_call_again() -> None:
    counter = Counter()
    threads = [threading.Thread(target=counter.count, args=(200,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (counter.inside, counter.most) == (0, 1)


def test_an_error_gives_the_lock_back() -> None:
    class Failing(Counter):
        @alone
        def fail(self) -> None:
            raise KeyError

    failing = Failing()
    with pytest.raises(KeyError):
        failing.fail()
    thread = threading.Thread(target=failing.count, args=(1,))
    thread.start()
    thread.join(timeout=60)
    assert failing.most == 1


def test_a_held_lock_is_not_held_in_a_copy_or_a_pickle() -> None:
    counter = Counter()
    with counter._lock:
        for other in (copy.deepcopy(counter), pickle.loads(pickle.dumps(counter))):
            assert other._lock is not counter._lock
            thread = threading.Thread(target=other.count, args=(1,))
            thread.start()
            thread.join(timeout=60)
            assert other.most == 1
