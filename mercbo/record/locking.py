"""Calls of an object that no other thread's call comes between: `Lock` and `alone`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Called = TypeVar("Called", bound=Callable[..., Any])


class Lock:
    """A lock that the thread which holds it may take again. What travels to another process by
    pickle takes a new one along."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()


def alone(method: Called) -> Called:
    """A method that is called while its object's `_lock` is held."""

    @wraps(method)
    def waiting(self: Any, *args: Any, **options: Any) -> Any:
        with self._lock:
            return method(self, *args, **options)

    return waiting  # type: ignore[return-value]
